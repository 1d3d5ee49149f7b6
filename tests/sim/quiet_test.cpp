// When a world has nothing left to do, where its clock stops, and what survives the restart of a node.
#include <gtest/gtest.h>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

// ---- the limit of a run

task<> sleeps(self& me, std::chrono::nanoseconds how_long, int* woken) {
  co_await me.sleep(how_long);
  ++*woken;
}

TEST(quiet, run_does_not_move_the_clock_beyond_its_limit) {
  int woken = 0;
  world w{1};
  w.add_node().rt().spawn(sleeps, 10h, &woken);
  const time_point before = w.now();
  EXPECT_FALSE(w.run(1s));
  EXPECT_EQ(w.now() - before, 1s);
  EXPECT_FALSE(w.run(1s));
  EXPECT_EQ(w.now() - before, 2s);
  EXPECT_EQ(woken, 0);
  EXPECT_TRUE(w.run(11h));
  EXPECT_EQ(woken, 1);
  EXPECT_LE(w.now() - before, 10h + 2ms);
}

TEST(quiet, run_does_not_move_the_clock_beyond_its_limit_for_packets_and_suspicions) {
  seen by_a;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  w.net().quality.delay_min = w.net().quality.delay_max = 1s;
  const pid on_b = b.rt().spawn(idler);
  a.rt().spawn(watcher, on_b, &by_a);
  const time_point before = w.now();
  EXPECT_FALSE(w.run(10ms));
  EXPECT_EQ(w.now() - before, 10ms);
  EXPECT_TRUE(w.run());
  w.partition(a, b);
  const time_point cut = w.now();
  EXPECT_FALSE(w.run(10ms));
  EXPECT_EQ(w.now() - cut, 10ms);
  EXPECT_TRUE(by_a.exits.empty());
}

TEST(quiet, a_run_that_becomes_quiet_does_not_wait_for_its_limit) {
  world w{1};
  w.add_node().rt().spawn(idler);
  const time_point before = w.now();
  EXPECT_TRUE(w.run(1h));
  EXPECT_LE(w.now() - before, 1ms);
}

// ---- signals that never arrive

TEST(quiet, what_a_crashed_node_had_sent_over_a_cut_is_gone) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    seen got;
    world w{seed};
    node& a = w.add_node();
    node& b = w.add_node();
    const pid to = b.rt().spawn(listener, &got);
    a.rt().send(to, number{1});
    EXPECT_TRUE(w.run());
    w.partition(a, b);
    a.rt().send(to, number{2});
    w.run_for(1ms);
    a.crash();
    const time_point before = w.now();
    EXPECT_TRUE(w.run(1min)) << "seed " << seed;
    EXPECT_LE(w.now() - before, w.net().quality.lost_after * 3 / 2);
    w.heal();
    EXPECT_TRUE(w.run(1min)) << "seed " << seed;
    ASSERT_EQ(got.numbers.size(), 1U) << "seed " << seed;
  }
}

TEST(quiet, what_a_crashed_node_had_on_its_way_when_the_cut_came_is_gone) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    seen got;
    world w{seed};
    node& a = w.add_node();
    node& b = w.add_node();
    const pid to = b.rt().spawn(listener, &got);
    a.rt().send(to, number{1});
    EXPECT_TRUE(w.run());
    a.rt().send(to, number{2});
    w.partition(a, b);
    a.crash();
    ASSERT_TRUE(w.run(1min)) << "seed " << seed;
  }
}

TEST(quiet, a_lasting_partition_leaves_nothing_to_do) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    seen got;
    world w{seed};
    w.net().quality.reordering = 0.5;
    w.net().quality.lost_after = 3ms;
    node& a = w.add_node();
    node& b = w.add_node();
    const pid to = b.rt().spawn(listener, &got);
    for (int i = 0; i < 20; ++i) a.rt().send(to, number{i});
    w.run_for(1ms);
    w.partition(a, b);
    ASSERT_TRUE(w.run(1min)) << "seed " << seed;
  }
}

// ---- a paused node

TEST(quiet, packets_to_a_paused_node_keep_nobody_busy_and_arrive_once_it_goes_on) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    seen got;
    world w{seed};
    node& a = w.add_node();
    node& b = w.add_node();
    const pid to = b.rt().spawn(listener, &got);
    a.rt().send(to, number{0});
    EXPECT_TRUE(w.run());
    b.pause();
    for (int i = 1; i <= 10; ++i) a.rt().send(to, number{i});
    const time_point until = w.now() + 3s;
    int things = 0;
    while (w.now() < until && w.step()) ++things;
    EXPECT_LT(things, 50) << "seed " << seed;
    EXPECT_EQ(got.numbers.size(), 1U);
    b.resume();
    EXPECT_TRUE(w.run());
    ASSERT_EQ(got.numbers.size(), 11U) << "seed " << seed;
    for (int i = 0; i <= 10; ++i) EXPECT_EQ(got.numbers[static_cast<std::size_t>(i)].second, i);
  }
}

TEST(quiet, a_world_with_a_paused_node_becomes_quiet) {
  seen got;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid to = b.rt().spawn(listener, &got);
  a.rt().send(to, number{1});
  EXPECT_TRUE(w.run());
  b.pause();
  a.rt().send(to, number{2});
  const time_point before = w.now();
  EXPECT_TRUE(w.run());
  EXPECT_LE(w.now() - before, w.net().quality.lost_after * 3 / 2) << "until the other one is taken for lost";
  EXPECT_EQ(got.numbers.size(), 1U);
}

// ---- starts

/// Sends two numbers from `a` to a new process of `b`: one during the partition, one after it has healed.
void expect_cut_until_healed(world& w, node& a, node& b) {
  seen got;
  seen late;
  const pid to = b.rt().spawn(listener, &got);
  a.rt().send(to, number{1});
  a.rt().spawn(watcher, to, &late);
  EXPECT_TRUE(w.run());
  EXPECT_TRUE(got.numbers.empty());
  ASSERT_EQ(late.exits.size(), 1U);
  ASSERT_EQ(late.downs.size(), 1U);
  EXPECT_EQ(late.exits[0].reason, exit_reason::noconnection());
  EXPECT_EQ(late.downs[0].reason, exit_reason::noconnection());
  w.heal();
  a.rt().send(to, number{2});
  EXPECT_TRUE(w.run());
  ASSERT_EQ(got.numbers.size(), 1U);
  EXPECT_EQ(got.numbers[0].second, 2);
  a.crash();  // before `got` and `late` are destroyed
  b.crash();
}

TEST(quiet, a_partition_survives_the_restart_of_a_node_and_is_healed_like_any) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    for (const bool which : {false, true}) {
      world w{seed};
      node& a = w.add_node("a");
      node& b = w.add_node("b");
      w.partition(a, b);
      (which ? a : b).restart();
      expect_cut_until_healed(w, a, b);
    }
}

TEST(quiet, a_partition_survives_that_both_sides_crash_and_start_twice) {
  world w{1};
  node& a = w.add_node("a");
  node& b = w.add_node("b");
  w.partition_one_way(a, b);
  for (int i = 0; i < 2; ++i) {
    a.crash();
    b.crash();
    w.run_for(1s);
    b.restart();
    a.restart();
  }
  EXPECT_FALSE(w.net().open(a.id(), b.id()));
  EXPECT_TRUE(w.net().open(b.id(), a.id()));
  expect_cut_until_healed(w, a, b);
}

TEST(quiet, a_restart_cuts_nobody_off) {
  seen got;
  world w{1};
  node& a = w.add_node("a");
  node& b = w.add_node("b");
  node& c = w.add_node("c");
  w.partition(a, b);
  b.restart();
  c.restart();
  const pid to = c.rt().spawn(listener, &got);
  a.rt().send(to, number{1});
  b.rt().send(to, number{2});
  EXPECT_TRUE(w.run());
  EXPECT_EQ(got.numbers.size(), 2U);
}

TEST(quiet, a_node_that_was_paused_before_it_started_runs) {
  for (const bool crashed_first : {true, false}) {
    call_outcome out;
    world w{1};
    node& n = w.add_node();
    if (crashed_first) n.crash();
    n.pause();
    if (!crashed_first) n.crash();
    n.restart();
    EXPECT_TRUE(n.up());
    EXPECT_FALSE(n.paused());
    const pid c = n.rt().spawn(clerk);
    n.rt().spawn(caller, c, 1s, &out);
    EXPECT_TRUE(w.run());
    EXPECT_EQ(out.got, result<int>{42});
  }
}

// ---- snapshots

task<> linked_idler(self& me, pid other) {
  me.link(other);
  me.monitor(other);
  const end_now over = co_await me.receive<end_now>();
  (void)over;
}

TEST(quiet, a_runnable_process_is_seen_with_its_links_and_its_mail) {
  world w{1};
  runtime& rt = w.add_node().rt();
  const pid other = rt.spawn(idler);
  const pid busy = rt.spawn(linked_idler, other);
  EXPECT_TRUE(w.run());
  for (std::uint32_t mail = 0; mail <= 5; ++mail) {
    std::optional<process_info> seen_alone = rt.info(busy);
    ASSERT_TRUE(seen_alone);
    process_info in_all;
    for (process_info& one : rt.snapshot())
      if (one.id == busy) in_all = std::move(one);
    for (const process_info* one : {&*seen_alone, &in_all}) {
      EXPECT_TRUE(one->complete);
      EXPECT_EQ(one->links, std::vector<pid>{other});
      EXPECT_EQ(one->mailbox, mail);
      EXPECT_EQ(one->monitors, 1U);
      EXPECT_EQ(one->state, mail == 0 ? process_state::waiting : process_state::runnable);
    }
    rt.send(busy, number{1});
  }
}

}  // namespace
