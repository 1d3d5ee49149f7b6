// A freeze that meets a kill, a thaw by somebody else, or mail for the process that had the slot before.
#include <gtest/gtest.h>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

task<> kills_then_freezes(self& me, pid who, bool* alive) {
  me.kill(who);
  (void)co_await freeze(who, 100ms);
  co_await me.sleep(1s);
  *alive = me.alive(who);
}

TEST(freeze, a_kill_that_came_before_it_ends_an_idle_process_at_once) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    world w{seed};
    runtime& rt = w.add_node().rt();
    seen got;
    const pid who = rt.spawn(listener, &got);
    w.run_for(1ms);
    bool alive = true;
    rt.spawn(kills_then_freezes, who, &alive);
    w.run_for(10s);
    EXPECT_FALSE(alive) << "seed " << seed;
  }
}

/// A process that is stuck in its code, and two that freeze it: the first has its answer, the second waits.
struct two_freezes {
  two_freezes() {
    w.run_for(1ms);
    n.stick(stuck, 10s);
    n.rt().send(stuck, number{1});
    n.rt().spawn(freezes, stuck, 1s, &first);
    n.rt().spawn(freezes, stuck, 1h, &second);
    w.run_for(2s);
  }
  two_freezes(const two_freezes&) = delete;
  two_freezes& operator=(const two_freezes&) = delete;
  static task<> freezes(self&, pid who, std::chrono::nanoseconds within, std::optional<result<frozen>>* into) {
    *into = co_await freeze(who, within);
  }

  world w{1};
  node& n = w.add_node();
  seen got;
  pid stuck = n.rt().spawn(listener, &got);
  std::optional<result<frozen>> first, second;
};

TEST(freeze, a_thaw_undoes_the_one_that_was_answered_and_not_a_later_one_that_still_waits) {
  two_freezes s;
  ASSERT_TRUE(s.first && s.first->has_value());
  EXPECT_EQ((*s.first)->still_inside, std::vector<pid>{s.stuck});
  EXPECT_TRUE(s.n.rt().thaw(s.stuck));
  s.w.run_for(1s);
  EXPECT_FALSE(s.second) << "the process is still inside its code";
  s.w.run_for(20s);
  ASSERT_TRUE(s.second && s.second->has_value());
  EXPECT_TRUE((*s.second)->still_inside.empty());
  EXPECT_EQ(s.n.rt().info(s.stuck)->state, process_state::frozen);
}

TEST(freeze, that_another_process_undoes_before_its_answer_fails) {
  two_freezes s;
  EXPECT_TRUE(s.n.rt().thaw(s.stuck));
  EXPECT_TRUE(s.n.rt().thaw(s.stuck));
  s.w.run_for(1ms);
  ASSERT_TRUE(s.second && !s.second->has_value());
  EXPECT_EQ(s.second->error().code(), errc::not_found);
  EXPECT_EQ(s.second->error().text(), to_string(s.stuck) + " was thawed before its freeze was complete");
  EXPECT_FALSE(s.n.rt().thaw(s.stuck));
}

TEST(freeze, of_nobody_fails_with_noproc) {
  world w{1};
  runtime& rt = w.add_node().rt();
  EXPECT_EQ(rt.freeze(pid{}).error().code(), errc::noproc);
  EXPECT_EQ(rt.freeze(subtree{pid{}}).error().code(), errc::noproc);
}

task<> spawns_linked(self& me, seen* got) {
  me.trap_exits();
  (void)co_await me.receive<end_now>();
  me.spawn_link(listener, got);
  co_await me.sleep(1h);
}
task<> watches(self& me, pid who, bool* told) {
  (void)me.monitor(who);
  (void)co_await me.receive<down>();
  *told = true;
}

TEST(freeze, of_a_new_process_does_not_hold_mail_for_the_process_that_had_its_slot) {
  std::uint64_t tried = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    world w{seed};
    runtime& rt = w.add_node().rt();
    seen got;
    const pid parent = rt.spawn(spawns_linked, &got);
    const pid before = rt.spawn(listener, &got);
    w.run_for(1ms);
    rt.kill(before);
    w.run_for(1ms);
    rt.send(parent, end_now{});
    const std::uint64_t spawned = rt.counters().spawned;
    while (rt.counters().spawned == spawned) ASSERT_TRUE(w.step());
    bool told = false;
    rt.spawn(watches, before, &told);
    ASSERT_TRUE(rt.freeze(subtree{parent}, 1ms).has_value());
    w.run_for(1s);
    EXPECT_TRUE(told) << "seed " << seed;
    const auto all = rt.snapshot();
    tried += std::ranges::any_of(
        all, [&](const process_info& p) { return p.id.index() == before.index() && p.state == process_state::frozen; });
  }
  EXPECT_GT(tried, 100U) << "the slot was not used again";
}

}  // namespace
