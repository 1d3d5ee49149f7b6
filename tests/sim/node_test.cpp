// Nodes that crash, restart or pause, and processes that are stuck.
#include <gtest/gtest.h>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

struct leaves_a_trace {
  int* count;
  explicit leaves_a_trace(int* c) : count{c} {}
  leaves_a_trace(const leaves_a_trace&) = delete;
  leaves_a_trace& operator=(const leaves_a_trace&) = delete;
  ~leaves_a_trace() { ++*count; }
};
task<> holds(self& me, int* destroyed) {
  const leaves_a_trace trace{destroyed};
  const end_now over = co_await me.receive<end_now>();
  (void)over;
}

// ---- crashes

TEST(node, a_crash_is_told_to_nobody_and_noticed_in_time) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    seen by_a;
    call_outcome waiting;
    call_outcome later;
    world w{seed};
    node& a = w.add_node();
    node& b = w.add_node();
    const pid on_b = b.rt().spawn(idler);
    a.rt().spawn(watcher, on_b, &by_a);
    a.rt().spawn(caller, on_b, forever, &waiting);
    w.run_for(100ms);
    b.crash();
    const time_point crashed = w.now();
    a.rt().spawn(caller, on_b, forever, &later);
    EXPECT_TRUE(w.run());
    const auto lost_after = w.net().quality.lost_after;
    ASSERT_EQ(by_a.exits.size(), 1U);
    ASSERT_EQ(by_a.downs.size(), 1U);
    EXPECT_EQ(by_a.exits[0].reason, exit_reason::noconnection());
    EXPECT_GE(by_a.exits[0].at - crashed, lost_after);
    EXPECT_LE(by_a.exits[0].at - crashed, lost_after * 3 / 2 + 10ms);
    for (const auto* call : {&waiting, &later}) {
      ASSERT_TRUE(call->got);
      EXPECT_EQ(call->got->error().code(), errc::noconnection);
      EXPECT_GE(call->at - crashed, lost_after) << "who could have told it?";
    }
  }
}

TEST(node, what_was_on_its_way_when_the_sender_crashed_still_ends_in_noconnection) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    seen by_b;
    world w{seed};
    node& a = w.add_node();
    node& b = w.add_node();
    const pid on_a = a.rt().spawn(idler);
    b.rt().spawn(watcher, on_a, &by_b);
    EXPECT_TRUE(w.run_until([&] { return w.steps() >= 2; }));  // its link signal was sent, and the node has crashed
    b.crash();
    EXPECT_TRUE(w.run());
    const auto info = a.rt().info(on_a);
    EXPECT_FALSE(info && (!info->links.empty() || info->monitored != 0)) << "seed " << seed << ": tied to nobody";
  }
}

TEST(node, a_crash_destroys_the_processes_and_nothing_of_theirs_runs_but_destructors) {
  int destroyed = 0;
  world w{1};
  node& n = w.add_node();
  for (int i = 0; i < 5; ++i) n.rt().spawn(holds, &destroyed);
  w.run_for(1ms);
  n.crash();
  EXPECT_EQ(destroyed, 5);
  EXPECT_FALSE(n.up());
  EXPECT_THROW((void)n.rt(), std::logic_error);
  EXPECT_TRUE(w.run());
}

TEST(node, starts_again_empty_as_another_node) {
  seen got;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid old_one = b.rt().spawn(listener, &got);
  const node_id before = b.id();
  EXPECT_TRUE(b.rt().register_name("listener", old_one).has_value());
  w.run_for(1ms);
  b.restart();
  EXPECT_NE(b.id(), before);
  EXPECT_EQ(b.rt().node(), b.id());
  EXPECT_TRUE(b.rt().snapshot().empty());
  EXPECT_EQ(b.rt().where("listener"), pid{});
  EXPECT_FALSE(b.rt().alive(old_one));
  const pid new_one = b.rt().spawn(listener, &got);
  EXPECT_NE(new_one, old_one);
  EXPECT_EQ(new_one.index(), old_one.index()) << "the very pid, but for the node";
  a.rt().send(old_one, number{1});
  a.rt().send(new_one, number{2});
  b.rt().send(old_one, number{3});
  EXPECT_TRUE(w.run());
  ASSERT_EQ(got.numbers.size(), 1U);
  EXPECT_EQ(got.numbers[0].second, 2);
}

TEST(node, ties_to_an_earlier_start_of_a_node_end_with_noconnection) {
  seen late;
  call_outcome call;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid old_one = b.rt().spawn(idler);
  b.restart();
  b.rt().spawn(idler);
  a.rt().spawn(watcher, old_one, &late);
  a.rt().spawn(caller, old_one, forever, &call);
  EXPECT_TRUE(w.run());
  ASSERT_EQ(late.exits.size(), 1U);
  EXPECT_EQ(late.exits[0].reason, exit_reason::noconnection());
  ASSERT_TRUE(call.got);
  EXPECT_EQ(call.got->error().code(), errc::noconnection);
}

// ---- pauses

TEST(node, nothing_runs_on_a_paused_node_and_the_clock_goes_on) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid to = n.rt().spawn(listener, &got);
  n.rt().spawn(counting, to, 0, 10, 1s);
  w.run_for(4500ms);
  EXPECT_EQ(got.numbers.size(), 5U);
  n.pause();
  const time_point before = w.now();
  w.run_for(1h);
  EXPECT_EQ(got.numbers.size(), 5U);
  EXPECT_EQ(w.now() - before, 1h);
  n.resume();
  EXPECT_TRUE(w.run());
  EXPECT_EQ(got.numbers.size(), 10U);
}

TEST(node, a_short_pause_is_not_noticed) {
  seen by_a;
  seen got;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid on_b = b.rt().spawn(idler);
  const pid to = b.rt().spawn(listener, &got);
  a.rt().spawn(watcher, on_b, &by_a);
  w.run_for(100ms);
  b.pause();
  a.rt().send(to, number{1});
  w.run_for(4s);
  EXPECT_TRUE(got.numbers.empty());
  b.resume();
  w.run_for(20s);
  EXPECT_EQ(got.numbers.size(), 1U);
  EXPECT_TRUE(by_a.exits.empty());
}

TEST(node, a_pause_longer_than_the_patience_of_others_costs_the_connection_on_both_sides) {
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
    b.pause();
    const time_point paused = w.now();
    w.run_for(1min);
    ASSERT_EQ(by_a.exits.size(), 1U) << "seed " << seed;
    EXPECT_EQ(by_a.exits[0].reason, exit_reason::noconnection());
    EXPECT_GE(by_a.exits[0].at - paused, w.net().quality.lost_after);
    EXPECT_TRUE(by_b.exits.empty());
    b.resume();
    EXPECT_TRUE(w.run());
    ASSERT_EQ(by_b.exits.size(), 1U) << "seed " << seed;
    EXPECT_EQ(by_b.exits[0].reason, exit_reason::noconnection());
  }
}

// ---- processes that are stuck

task<> collects_stalls(self& me, std::vector<process_stalled>* into) {
  me.subscribe<process_stalled>();
  for (;;) {
    process_stalled s = co_await me.receive<process_stalled>();
    into->push_back(std::move(s));
  }
}

TEST(stick, a_stuck_process_is_reported_and_the_others_go_on) {
  std::vector<process_stalled> stalls;
  seen got;
  seen by_other;
  world w{1};
  node& n = w.add_node();
  n.rt().spawn(collects_stalls, &stalls);
  const pid stuck = n.rt().spawn(listener, &got);
  const pid other = n.rt().spawn(listener, &by_other);
  w.run_for(1ms);
  n.stick(stuck, 10s);
  n.rt().send(stuck, number{1});
  n.rt().send(other, number{2});
  w.run_for(5s);
  EXPECT_TRUE(got.numbers.empty());
  EXPECT_EQ(by_other.numbers.size(), 1U);
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_EQ(stalls[0].who, stuck);
  EXPECT_GE(stalls[0].lasting, 500ms);
  EXPECT_EQ(n.rt().info(stuck)->state, process_state::running);
  w.run_for(6s);
  EXPECT_EQ(got.numbers.size(), 1U) << "it has come back";
  EXPECT_EQ(stalls.size(), 1U);
}

TEST(stick, does_not_hold_the_clock_of_who_has_nothing_to_do) {
  world w{1};
  node& n = w.add_node({}, {.stall_after = 1ms, .processes = 1U << 10U, .level = log_level::off});
  const pid idle = n.rt().spawn(idler);
  w.run_for(1ms);
  n.stick(idle, 5ms);
  n.pause();
  int looks = 0;
  w.run_until([&] { return ++looks > 1000; }, 10ms);
  EXPECT_LT(looks, 100) << "time creeps";
  n.resume();
  w.run_until([&] { return ++looks > 1000; }, 10ms);
  EXPECT_LT(looks, 200) << "time creeps";
}

TEST(stick, a_stuck_process_that_is_abandoned_is_dead_to_all) {
  int destroyed = 0;
  seen by_other;
  call_outcome queued;
  world w{1};
  node& n = w.add_node();
  const pid stuck = n.rt().spawn(holds, &destroyed);
  n.rt().spawn(watcher, stuck, &by_other);
  w.run_for(1ms);
  EXPECT_FALSE(n.rt().abandon(stuck)) << "it is not in its code";
  n.stick(stuck, 1h);
  n.rt().send(stuck, number{1});
  n.rt().spawn(caller, stuck, forever, &queued);
  w.run_for(1s);
  EXPECT_TRUE(n.rt().abandon(stuck));
  EXPECT_FALSE(n.rt().abandon(stuck));
  EXPECT_FALSE(n.rt().alive(stuck));
  w.run_for(1s);
  ASSERT_EQ(by_other.exits.size(), 1U);
  EXPECT_EQ(by_other.exits[0].reason, exit_reason::abandoned());
  EXPECT_EQ(by_other.downs[0].reason, exit_reason::abandoned());
  ASSERT_TRUE(queued.got);
  EXPECT_EQ(queued.got->error().code(), errc::exited);
  EXPECT_EQ(destroyed, 0) << "its code still runs";
  EXPECT_TRUE(w.run());
  EXPECT_EQ(destroyed, 1);
  EXPECT_TRUE(n.rt().alive(n.rt().spawn(idler)));
}

TEST(stick, links_and_monitors_to_a_stuck_process_tell_of_its_end_too) {
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    seen first;
    seen second;
    world w{seed};
    node& n = w.add_node();
    const pid stuck = n.rt().spawn(idler);
    w.run_for(1ms);
    n.stick(stuck, 1h);
    n.rt().spawn(watcher, stuck, &first);
    w.run_for(1ms);
    n.rt().send(stuck, number{1});
    n.rt().spawn(watcher, stuck, &second);
    w.run_for(1ms);
    EXPECT_TRUE(n.rt().abandon(stuck));
    w.run_for(1s);
    for (const seen* s : {&first, &second}) {
      EXPECT_EQ(s->exits.size(), 1U) << "seed " << seed;
      EXPECT_EQ(s->downs.size(), 1U) << "seed " << seed;
    }
  }
}

TEST(stick, a_process_that_has_not_begun_is_not_stuck_in_its_code) {
  world w{1};
  node& n = w.add_node();
  const pid young = n.rt().spawn(idler);
  n.stick(young, 1s);
  EXPECT_FALSE(n.rt().abandon(young));
  EXPECT_TRUE(w.run());
  EXPECT_TRUE(n.rt().alive(young));
}

TEST(stick, a_crash_cleans_up_after_the_abandoned) {
  int destroyed = 0;
  world w{1};
  node& n = w.add_node();
  const pid stuck = n.rt().spawn(holds, &destroyed);
  w.run_for(1ms);
  n.stick(stuck, 1h);
  n.rt().send(stuck, number{1});
  w.run_for(1s);
  EXPECT_TRUE(n.rt().abandon(stuck));
  n.crash();
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
