// Freezing processes: every promise of freeze.hpp, in the simulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

/// A node, and freezes and thaws that must succeed.
struct stage {
  explicit stage(std::uint64_t seed = 1) : w{seed}, n{w.add_node()} {}
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  [[nodiscard]] runtime& rt() { return n.rt(); }
  template <class Who>  // a pid or a subtree
  void freeze(Who who) {
    const result<frozen> got = rt().freeze(who);
    ASSERT_TRUE(got.has_value());
    EXPECT_TRUE(got->still_inside.empty());
  }
  /// And runs what can run then.
  template <class Who>
  void thaw(Who who) {
    EXPECT_TRUE(rt().thaw(who));
    w.run_for(1ms);
  }
  void pass(std::chrono::nanoseconds time) { w.run_for(time); }
  [[nodiscard]] process_state state_of(pid who) { return rt().info(who)->state; }
  [[nodiscard]] bool is_frozen(pid who) { return state_of(who) == process_state::frozen; }

  world w;
  node& n;
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

task<> freezes_itself(self& me, result<frozen>* alone, result<frozen>* with_subtree) {
  *alone = co_await freeze(me.id());
  const subtree mine{me.id()};
  *with_subtree = co_await freeze(mine);
}
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
  stage s{seed};
  const pid who = s.rt().spawn(body, &woken);
  s.pass(1ms);
  const time_point begin = s.w.now();
  s.freeze(who);
  EXPECT_TRUE(s.is_frozen(who));
  s.pass(10s);
  EXPECT_EQ(woken, time_point{}) << "a frozen process went on, seed " << seed;
  s.thaw(who);
  EXPECT_TRUE(s.w.run());
  EXPECT_GE(woken - begin, 10s);
  EXPECT_LE(woken - begin, 11s + 10ms);
  EXPECT_FALSE(s.rt().alive(who));
}

TEST(freeze, holds_whatever_the_process_waits_for) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const auto body : all_waits) expect_frozen(body, seed);
}

TEST(freeze, mail_waits_and_is_handled_in_its_order_after_the_thaw) {
  seen got;
  stage s;
  const pid who = s.rt().spawn(listener, &got);
  s.freeze(who);
  for (int i = 0; i < 5; ++i) s.rt().send(who, number{i});
  s.pass(1s);
  EXPECT_TRUE(got.numbers.empty());
  EXPECT_EQ(s.rt().info(who)->mailbox, 5U);
  s.thaw(who);
  ASSERT_EQ(got.numbers.size(), 5U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(got.numbers[static_cast<std::size_t>(i)].second, i);
}

TEST(freeze, the_time_limits_of_callers_run_on) {
  stage s;
  const ref<counter> c = s.rt().spawn<counter>();
  s.freeze(c.id());
  const result<int> late = s.rt().call(c.call<asks>().within(1s));
  EXPECT_EQ(late.error().code(), errc::timeout);
  s.thaw(c.id());
  EXPECT_TRUE(s.rt().call(c.call<asks>()).has_value());
}

TEST(freeze, the_time_limit_of_a_call_by_another_process_runs_on) {
  call_outcome outcome;
  stage s;
  const pid who = s.rt().spawn(clerk);
  s.freeze(who);
  const time_point begin = s.w.now();
  s.rt().spawn(caller, who, 1s, &outcome);
  s.pass(10s);
  ASSERT_TRUE(outcome.got.has_value());
  EXPECT_EQ(outcome.got->error().code(), errc::timeout);
  EXPECT_LE(outcome.at - begin, 1s + 10ms);
}

TEST(freeze, the_answer_to_a_frozen_caller_waits_and_does_not_time_out) {
  call_outcome outcome;
  stage s;
  const pid who = s.rt().spawn(answers_late);
  const pid asking = s.rt().spawn(caller, who, 2s, &outcome);
  s.pass(1ms);
  s.freeze(asking);
  s.pass(10s);
  EXPECT_FALSE(outcome.got.has_value());
  s.thaw(asking);
  EXPECT_EQ(outcome.got, result<int>{42}) << "the answer came before the limit";
}

int does_work(bool* done) {
  *done = true;
  return 42;
}
task<> asks_for_work(self& me, bool* done, time_point* woken) {
  const int got = co_await me.blocking(does_work, done);
  EXPECT_EQ(got, 42);
  *woken = me.now();
}

TEST(freeze, the_result_of_blocking_work_waits_whether_it_comes_before_the_freeze_or_after_it) {
  for (const bool before : {true, false}) {
    bool done = false;
    time_point woken{};
    stage s;
    const pid who = s.rt().spawn(asks_for_work, &done, &woken);
    ASSERT_TRUE(s.w.step());
    if (before) (void)s.w.step();
    ASSERT_EQ(done, before);
    ASSERT_TRUE(s.rt().host().freeze({.root = who, .subtree = false}, {}).has_value());  // without one more step
    s.pass(1h);
    EXPECT_TRUE(done);
    EXPECT_EQ(woken, time_point{});
    s.thaw(who);
    EXPECT_NE(woken, time_point{});
  }
}

TEST(thaw, of_what_is_not_frozen_has_no_effect) {
  stage s;
  const pid a = s.rt().spawn(idler);
  const pid b = s.rt().spawn(idler);
  EXPECT_FALSE(s.rt().thaw(a));
  EXPECT_FALSE(s.rt().thaw(subtree{a}));
  s.freeze(b);
  EXPECT_FALSE(s.rt().thaw(a)) << "another process is frozen";
  EXPECT_TRUE(s.is_frozen(b));
  s.freeze(a);
  EXPECT_TRUE(s.is_frozen(a)) << "a thaw is not kept for later";
  s.thaw(a);
  s.rt().kill(a);
  s.pass(1ms);
  EXPECT_FALSE(s.rt().thaw(a)) << "it is dead";
}

TEST(thaw, undoes_freezes_of_a_subtree_and_of_its_members_in_any_order) {
  for (int order = 0; order < 6; ++order) {
    std::vector<pid> all;
    stage s;
    const pid root = s.rt().spawn(parent, &all);
    s.rt().send(root, number{2});
    s.pass(1ms);
    ASSERT_EQ(all.size(), 3U);
    const pid middle = all[1];
    s.freeze(middle);
    s.freeze(subtree{middle});
    s.freeze(subtree{root});
    std::array<int, 3> steps{0, 1, 2};
    for (int i = 0; i < order; ++i) std::ranges::next_permutation(steps);
    for (const int step : steps) {
      EXPECT_TRUE(s.is_frozen(middle)) << "order " << order;
      if (step == 0) s.thaw(middle);
      if (step == 1) s.thaw(subtree{middle});
      if (step == 2) s.thaw(subtree{root});
    }
    for (const pid each : all) EXPECT_EQ(s.state_of(each), process_state::waiting) << "order " << order;
  }
}

TEST(freeze, ends_with_its_process_and_does_not_touch_the_next_one_in_the_slot) {
  seen got;
  stage s;
  const pid first = s.rt().spawn(idler);
  s.pass(1ms);
  s.freeze(first);
  s.freeze(subtree{first});
  s.rt().kill(first);
  s.pass(1ms);
  const pid next = s.rt().spawn(listener, &got);
  ASSERT_EQ(next.index(), first.index());
  s.rt().send(next, number{1});
  s.pass(1ms);
  EXPECT_EQ(got.numbers.size(), 1U);
  EXPECT_EQ(s.rt().freeze(first).error().code(), errc::noproc);
  EXPECT_FALSE(s.rt().thaw(first));
  EXPECT_FALSE(s.rt().thaw(subtree{first}));
  s.rt().send(next, number{2});
  s.pass(1ms);
  EXPECT_EQ(got.numbers.size(), 2U);
}

TEST(freeze, is_counted_and_needs_as_many_thaws) {
  stage s;
  const ref<counter> c = s.rt().spawn<counter>();
  for (int i = 0; i < 3; ++i) s.freeze(c.id());
  for (int i = 0; i < 2; ++i) s.thaw(c.id());
  EXPECT_EQ(s.rt().call(c.call<asks>().within(1s)).error().code(), errc::timeout);
  s.thaw(c.id());
  EXPECT_TRUE(s.rt().call(c.call<asks>()).has_value());
  EXPECT_FALSE(s.rt().thaw(c.id())) << "one thaw too many";
}

TEST(freeze, of_a_process_is_not_undone_by_the_thaw_of_its_subtree) {
  stage s;
  const ref<counter> c = s.rt().spawn<counter>();
  s.freeze(c.id());
  EXPECT_FALSE(s.rt().thaw(subtree{c.id()}));
  EXPECT_TRUE(s.is_frozen(c.id()));
}

TEST(freeze, a_kill_ends_a_frozen_process_at_once_and_its_watchers_are_told) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    seen got;
    stage s{seed};
    const pid victim = s.rt().spawn(idler);
    s.rt().spawn(watcher, victim, &got);
    s.pass(1ms);
    s.freeze(victim);
    s.rt().kill(victim);
    s.pass(1ms);
    EXPECT_FALSE(s.rt().alive(victim));
    ASSERT_EQ(got.downs.size(), 1U);
    EXPECT_EQ(got.downs.front().reason, exit_reason::killed());
    EXPECT_EQ(got.exits.size(), 1U);
    EXPECT_FALSE(s.rt().thaw(victim)) << "nothing is left to thaw";
  }
}

TEST(freeze, every_other_exit_waits_for_the_thaw) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    stage s{seed};
    const ref<counter> c = s.rt().spawn<counter>();
    s.freeze(c.id());
    s.rt().exit(c.id(), exit_reason::shutdown());
    s.pass(10s);
    EXPECT_TRUE(s.rt().alive(c.id()));
    s.thaw(c.id());
    EXPECT_FALSE(s.rt().alive(c.id()));
  }
}

TEST(freeze, links_and_monitors_of_a_frozen_process_stay) {
  seen got;
  stage s;
  const pid other = s.rt().spawn(idler);
  const pid frozen_one = s.rt().spawn(watcher, other, &got);
  s.pass(1ms);
  s.freeze(frozen_one);
  s.rt().kill(other);
  s.pass(1s);
  EXPECT_TRUE(got.downs.empty());
  s.thaw(frozen_one);
  EXPECT_EQ(got.downs.size(), 1U);
  EXPECT_EQ(got.exits.size(), 1U);
}

TEST(freeze, of_a_subtree_takes_all_linked_descendants) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<pid> all;
    stage s{seed};
    const pid root = s.rt().spawn(parent, &all);
    s.rt().send(root, number{4});
    s.pass(1ms);
    ASSERT_EQ(all.size(), 5U);
    s.freeze(subtree{root});
    for (const pid each : all) EXPECT_TRUE(s.is_frozen(each));
    s.thaw(subtree{root});
    for (const pid each : all) EXPECT_EQ(s.state_of(each), process_state::waiting);
  }
}

/// Freezes a subtree within a chain of spawns; the seed decides after how many steps.
TEST(freeze, a_child_that_is_started_later_is_frozen_before_it_begins) {
  std::uint64_t caught = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<pid> all;
    stage s{seed};
    const pid root = s.rt().spawn(parent, &all);
    s.rt().send(root, number{6});
    for (std::uint64_t steps = 1 + seed % 12; steps > 0; --steps) s.w.step();
    s.freeze(subtree{root});
    const std::size_t begun = all.size();
    s.pass(1s);
    EXPECT_EQ(all.size(), begun) << "a process began in a frozen subtree, seed " << seed;
    caught += begun > 0 && begun < 7 ? 1 : 0;
    s.thaw(subtree{root});
    EXPECT_EQ(all.size(), 7U);
  }
  EXPECT_GT(caught, 50U);
}

TEST(freeze, a_kill_ends_a_child_that_was_frozen_before_it_began) {
  std::uint64_t unborn = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<pid> all;
    stage s{seed};
    const pid root = s.rt().spawn(parent, &all);
    s.rt().send(root, number{6});
    for (std::uint64_t steps = 1 + seed % 12; steps > 0; --steps) s.w.step();
    s.freeze(subtree{root});
    s.pass(1ms);
    for (const process_info& one : s.rt().snapshot())
      if (one.state == process_state::frozen && one.id != root) {
        unborn += std::ranges::find(all, one.id) == all.end() ? 1 : 0;
        s.rt().kill(one.id);
        s.pass(1ms);
        EXPECT_FALSE(s.rt().alive(one.id));
      }
    s.thaw(subtree{root});
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
    stage s{seed};
    s.rt().spawn(kills_an_unborn, &told);
    s.pass(2min);
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

/// Returns whether the child of `spawner` had not begun when the subtree, of its parent or of its grandparent, was
/// frozen.
bool child_waits_for_thaw(std::uint64_t seed, bool of_its_parent) {
  std::vector<pid> begun;
  pid spawner;
  stage s{seed};
  const pid root = s.rt().spawn(root_of_spawner, &begun, &spawner);
  s.pass(1ms);
  s.rt().send(spawner, number{1});
  while (s.rt().counters().spawned < 3) EXPECT_TRUE(s.w.step());
  const subtree target{of_its_parent ? spawner : root};
  EXPECT_TRUE(s.rt().host().freeze({.root = target.root, .subtree = true}, {}).has_value());
  if (begun.size() != 1) return false;
  s.rt().kill(spawner);
  s.pass(1s);
  EXPECT_EQ(begun.size(), 1U) << "a process began in a frozen subtree, seed " << seed;
  s.thaw(target);
  EXPECT_EQ(begun.size(), 2U) << "the child did not begin after the thaw, seed " << seed;
  return true;
}

TEST(freeze, a_child_whose_parent_was_killed_before_it_began_is_frozen_too) {
  std::uint64_t tried = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) tried += child_waits_for_thaw(seed, seed % 2 == 0) ? 1U : 0U;
  EXPECT_GT(tried, 20U);
}

TEST(freeze, names_those_that_are_stuck_in_their_code_at_the_limit) {
  seen got;
  stage s;
  const pid who = s.rt().spawn(listener, &got);
  s.pass(1ms);
  s.n.stick(who, 10s);
  s.rt().send(who, number{1});
  const time_point begin = s.w.now();
  const result<frozen> answer = s.rt().freeze(who, 2s);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->still_inside, std::vector<pid>{who});
  EXPECT_GE(s.w.now() - begin, 2s);
  s.pass(20s);
  EXPECT_TRUE(s.is_frozen(who)) << "it stops when it comes out of its code";
  s.thaw(who);
  EXPECT_EQ(got.numbers.size(), 1U);
}

TEST(freeze, a_process_can_freeze_others_and_waits_for_the_answer) {
  seen got;
  stage s;
  const pid who = s.rt().spawn(listener, &got);
  result<frozen> answer = fail(errc::invalid);
  s.rt().spawn(freezer_of, who, &answer);
  s.pass(1ms);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->still_inside.empty());
  EXPECT_TRUE(s.is_frozen(who));
}

TEST(freeze, of_oneself_or_ones_own_subtree_is_refused) {
  stage s;
  result<frozen> alone = frozen{};
  result<frozen> with_subtree = frozen{};
  s.rt().spawn(freezes_itself, &alone, &with_subtree);
  s.pass(1ms);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code(), errc::invalid);
  ASSERT_FALSE(with_subtree);
  EXPECT_EQ(with_subtree.error().code(), errc::invalid);
}

task<> root_of_a_freezer(self& me, result<frozen>* into) {
  const pid child = me.spawn_link(freezes_its_own_tree, me.id(), into);
  me.send(child, end_now{});
  co_await me.sleep(1h);
}

task<> between_root_and_freezer(self& me, pid root, result<frozen>* into) {
  const pid child = me.spawn_link(freezes_its_own_tree, root, into);
  me.send(child, end_now{});
  co_await me.sleep(1h);
}
task<> root_far_above_a_freezer(self& me, result<frozen>* into) {
  me.spawn_link(between_root_and_freezer, me.id(), into);
  co_await me.sleep(1h);
}

TEST(freeze, of_a_subtree_that_the_caller_belongs_to_is_refused) {
  for (const auto root : {root_of_a_freezer, root_far_above_a_freezer}) {
    stage s;
    result<frozen> answer = frozen{};
    s.rt().spawn(root, &answer);
    s.pass(1ms);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), errc::invalid);
  }
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

struct counted_life {
  explicit counted_life(int* count) : living{count} { ++*living; }
  counted_life(const counted_life&) = delete;
  counted_life& operator=(const counted_life&) = delete;
  ~counted_life() { --*living; }
  int* living;
};
task<> lives_until_a_number(self& me, int* living) {
  const counted_life mine{living};
  co_await me.receive<number>();
}
TEST(freeze, a_node_can_crash_while_processes_are_frozen) {
  int living = 0;
  stage s;
  const pid who = s.rt().spawn(lives_until_a_number, &living);
  s.pass(1ms);
  s.freeze(who);
  s.rt().send(who, number{1});
  s.pass(1s);
  EXPECT_EQ(living, 1);
  s.n.crash();
  EXPECT_EQ(living, 0) << "a frozen process was not destroyed";
}

}  // namespace
