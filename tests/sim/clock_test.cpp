// The clocks of the nodes: offset, rate and suspend.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

const runtime_options silent{.processes = 1U << 10U, .level = log_level::off};

task<> notes_world_time(self& me, std::chrono::nanoseconds after, const world* w, std::optional<time_point>* at) {
  co_await me.sleep(after);
  *at = w->now();
}

/// When a timer of `after` that is started now fires, by the world's time.
std::chrono::nanoseconds time_to_fire(world& w, node& n, std::chrono::nanoseconds after) {
  std::optional<time_point> fired;
  const time_point start = w.now();
  n.rt().spawn(notes_world_time, after, &w, &fired);
  EXPECT_TRUE(w.run_until([&] { return fired.has_value(); }));
  return fired.value_or(start) - start;
}

std::chrono::nanoseconds slept(node& n) {
  return n.env().clock().boot().time_since_epoch() - n.env().clock().now().time_since_epoch();
}

// ---- without options

TEST(node_clock, shows_the_time_of_the_world_unless_told_otherwise) {
  world w{1};
  node& n = w.add_node();
  for (int i = 0; i < 3; ++i) {
    coppice::clock& c = n.env().clock();
    EXPECT_EQ(c.now(), w.now());
    EXPECT_EQ(c.coarse_now(), w.now());
    EXPECT_EQ(c.boot().time_since_epoch(), w.now().time_since_epoch());
    EXPECT_EQ(c.wall().time_since_epoch(), 1893456000s + w.now().time_since_epoch());
    w.run_for(1234567ns);
  }
}

// ---- offset

TEST(node_clock, an_offset_moves_monotonic_and_boot_time_but_not_the_wall_clock) {
  world w{1};
  node& plain = w.add_node();
  node& older = w.add_node("older", silent, {.offset = 3h});
  w.run_for(10s);
  EXPECT_EQ(older.env().clock().now() - plain.env().clock().now(), 3h);
  EXPECT_EQ(older.env().clock().boot() - plain.env().clock().boot(), 3h);
  EXPECT_EQ(older.env().clock().wall(), plain.env().clock().wall());
  older.jump_wall_clock(-2h);
  EXPECT_EQ(plain.env().clock().wall() - older.env().clock().wall(), 2h);
  EXPECT_EQ(older.env().clock().now() - plain.env().clock().now(), 3h);
}

TEST(node_clock, an_offset_does_not_change_when_timers_fire) {
  world w{1};
  node& older = w.add_node("older", silent, {.offset = 3h});
  const auto took = time_to_fire(w, older, 5s);
  EXPECT_GE(took, 5s);
  EXPECT_LT(took, 5s + 2ms);
}

// ---- rate

TEST(node_clock, timers_follow_the_clock_of_their_node) {
  for (const double rate : {2.0, 0.5, 1.0001, 10.0, 0.01}) {
    world w{1};
    node& n = w.add_node("odd", silent, {.rate = rate});
    const auto took = std::chrono::duration<double>{time_to_fire(w, n, 100s)};
    EXPECT_NEAR(took.count(), 100 / rate, 0.01 / rate) << rate;
  }
}

TEST(node_clock, a_rate_moves_all_three_clocks) {
  world w{1};
  node& n = w.add_node("fast", silent, {.rate = 1.0001});
  coppice::clock& c = n.env().clock();
  const auto now = c.now();
  const auto boot = c.boot();
  const auto wall = c.wall();
  w.run_for(10'000s);
  EXPECT_EQ(c.now() - now, 10'001s);
  EXPECT_EQ(c.boot() - boot, 10'001s);
  EXPECT_EQ(c.wall() - wall, 10'001s);
}

TEST(node_clock, a_change_of_the_rate_makes_no_clock_jump) {
  world w{1};
  node& n = w.add_node("odd", silent, {.offset = 1h, .rate = 3});
  w.run_for(7s);
  coppice::clock& c = n.env().clock();
  const auto now = c.now();
  const auto boot = c.boot();
  n.set_clock_rate(0.5);
  EXPECT_EQ(c.now(), now);
  EXPECT_EQ(c.boot(), boot);
  w.run_for(10s);
  EXPECT_EQ(c.now() - now, 5s);
  EXPECT_EQ(c.boot() - boot, 5s);
}

TEST(node_clock, the_other_nodes_keep_their_own_time) {
  world w{1};
  node& fast = w.add_node("fast", silent, {.rate = 2});
  node& plain = w.add_node();
  EXPECT_NEAR(std::chrono::duration<double>{time_to_fire(w, plain, 10s)}.count(), 10, 0.01);
  EXPECT_NEAR(std::chrono::duration<double>{time_to_fire(w, fast, 10s)}.count(), 5, 0.01);
}

TEST(node_clock, world_time_of_gives_the_first_moment_at_which_the_clock_shows_it) {
  dice random{7};
  for (int i = 0; i < 20'000; ++i) {
    const double rate = static_cast<double>(random.between(10'000'000ns, 10'000'000'000ns).count()) * 1e-9;
    const time_point start{random.between(0s, 1h)};
    const node_clock c{{.offset = random.between(0s, 1h), .rate = rate}, start};
    const time_point mine = c.monotonic(start) + random.between(1ns, i % 2 == 0 ? 1us : 100h);
    const time_point then = c.world_time_of(mine);
    ASSERT_GE(c.monotonic(then), mine) << rate;
    ASSERT_LT(c.monotonic(then - 1ns), mine) << rate;
  }
}

TEST(node_clock, a_time_too_far_away_is_the_last_one) {
  const node_clock c{{.rate = 0.01}, time_point{1s}};
  EXPECT_EQ(c.world_time_of(time_point::max()), time_point::max());
}

TEST(node_clock, refuses_what_no_clock_does) {
  world w{1};
  EXPECT_THROW(w.add_node("x", silent, {.offset = -1s}), std::invalid_argument);
  EXPECT_THROW(w.add_node("x", silent, {.rate = 0}), std::invalid_argument);
  EXPECT_THROW(w.add_node("x", silent, {.rate = std::nan("")}), std::invalid_argument);
  node& n = w.add_node();
  EXPECT_THROW(n.set_clock_rate(-1), std::invalid_argument);
  EXPECT_THROW(n.set_clock_rate(11), std::invalid_argument);
  EXPECT_EQ(w.nodes().size(), 1U);
}

// ---- suspend

TEST(suspend, monotonic_time_stands_still_while_boot_time_and_the_wall_clock_go_on) {
  world w{1};
  node& n = w.add_node();
  w.run_for(1s);
  coppice::clock& c = n.env().clock();
  const auto now = c.now();
  const auto boot = c.boot();
  const auto wall = c.wall();
  n.suspend(1h);
  EXPECT_TRUE(n.suspended());
  w.run_for(59min);
  EXPECT_EQ(c.now(), now);
  EXPECT_EQ(c.boot() - boot, 59min);
  EXPECT_EQ(c.wall() - wall, 59min);
  w.run_for(2min);
  EXPECT_FALSE(n.suspended());
  EXPECT_EQ(c.now() - now, 1min);
  EXPECT_EQ(c.boot() - boot, 61min);
  EXPECT_EQ(slept(n), 1h);
}

TEST(suspend, nothing_runs_and_timers_wait_by_the_time_of_the_suspend) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid to = n.rt().spawn(listener, &got);
  n.rt().spawn(counting, to, 0, 10, 1s);
  w.run_for(4500ms);
  EXPECT_EQ(got.numbers.size(), 5U);
  n.suspend(1h);
  w.run_for(1h - 1ms);
  EXPECT_EQ(got.numbers.size(), 5U);
  w.run_for(400ms);
  EXPECT_EQ(got.numbers.size(), 5U) << "half a second of its own time is not over";
  w.run_for(200ms);
  EXPECT_EQ(got.numbers.size(), 6U);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(got.numbers.size(), 10U);
}

TEST(suspend, ends_by_itself_even_when_nothing_else_is_left_to_happen) {
  world w{1};
  node& n = w.add_node();
  const time_point before = w.now();
  n.suspend(30min);
  EXPECT_TRUE(w.run());
  EXPECT_FALSE(n.suspended());
  EXPECT_EQ(w.now() - before, 30min);
}

TEST(suspend, goes_at_the_rate_of_the_node_before_and_after) {
  world w{1};
  node& n = w.add_node("slow", silent, {.rate = 0.5});
  const auto now = n.env().clock().now();
  w.run_for(10s);
  n.suspend(20s);
  w.run_for(30s);
  EXPECT_EQ(n.env().clock().now() - now, 10s);
  EXPECT_EQ(slept(n), 10s) << "its boot time is as slow as its monotonic one";
}

TEST(suspend, a_change_of_the_rate_meanwhile_does_not_wake_it) {
  world w{1};
  node& n = w.add_node();
  n.suspend(10s);
  const auto now = n.env().clock().now();
  w.run_for(4s);
  n.set_clock_rate(2);
  w.run_for(4s);
  EXPECT_TRUE(n.suspended());
  EXPECT_EQ(n.env().clock().now(), now);
  w.run_for(3s);
  EXPECT_EQ(n.env().clock().now() - now, 2s);
}

TEST(suspend, a_second_one_only_makes_it_longer) {
  world w{1};
  node& n = w.add_node();
  n.suspend(10s);
  n.suspend(5s);
  w.run_for(6s);
  EXPECT_TRUE(n.suspended());
  n.suspend(10s);
  w.run_for(9s);
  EXPECT_TRUE(n.suspended());
  w.run_for(2s);
  EXPECT_FALSE(n.suspended());
  EXPECT_EQ(slept(n), 16s);
}

TEST(suspend, a_pause_stays_when_the_suspend_is_over) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid to = n.rt().spawn(listener, &got);
  w.run_for(1ms);
  n.pause();
  n.suspend(10s);
  n.rt().send(to, number{1});
  w.run_for(20s);
  EXPECT_TRUE(n.paused());
  EXPECT_TRUE(got.numbers.empty());
  n.resume();
  w.run_for(1ms);
  EXPECT_EQ(got.numbers.size(), 1U);
}

TEST(suspend, of_no_length_or_of_a_node_that_is_down_does_nothing) {
  world w{1};
  node& n = w.add_node();
  n.suspend(0s);
  n.suspend(-1s);
  EXPECT_FALSE(n.suspended());
  n.crash();
  n.suspend(1h);
  EXPECT_FALSE(n.suspended());
  EXPECT_TRUE(w.run(1s));
}

TEST(suspend, a_crash_ends_it) {
  world w{1};
  node& n = w.add_node();
  n.suspend(1h);
  w.run_for(1min);
  n.restart();
  EXPECT_FALSE(n.suspended());
  EXPECT_EQ(slept(n), 1min);
  EXPECT_LT(time_to_fire(w, n, 1s), 2s);
}

TEST(suspend, a_short_one_is_not_noticed_by_others_and_mail_arrives_afterwards) {
  seen by_a;
  seen got;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid on_b = b.rt().spawn(idler);
  const pid to = b.rt().spawn(listener, &got);
  a.rt().spawn(watcher, on_b, &by_a);
  w.run_for(100ms);
  b.suspend(4s);
  a.rt().send(to, number{1});
  w.run_for(3s);
  EXPECT_TRUE(got.numbers.empty());
  w.run_for(20s);
  EXPECT_EQ(got.numbers.size(), 1U);
  EXPECT_TRUE(by_a.exits.empty());
}

TEST(suspend, a_long_one_costs_the_connection_on_both_sides) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    seen by_a;
    seen by_b;
    world w{seed};
    node& a = w.add_node();
    node& b = w.add_node();
    const pid on_a = a.rt().spawn(idler);
    const pid on_b = b.rt().spawn(idler);
    a.rt().spawn(watcher, on_b, &by_a);
    b.rt().spawn(watcher, on_a, &by_b);
    w.run_for(100ms);
    b.suspend(1min);
    w.run_for(59s);
    EXPECT_EQ(by_a.exits.size(), 1U) << "seed " << seed;
    EXPECT_TRUE(by_b.exits.empty());
    EXPECT_TRUE(w.run());
    EXPECT_EQ(by_b.exits.size(), 1U) << "seed " << seed;
  }
}

TEST(suspend, a_stuck_process_is_not_stuck_for_longer_because_its_machine_slept) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid stuck = n.rt().spawn(listener, &got);
  w.run_for(1ms);
  n.stick(stuck, 10s);
  n.rt().send(stuck, number{1});
  n.suspend(1h);
  w.run_for(1h + 100ms);
  EXPECT_EQ(n.rt().counters().stalls, 0U) << "a tenth of a second of its own time";
  w.run_for(5s);
  EXPECT_EQ(n.rt().counters().stalls, 1U);
  EXPECT_TRUE(got.numbers.empty());
  w.run_for(6s);
  EXPECT_EQ(got.numbers.size(), 1U);
}

// ---- the seed

std::uint64_t trace_of(std::uint64_t seed, bool odd_clocks) {
  seen got;
  world w{seed};
  for (int i = 0; i < 3; ++i) {
    const double rate = odd_clocks ? 0.5 + static_cast<double>(w.chance().below(1000)) / 1000 : 1;
    w.add_node({}, silent, {.offset = odd_clocks ? w.chance().between(0s, 1h) : 0s, .rate = rate});
  }
  const pid to = w.nodes()[0].rt().spawn(listener, &got);
  for (node& n : w.nodes()) n.rt().spawn(counting, to, 0, 20, 300ms);
  w.run_for(1s);
  if (odd_clocks) w.nodes()[1].suspend(w.chance().between(1s, 3s));
  EXPECT_TRUE(w.run());
  EXPECT_EQ(got.numbers.size(), 60U);
  return w.trace_hash();
}

TEST(node_clock, the_same_seed_leaves_the_same_trace) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    EXPECT_EQ(trace_of(seed, true), trace_of(seed, true));
    EXPECT_NE(trace_of(seed, true), trace_of(seed, false));
  }
}

}  // namespace
