// The end of a runtime: all processes are killed, their destructors run, and nothing is left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "own_environment.hpp"
#include "recorder.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
using token = std::shared_ptr<int>;

TEST(runtime_end, of_one_that_never_did_anything) {
  for (int i = 0; i < 50; ++i) runtime rt{quiet()};
}

task<> holds(self& me, token t) {
  me.send(me.id(), t);  // one in its mail
  co_await me.receive<go>();
}
TEST(runtime_end, destroys_waiting_processes_and_their_mail) {
  const token t = std::make_shared<int>(1);
  {
    runtime rt{quiet()};
    for (int i = 0; i < 500; ++i) rt.spawn(holds, t);
  }
  EXPECT_EQ(t.use_count(), 1);
}

task<> runs(self& me, token t, std::atomic<int>* running) {
  ++*running;
  for (;;) {
    me.send(me.id(), t);
    co_await me.yield();
    co_await me.receive<token>();
  }
}
TEST(runtime_end, destroys_processes_that_run) {
  const token t = std::make_shared<int>(1);
  std::atomic<int> running{0};
  {
    runtime rt{quiet()};
    for (int i = 0; i < 20; ++i) rt.spawn(runs, t, &running);
    while (running < 20) std::this_thread::yield();
  }
  EXPECT_EQ(t.use_count(), 1);
}

TEST(runtime_end, destroys_processes_that_trap_exits_too) {
  const token t = std::make_shared<int>(1);
  {
    runtime rt{quiet()};
    std::latch ready{1};
    const auto traps = [](self& me, token, std::latch* l) -> task<> {
      me.trap_exits();
      l->count_down();
      for (;;) co_await me.receive<exited>();
    };
    rt.spawn(traps, t, &ready);
    ready.wait();
  }
  EXPECT_EQ(t.use_count(), 1);
}

task<> reads_slowly(self& me, std::latch* begun) {
  for (;;) {
    co_await me.receive<token>();
    begun->count_down();
    std::this_thread::yield();
  }
}
TEST(runtime_end, destroys_a_backlog_unread) {
  const token t = std::make_shared<int>(1);
  {
    runtime rt{quiet()};
    std::latch begun{100'000};
    const pid p = rt.spawn(reads_slowly, &begun);
    for (int i = 0; i < 100'000; ++i) rt.send(p, t);
  }
  EXPECT_EQ(t.use_count(), 1);
}

struct sends_at_its_end {
  sends_at_its_end(self& s, pid p, token what) : me{&s}, to{p}, t{std::move(what)} {}
  sends_at_its_end(const sends_at_its_end&) = delete;
  sends_at_its_end& operator=(const sends_at_its_end&) = delete;
  ~sends_at_its_end() {
    me->send(to, t);
    me->send_after(1h, to, t);
    me->kill(to);
  }
  self* me;
  pid to;
  token t;
};
task<> sends_last_words(self& me, pid to, token t, std::latch* ready) {
  const sends_at_its_end last{me, to, std::move(t)};
  ready->count_down();
  co_await me.receive<go>();
}
TEST(runtime_end, destroys_what_destructors_send_on_the_way) {
  const token t = std::make_shared<int>(1);
  {
    runtime rt{quiet()};
    std::latch ready{50};
    pid last = rt.spawn(holds, t);
    for (int i = 0; i < 50; ++i) last = rt.spawn(sends_last_words, last, t, &ready);
    ready.wait();
  }
  EXPECT_EQ(t.use_count(), 1);
}

task<> linked_tree(self& me, int levels, token t, std::atomic<int>* made) {
  ++*made;
  if (levels > 0)
    for (int i = 0; i < 3; ++i) me.spawn_link(linked_tree, levels - 1, t, made);
  co_await me.receive<go>();
}
TEST(runtime_end, destroys_a_tree_of_links) {
  const token t = std::make_shared<int>(1);
  std::atomic<int> made{0};
  {
    runtime rt{quiet()};
    rt.spawn(linked_tree, 5, t, &made);
    while (made < 364) std::this_thread::yield();
  }
  EXPECT_EQ(t.use_count(), 1);
}

TEST(runtime_end, destroys_processes_that_have_not_begun) {
  const token t = std::make_shared<int>(1);
  {
    runtime rt{{.workers = 1, .level = log_level::off}};
    for (int i = 0; i < 2000; ++i) rt.spawn(holds, t);
  }
  EXPECT_EQ(t.use_count(), 1);
}

struct counts_its_end {
  counts_its_end(std::atomic<int>* n, std::latch* l) : ended{n} { l->count_down(); }
  counts_its_end(const counts_its_end&) = delete;
  counts_its_end& operator=(const counts_its_end&) = delete;
  ~counts_its_end() { ++*ended; }
  static void handle(go) {}
  std::atomic<int>* ended;
};
TEST(runtime_end, destroys_objects) {
  std::atomic<int> ended{0};
  {
    runtime rt{quiet()};
    std::latch made{100};
    for (int i = 0; i < 100; ++i) rt.spawn<counts_its_end>(&ended, &made);
    made.wait();
  }
  EXPECT_EQ(ended, 100);
}

// ---- stuck ones

/// What the stuck thread needs after the runtime is gone lives for ever, as the runtime's own remains do.
struct ghost_house {
  std::latch inside{1};
  std::atomic<bool> open{false};
  std::atomic<bool> left{false};
};
task<> gets_stuck(self&, ghost_house* house) {
  house->inside.count_down();
  while (!house->open) std::this_thread::yield();
  house->left = true;
  co_return;
}
TEST(runtime_end, does_not_wait_for_ever_for_a_process_that_is_stuck_and_says_so) {
  static std::list<ghost_house> houses;
  ghost_house& house = houses.emplace_back();
  const token t = std::make_shared<int>(1);
  const auto log = std::make_shared<recorder>();
  {
    runtime rt{{.workers = 2, .stall_after = 10ms, .stop_within = 20ms, .level = log_level::error, .log = log}};
    rt.spawn(gets_stuck, &house);
    house.inside.wait();
    for (int i = 0; i < 10; ++i) rt.spawn(holds, t);
  }
  EXPECT_TRUE(log->has("stuck"));
  EXPECT_FALSE(house.left);
  house.open = true;
  while (!house.left) std::this_thread::yield();
}

// ---- beside it

TEST(runtime_end, right_behind_what_a_plain_thread_sent_to_a_killed_process_leaves_nothing) {
  for (int round = 0; round < 20; ++round) {
    const token t = std::make_shared<int>(1);
    std::optional<runtime> rt{std::in_place, quiet()};
    const pid p = rt->spawn(holds, t);
    {
      std::jthread sender{[&] {
        for (int i = 0; i < 1000; ++i) rt->send(p, t);
      }};
      rt->kill(p);
    }
    rt.reset();
    EXPECT_EQ(t.use_count(), 1);
  }
}

struct fetch {
  using reply = token;
};
/// Gives its answers to the thread that owns the desk.
struct desk {
  std::mutex mutex;
  std::vector<reply_to<token>> open;
};
task<> defers(self& me, desk* where) {
  for (;;) {
    auto r = co_await me.receive<request<fetch>>();
    auto later = r.defer();
    const std::scoped_lock lock{where->mutex};
    where->open.push_back(std::move(later));
  }
}
task<> fetches(self&, pid from, std::atomic<int>* fetched) {
  for (;;) {
    const result<token> got = co_await call<fetch>(from).within(forever);
    if (got) ++*fetched;
  }
}
TEST(runtime_end, may_come_while_a_plain_thread_still_answers) {
  for (int round = 0; round < 20; ++round) {
    const token t = std::make_shared<int>(1);
    desk open;
    std::atomic<int> fetched{0};
    std::optional<runtime> rt{std::in_place, quiet()};
    const pid p = rt->spawn(defers, &open);
    for (int i = 0; i < 10; ++i) rt->spawn(fetches, p, &fetched);
    std::jthread clerk{[&](const std::stop_token& enough) {
      while (!enough.stop_requested()) {
        std::vector<reply_to<token>> some;
        {
          const std::scoped_lock lock{open.mutex};
          some.swap(open.open);
        }
        for (reply_to<token>& one : some) (void)one.reply(t);
        std::this_thread::yield();
      }
    }};
    while (fetched < 20 * round) std::this_thread::yield();
    rt.reset();  // the thread goes on answering
    clerk.request_stop();
    clerk.join();
    open.open.clear();
    EXPECT_EQ(t.use_count(), 1) << "an answer was lost without being destroyed";
  }
}

task<> ends_the_hard_way(self& me, std::atomic<int>* count) {
  ++*count;
  co_await me.exit(exit_reason::error("over"));
}
TEST(runtime_end, right_behind_the_last_wait_is_safe) {
  std::atomic<int> count{0};
  for (int i = 0; i < 100; ++i) {
    runtime rt{quiet()};
    rt.wait(rt.spawn(ends_the_hard_way, &count));
  }
  EXPECT_EQ(count, 100);
}

// ---- slow ones

/// Time passes by a millisecond whenever the thread that ends the runtime looks at it, once that has begun.
class hurried_clock final : public own_clock {
 public:
  time_point now() noexcept override {
    if (begun && std::this_thread::get_id() == watched) ++looks;
    return own_clock::now() + std::chrono::milliseconds{looks};
  }
  std::thread::id watched = std::this_thread::get_id();
  std::atomic<bool> begun{false};
  std::atomic<int> looks{0};
};
/// Waits end early, so that the clock is looked at again.
class restless_threads final : public own_threads {
 public:
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::optional<time_point> until) override {
    if (until && std::this_thread::get_id() == watched)
      std::this_thread::yield();
    else
      own_threads::wait(word, expected, until);
  }
  std::thread::id watched = std::this_thread::get_id();
};
/// Lives for ever, as what a runtime leaves behind still uses it.
struct slow_house {
  hurried_clock clock;
  restless_threads threads;
  std::latch made{1};
  std::latch dying{1};
  std::latch released{1};
  std::atomic<bool> destroyed{false};
  std::atomic<bool> gone{false};
};
struct ends_slowly {
  explicit ends_slowly(slow_house* h) : house{h} { house->made.count_down(); }
  ends_slowly(const ends_slowly&) = delete;
  ends_slowly& operator=(const ends_slowly&) = delete;
  ~ends_slowly() {
    house->clock.begun = true;
    house->dying.count_down();
    house->released.wait();
    house->destroyed = true;
  }
  static void handle(go) {}
  slow_house* house;
};
TEST(runtime_end, waits_for_a_slow_destructor_as_long_as_it_is_told_to) {
  static std::list<slow_house> houses;
  slow_house& house = houses.emplace_back();
  const auto log = std::make_shared<recorder>();
  std::jthread releases{[&] {
    house.dying.wait();
    while (house.clock.looks < 3000 && !house.gone) std::this_thread::yield();  // for three seconds, so to speak
    house.released.count_down();
  }};
  {
    const own_environment::parts parts{.time = &house.clock, .workers = &house.threads};
    runtime rt{std::make_shared<own_environment>(parts),
               {.workers = 2, .stall_after = 0ms, .stop_within = 1h, .level = log_level::error, .log = log}};
    rt.spawn<ends_slowly>(&house);
    house.made.wait();
  }
  EXPECT_TRUE(house.destroyed);
  house.gone = true;
  EXPECT_FALSE(log->has("stuck"));
}

}  // namespace
