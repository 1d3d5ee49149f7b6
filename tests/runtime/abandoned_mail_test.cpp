// The mail of a process that was given up: what it has sent, what it holds, and what it was about to put aside.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <thread>

#include <coppice/runtime/runtime.hpp>

#include "own_environment.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
struct ask {
  using reply = int;
};

/// No stuck worker is replaced: everything the test sees was done by `abandon`.
runtime_options without_replacement() { return {.workers = 2, .stall_after = 0ms, .level = log_level::off}; }

// ---- what it holds

enum class afterwards : bool { waits, returns };
task<> holds_a_request(self& me, std::latch* taken, trap_door* door, afterwards then) {
  const auto open = co_await me.receive<request<ask>>();
  taken->count_down();
  co_await me.receive<go>();
  door->fall_in();
  if (then == afterwards::waits) co_await me.receive<go>();
}
task<> holds_an_answer(self& me, std::latch* taken, trap_door* door, afterwards then) {
  auto open = co_await me.receive<request<ask>>();
  const auto later = open.defer();
  taken->count_down();
  co_await me.receive<go>();
  door->fall_in();
  if (then == afterwards::waits) co_await me.receive<go>();
}
/// The answer to a caller whose request is in a frame of the abandoned process.
template <class F>
error error_from(F body, afterwards then) {
  trap_door door;
  std::latch taken{1};
  error received{errc::invalid, "an answer"};
  runtime rt{without_replacement()};
  const pid stuck = rt.spawn(body, &taken, &door, then);
  std::jthread calls{[&] {
    const auto got = rt.call(call<ask>(stuck).within(forever));
    if (!got) received = got.error();
  }};
  taken.wait();
  rt.send(stuck, go{});
  door.wait_until_inside();
  EXPECT_TRUE(rt.abandon(stuck));
  door.open();
  calls.join();
  return received;
}
TEST(abandoned_mail, the_caller_of_a_request_that_a_frame_holds_is_told_why_when_the_code_waits_again) {
  EXPECT_EQ(error_from(holds_a_request, afterwards::waits), (error{errc::exited, "abandoned"}));
  EXPECT_EQ(error_from(holds_an_answer, afterwards::waits), (error{errc::exited, "abandoned"}));
}
TEST(abandoned_mail, the_caller_of_a_request_that_a_frame_holds_is_told_why_when_the_code_returns) {
  EXPECT_EQ(error_from(holds_a_request, afterwards::returns), (error{errc::exited, "abandoned"}));
  EXPECT_EQ(error_from(holds_an_answer, afterwards::returns), (error{errc::exited, "abandoned"}));
}

// ---- what it waits for

task<> sticks_with_a_future(self& me, pid to, std::optional<promise<int>>* into, trap_door* door) {
  auto [answer, value] = make_promise<int>(me);
  value.pipe_to(to);
  into->emplace(std::move(answer));
  co_await me.receive<go>();
  door->fall_in();
}
task<> receives_an_error(self& me, trap_door* door, std::optional<promise<int>>* into, std::optional<error>* got) {
  const pid stuck = me.spawn(sticks_with_a_future, me.id(), into, door);
  me.send(stuck, go{});
  auto first = co_await me.receive<int, error>();
  if (auto* why = std::get_if<error>(&first)) got->emplace(std::move(*why));
}
TEST(abandoned_mail, a_future_that_was_piped_becomes_an_error_when_the_code_comes_back) {
  trap_door door;
  std::optional<promise<int>> answer;
  std::optional<error> got;
  runtime rt{without_replacement()};
  const pid receiver = rt.spawn(receives_an_error, &door, &answer, &got);
  door.wait_until_inside();
  pid stuck;
  for (const process_info& p : rt.snapshot())
    if (p.parent == receiver) stuck = p.id;
  EXPECT_TRUE(rt.abandon(stuck));
  EXPECT_FALSE(got.has_value()) << "its code may be looking at the future";
  door.open();
  rt.wait(receiver);
  EXPECT_EQ(got, (error{errc::exited, "abandoned"}));
  answer->complete(1);  // nobody waits for it any more
}

// ---- what it has sent

struct number {
  int value;
};
task<> counts_before_the_end(self& me, pid who, std::latch* busy, std::atomic<bool>* go_on, int* count) {
  me.monitor(who);
  me.send(who, me.id());
  busy->count_down();
  while (!*go_on) std::this_thread::yield();  // so that what comes is sent to a busy process
  for (;;) {
    const auto m = co_await me.receive<number, down>();
    if (std::holds_alternative<down>(m)) break;
    EXPECT_EQ(std::get<number>(m).value, *count);
    ++*count;
  }
}
task<> sends_and_sticks(self& me, std::latch* busy, trap_door* door) {
  const pid to = co_await me.receive<pid>();
  busy->wait();
  for (int i = 0; i < 100; ++i) me.send(to, number{i});
  door->fall_in();
}
TEST(abandoned_mail, all_that_the_process_has_sent_comes_before_the_news_of_its_end) {
  for (int round = 0; round < 10; ++round) {
    trap_door door;
    std::latch busy{1};
    std::atomic<bool> go_on{false};
    int count = 0;
    runtime rt{without_replacement()};
    const pid stuck = rt.spawn(sends_and_sticks, &busy, &door);
    const pid watcher = rt.spawn(counts_before_the_end, stuck, &busy, &go_on, &count);
    door.wait_until_inside();
    EXPECT_TRUE(rt.abandon(stuck));
    go_on = true;
    door.open();
    rt.wait(watcher);
    EXPECT_EQ(count, 100);
  }
}

// ---- what it was about to put aside

struct never {};
struct noise {
  std::shared_ptr<int> token;
};
task<> puts_all_aside(self& me) { co_await me.receive<never>(); }
TEST(abandoned_mail, of_a_busy_selective_receiver_is_destroyed_once) {
  constexpr unsigned rounds = 400;
  const auto token = std::make_shared<int>(1);
  {
    runtime rt{without_replacement()};
    for (unsigned round = 0; round < rounds; ++round) {
      const pid p = rt.spawn(puts_all_aside);
      std::atomic<bool> enough{false};
      std::jthread floods{[&] {
        for (int i = 0; i < 3000 && !enough; ++i) rt.send(p, noise{token});
      }};
      bool gone = false;
      for (int i = 0; i < 2000 && !gone; ++i) gone = rt.abandon(p);
      enough = true;
      if (!gone) rt.kill(p);
    }
    while (rt.counters().ended < rounds) std::this_thread::yield();
  }
  EXPECT_EQ(token.use_count(), 1);
}

// ---- who never stops calling

/// Behind its barrier it gives the process time for another round, if that can go on.
class generous_threads final : public own_threads {
 public:
  void barrier_everywhere() noexcept override {
    own_threads::barrier_everywhere();
    const int before = rounds;
    for (int i = 0; i < 50 && rounds < before + 2; ++i) std::this_thread::yield();
  }
  std::atomic<int> rounds{0};
};
task<> goes_round(self& me, std::atomic<int>* rounds, std::atomic<bool>* enough, std::latch* over) {
  while (!*enough) {
    me.trap_exits();
    me.label("round and round");
    me.trap_exits(trap::off);
    ++*rounds;
  }
  over->count_down();
  co_return;
}
TEST(abandon, a_process_that_keeps_calling_the_runtime_can_be_given_up_too) {
  generous_threads threads;
  std::atomic<bool> enough{false};
  std::latch over{1};
  {
    runtime rt{std::make_shared<own_environment>(own_environment::parts{.workers = &threads}), without_replacement()};
    const pid p = rt.spawn(goes_round, &threads.rounds, &enough, &over);
    while (threads.rounds == 0) std::this_thread::yield();
    bool gone = false;
    for (int tries = 0; tries < 100 && !gone; ++tries) gone = rt.abandon(p);
    EXPECT_TRUE(gone);
    EXPECT_EQ(rt.alive(p), !gone);
    const int before = threads.rounds;
    while (gone && threads.rounds == before) std::this_thread::yield();  // its code goes on for itself
    enough = true;
    over.wait();
  }
}

}  // namespace
