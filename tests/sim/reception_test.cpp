// Exit signals from another node: every row of the table "Exit signals" in docs/guide/signals.md, and the order of
// signals of one process.
#include <gtest/gtest.h>

#include <coppice/sim/explore.hpp>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

/// Instructions for the processes of these tests.
struct order {
  enum class kind : std::uint8_t { link, unlink, signal, end, catch_all, let_pass };
  kind what;
  pid whom{};
  exit_reason reason{};
};
order link_to(pid whom) { return {.what = order::kind::link, .whom = whom}; }
order unlink_from(pid whom) { return {.what = order::kind::unlink, .whom = whom}; }
order signal_to(pid whom, exit_reason why) {
  return {.what = order::kind::signal, .whom = whom, .reason = std::move(why)};
}
order end_with(exit_reason why) { return {.what = order::kind::end, .reason = std::move(why)}; }

task<> obeys(self& me, trap how, std::vector<exited>* heard) {
  me.trap_exits(how);
  for (;;) {
    const auto m = co_await me.receive<order, exited>();
    if (const auto* x = std::get_if<exited>(&m)) {
      heard->push_back(*x);
      continue;
    }
    const order& o = std::get<order>(m);
    switch (o.what) {
      case order::kind::link: me.link(o.whom); break;
      case order::kind::unlink: me.unlink(o.whom); break;
      case order::kind::signal: me.exit(o.whom, o.reason); break;
      case order::kind::end: co_await me.exit(o.reason); break;
      case order::kind::catch_all: me.trap_exits(trap::on); break;
      case order::kind::let_pass: me.trap_exits(trap::off); break;
    }
  }
}

/// A receiver on its own node; an acting process on another node; and a process there that watches the receiver.
struct theatre {
  std::vector<exited> heard;
  std::vector<exited> heard_there;
  seen watched;
  world w;
  node& here;
  node& there;
  pid receiver;
  pid actor;

  theatre(std::uint64_t seed, trap how) : w{seed}, here{w.add_node()}, there{w.add_node()} {
    receiver = here.rt().spawn(obeys, how, &heard);
    actor = there.rt().spawn(obeys, trap::on, &heard_there);
    there.rt().spawn(monitor_of, receiver, &watched);
    w.run();
  }
  void tell_receiver(order o) {
    here.rt().send(receiver, std::move(o));
    w.run();
  }
  void tell_actor(order o) {
    there.rt().send(actor, std::move(o));
    w.run();
  }
  void expect_survived_unaware() {
    EXPECT_TRUE(here.rt().alive(receiver));
    EXPECT_TRUE(heard.empty());
    EXPECT_TRUE(watched.downs.empty());
  }
  void expect_told(pid by, const exit_reason& why, bool over_a_link) {
    EXPECT_TRUE(here.rt().alive(receiver));
    EXPECT_TRUE(watched.downs.empty());
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].from, by);
    EXPECT_EQ(heard[0].reason, why);
    EXPECT_EQ(heard[0].linked, over_a_link);
  }
  void expect_died(const exit_reason& why) {
    EXPECT_FALSE(here.rt().alive(receiver));
    EXPECT_TRUE(heard.empty());
    ASSERT_EQ(watched.downs.size(), 1U);
    EXPECT_EQ(watched.downs[0].reason, why);
  }
};

constexpr std::uint64_t seeds = 30;

TEST(reception, a_normal_signal_is_nothing_or_a_message) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    theatre plain{seed, trap::off};
    plain.tell_actor(signal_to(plain.receiver, exit_reason::normal()));
    plain.expect_survived_unaware();
    theatre traps{seed, trap::on};
    traps.tell_actor(signal_to(traps.receiver, exit_reason::normal()));
    traps.expect_told(traps.actor, exit_reason::normal(), false);
  }
}

TEST(reception, a_normal_end_of_a_linked_process_is_nothing_or_a_message) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    theatre plain{seed, trap::off};
    plain.tell_receiver(link_to(plain.actor));
    plain.tell_actor(end_with(exit_reason::normal()));
    plain.expect_survived_unaware();
    EXPECT_TRUE(plain.here.rt().info(plain.receiver)->links.empty());
    theatre traps{seed, trap::on};
    traps.tell_receiver(link_to(traps.actor));
    traps.tell_actor(end_with(exit_reason::normal()));
    traps.expect_told(traps.actor, exit_reason::normal(), true);
  }
}

TEST(reception, a_normal_signal_to_oneself_ends_or_is_a_message) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    theatre plain{seed, trap::off};
    plain.tell_receiver(signal_to(plain.receiver, exit_reason::normal()));
    plain.expect_died(exit_reason::normal());
    theatre traps{seed, trap::on};
    traps.tell_receiver(signal_to(traps.receiver, exit_reason::normal()));
    traps.expect_told(traps.receiver, exit_reason::normal(), false);
  }
}

TEST(reception, any_other_reason_ends_with_it_or_is_a_message) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const exit_reason& why : {exit_reason::error("x"), exit_reason::shutdown(), exit_reason::shutdown("y"),
                                   exit_reason::killed(), exit_reason::noproc(), exit_reason::noconnection()}) {
      theatre plain{seed, trap::off};
      plain.tell_actor(signal_to(plain.receiver, why));
      plain.expect_died(why);
      theatre traps{seed, trap::on};
      traps.tell_actor(signal_to(traps.receiver, why));
      traps.expect_told(traps.actor, why, false);
    }
}

TEST(reception, any_other_reason_over_a_link_ends_with_it_or_is_a_message) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const exit_reason& why : {exit_reason::error("x"), exit_reason::shutdown("y")}) {
      theatre plain{seed, trap::off};
      plain.tell_receiver(link_to(plain.actor));
      plain.tell_actor(end_with(why));
      plain.expect_died(why);
      theatre traps{seed, trap::on};
      traps.tell_actor(link_to(traps.receiver));  // whichever side created the link
      traps.tell_actor(end_with(why));
      traps.expect_told(traps.actor, why, true);
    }
}

TEST(reception, a_kill_ends_with_killed_whether_trapped_or_not) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const trap how : {trap::off, trap::on}) {
      theatre t{seed, how};
      t.tell_actor(signal_to(t.receiver, exit_reason::kill()));
      t.expect_died(exit_reason::killed());
    }
}

TEST(reception, a_killed_peer_is_an_ordinary_end) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    theatre plain{seed, trap::off};
    plain.tell_receiver(link_to(plain.actor));
    plain.there.rt().kill(plain.actor);
    plain.w.run();
    plain.expect_died(exit_reason::killed());
    theatre traps{seed, trap::on};
    traps.tell_receiver(link_to(traps.actor));
    traps.there.rt().kill(traps.actor);
    traps.w.run();
    traps.expect_told(traps.actor, exit_reason::killed(), true);
  }
}

TEST(reception, the_kill_that_a_linked_process_ended_itself_with_is_an_ordinary_reason) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    theatre plain{seed, trap::off};
    plain.tell_receiver(link_to(plain.actor));
    plain.tell_actor(end_with(exit_reason::kill()));
    plain.expect_died(exit_reason::kill());
    theatre traps{seed, trap::on};
    traps.tell_receiver(link_to(traps.actor));
    traps.tell_actor(end_with(exit_reason::kill()));
    traps.expect_told(traps.actor, exit_reason::kill(), true);
  }
}

TEST(reception, what_comes_over_a_link_that_was_removed_is_nothing) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const trap how : {trap::off, trap::on}) {
      theatre settled{seed, how};
      settled.tell_receiver(link_to(settled.actor));
      settled.tell_receiver(unlink_from(settled.actor));
      settled.tell_actor(end_with(exit_reason::error("x")));
      settled.expect_survived_unaware();
      // The exit signal is already in flight when the link is removed.
      theatre crossing{seed, how};
      crossing.tell_receiver(link_to(crossing.actor));
      crossing.w.net().quality.delay_min = 10ms;
      crossing.w.net().quality.delay_max = 20ms;
      crossing.there.rt().send(crossing.actor, end_with(exit_reason::error("x")));
      crossing.w.run_until([&] { return !crossing.there.rt().alive(crossing.actor); });
      crossing.tell_receiver(unlink_from(crossing.actor));
      crossing.expect_survived_unaware();
    }
}

TEST(reception, trapping_counts_when_the_signal_is_received) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    for (const trap at_first : {trap::off, trap::on}) {
      theatre t{seed, at_first};
      t.w.net().quality.delay_min = 10ms;
      t.w.net().quality.delay_max = 20ms;
      t.there.rt().send(t.actor, signal_to(t.receiver, exit_reason::error("x")));
      t.w.run_for(1ms);  // it is in flight
      t.tell_receiver({.what = at_first == trap::on ? order::kind::let_pass : order::kind::catch_all});
      if (at_first == trap::on)
        t.expect_died(exit_reason::error("x"));
      else
        t.expect_told(t.actor, exit_reason::error("x"), false);
    }
}

// ---- a monitor, a link and a kill, in this order

task<> busy_trapper(self& me) {
  me.trap_exits();
  for (;;) {
    const number n = co_await me.receive<number>();
    (void)n;
  }
}

task<> ties_and_kills(self& me, pid target, int noise, std::vector<exit_reason>* told) {
  me.trap_exits();
  const end_now begin = co_await me.receive<end_now>();
  (void)begin;
  for (int i = 0; i < noise; ++i) me.send(target, number{i});
  me.monitor(target);
  me.link(target);
  me.kill(target);
  for (;;) {
    const auto m = co_await me.receive<down, exited>();
    if (const auto* d = std::get_if<down>(&m))
      told->push_back(d->reason);
    else
      told->push_back(std::get<exited>(m).reason);
  }
}

void tie_and_kill(std::uint64_t seed, bool two_nodes, int noise) {
  std::vector<exit_reason> told;
  world w{seed};
  node& a = w.add_node();
  node& b = two_nodes ? w.add_node() : a;
  const pid target = b.rt().spawn(busy_trapper);
  const pid killer = a.rt().spawn(ties_and_kills, target, noise, &told);
  w.run();
  a.rt().send(killer, end_now{});
  EXPECT_TRUE(w.run());
  const std::vector<exit_reason> both{exit_reason::killed(), exit_reason::killed()};
  EXPECT_EQ(told, both) << "seed " << seed << (two_nodes ? ", two nodes, " : ", one node, ") << noise;
}

TEST(reception, a_kill_does_not_overtake_the_monitor_and_the_link_before_it) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const int noise : {0, 20}) tie_and_kill(seed, false, noise);
}

TEST(reception, a_kill_does_not_overtake_the_monitor_and_the_link_before_it_between_nodes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    for (const int noise : {0, 20}) tie_and_kill(seed, true, noise);
}

}  // namespace
