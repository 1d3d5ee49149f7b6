// Processes stuck in their own code: the others go on, it is reported, and it can be given up.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "recorder.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
struct echo {
  using reply = int;
  int n = 0;
};
struct parrot {
  static int handle(echo m) { return m.n; }
};

runtime_options watchful(unsigned workers) {
  return {.workers = workers, .stall_after = 20ms, .level = log_level::off};
}

task<> gets_stuck(self& me, trap_door* where, std::latch* back) {
  co_await me.receive<go>();
  where->fall_in();
  back->count_down();
  co_await me.receive<go>();
}
task<> waits_for_stall(self& me, std::latch* ready, process_stalled* into) {
  me.subscribe<process_stalled>();
  ready->count_down();
  *into = co_await me.receive<process_stalled>();
}
template <class E>
task<> waits_for_down_or_exit(self& me, pid who, std::latch* ready, E* into) {
  me.trap_exits();
  if constexpr (std::is_same_v<E, down>) me.monitor(who);
  if constexpr (std::is_same_v<E, exited>) me.link(who);
  ready->count_down();
  *into = co_await me.receive<E>();
}

TEST(stall, the_other_processes_of_the_only_worker_go_on) {
  trap_door door;
  std::latch back{1};
  runtime rt{watchful(1)};
  const ref<parrot> p = rt.spawn<parrot>();
  const pid stuck = rt.spawn(gets_stuck, &door, &back);
  rt.send(stuck, go{});
  door.wait_until_inside();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
  EXPECT_GE(rt.counters().stalls, 1U) << "at least: on a slow machine others may seem stuck, too";
  door.open();
}

TEST(stall, is_published_with_pid_name_and_label) {
  trap_door door;
  std::latch back{1};
  runtime rt{watchful(2)};
  process_stalled seen;
  std::latch ready{1};
  const pid watcher = rt.spawn(waits_for_stall, &ready, &seen);
  ready.wait();
  const auto stuck = rt.spawn({.name = "hanger", .label = "hangs in a test"}, gets_stuck, &door, &back);
  rt.send(*stuck, go{});
  rt.wait(watcher);
  EXPECT_EQ(seen.who, *stuck);
  EXPECT_EQ(seen.name, "hanger");
  EXPECT_EQ(seen.label, "hangs in a test");
  EXPECT_GE(seen.lasting, 20ms);
  door.open();
}

TEST(stall, is_logged_with_pid_name_and_label) {
  trap_door door;
  std::latch back{1};
  const auto log = std::make_shared<recorder>();
  runtime rt{{.workers = 1, .stall_after = 20ms, .log = log}};
  const auto stuck = rt.spawn({.name = "hanger", .label = "hangs in a test"}, gets_stuck, &door, &back);
  rt.send(*stuck, go{});
  while (!log->has("holds its worker")) std::this_thread::yield();
  door.open();
  const recorder::line seen = log->all().front();
  EXPECT_EQ(seen.level, log_level::warning);
  EXPECT_EQ(seen.fields.at("pid"), to_string(*stuck));
  EXPECT_EQ(seen.fields.at("name"), "hanger");
  EXPECT_EQ(seen.fields.at("label"), "hangs in a test");
}

TEST(stall, of_a_process_that_was_abandoned_is_not_reported_once_more) {
  trap_door door;
  std::latch back{1};
  const auto log = std::make_shared<recorder>();
  {
    runtime rt{{.workers = 2, .stall_after = 1s, .log = log}};
    const pid stuck = rt.spawn(gets_stuck, &door, &back);
    rt.send(stuck, go{});
    door.wait_until_inside();
    while (!rt.abandon(stuck)) std::this_thread::yield();
    while (rt.counters().stalls == 0) std::this_thread::yield();  // its worker is replaced, all the same
    door.open();
  }
  EXPECT_FALSE(log->has("holds its worker"));
}

task<> keeps_calling_the_runtime(self& me, std::atomic<bool>* enough) {
  while (!*enough) {
    me.label("round and round");
    (void)me.demonitor(me.monitor(me.id()));
  }
  co_return;
}
TEST(stall, is_noticed_in_a_loop_that_keeps_calling_the_runtime) {
  std::atomic<bool> enough{false};
  runtime rt{watchful(1)};
  const ref<parrot> p = rt.spawn<parrot>();
  rt.spawn(keeps_calling_the_runtime, &enough);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
  enough = true;
}

TEST(stall, a_process_that_comes_back_goes_on_as_if_nothing_had_been) {
  trap_door door;
  std::latch back{1};
  runtime rt{watchful(1)};
  const pid stuck = rt.spawn(gets_stuck, &door, &back);
  rt.send(stuck, go{});
  door.wait_until_inside();
  while (rt.counters().stalls == 0) std::this_thread::yield();
  rt.send(stuck, go{});
  door.open();
  back.wait();
  rt.wait(stuck);
  EXPECT_FALSE(rt.alive(stuck));
}

TEST(stall, all_workers_may_be_stuck_more_than_once) {
  std::vector<trap_door> doors(5);
  std::latch back{5};
  runtime rt{watchful(2)};
  const ref<parrot> p = rt.spawn<parrot>();
  for (trap_door& door : doors) {
    const pid stuck = rt.spawn(gets_stuck, &door, &back);
    rt.send(stuck, go{});
    door.wait_until_inside();
    EXPECT_EQ(rt.call(p.call<echo>(1).within(forever)), 1);
  }
  for (trap_door& door : doors) door.open();
  back.wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
}

TEST(stall, what_a_stuck_process_signalled_before_is_run_elsewhere) {
  trap_door door;
  runtime rt{watchful(1)};
  std::latch arrived{1};
  const auto arrives = [](self& me, std::latch* l) -> task<> {
    co_await me.receive<go>();
    l->count_down();
  };
  const auto signals_and_sticks = [](self& me, pid other, trap_door* where) -> task<> {
    me.send(other, go{});
    where->fall_in();
    co_return;
  };
  const pid other = rt.spawn(arrives, &arrived);
  rt.spawn(signals_and_sticks, other, &door);
  arrived.wait();
  door.open();
}

TEST(stall, is_not_looked_for_when_the_limit_is_zero) {
  trap_door door;
  std::latch back{1};
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  const ref<parrot> p = rt.spawn<parrot>();
  const pid stuck = rt.spawn(gets_stuck, &door, &back);
  rt.send(stuck, go{});
  door.wait_until_inside();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
  EXPECT_EQ(rt.counters().stalls, 0U);
  door.open();
  back.wait();
}

TEST(stall, a_kill_takes_effect_when_the_code_comes_back) {
  trap_door door;
  std::latch back{1};
  runtime rt{watchful(2)};
  const pid stuck = rt.spawn(gets_stuck, &door, &back);
  rt.send(stuck, go{});
  door.wait_until_inside();
  rt.kill(stuck);
  EXPECT_TRUE(rt.alive(stuck));
  door.open();
  rt.wait(stuck);
  EXPECT_TRUE(back.try_wait()) << "a kill does not reach into running code";
}

}  // namespace
