// Time, randomness and the end of a simulated world with one node.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

// ---- the seed

task<> gossip(self& me, std::shared_ptr<std::vector<pid>> all, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    me.send((*all)[me.random() % all->size()], number{i});
    const std::chrono::microseconds limit{me.random() % 3000};
    const auto got = co_await me.receive<number>(limit);
    (void)got;
  }
}

std::uint64_t trace_of(std::uint64_t seed) {
  world w{seed};
  const auto all = std::make_shared<std::vector<pid>>();
  for (int n = 0; n < 2; ++n) {
    runtime& rt = w.add_node().rt();
    for (int i = 0; i < 4; ++i) all->push_back(rt.spawn(gossip, all, 20));
  }
  EXPECT_TRUE(w.run());
  return w.trace_hash();
}

TEST(world, the_same_seed_leaves_the_same_trace) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) EXPECT_EQ(trace_of(seed), trace_of(seed));
}

TEST(world, different_seeds_leave_different_traces) {
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) traces.insert(trace_of(seed));
  EXPECT_EQ(traces.size(), 50U);
}

TEST(world, the_tracer_gets_a_line_for_everything_that_happens) {
  std::vector<std::string> lines;
  world w{1};
  w.on_trace([&](std::string_view line) { lines.emplace_back(line); });
  w.add_node().rt().spawn(idler);
  w.note("here I am", 7);
  EXPECT_TRUE(w.run());
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines[0], "1.000000000 node1: node up, as number 1");
  EXPECT_EQ(lines[1], "1.000000000 here I am 7");
  EXPECT_EQ(lines[2], "1.000000100 node1 <1.1.0>: start");
}

TEST(world, the_dice_are_fair_and_within_their_bounds) {
  dice d{1};
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts.at(d.below(6));
  for (const int n : counts) EXPECT_NEAR(n, 10000, 500);
  EXPECT_EQ(d.below(0), 0U);
  EXPECT_FALSE(d.chance(0));
  EXPECT_TRUE(d.chance(1));
  for (int i = 0; i < 1000; ++i) {
    const auto t = d.between(3ms, 5ms);
    EXPECT_TRUE(t >= 3ms && t <= 5ms);
  }
}

TEST(world, shows_the_age_of_a_process_up_to_a_tenth_of_a_second_too_high) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    world w{seed};
    runtime& rt = w.add_node().rt();
    w.run_for(std::chrono::milliseconds{37 * seed});
    const time_point begin = w.now();
    const pid who = rt.spawn(idler);
    for (int i = 0; i < 5; ++i) {
      w.run_for(33ms);
      const auto age = std::chrono::floor<std::chrono::milliseconds>(w.now() - begin);
      const auto shown = rt.info(who)->age;
      EXPECT_GE(shown + 1ms, age);
      EXPECT_LE(shown, age + 101ms);
    }
  }
}

// ---- time

TEST(world, a_day_passes_at_once_when_nothing_happens) {
  world w{1};
  w.add_node().rt().spawn(idler);
  const time_point before = w.now();
  w.run_for(24h);
  EXPECT_EQ(w.now() - before, 24h);
  EXPECT_LE(w.steps(), 1U);
}

TEST(world, run_for_goes_no_further_though_something_happens_that_wakes_nobody) {
  world w{1};
  node& n = w.add_node();
  const pid stuck = n.rt().spawn(idler);
  w.run_for(1ms);
  n.stick(stuck, 1h);
  n.rt().send(stuck, number{1});
  const time_point before = w.now();
  w.run_for(1s);  // the stall is reported after 500 ms; the next event is an hour away
  EXPECT_EQ(w.now() - before, 1s);
  EXPECT_FALSE(w.run_until([] { return false; }, 10s));
  EXPECT_LE(w.now() - before, 11s);
}

task<> sets_timers(self& me, std::vector<std::pair<time_point, timer_ref>>* fired, std::vector<timer_ref>* set) {
  for (const auto after : {3s, 1s, 86400s, 2s}) set->push_back(me.start_timer(after));
  for (int i = 0; i < 4; ++i) {
    const timer_fired t = co_await me.receive<timer_fired>();
    fired->emplace_back(me.now(), t.ref);
  }
}

TEST(world, timers_fire_in_order_at_their_time) {
  std::vector<std::pair<time_point, timer_ref>> fired;
  std::vector<timer_ref> set;
  world w{1};
  const time_point start = w.now();
  w.add_node().rt().spawn(sets_timers, &fired, &set);
  EXPECT_TRUE(w.run());
  ASSERT_EQ(fired.size(), 4U);
  const std::array<std::chrono::seconds, 4> due{1s, 2s, 3s, 86400s};
  const std::array<std::size_t, 4> order{1, 3, 0, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(fired[i].second, set[order[i]]);
    EXPECT_GE(fired[i].first - start, due[i]);
    EXPECT_LE(fired[i].first - start, due[i] + 2ms);
  }
}

task<> ticks(self& me, int* count) {
  for (;;) {
    co_await me.sleep(1s);
    ++*count;
  }
}

TEST(world, what_never_ends_is_given_up_after_the_limit) {
  int count = 0;
  world w{1};
  w.add_node().rt().spawn(ticks, &count);
  EXPECT_FALSE(w.run(1h));
  EXPECT_NEAR(count, 3600, 5);
}

TEST(world, settle_waits_for_no_timer) {
  int count = 0;
  world w{1};
  runtime& rt = w.add_node().rt();
  rt.spawn(ticks, &count);
  seen got;
  const pid counted = rt.spawn(listener, &got);
  rt.send(counted, number{1});
  const time_point before = w.now();
  EXPECT_TRUE(w.settle());
  EXPECT_EQ(got.numbers.size(), 1U);
  EXPECT_EQ(count, 0);
  EXPECT_LT(w.now() - before, 1ms) << "turns take a little time";
}

task<> never_waits(self& me) {
  for (;;) co_await me.yield();
}

TEST(world, settle_gives_up_after_the_limit) {
  world w{1};
  w.add_node().rt().spawn(never_waits);
  const time_point before = w.now();
  EXPECT_FALSE(w.settle(1ms));
  EXPECT_NEAR(static_cast<double>((w.now() - before).count()), 1e6, 1e4);
}

TEST(world, run_until_stops_as_soon_as_it_is_done) {
  int count = 0;
  world w{1};
  w.add_node().rt().spawn(ticks, &count);
  EXPECT_TRUE(w.run_until([&] { return count == 10; }));
  EXPECT_EQ(count, 10);
  EXPECT_FALSE(w.run_until([&] { return count == 1000; }, 10s)) << "the time is over first";
  EXPECT_LE(count, 21);
}

TEST(world, run_until_ends_when_nothing_is_left) {
  world w{1};
  w.add_node().rt().spawn(idler);
  EXPECT_FALSE(w.run_until([] { return false; }));
}

TEST(world, a_jump_of_the_wall_clock_does_not_move_timers) {
  int count = 0;
  world w{1};
  node& n = w.add_node();
  n.rt().spawn(ticks, &count);
  coppice::clock& wall = n.rt().host().env().clock();
  const wall_time before = wall.wall();
  w.run_for(10500ms);
  EXPECT_EQ(count, 10);
  n.jump_wall_clock(2h);
  EXPECT_EQ(wall.wall() - before, 2h + 10500ms);
  w.run_for(10s);
  EXPECT_EQ(count, 20);
  n.jump_wall_clock(-5h);
  EXPECT_EQ(wall.wall() - before, -3h + 20500ms);
  w.run_for(10s);
  EXPECT_EQ(count, 30);
}

// ---- from outside

TEST(world, calls_and_waits_from_outside_let_time_pass) {
  world w{1};
  runtime& rt = w.add_node().rt();
  const pid c = rt.spawn(clerk);
  EXPECT_EQ(rt.call(call<ask>(c)), result<int>{42});
  const pid i = rt.spawn(idler);
  const time_point before = w.now();
  EXPECT_EQ(rt.call(call<ask>(i).within(3s)).error().code(), errc::timeout);
  EXPECT_GE(w.now() - before, 3s);
  rt.send_after(1s, i, end_now{});
  EXPECT_EQ(rt.wait(i), exit_reason::shutdown("told to"));
  EXPECT_EQ(rt.wait(i), exit_reason::noproc());
}

TEST(world, a_wait_for_what_can_never_happen_throws) {
  world w{1};
  runtime& rt = w.add_node().rt();
  const pid i = rt.spawn(idler);
  EXPECT_THROW((void)rt.wait(i), std::runtime_error);
}

int twice(int n) { return 2 * n; }
task<> blocks(self& me, int* got) { *got = co_await me.blocking(twice, 21); }

TEST(world, blocking_work_is_done_too) {
  int got = 0;
  world w{1};
  w.add_node().rt().spawn(blocks, &got);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(got, 42);
}

// ---- out of memory

task<> tries_to_spawn(self& me, int* failures, pid* child) {
  me.trap_exits();
  for (int i = 0; i < 3; ++i) {
    try {
      switch (i) {
        case 0: me.spawn_link(idler); break;
        case 1: me.spawn_monitor(idler); break;
        default: *child = me.spawn(idler); break;
      }
    } catch (const std::bad_alloc&) {
      ++*failures;
    }
  }
  const exited x = co_await me.receive<exited>();
  (void)x;
}

TEST(world, a_spawn_without_memory_throws_and_leaves_nothing) {
  int failures = 0;
  pid child;
  world w{1};
  runtime& rt = w.add_node().rt();
  const pid parent = rt.spawn(tries_to_spawn, &failures, &child);
  w.fail_at("spawn.allocate", 1);
  EXPECT_THROW(rt.spawn(idler), std::bad_alloc);
  EXPECT_THROW((void)rt.spawn({.name = "named"}, idler), std::bad_alloc);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(failures, 3);
  EXPECT_EQ(child, pid{});
  EXPECT_EQ(rt.where("named"), pid{});
  EXPECT_EQ(rt.counters().spawned, 1U);
  const auto left = rt.snapshot();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].id, parent);
  EXPECT_TRUE(left[0].links.empty());
  EXPECT_EQ(left[0].monitors, 0U);
  w.fail_at("spawn.allocate", 0);
  EXPECT_TRUE(rt.alive(rt.spawn(idler)));
}

TEST(world, a_share_of_spawns_may_fail) {
  world w{1};
  runtime& rt = w.add_node().rt();
  w.fail_at("spawn.allocate", 0.5);
  int failures = 0;
  for (int i = 0; i < 1000; ++i) {
    try {
      rt.spawn(idler);
    } catch (const std::bad_alloc&) {
      ++failures;
    }
  }
  EXPECT_NEAR(failures, 500, 80);
}

}  // namespace
