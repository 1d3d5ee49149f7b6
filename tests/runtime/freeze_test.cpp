// Freezing processes on real threads.
#include <gtest/gtest.h>
#include <runtime/internal/kernel_parts.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct tick {};

/// Keeps itself busy for ever.
task<> spinner(self& me, std::atomic<std::uint64_t>* turns) {
  me.send(me.id(), tick{});
  for (;;) {
    const tick t = co_await me.receive<tick>();
    turns->fetch_add(1);
    me.send(me.id(), t);
  }
}
task<> spinner_parent(self& me, std::atomic<std::uint64_t>* turns, int children) {
  for (int i = 0; i < children; ++i) me.spawn_link(spinner, turns);
  co_await me.sleep(1h);
}
/// Spawns and forgets, for ever.
task<> short_life(self&, std::atomic<std::uint64_t>* turns) {
  turns->fetch_add(1);
  co_return;
}
task<> breeder(self& me, std::atomic<std::uint64_t>* turns) {
  me.trap_exits();
  for (;;) {
    me.spawn_link(short_life, turns);
    const exited x = co_await me.receive<exited>();
    (void)x;
  }
}
task<> falls_in(self& me, trap_door* door) {
  const tick t = co_await me.receive<tick>();
  (void)t;
  door->fall_in();
  co_await me.sleep(1h);
}
void wait_in(trap_door* door) { door->fall_in(); }
task<> blocks(self& me, trap_door* door, std::atomic<bool>* back) {
  co_await me.blocking(wait_in, door);
  *back = true;
}

task<> generation(self& me, int below, std::atomic<int>* living) {
  if (below > 1) me.spawn_link(generation, below - 1, living);
  ++*living;
  co_await me.sleep(1h);
}

void wait_until_more_than(std::atomic<std::uint64_t>& turns, std::uint64_t before) {
  while (turns.load() <= before + 100) std::this_thread::yield();
}

TEST(freeze, when_it_is_answered_no_turn_of_a_frozen_process_is_running) {
  runtime rt{quiet()};
  std::atomic<std::uint64_t> turns{0};
  const pid root = rt.spawn(spinner_parent, &turns, 8);
  for (int i = 0; i < 200; ++i) {
    wait_until_more_than(turns, turns.load());
    const result<frozen> got = rt.freeze(subtree{root});
    ASSERT_TRUE(got.has_value());
    ASSERT_TRUE(got->still_inside.empty());
    const std::uint64_t then = turns.load();
    for (int look = 0; look < 100; ++look) {
      std::this_thread::yield();
      ASSERT_EQ(turns.load(), then);
    }
    ASSERT_TRUE(rt.thaw(subtree{root}));
  }
}

TEST(freeze, of_a_subtree_that_spawns_all_the_time_holds_the_newest_children_too) {
  runtime rt{quiet()};
  std::atomic<std::uint64_t> turns{0};
  const pid root = rt.spawn(breeder, &turns);
  for (int i = 0; i < 200; ++i) {
    wait_until_more_than(turns, turns.load());
    const result<frozen> got = rt.freeze(subtree{root});
    ASSERT_TRUE(got.has_value());
    const std::uint64_t then = turns.load();
    for (int look = 0; look < 100; ++look) {
      std::this_thread::yield();
      ASSERT_EQ(turns.load(), then);
    }
    ASSERT_TRUE(rt.thaw(subtree{root}));
  }
}

TEST(freeze, names_a_process_that_is_stuck_in_its_code) {
  trap_door door;
  runtime rt{quiet()};
  const pid who = rt.spawn(falls_in, &door);
  rt.send(who, tick{});
  door.wait_until_inside();
  const result<frozen> got = rt.freeze(who, 5ms);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->still_inside, std::vector<pid>{who});
  door.open();
  while (rt.info(who)->state != process_state::frozen) std::this_thread::yield();
}

TEST(freeze, names_a_process_with_blocking_work_whose_result_then_waits) {
  trap_door door;
  std::atomic<bool> back{false};
  runtime rt{quiet()};
  const pid who = rt.spawn(blocks, &door, &back);
  door.wait_until_inside();
  const result<frozen> got = rt.freeze(who, 5ms);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->still_inside, std::vector<pid>{who});
  door.open();
  const result<frozen> again = rt.freeze(who);  // waits for the end of the blocking work
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->still_inside.empty());
  EXPECT_FALSE(back);
  EXPECT_TRUE(rt.thaw(who));
  EXPECT_TRUE(rt.thaw(who));
  (void)rt.wait(who);
  EXPECT_TRUE(back);
}

struct slow_to_die {
  explicit slow_to_die(trap_door* d) : door{d} {}
  slow_to_die(slow_to_die&& other) noexcept : door{std::exchange(other.door, nullptr)} {}
  slow_to_die& operator=(slow_to_die&&) = delete;
  ~slow_to_die() {
    if (door != nullptr) door->fall_in();
  }
  trap_door* door;
};
task<> ends_slowly(self& me, trap_door* body, trap_door* end) {
  const slow_to_die last{end};
  const tick t = co_await me.receive<tick>();
  (void)t;
  body->fall_in();
}

TEST(freeze, is_not_answered_while_a_destructor_of_the_process_is_running) {
  trap_door body;
  trap_door end;
  runtime rt{quiet()};
  const pid who = rt.spawn(ends_slowly, &body, &end);
  rt.send(who, tick{});
  body.wait_until_inside();
  std::atomic<bool> answered{false};
  std::thread freezer{[&] {
    (void)rt.freeze(who, 1h);
    answered = true;
  }};
  while (!rt.host().parts().freezer.any()) std::this_thread::yield();
  body.open();
  end.wait_until_inside();
  for (int look = 0; look < 1000; ++look) {
    std::this_thread::yield();
    ASSERT_FALSE(answered);
  }
  end.open();
  freezer.join();
}

TEST(freeze, a_kill_reaches_a_frozen_process_whenever_it_comes) {
  runtime rt{quiet()};
  std::atomic<std::uint64_t> turns{0};
  for (int i = 0; i < 500; ++i) {
    const pid who = rt.spawn(spinner, &turns);
    std::thread killer{[&] { rt.kill(who); }};
    (void)rt.freeze(who);
    killer.join();
    (void)rt.wait(who);
  }
}

task<> sleeper(self& me) { co_await me.sleep(1h); }

TEST(freeze, a_kill_that_came_before_it_ends_an_idle_process_at_once) {
  runtime rt{quiet()};
  for (int i = 0; i < 500; ++i) {
    const pid who = rt.spawn(sleeper);
    while (rt.info(who)->state != process_state::waiting) std::this_thread::yield();
    rt.kill(who);
    (void)rt.freeze(who);
    (void)rt.wait(who);
  }
}

TEST(freeze, of_a_deep_subtree_reaches_its_last_generation) {
  runtime rt{quiet()};
  std::atomic<int> living{0};
  const pid root = rt.spawn(generation, 300, &living);
  while (living < 300) std::this_thread::yield();
  ASSERT_TRUE(rt.freeze(subtree{root}).has_value());
  const auto all = rt.snapshot();
  EXPECT_EQ(std::ranges::count(all, process_state::frozen, &process_info::state), 300);
}

/// Counts the frames that exist.
struct counted_life {
  explicit counted_life(std::atomic<int>* n) : living{n} { ++*living; }
  counted_life(const counted_life&) = delete;
  counted_life& operator=(const counted_life&) = delete;
  ~counted_life() { --*living; }
  std::atomic<int>* living;
};
task<> counted_spinner(self& me, std::atomic<std::uint64_t>* turns, std::atomic<int>* living) {
  const counted_life mine{living};
  co_await spinner(me, turns);
}

TEST(freeze, a_runtime_ends_although_processes_are_frozen) {
  std::atomic<std::uint64_t> turns{0};
  std::atomic<int> living{0};
  std::optional<runtime> rt{std::in_place, quiet()};
  for (int i = 0; i < 4; ++i) {
    const pid who = rt->spawn(counted_spinner, &turns, &living);
    while (living <= i) std::this_thread::yield();
    ASSERT_TRUE(rt->freeze(who).has_value());
  }
  EXPECT_EQ(living, 4);
  const std::uint64_t then = turns.load();
  rt.reset();
  EXPECT_EQ(living, 0) << "a frozen process was not destroyed";
  EXPECT_EQ(turns.load(), then) << "a frozen process has run";
}

}  // namespace
