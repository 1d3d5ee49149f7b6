// Freezing processes: every promise of freeze.hpp, in the simulation.
#include <gtest/gtest.h>

#include <optional>

#include "people.hpp"
#include "waits.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

struct asks {
  using reply = int;
};
struct counter {
  using protocol = coppice::protocol<asks, number>;
  int handle(asks) { return ++count; }
  void handle(number m) { last = m.value; }
  int count = 0;
  int last = 0;
};

/// Spawns a linked child when it is told to, and so on for as many generations as the number says.
task<> parent(self& me, std::vector<pid>* all) {
  all->push_back(me.id());
  for (;;) {
    const number m = co_await me.receive<number>();
    if (m.value > 0) {
      const pid child = me.spawn_link(parent, all);
      me.send(child, number{m.value - 1});
    }
  }
}

task<> freezes_itself(self& me, result<frozen>* into) { *into = co_await freeze(me.id()); }
task<> freezes_its_own_tree(self& me, pid root, result<frozen>* into) {
  const end_now go = co_await me.receive<end_now>();
  (void)go;
  const subtree mine{root};
  *into = co_await freeze(mine);
}
task<> freezer_of(self&, pid who, result<frozen>* into) { *into = co_await freeze(who, 1s); }

/// What the process waits for arrives after one second; the process is frozen for ten.
void expect_frozen(task<> (*body)(self&, time_point*), std::uint64_t seed) {
  time_point woken{};
  world w{seed};
  node& n = w.add_node();
  const pid who = n.rt().spawn(body, &woken);
  w.run_for(1ms);
  const time_point begin = w.now();
  const result<frozen> got = n.rt().freeze(who);
  ASSERT_TRUE(got.has_value());
  EXPECT_TRUE(got->still_inside.empty());
  EXPECT_EQ(n.rt().info(who)->state, process_state::frozen);
  w.run_for(10s);
  EXPECT_EQ(woken, time_point{}) << "a frozen process went on, seed " << seed;
  EXPECT_TRUE(n.rt().thaw(who));
  EXPECT_TRUE(w.run());
  EXPECT_GE(woken - begin, 10s);
  EXPECT_LE(woken - begin, 11s + 10ms);
  EXPECT_FALSE(n.rt().alive(who));
}

TEST(freeze, holds_whatever_the_process_waits_for) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const auto body : all_waits) expect_frozen(body, seed);
}

TEST(freeze, mail_waits_and_is_handled_in_its_order_after_the_thaw) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid who = n.rt().spawn(listener, &got);
  ASSERT_TRUE(n.rt().freeze(who).has_value());
  for (int i = 0; i < 5; ++i) n.rt().send(who, number{i});
  w.run_for(1s);
  EXPECT_TRUE(got.numbers.empty());
  EXPECT_EQ(n.rt().info(who)->mailbox, 5U);
  EXPECT_TRUE(n.rt().thaw(who));
  w.run_for(1ms);
  ASSERT_EQ(got.numbers.size(), 5U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(got.numbers[static_cast<std::size_t>(i)].second, i);
}

TEST(freeze, the_time_limits_of_callers_run_on) {
  world w{1};
  node& n = w.add_node();
  const ref<counter> c = n.rt().spawn<counter>();
  ASSERT_TRUE(n.rt().freeze(c.id()).has_value());
  const result<int> late = n.rt().call(c.call<asks>().within(1s));
  EXPECT_EQ(late.error().code(), errc::timeout);
  EXPECT_TRUE(n.rt().thaw(c.id()));
  EXPECT_TRUE(n.rt().call(c.call<asks>()).has_value());
}

TEST(freeze, is_counted_and_needs_as_many_thaws) {
  world w{1};
  node& n = w.add_node();
  const ref<counter> c = n.rt().spawn<counter>();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(n.rt().freeze(c.id()).has_value());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(n.rt().thaw(c.id()));
  EXPECT_EQ(n.rt().call(c.call<asks>().within(1s)).error().code(), errc::timeout);
  EXPECT_TRUE(n.rt().thaw(c.id()));
  EXPECT_TRUE(n.rt().call(c.call<asks>()).has_value());
  EXPECT_FALSE(n.rt().thaw(c.id())) << "one thaw too many";
}

TEST(freeze, of_a_process_is_not_undone_by_the_thaw_of_its_subtree) {
  world w{1};
  node& n = w.add_node();
  const ref<counter> c = n.rt().spawn<counter>();
  ASSERT_TRUE(n.rt().freeze(c.id()).has_value());
  EXPECT_FALSE(n.rt().thaw(subtree{c.id()}));
  EXPECT_EQ(n.rt().info(c.id())->state, process_state::frozen);
}

TEST(freeze, a_kill_ends_a_frozen_process_at_once_and_its_watchers_are_told) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    seen got;
    world w{seed};
    node& n = w.add_node();
    const pid victim = n.rt().spawn(idler);
    n.rt().spawn(watcher, victim, &got);
    w.run_for(1ms);
    ASSERT_TRUE(n.rt().freeze(victim).has_value());
    n.rt().kill(victim);
    w.run_for(1ms);
    EXPECT_FALSE(n.rt().alive(victim));
    ASSERT_EQ(got.downs.size(), 1U);
    EXPECT_EQ(got.downs.front().reason, exit_reason::killed());
    EXPECT_EQ(got.exits.size(), 1U);
    EXPECT_FALSE(n.rt().thaw(victim)) << "nothing is left to thaw";
  }
}

TEST(freeze, every_other_exit_waits_for_the_thaw) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    world w{seed};
    node& n = w.add_node();
    const ref<counter> c = n.rt().spawn<counter>();
    ASSERT_TRUE(n.rt().freeze(c.id()).has_value());
    n.rt().exit(c.id(), exit_reason::shutdown());
    w.run_for(10s);
    EXPECT_TRUE(n.rt().alive(c.id()));
    EXPECT_TRUE(n.rt().thaw(c.id()));
    w.run_for(1ms);
    EXPECT_FALSE(n.rt().alive(c.id()));
  }
}

TEST(freeze, links_and_monitors_of_a_frozen_process_stay) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid other = n.rt().spawn(idler);
  const pid frozen_one = n.rt().spawn(watcher, other, &got);
  w.run_for(1ms);
  ASSERT_TRUE(n.rt().freeze(frozen_one).has_value());
  n.rt().kill(other);
  w.run_for(1s);
  EXPECT_TRUE(got.downs.empty());
  EXPECT_TRUE(n.rt().thaw(frozen_one));
  w.run_for(1ms);
  EXPECT_EQ(got.downs.size(), 1U);
  EXPECT_EQ(got.exits.size(), 1U);
}

TEST(freeze, of_a_subtree_takes_all_linked_descendants) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<pid> all;
    world w{seed};
    node& n = w.add_node();
    const pid root = n.rt().spawn(parent, &all);
    n.rt().send(root, number{4});
    w.run_for(1ms);
    ASSERT_EQ(all.size(), 5U);
    ASSERT_TRUE(n.rt().freeze(subtree{root}).has_value());
    for (const pid each : all) EXPECT_EQ(n.rt().info(each)->state, process_state::frozen);
    EXPECT_TRUE(n.rt().thaw(subtree{root}));
    w.run_for(1ms);
    for (const pid each : all) EXPECT_EQ(n.rt().info(each)->state, process_state::waiting);
  }
}

/// Freezes a subtree within a chain of spawns; the seed decides after how many steps.
TEST(freeze, a_child_that_is_started_later_is_frozen_before_it_begins) {
  std::uint64_t caught = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<pid> all;
    world w{seed};
    node& n = w.add_node();
    const pid root = n.rt().spawn(parent, &all);
    n.rt().send(root, number{6});
    for (std::uint64_t steps = 1 + seed % 12; steps > 0; --steps) w.step();
    ASSERT_TRUE(n.rt().freeze(subtree{root}).has_value());
    const std::size_t begun = all.size();
    w.run_for(1s);
    EXPECT_EQ(all.size(), begun) << "a process began in a frozen subtree, seed " << seed;
    caught += begun > 0 && begun < 7 ? 1 : 0;
    EXPECT_TRUE(n.rt().thaw(subtree{root}));
    w.run_for(1ms);
    EXPECT_EQ(all.size(), 7U);
  }
  EXPECT_GT(caught, 50U);
}

TEST(freeze, a_kill_ends_a_child_that_was_frozen_before_it_began) {
  std::uint64_t unborn = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<pid> all;
    world w{seed};
    node& n = w.add_node();
    const pid root = n.rt().spawn(parent, &all);
    n.rt().send(root, number{6});
    for (std::uint64_t steps = 1 + seed % 12; steps > 0; --steps) w.step();
    ASSERT_TRUE(n.rt().freeze(subtree{root}).has_value());
    w.run_for(1ms);
    for (const process_info& one : n.rt().snapshot())
      if (one.state == process_state::frozen && one.id != root) {
        unborn += std::ranges::find(all, one.id) == all.end() ? 1 : 0;
        n.rt().kill(one.id);
        w.run_for(1ms);
        EXPECT_FALSE(n.rt().alive(one.id));
      }
    EXPECT_TRUE(n.rt().thaw(subtree{root}));
    w.run_for(1ms);
  }
  EXPECT_GT(unborn, 5U);
}

/// Freezes and kills a process in one turn, before it can begin.
task<> kills_an_unborn(self& me, std::optional<exit_reason>* told) {
  const monitored child = me.spawn_monitor(idler);
  const auto held = me.host().freeze({.root = child.who, .subtree = false}, {});
  EXPECT_TRUE(held.has_value());
  me.kill(child.who);
  const auto d = co_await me.receive<down>(1min);
  if (const down* got = std::get_if<down>(&d)) *told = got->reason;
}

TEST(freeze, a_monitor_is_told_of_a_process_that_was_killed_before_it_began) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::optional<exit_reason> told;
    world w{seed};
    w.add_node().rt().spawn(kills_an_unborn, &told);
    w.run_for(2min);
    ASSERT_TRUE(told.has_value()) << "seed " << seed;
    EXPECT_EQ(*told, exit_reason::killed());
  }
}

/// Spawns a linked child when told to. The test kills this process before the child begins.
task<> spawns_and_lives(self& me, std::vector<pid>* begun) {
  begun->push_back(me.id());
  me.trap_exits();
  const number m = co_await me.receive<number>();
  if (m.value > 0) me.spawn_link(spawns_and_lives, begun);
  co_await me.sleep(1h);
}
task<> root_of_spawner(self& me, std::vector<pid>* begun, pid* spawner) {
  me.trap_exits();
  *spawner = me.spawn_link(spawns_and_lives, begun);
  co_await me.sleep(1h);
}

TEST(freeze, a_child_whose_parent_was_killed_before_it_began_is_frozen_too) {
  std::uint64_t tried = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::vector<pid> begun;
    pid spawner;
    world w{seed};
    node& n = w.add_node();
    const pid root = n.rt().spawn(root_of_spawner, &begun, &spawner);
    w.run_for(1ms);
    ASSERT_EQ(begun.size(), 1U);
    n.rt().send(spawner, number{1});
    while (n.rt().counters().spawned < 3) ASSERT_TRUE(w.step());
    ASSERT_TRUE(n.rt().host().freeze({.root = root, .subtree = true}, {}).has_value());
    if (begun.size() != 1) continue;  // the child began before the freeze
    ++tried;
    n.rt().kill(spawner);
    w.run_for(1s);
    EXPECT_EQ(begun.size(), 1U) << "a process began in a frozen subtree, seed " << seed;
  }
  EXPECT_GT(tried, 20U);
}

TEST(freeze, names_those_that_are_stuck_in_their_code_at_the_limit) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid who = n.rt().spawn(listener, &got);
  w.run_for(1ms);
  n.stick(who, 10s);
  n.rt().send(who, number{1});
  const time_point begin = w.now();
  const result<frozen> answer = n.rt().freeze(who, 2s);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->still_inside, std::vector<pid>{who});
  EXPECT_GE(w.now() - begin, 2s);
  w.run_for(20s);
  EXPECT_EQ(n.rt().info(who)->state, process_state::frozen) << "it must freeze when its code returns";
  EXPECT_TRUE(n.rt().thaw(who));
  w.run_for(1ms);
  EXPECT_EQ(got.numbers.size(), 1U);
}

TEST(freeze, a_process_can_freeze_others_and_waits_for_the_answer) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid who = n.rt().spawn(listener, &got);
  result<frozen> answer = fail(errc::invalid);
  n.rt().spawn(freezer_of, who, &answer);
  w.run_for(1ms);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->still_inside.empty());
  EXPECT_EQ(n.rt().info(who)->state, process_state::frozen);
}

TEST(freeze, of_oneself_or_ones_own_subtree_is_refused) {
  world w{1};
  node& n = w.add_node();
  result<frozen> alone = frozen{};
  n.rt().spawn(freezes_itself, &alone);
  w.run_for(1ms);
  EXPECT_EQ(alone.error().code(), errc::invalid);
}

task<> root_of_a_freezer(self& me, result<frozen>* into) {
  const pid child = me.spawn_link(freezes_its_own_tree, me.id(), into);
  me.send(child, end_now{});
  co_await me.sleep(1h);
}

TEST(freeze, of_a_subtree_that_the_caller_belongs_to_is_refused) {
  world w{1};
  node& n = w.add_node();
  result<frozen> answer = frozen{};
  n.rt().spawn(root_of_a_freezer, &answer);
  w.run_for(1ms);
  EXPECT_EQ(answer.error().code(), errc::invalid);
}

TEST(freeze, of_a_dead_process_and_of_one_of_another_node_is_refused) {
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid here = a.rt().spawn(idler);
  const pid there = b.rt().spawn(idler);
  EXPECT_EQ(a.rt().freeze(there).error().code(), errc::invalid);
  a.rt().kill(here);
  w.run_for(1ms);
  EXPECT_EQ(a.rt().freeze(here).error().code(), errc::noproc);
}

TEST(freeze, a_runtime_ends_although_processes_are_frozen) {
  world w{1};
  node& n = w.add_node();
  const ref<counter> c = n.rt().spawn<counter>();
  ASSERT_TRUE(n.rt().freeze(c.id()).has_value());
  n.rt().cast<number>(c, 1);
  n.restart();
  EXPECT_TRUE(n.rt().snapshot().empty());
}

}  // namespace
