// Giving up on a process that is stuck in its own code: to all others it has ended, and its code, when it comes back,
// harms nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
struct echo {
  using reply = int;
  int n = 0;
};

/// A stuck worker is replaced after 20 ms.
runtime_options with_quick_replacement() { return {.workers = 2, .stall_after = 20ms, .level = log_level::off}; }

task<> gets_stuck(self& me, trap_door* where, std::latch* back) {
  co_await me.receive<go>();
  where->fall_in();
  back->count_down();
  co_await me.receive<go>();
}
template <class E>
task<> waits_for_down_or_exit(self& me, pid who, std::latch* ready, E* into) {
  me.trap_exits();
  if constexpr (std::is_same_v<E, down>) me.monitor(who);
  if constexpr (std::is_same_v<E, exited>) me.link(who);
  ready->count_down();
  *into = co_await me.receive<E>();
}

TEST(abandon, a_process_that_is_not_in_its_code_is_refused) {
  trap_door door;
  std::latch back{1};
  runtime rt{with_quick_replacement()};
  const pid waiting = rt.spawn(gets_stuck, &door, &back);
  while (!rt.info(waiting) || rt.info(waiting)->state != process_state::waiting) std::this_thread::yield();
  EXPECT_FALSE(rt.abandon(waiting));
  EXPECT_TRUE(rt.alive(waiting));
  rt.kill(waiting);
  rt.wait(waiting);
  EXPECT_FALSE(rt.abandon(waiting));
  EXPECT_FALSE(rt.abandon(pid{}));
}

TEST(abandon, links_and_monitors_are_told_and_the_name_is_free) {
  trap_door door;
  std::latch back{1};
  runtime rt{with_quick_replacement()};
  const pid stuck = *rt.spawn({.name = "hanger"}, gets_stuck, &door, &back);
  std::latch ready{2};
  down d;
  exited x;
  const pid monitoring = rt.spawn(waits_for_down_or_exit<down>, stuck, &ready, &d);
  const pid linked = rt.spawn(waits_for_down_or_exit<exited>, stuck, &ready, &x);
  ready.wait();
  rt.send(stuck, go{});
  door.wait_until_inside();
  EXPECT_TRUE(rt.abandon(stuck));
  rt.wait(monitoring);
  rt.wait(linked);
  EXPECT_EQ(d.who, stuck);
  EXPECT_EQ(d.reason, exit_reason::abandoned());
  EXPECT_EQ(x.from, stuck);
  EXPECT_EQ(x.reason, exit_reason::abandoned());
  EXPECT_FALSE(rt.alive(stuck));
  EXPECT_EQ(rt.where("hanger"), pid{});
  EXPECT_FALSE(rt.abandon(stuck)) << "once is enough";
  EXPECT_EQ(rt.wait(stuck), exit_reason::noproc());
  EXPECT_EQ(rt.call(call<echo>(stuck, 1)).error().code(), errc::noproc);
  door.open();
  back.wait();
}

TEST(abandon, requests_that_wait_in_its_queue_are_answered) {
  trap_door door;
  std::latch back{1};
  runtime rt{with_quick_replacement()};
  const pid stuck = rt.spawn(gets_stuck, &door, &back);
  rt.send(stuck, go{});
  door.wait_until_inside();
  std::jthread caller{[&] {
    const auto got = rt.call(call<echo>(stuck, 1).within(forever));
    ASSERT_FALSE(got);
    // Sent before or after the end: both are answered at once.
    EXPECT_TRUE(got.error() == (error{errc::exited, "abandoned"}) || got.error().code() == errc::noproc) << got.error();
  }};
  while (rt.counters().spawned < 2) std::this_thread::yield();
  EXPECT_TRUE(rt.abandon(stuck));
  caller.join();
  door.open();
  back.wait();
}

struct hangs_in_handlers {
  struct hang {
    using reply = int;
    std::string payload;
  };
  struct hang_and_throw {
    using reply = int;
    std::string payload;
  };
  explicit hangs_in_handlers(trap_door* d, std::atomic<int>* n) : door{d}, ended{n} {}
  hangs_in_handlers(const hangs_in_handlers&) = delete;
  hangs_in_handlers& operator=(const hangs_in_handlers&) = delete;
  ~hangs_in_handlers() { ++*ended; }
  int handle(hang) const {
    door->fall_in();
    return 1;
  }
  int handle(hang_and_throw) const {
    door->fall_in();
    throw std::runtime_error{"too late"};
  }
  int handle(echo m) const { return m.n; }
  trap_door* door;
  std::atomic<int>* ended;
};
const std::string long_text(200, 'x');

TEST(abandon, the_caller_whose_request_it_is_stuck_in_is_answered) {
  trap_door door;
  std::atomic<int> ended{0};
  runtime rt{with_quick_replacement()};
  const auto stuck = rt.spawn<hangs_in_handlers>(&door, &ended);
  std::jthread caller{[&] {
    const auto got = rt.call(stuck.call<hangs_in_handlers::hang>(long_text).within(2s));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error(), (error{errc::exited, "abandoned"}));
  }};
  door.wait_until_inside();
  EXPECT_TRUE(rt.abandon(stuck.id()));
  caller.join();
  door.open();
  while (ended == 0) std::this_thread::yield();
}

struct stuck_when_destroyed {
  explicit stuck_when_destroyed(trap_door* d) : door{d} {}
  stuck_when_destroyed(const stuck_when_destroyed&) = delete;
  stuck_when_destroyed& operator=(const stuck_when_destroyed&) = delete;
  ~stuck_when_destroyed() { door->fall_in(); }
  trap_door* door;
};
task<> throws_and_gets_stuck(self& me, trap_door* door, std::latch* taken) {
  const stuck_when_destroyed last{door};
  const request<echo> asked = co_await me.receive<request<echo>>();
  taken->count_down();
  co_await me.receive<go>();
  throw std::runtime_error{"the request is destroyed before `last`"};
}

TEST(abandon, the_caller_whose_request_an_exception_has_destroyed_is_answered_when_the_code_comes_back) {
  trap_door door;
  std::latch taken{1};
  runtime rt{with_quick_replacement()};
  const pid stuck = rt.spawn(throws_and_gets_stuck, &door, &taken);
  std::jthread caller{[&] {
    const auto got = rt.call(call<echo>(stuck, 1).within(forever));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error(), (error{errc::exited, "abandoned"}));
  }};
  taken.wait();
  rt.send(stuck, go{});
  door.wait_until_inside();
  EXPECT_TRUE(rt.abandon(stuck));
  door.open();
}

TEST(abandon, what_the_code_leaves_is_cleaned_up_when_it_comes_back) {
  for (const bool throws : {false, true}) {
    trap_door door;
    std::atomic<int> ended{0};
    runtime rt{with_quick_replacement()};
    const auto stuck = rt.spawn<hangs_in_handlers>(&door, &ended);
    std::jthread caller{[&] {
      if (throws)
        (void)rt.call(stuck.call<hangs_in_handlers::hang_and_throw>(long_text).within(1ms));
      else
        (void)rt.call(stuck.call<hangs_in_handlers::hang>(long_text).within(1ms));
    }};
    door.wait_until_inside();
    EXPECT_TRUE(rt.abandon(stuck.id()));
    EXPECT_EQ(ended, 0);
    door.open();
    while (ended == 0) std::this_thread::yield();
  }
}

struct hangs_in_its_constructor {
  hangs_in_its_constructor(trap_door* d, std::atomic<int>* n) : ended{n} { d->fall_in(); }
  hangs_in_its_constructor(const hangs_in_its_constructor&) = delete;
  hangs_in_its_constructor& operator=(const hangs_in_its_constructor&) = delete;
  ~hangs_in_its_constructor() { ++*ended; }
  static void handle(go) {}
  std::atomic<int>* ended;
};
TEST(abandon, a_process_that_is_stuck_in_its_constructor) {
  trap_door door;
  std::atomic<int> ended{0};
  runtime rt{with_quick_replacement()};
  const auto stuck = rt.spawn<hangs_in_its_constructor>(&door, &ended);
  door.wait_until_inside();
  EXPECT_TRUE(rt.abandon(stuck.id()));
  EXPECT_FALSE(rt.alive(stuck.id()));
  door.open();
  while (ended == 0) std::this_thread::yield();
}

// ---- code that comes back

task<> short_lived(self&) { co_return; }
task<> idles(self& me) { co_await me.receive<go>(); }

struct says_when_it_ends {
  explicit says_when_it_ends(std::latch* l) : over{l} {}
  says_when_it_ends(const says_when_it_ends&) = delete;
  says_when_it_ends& operator=(const says_when_it_ends&) = delete;
  ~says_when_it_ends() { over->count_down(); }
  std::latch* over;
};
/// Does everything a process can do, after it was given up.
task<> comes_back(self& me, trap_door* door, pid other, std::latch* over) {
  const says_when_it_ends last{over};
  door->fall_in();
  me.send(other, 1);
  me.label("a ghost");
  me.link(other);
  me.unlink(other);
  me.link(other);
  me.monitor(other);
  me.trap_exits();
  me.start_timer(1h);
  me.cancel(me.send_after(1h, other, 1));
  const auto named = me.register_as("ghost");
  EXPECT_FALSE(named);
  me.spawn_link(short_lived);
  me.spawn_monitor(short_lived);
  me.stop(exit_reason::error("a ghost"));
  co_await me.receive<go>();
  ADD_FAILURE() << "it went on";
}
task<> idles_as_heir(self& me) {
  me.label("heir");
  co_await me.receive<go>();
}
task<> spawns_some(self& me, std::vector<pid>* into) {
  for (int i = 0; i < 20; ++i) into->push_back(me.spawn(idles_as_heir));
  co_return;
}
TEST(abandon, the_code_that_comes_back_does_not_touch_the_next_process_in_its_place) {
  trap_door door;
  std::latch over{1};
  // One worker that is never replaced: it gives the place away again, to the next process spawned on it.
  runtime rt{{.workers = 1, .stall_after = 0ms, .level = log_level::off}};
  const pid other = rt.spawn(idles);
  const pid stuck = rt.spawn(comes_back, &door, other, &over);
  door.wait_until_inside();
  ASSERT_TRUE(rt.abandon(stuck));
  door.open();
  over.wait();
  std::vector<pid> some;
  rt.wait(rt.spawn(spawns_some, &some));
  const auto same_place = std::ranges::find(some, stuck.index(), &pid::index);
  ASSERT_NE(same_place, some.end());
  EXPECT_NE(*same_place, stuck);
  while (!rt.info(*same_place) || rt.info(*same_place)->state != process_state::waiting) std::this_thread::yield();
  const auto seen = rt.info(*same_place);
  EXPECT_EQ(seen->label, "heir");
  EXPECT_EQ(seen->links, std::vector<pid>{});
  EXPECT_EQ(seen->monitors, 0U);
  EXPECT_FALSE(seen->traps_exits);
  rt.exit(*same_place, exit_reason::error("x"));
  rt.wait(*same_place);
  EXPECT_TRUE(rt.alive(other)) << "it was linked to a ghost";
  EXPECT_EQ(rt.where("ghost"), pid{});
  EXPECT_EQ(rt.counters().timers, 0U);
}

struct counts_pokes {
  explicit counts_pokes(std::atomic<int>* n) : pokes{n} {}
  void handle(go) const { ++*pokes; }
  std::atomic<int>* pokes;
};
struct stops_too_late {
  struct hang {
    using reply = int;
  };
  struct hang_and_throw {
    using reply = int;
  };
  stops_too_late(trap_door* d, std::latch* l) : door{d}, last{l} {}
  int handle(hang, self& me) const {
    door->fall_in();
    me.stop(exit_reason::error("a ghost"));
    return 1;
  }
  int handle(hang_and_throw) const {
    door->fall_in();
    throw std::runtime_error{"a ghost"};
  }
  trap_door* door;
  says_when_it_ends last;
};
TEST(abandon, the_code_that_comes_back_does_not_end_the_next_process_of_its_worker) {
  for (const bool throws : {false, true}) {
    trap_door door;
    std::latch over{1};
    runtime rt{{.workers = 1, .stall_after = 0ms, .level = log_level::off}};
    std::atomic<int> pokes{0};
    const ref<counts_pokes> bystander = rt.spawn<counts_pokes>(&pokes);
    const ref<stops_too_late> stuck = rt.spawn<stops_too_late>(&door, &over);
    if (throws)
      rt.cast<stops_too_late::hang_and_throw>(stuck);
    else
      rt.cast<stops_too_late::hang>(stuck);
    door.wait_until_inside();
    ASSERT_TRUE(rt.abandon(stuck.id()));
    door.open();
    over.wait();
    rt.cast<go>(bystander);  // the next that the worker does
    while (pokes == 0) std::this_thread::yield();
    while (rt.info(bystander.id()) && rt.info(bystander.id())->state != process_state::waiting)
      std::this_thread::yield();
    EXPECT_TRUE(rt.alive(bystander.id()));
  }
}

/// When it is destroyed, the stuck code comes back, and it waits a while for what is cleaned up then.
struct last_straw {
  using reply = int;
  struct opener {
    opener(trap_door* d, std::atomic<int>* n) : door{d}, ended{n} {}
    opener(opener&& other) noexcept : door{std::exchange(other.door, nullptr)}, ended{other.ended} {}
    opener& operator=(opener&&) = delete;
    ~opener() {
      if (door == nullptr) return;
      door->open();
      for (int i = 0; i < 3000 && *ended == 0; ++i) std::this_thread::yield();
    }
    trap_door* door;
    std::atomic<int>* ended;
  } payload;
};
struct hangs {
  hangs(trap_door* d, std::atomic<int>* n) : door{d}, ended{n} {}
  hangs(const hangs&) = delete;
  hangs& operator=(const hangs&) = delete;
  ~hangs() { ++*ended; }
  void handle(go) const { door->fall_in(); }
  static int handle(last_straw) { return 1; }
  trap_door* door;
  std::atomic<int>* ended;
};
TEST(abandon, the_code_may_come_back_while_it_is_being_given_up) {
  trap_door door;
  std::atomic<int> ended{0};
  runtime rt{with_quick_replacement()};
  const ref<hangs> stuck = rt.spawn<hangs>(&door, &ended);
  rt.cast<go>(stuck);
  door.wait_until_inside();
  std::jthread caller{[&] {
    const auto got = rt.call(stuck.call<last_straw>(last_straw::opener{&door, &ended}).within(forever));
    EXPECT_FALSE(got);
  }};
  while (rt.counters().handled < 1) std::this_thread::yield();  // its request waits in the queue
  EXPECT_TRUE(rt.abandon(stuck.id()));
  caller.join();
  while (ended == 0) std::this_thread::yield();
  EXPECT_FALSE(rt.alive(stuck.id()));
}

struct turnstile {
  std::latch inside{1};
  std::atomic<bool> open{false};
};
struct spins {
  explicit spins(turnstile* t) : at{t} {}
  void handle(go) const {
    at->inside.count_down();
    while (!at->open) {}
  }
  turnstile* at;
};
TEST(abandon, in_a_race_with_the_return_of_the_code_one_of_them_wins) {
  std::vector<turnstile> turnstiles(300);  // code that was given up may still look at them
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  for (turnstile& t : turnstiles) {
    const ref<spins> p = rt.spawn<spins>(&t);
    rt.cast<go>(p);
    t.inside.wait();
    std::jthread opener{[&] { t.open = true; }};
    const bool gone = rt.abandon(p.id());
    opener.join();
    EXPECT_EQ(rt.alive(p.id()), !gone);
    rt.kill(p.id());
    rt.wait(p.id());
  }
  while (rt.counters().ended < rt.counters().spawned) std::this_thread::yield();
  EXPECT_EQ(rt.counters().ended, rt.counters().spawned);
}

}  // namespace
