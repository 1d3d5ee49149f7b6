// Links, monitors and calls between nodes when the network fails.
#include <gtest/gtest.h>

#include <coppice/sim/explore.hpp>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

/// Two nodes, each with a process that watches a process of the other node.
struct pair_of_nodes {
  seen by_a;
  seen by_b;
  world w;
  node& a;
  node& b;
  pid on_a;
  pid on_b;

  explicit pair_of_nodes(std::uint64_t seed) : w{seed}, a{w.add_node("a")}, b{w.add_node("b")} {
    on_a = a.rt().spawn(idler);
    on_b = b.rt().spawn(idler);
    a.rt().spawn(watcher, on_b, &by_a);
    b.rt().spawn(watcher, on_a, &by_b);
    w.run_for(100ms);
  }
  [[nodiscard]] std::size_t told() const {
    return by_a.exits.size() + by_a.downs.size() + by_b.exits.size() + by_b.downs.size();
  }
};

TEST(network, messages_travel_for_a_while_and_arrive_in_order) {
  seen got;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid to = b.rt().spawn(listener, &got);
  w.run_for(1s);
  const time_point start = w.now();
  for (int i = 0; i < 100; ++i) a.rt().send(to, number{i});
  EXPECT_TRUE(w.run());
  ASSERT_EQ(got.numbers.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(got.numbers[static_cast<std::size_t>(i)].second, i);
    EXPECT_GE(got.numbers[static_cast<std::size_t>(i)].first - start, w.net().quality.delay_min);
  }
}

TEST(network, calls_between_nodes_are_answered) {
  call_outcome out;
  world w{1};
  node& a = w.add_node();
  node& b = w.add_node();
  const pid c = b.rt().spawn(clerk);
  a.rt().spawn(caller, c, 1s, &out);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(out.got, result<int>{42});
}

TEST(network, ends_are_told_with_their_reason_over_nodes) {
  pair_of_nodes two{1};
  two.b.rt().send(two.on_b, end_now{});
  EXPECT_TRUE(two.w.run());
  ASSERT_EQ(two.by_a.exits.size(), 1U);
  ASSERT_EQ(two.by_a.downs.size(), 1U);
  EXPECT_EQ(two.by_a.exits[0].reason, exit_reason::shutdown("told to"));
  EXPECT_EQ(two.by_a.downs[0].reason, exit_reason::shutdown("told to"));
}

// ---- partitions

void expect_lost(const seen& s, time_point since, const world& w) {
  ASSERT_EQ(s.exits.size(), 1U);
  ASSERT_EQ(s.downs.size(), 1U);
  EXPECT_EQ(s.exits[0].reason, exit_reason::noconnection());
  EXPECT_EQ(s.downs[0].reason, exit_reason::noconnection());
  const auto lost_after = const_cast<world&>(w).net().quality.lost_after;
  EXPECT_GE(s.exits[0].at - since, lost_after);
  EXPECT_LE(s.exits[0].at - since, lost_after * 3 / 2 + 10ms);
}

TEST(network, a_partition_ends_links_monitors_and_calls_on_both_sides) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    call_outcome from_a;
    call_outcome from_b;
    pair_of_nodes two{seed};
    two.a.rt().spawn(caller, two.on_b, forever, &from_a);
    two.b.rt().spawn(caller, two.on_a, forever, &from_b);
    two.w.run_for(100ms);
    const time_point cut = two.w.now();
    two.w.partition(two.a, two.b);
    EXPECT_TRUE(two.w.run());
    expect_lost(two.by_a, cut, two.w);
    expect_lost(two.by_b, cut, two.w);
    for (const auto* call : {&from_a, &from_b}) {
      ASSERT_TRUE(call->got);
      EXPECT_EQ(call->got->error().code(), errc::noconnection);
      EXPECT_GE(call->at - cut, two.w.net().quality.lost_after);
    }
  }
}

/// Linked to `other`; on request it removes the link and links again in one turn.
task<> links_anew(self& me, pid other, seen* into) {
  me.trap_exits();
  me.link(other);
  for (;;) {
    const auto m = co_await me.receive<number, exited>();
    if (const auto* x = std::get_if<exited>(&m)) {
      into->exits.push_back({me.now(), x->reason});
      continue;
    }
    me.unlink(other);
    me.link(other);
  }
}

TEST(network, a_link_made_anew_is_not_lost_with_the_connection_of_the_old_one) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    seen by_a;
    world w{seed};
    node& a = w.add_node();
    node& b = w.add_node();
    const pid other = b.rt().spawn(idler);
    const pid p = a.rt().spawn(links_anew, other, &by_a);
    w.run_for(100ms);
    // While the process is stuck, the request to link again is queued before the notice that the connection was lost.
    a.stick(p, 20s);
    a.rt().send(p, number{1});
    w.partition(a, b);
    w.run_for(15s);
    w.heal();
    w.run_for(15s);
    EXPECT_TRUE(by_a.exits.empty()) << "seed " << seed;
    b.rt().send(other, end_now{});
    EXPECT_TRUE(w.run());
    ASSERT_EQ(by_a.exits.size(), 1U) << "seed " << seed;
    EXPECT_EQ(by_a.exits[0].reason, exit_reason::shutdown("told to")) << "seed " << seed;
  }
}

TEST(network, a_partition_in_one_direction_is_one_in_both) {
  for (const bool there : {true, false}) {
    call_outcome from_a;
    pair_of_nodes two{3};
    two.a.rt().spawn(caller, two.on_b, forever, &from_a);
    two.w.run_for(100ms);
    const time_point cut = two.w.now();
    if (there)
      two.w.partition_one_way(two.a, two.b);
    else
      two.w.partition_one_way(two.b, two.a);
    EXPECT_TRUE(two.w.run());
    expect_lost(two.by_a, cut, two.w);
    expect_lost(two.by_b, cut, two.w);
    ASSERT_TRUE(from_a.got);
    EXPECT_EQ(from_a.got->error().code(), errc::noconnection);
  }
}

TEST(network, once_the_connection_is_lost_new_ties_are_refused_at_once) {
  seen late;
  call_outcome call;
  pair_of_nodes two{4};
  two.w.partition(two.a, two.b);
  EXPECT_TRUE(two.w.run());
  const time_point before = two.w.now();
  two.a.rt().spawn(watcher, two.on_b, &late);
  two.a.rt().spawn(caller, two.on_b, forever, &call);
  EXPECT_TRUE(two.w.run());
  ASSERT_EQ(late.exits.size(), 1U);
  ASSERT_EQ(late.downs.size(), 1U);
  EXPECT_EQ(late.exits[0].reason, exit_reason::noconnection());
  EXPECT_EQ(late.downs[0].reason, exit_reason::noconnection());
  ASSERT_TRUE(call.got);
  EXPECT_EQ(call.got->error().code(), errc::noconnection);
  EXPECT_LE(two.w.now() - before, 1ms);
}

TEST(network, a_partition_that_heals_in_time_costs_only_time) {
  seen got;
  pair_of_nodes two{5};
  const pid to = two.b.rt().spawn(listener, &got);
  two.w.partition(two.a, two.b);
  two.a.rt().spawn(counting, to, 0, 50, 20ms);
  two.w.run_for(2s);
  EXPECT_TRUE(got.numbers.empty());
  two.w.heal();
  EXPECT_TRUE(two.w.run());
  ASSERT_EQ(got.numbers.size(), 50U);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(got.numbers[static_cast<std::size_t>(i)].second, i);
  EXPECT_EQ(two.told(), 0U);
}

TEST(network, after_it_heals_there_are_new_connections_and_the_old_links_stay_gone) {
  seen again;
  seen got;
  pair_of_nodes two{6};
  const pid to = two.b.rt().spawn(listener, &got);
  two.w.partition(two.a, two.b);
  EXPECT_TRUE(two.w.run());
  two.a.rt().send(to, number{1});  // it is lost
  two.w.heal();
  two.a.rt().send(to, number{2});
  two.a.rt().spawn(watcher, two.on_b, &again);
  two.w.run_for(1s);
  ASSERT_EQ(got.numbers.size(), 1U);
  EXPECT_EQ(got.numbers[0].second, 2);
  two.b.rt().send(two.on_b, end_now{});
  EXPECT_TRUE(two.w.run());
  EXPECT_EQ(two.by_a.exits.size(), 1U) << "only the loss of the connection";
  EXPECT_EQ(two.by_a.downs.size(), 1U);
  ASSERT_EQ(again.exits.size(), 1U);
  EXPECT_EQ(again.exits[0].reason, exit_reason::shutdown("told to"));
}

TEST(network, others_do_not_notice_a_partition_between_two) {
  seen by_c;
  pair_of_nodes two{7};
  node& c = two.w.add_node("c");
  c.rt().spawn(watcher, two.on_a, &by_c);
  two.w.run_for(100ms);
  two.w.partition(two.a, two.b);
  EXPECT_TRUE(two.w.run());
  EXPECT_EQ(two.told(), 4U);
  EXPECT_TRUE(by_c.exits.empty());
  EXPECT_TRUE(by_c.downs.empty());
}

// A node that gives up a connection stops sending keep-alives, so the other side notices the loss too.
TEST(network, a_partition_that_only_one_side_noticed_is_noticed_by_the_other_in_the_end) {
  const auto property = [](world& w) {
    seen by_a;
    seen by_b;
    node& a = w.add_node();
    node& b = w.add_node();
    const pid on_a = a.rt().spawn(idler);
    const pid on_b = b.rt().spawn(idler);
    a.rt().spawn(watcher, on_b, &by_a);
    b.rt().spawn(watcher, on_a, &by_b);
    w.run_for(100ms);
    w.partition(a, b);
    w.run_for(w.chance().between(5s, 7500ms));
    w.heal();
    w.run();
    a.crash();
    b.crash();
    require(by_a.exits.size() == by_b.exits.size(), "one side of a connection believes in it");
    require(by_a.downs.size() == by_b.downs.size(), "one side of a connection believes in it");
  };
  EXPECT_EQ(explore({.name = "half a connection", .seeds = 200}, property), "");
}

TEST(network, a_monitor_fires_though_its_target_ended_unreachable_and_the_network_healed) {
  const auto property = [](world& w) {
    seen by_a;
    node& a = w.add_node();
    node& b = w.add_node();
    const pid on_b = b.rt().spawn(idler);
    a.rt().spawn(watcher, on_b, &by_a);
    w.run_for(100ms);
    w.partition(a, b);
    w.run_for(w.chance().between(4s, 8s));
    b.rt().send(on_b, end_now{});
    w.run_for(w.chance().between(1ms, 2s));
    w.heal();
    w.run();
    a.crash();
    require(by_a.exits.size() == 1 && by_a.downs.size() == 1, "nobody was told of the end");
  };
  EXPECT_EQ(explore({.name = "an end behind a partition", .seeds = 200}, property), "");
}

// ---- bad lines

TEST(network, loss_doubles_and_overtaking_do_not_reach_the_processes) {
  const auto property = [](world& w) {
    seen got;
    w.net().quality.loss = 0.3;
    w.net().quality.duplication = 0.3;
    w.net().quality.reordering = 0.5;
    node& a = w.add_node();
    node& b = w.add_node();
    const pid to = b.rt().spawn(listener, &got);
    const pid too = a.rt().spawn(listener, &got);
    for (int i = 0; i < 200; ++i) {
      a.rt().send(to, number{i});
      if (w.chance().chance(0.3)) b.rt().send(too, number{1000});
      w.run_for(w.chance().between(0ns, 1ms));
    }
    w.run();
    b.crash();
    a.crash();
    int next = 0;
    for (const auto& [at, value] : got.numbers)
      if (value != 1000) require(value == next++, "out of order at " + std::to_string(value));
    require(next == 200, "lost: only " + std::to_string(next));
  };
  EXPECT_EQ(explore({.name = "bad lines", .seeds = 50}, property), "");
}

TEST(network, a_bad_line_delays_calls_but_answers_each_once) {
  const auto property = [](world& w) {
    std::vector<call_outcome> out(30);
    w.net().quality.loss = 0.4;
    w.net().quality.duplication = 0.4;
    node& a = w.add_node();
    node& b = w.add_node();
    const pid c = b.rt().spawn(clerk);
    for (call_outcome& one : out) a.rt().spawn(caller, c, forever, &one);
    w.run();
    a.crash();
    for (const call_outcome& one : out) require(one.got == result<int>{42}, "a call was not answered");
  };
  EXPECT_EQ(explore({.name = "calls over bad lines", .seeds = 50}, property), "");
}

}  // namespace
