// Monitors: one `down` for each, and `noproc` for a process that has ended before.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct end_now {
  exit_reason why;
};
struct go {};
struct done {};

task<> ends_when_told(self& me) {
  auto m = co_await me.receive<end_now>();
  throw exit_with{std::move(m.why)};
}
task<> ends_with(self&, exit_reason why) {
  throw exit_with{std::move(why)};
  co_return;
}

task<> sees_every_reason(self& me) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown("x"), exit_reason::error("e"),
                                 exit_reason::kill(), exit_reason::noproc()}) {
    const pid who = me.spawn(ends_when_told);
    const monitor_ref ref = me.monitor(who);
    end_now order{why};
    me.send(who, std::move(order));
    const down d = co_await me.receive<down>();
    EXPECT_EQ(d.ref, ref);
    EXPECT_EQ(d.who, who);
    EXPECT_EQ(d.reason, why);
  }
}
TEST(monitor, tells_who_ended_and_why_whatever_the_reason) { EXPECT_EQ(run(sees_every_reason), exit_reason::normal()); }

task<> sees_a_kill(self& me) {
  const pid who = me.spawn(ends_when_told);
  me.monitor(who);
  me.kill(who);
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.reason, exit_reason::killed());
}
TEST(monitor, tells_killed_of_a_killed_process) { EXPECT_EQ(run(sees_a_kill), exit_reason::normal()); }

task<> monitors_often(self& me) {
  const pid who = me.spawn(ends_when_told);
  std::set<monitor_ref> refs;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(refs.insert(me.monitor(who)).second);
  end_now order{exit_reason::error("e")};
  me.send(who, std::move(order));
  for (int i = 0; i < 20; ++i) {
    const down d = co_await me.receive<down>();
    EXPECT_EQ(refs.erase(d.ref), 1U);
    EXPECT_EQ(d.reason, exit_reason::error("e"));
  }
  const auto more = co_await me.receive<down>(0ns);
  EXPECT_TRUE(std::holds_alternative<timed_out>(more));
}
TEST(monitor, each_has_its_own_ref_and_fires_exactly_once) { EXPECT_EQ(run(monitors_often), exit_reason::normal()); }

task<> monitors_the_dead(self& me) {
  const auto [who, first] = me.spawn_monitor(ends_with, exit_reason::error("the true reason"));
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.ref, first);
  EXPECT_EQ(d.reason, exit_reason::error("the true reason"));
  const monitor_ref late = me.monitor(who);
  const down again = co_await me.receive<down>();
  EXPECT_EQ(again.ref, late);
  EXPECT_EQ(again.who, who);
  EXPECT_EQ(again.reason, exit_reason::noproc());
}
TEST(monitor, set_after_the_death_can_only_say_noproc) { EXPECT_EQ(run(monitors_the_dead), exit_reason::normal()); }

task<> monitors_nobody(self& me) {
  const monitor_ref ref = me.monitor(pid{});
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.ref, ref);
  EXPECT_EQ(d.reason, exit_reason::noproc());
}
TEST(monitor, on_nobody_says_noproc) { EXPECT_EQ(run(monitors_nobody), exit_reason::normal()); }

task<> waits_for(self& me) { co_await me.receive<done>(); }
task<> monitors(self& me, pid who, std::optional<exit_reason>* heard) {
  me.monitor(who);
  const down d = co_await me.receive<down>();
  *heard = d.reason;
}
TEST(monitor, on_the_dead_does_not_wait_for_a_stuck_process_that_has_their_place) {
  sim::world world{1};
  sim::node& node = world.add_node();
  const pid dead = node.rt().spawn(waits_for);
  ASSERT_TRUE(world.settle());
  node.rt().send(dead, done{});
  ASSERT_TRUE(world.settle());
  pid stuck;
  while (stuck.index() != dead.index()) stuck = node.rt().spawn(waits_for);
  node.stick(stuck, 1h);
  node.rt().send(stuck, go{});
  ASSERT_TRUE(world.settle());
  std::optional<exit_reason> heard;
  node.rt().spawn(monitors, dead, &heard);
  ASSERT_TRUE(world.settle());
  EXPECT_EQ(heard, exit_reason::noproc());
}

task<> spawns_the_short_lived(self& me) {
  for (int i = 0; i < 2000; ++i) {
    const auto [who, ref] = me.spawn_monitor(ends_with, exit_reason::shutdown(std::to_string(i)));
    const down d = co_await me.receive<down>();
    EXPECT_EQ(d.who, who);
    EXPECT_EQ(d.ref, ref);
    EXPECT_EQ(d.reason, exit_reason::shutdown(std::to_string(i)));
  }
}
TEST(spawn_monitor, no_child_ends_too_early_for_its_reason_to_be_told) {
  EXPECT_EQ(run(spawns_the_short_lived), exit_reason::normal());
}

// ---- demonitor

task<> demonitors_the_living(self& me) {
  const pid who = me.spawn(ends_when_told);
  const monitor_ref gone = me.monitor(who);
  const monitor_ref stays = me.monitor(who);
  EXPECT_TRUE(me.demonitor(gone));
  EXPECT_FALSE(me.demonitor(gone));
  EXPECT_FALSE(me.demonitor(monitor_ref{}));
  end_now order{exit_reason::normal()};
  me.send(who, std::move(order));
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.ref, stays);
  const auto more = co_await me.receive<down>(0ns);
  EXPECT_TRUE(std::holds_alternative<timed_out>(more));
  EXPECT_FALSE(me.demonitor(stays));
}
TEST(demonitor, of_a_live_process_stops_its_down_and_no_other) {
  EXPECT_EQ(run(demonitors_the_living), exit_reason::normal());
}

task<> demonitors_what_was_received(self& me, self::flush how) {
  const auto [who, ref] = me.spawn_monitor(ends_with, exit_reason::normal());
  co_await me.receive<down>();
  EXPECT_FALSE(me.demonitor(ref, how));
}
TEST(demonitor, says_that_the_down_was_received_before) {
  EXPECT_EQ(run(demonitors_what_was_received, self::flush::no), exit_reason::normal());
  EXPECT_EQ(run(demonitors_what_was_received, self::flush::yes), exit_reason::normal());
}

/// Ends together with its own monitor: the downs of one process are sent in one go.
task<> witness(self& me, pid boss, pid who) {
  me.monitor(who);
  me.send(boss, go{});
  co_await me.receive<down>();
  me.send(boss, done{});
}
task<> flushes(self& me) {
  const pid who = me.spawn(ends_when_told);
  const monitor_ref ref = me.monitor(who);
  const monitor_ref other = me.monitor(who);
  me.spawn(witness, me.id(), who);
  co_await me.receive<go>();
  end_now order{exit_reason::normal()};
  me.send(who, std::move(order));
  co_await me.receive<done>();  // by now the downs are put aside, or right behind
  EXPECT_TRUE(me.demonitor(ref, self::flush::yes));
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.ref, other);
  const auto more = co_await me.receive<down>(0ns);
  EXPECT_TRUE(std::holds_alternative<timed_out>(more));
}
TEST(demonitor, with_flush_also_removes_a_down_that_was_put_aside) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run(flushes), exit_reason::normal());
}

task<> demonitors_in_a_race(self& me) {
  for (int i = 0; i < 1000; ++i) {
    const auto [who, ref] = me.spawn_monitor(ends_with, exit_reason::normal());
    if (i % 2 == 0) co_await me.yield();
    const bool there = me.demonitor(ref, self::flush::yes);
    const auto m = co_await me.receive<down>(0ns);
    EXPECT_TRUE(std::holds_alternative<timed_out>(m)) << i << (there ? " there" : " gone");
  }
}
TEST(demonitor, with_flush_nothing_comes_afterwards_even_in_a_race_with_the_end) {
  EXPECT_EQ(run(demonitors_in_a_race), exit_reason::normal());
}

// ---- one direction

task<> monitors_and_ends(self& me, pid who, pid boss) {
  for (int i = 0; i < 10; ++i) me.monitor(who);
  me.send(boss, done{});
  co_await me.receive<go>();
  throw std::runtime_error{"the watcher fails"};
}
/// Whether `who` comes to have so many monitors on it, which are signals on their way.
task<bool> comes_to_be_monitored(self& me, pid who, std::uint32_t times) {
  for (int tries = 0; tries < 100'000; ++tries) {
    const auto seen = me.host().info(who);
    if (seen && seen->monitored == times) co_return true;
    co_await me.yield();
  }
  co_return false;
}
task<> watches_a_watcher(self& me) {
  const pid who = me.spawn(ends_when_told);
  const auto [watcher, ref] = me.spawn_monitor(monitors_and_ends, who, me.id());
  co_await me.receive<done>();
  const bool all = co_await comes_to_be_monitored(me, who, 10);
  EXPECT_TRUE(all);
  me.send(watcher, go{});
  co_await me.receive<down>();
  const bool none = co_await comes_to_be_monitored(me, who, 0);
  EXPECT_TRUE(none) << "its monitors stayed behind";
  EXPECT_TRUE(me.alive(who));
}
TEST(monitor, the_end_of_the_watcher_does_not_touch_the_watched) {
  EXPECT_EQ(run(watches_a_watcher), exit_reason::normal());
}

// ---- names

task<> takes_a_name_and_ends(self& me) {
  const auto taken = me.register_as("the name");
  EXPECT_TRUE(taken);
  co_return;
}
task<> reuses_the_name(self& me) {
  for (int i = 0; i < 500; ++i) {
    const auto [who, ref] = me.spawn_monitor(takes_a_name_and_ends);
    co_await me.receive<down>();
    EXPECT_FALSE(me.alive(who));
    EXPECT_EQ(me.where("the name"), pid{}) << i;
  }
}
TEST(monitor, whoever_receives_a_down_can_use_the_name_of_the_dead_at_once) {
  EXPECT_EQ(run(reuses_the_name), exit_reason::normal());
}

// ---- from outside

TEST(wait, gives_the_reason_or_noproc_when_it_was_over_before) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const pid p = rt.spawn(ends_when_told);
  rt.kill(p);
  const exit_reason why = rt.wait(p);
  EXPECT_TRUE(why == exit_reason::killed() || why == exit_reason::noproc()) << why;
  EXPECT_EQ(rt.wait(p), exit_reason::noproc());
  EXPECT_EQ(rt.wait(pid{}), exit_reason::noproc());
}

TEST(wait, many_threads_may_wait_for_one_process) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const pid p = rt.spawn(ends_when_told);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { rt.wait(p); });
    rt.send(p, end_now{exit_reason::normal()});
  }
  EXPECT_FALSE(rt.alive(p));
}

task<> waits_inside(self&, runtime* rt, pid who) {
  EXPECT_THROW(rt->wait(who), std::logic_error);
  co_return;
}
TEST(wait, inside_a_process_is_refused) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const pid other = rt.spawn(ends_when_told);
  rt.wait(rt.spawn(waits_inside, &rt, other));
}

}  // namespace
