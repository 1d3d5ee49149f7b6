// What an exit signal does to its receiver: every row of the reception matrix in the guide.
#include <gtest/gtest.h>

#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;

struct ready {};
struct ping {};
struct pong {};
struct told {
  exited what;
};
struct end_now {
  exit_reason why;
};
struct link_to {
  pid who;
};
struct unlink_from {
  pid who;
};
struct poke_yourself {
  exit_reason why;
};

/// Receives exit signals: reports those that become messages, and answers pings while it lives.
task<> target(self& me, trap how, pid boss) {
  me.trap_exits(how);
  for (;;) {
    auto m = co_await me.receive<exited, ping, link_to, unlink_from, poke_yourself>();
    if (auto* x = std::get_if<exited>(&m)) me.send(boss, told{*x});
    if (std::holds_alternative<ping>(m)) me.send(boss, pong{});
    if (auto* l = std::get_if<link_to>(&m)) me.link(l->who);
    if (auto* u = std::get_if<unlink_from>(&m)) me.unlink(u->who);
    if (auto* p = std::get_if<poke_yourself>(&m)) me.exit(me.id(), p->why);
  }
}
/// Ends as it is told.
task<> peer(self& me) {
  auto m = co_await me.receive<end_now>();
  co_await me.exit(std::move(m.why));
}

struct outcome {
  std::vector<exited> messages;
  std::optional<exit_reason> died;
};

/// What has become of the target by the time it answers a ping, or does not.
task<outcome> look_at(self& me, pid who) {
  outcome seen;
  me.send(who, ping{});
  for (;;) {
    auto m = co_await me.receive<told, pong, down>();
    if (auto* t = std::get_if<told>(&m)) seen.messages.push_back(t->what);
    if (auto* d = std::get_if<down>(&m)) seen.died = d->reason;
    if (!std::holds_alternative<told>(m)) co_return seen;
  }
}

/// Sends the signal itself.
task<> signal_explicitly(self& me, trap how, exit_reason why, outcome* into, pid* boss) {
  *boss = me.id();
  const auto [who, ref] = me.spawn_monitor(target, how, me.id());
  const outcome before = co_await look_at(me, who);
  EXPECT_FALSE(before.died);
  me.exit(who, why);
  *into = co_await look_at(me, who);
}
/// Lets a process end that the target is linked to, perhaps not any more.
task<> signal_over_link(self& me, trap how, exit_reason why, bool unlinked, outcome* into, pid* from) {
  const auto [who, ref] = me.spawn_monitor(target, how, me.id());
  const pid other = me.spawn(peer);
  *from = other;
  me.send(who, link_to{other});
  if (unlinked) me.send(who, unlink_from{other});
  const outcome before = co_await look_at(me, who);
  EXPECT_FALSE(before.died);
  const monitor_ref end = me.monitor(other);
  end_now order{why};
  me.send(other, std::move(order));
  // The down of `other` itself: its exit signals have been sent by then.
  for (bool ended = false; !ended;) {
    const down d = co_await me.receive<down>();
    ended = d.ref == end;
    if (!ended) into->died = d.reason;
  }
  if (into->died) co_return;
  *into = co_await look_at(me, who);
}

outcome explicitly(trap how, exit_reason why) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  outcome seen;
  pid boss;
  rt.wait(rt.spawn(signal_explicitly, how, std::move(why), &seen, &boss));
  for (const exited& x : seen.messages) {
    EXPECT_EQ(x.from, boss);
    EXPECT_FALSE(x.linked);
  }
  return seen;
}
outcome over_link(trap how, exit_reason why, bool unlinked = false) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  outcome seen;
  pid from;
  rt.wait(rt.spawn(signal_over_link, how, std::move(why), unlinked, &seen, &from));
  for (const exited& x : seen.messages) {
    EXPECT_EQ(x.from, from);
    EXPECT_TRUE(x.linked);
  }
  return seen;
}

testing::AssertionResult is_ignored(const outcome& o) {
  if (o.died) return testing::AssertionFailure() << "it died: " << *o.died;
  if (!o.messages.empty()) return testing::AssertionFailure() << "it was told: " << o.messages.front().reason;
  return testing::AssertionSuccess();
}
testing::AssertionResult dies_with(const outcome& o, const exit_reason& why) {
  if (!o.died) return testing::AssertionFailure() << "it lives";
  if (*o.died != why) return testing::AssertionFailure() << "it died with " << *o.died;
  if (!o.messages.empty()) return testing::AssertionFailure() << "it was told before";
  return testing::AssertionSuccess();
}
testing::AssertionResult is_told_and_lives(const outcome& o, const exit_reason& why) {
  if (o.died) return testing::AssertionFailure() << "it died: " << *o.died;
  if (o.messages.size() != 1) return testing::AssertionFailure() << "it has " << o.messages.size() << " messages";
  if (o.messages[0].reason != why) return testing::AssertionFailure() << "it was told " << o.messages[0].reason;
  return testing::AssertionSuccess();
}

std::vector<exit_reason> all_but_normal_and_kill() {
  return {exit_reason::shutdown(),  exit_reason::shutdown("upgrade"), exit_reason::killed(),
          exit_reason::noproc(),    exit_reason::error("x"),          exit_reason::noconnection(),
          exit_reason::abandoned(), exit_reason::error("t", "w", "m")};
}

// ---- row 1

TEST(exit_signal, normal_from_another_process_is_dropped_by_who_does_not_trap) {
  EXPECT_TRUE(is_ignored(explicitly(trap::off, exit_reason::normal())));
  EXPECT_TRUE(is_ignored(over_link(trap::off, exit_reason::normal())));
}
TEST(exit_signal, normal_from_another_process_is_a_message_to_who_traps) {
  EXPECT_TRUE(is_told_and_lives(explicitly(trap::on, exit_reason::normal()), exit_reason::normal()));
  EXPECT_TRUE(is_told_and_lives(over_link(trap::on, exit_reason::normal()), exit_reason::normal()));
}

// ---- row 2

task<> let_it_poke_itself(self& me, trap how, exit_reason why, outcome* into, pid* who) {
  const auto [child, ref] = me.spawn_monitor(target, how, me.id());
  *who = child;
  poke_yourself order{why};
  me.send(child, std::move(order));
  *into = co_await look_at(me, child);
  if (into->died || !into->messages.empty()) co_return;
  *into = co_await look_at(me, child);  // its own signal may have stood behind the first ping
}
outcome by_itself(trap how, exit_reason why) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  outcome seen;
  pid who;
  rt.wait(rt.spawn(let_it_poke_itself, how, std::move(why), &seen, &who));
  for (const exited& x : seen.messages) EXPECT_EQ(x.from, who);
  return seen;
}

TEST(exit_signal, normal_from_the_process_itself_ends_it_unless_it_traps) {
  EXPECT_TRUE(dies_with(by_itself(trap::off, exit_reason::normal()), exit_reason::normal()));
  EXPECT_TRUE(is_told_and_lives(by_itself(trap::on, exit_reason::normal()), exit_reason::normal()));
}
TEST(exit_signal, other_reasons_from_the_process_itself_are_as_from_another) {
  EXPECT_TRUE(dies_with(by_itself(trap::off, exit_reason::error("me")), exit_reason::error("me")));
  EXPECT_TRUE(is_told_and_lives(by_itself(trap::on, exit_reason::error("me")), exit_reason::error("me")));
  EXPECT_TRUE(dies_with(by_itself(trap::off, exit_reason::kill()), exit_reason::killed()));
  EXPECT_TRUE(dies_with(by_itself(trap::on, exit_reason::kill()), exit_reason::killed()));
}

// ---- row 3

TEST(exit_signal, any_other_reason_ends_who_does_not_trap_with_the_same_reason) {
  for (const exit_reason& why : all_but_normal_and_kill()) {
    EXPECT_TRUE(dies_with(explicitly(trap::off, why), why)) << why;
    EXPECT_TRUE(dies_with(over_link(trap::off, why), why)) << why;
  }
}
TEST(exit_signal, any_other_reason_is_a_message_to_who_traps) {
  for (const exit_reason& why : all_but_normal_and_kill()) {
    EXPECT_TRUE(is_told_and_lives(explicitly(trap::on, why), why)) << why;
    EXPECT_TRUE(is_told_and_lives(over_link(trap::on, why), why)) << why;
  }
}

// ---- row 4

TEST(exit_signal, an_explicit_kill_is_survived_by_nobody_and_becomes_killed) {
  EXPECT_TRUE(dies_with(explicitly(trap::off, exit_reason::kill()), exit_reason::killed()));
  EXPECT_TRUE(dies_with(explicitly(trap::on, exit_reason::kill()), exit_reason::killed()));
}

// ---- row 5

TEST(exit_signal, a_link_signal_whose_reason_is_kill_is_an_ordinary_one) {
  EXPECT_TRUE(dies_with(over_link(trap::off, exit_reason::kill()), exit_reason::kill()));
  EXPECT_TRUE(is_told_and_lives(over_link(trap::on, exit_reason::kill()), exit_reason::kill()));
}

// ---- row 6

TEST(exit_signal, over_a_link_that_was_removed_nothing_comes) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::error("x"), exit_reason::kill()}) {
    EXPECT_TRUE(is_ignored(over_link(trap::off, why, true))) << why;
    EXPECT_TRUE(is_ignored(over_link(trap::on, why, true))) << why;
  }
}

// ---- a kill

task<> kill_a_peer(self& me, trap how, outcome* into) {
  const auto [who, ref] = me.spawn_monitor(target, how, me.id());
  const pid other = me.spawn(peer);
  me.send(who, link_to{other});
  const outcome before = co_await look_at(me, who);
  EXPECT_FALSE(before.died);
  me.kill(other);
  if (how == trap::off) {
    const down d = co_await me.receive<down>();
    into->died = d.reason;
    co_return;
  }
  const told t = co_await me.receive<told>();
  *into = co_await look_at(me, who);
  into->messages.push_back(t.what);
}

TEST(exit_signal, a_kill_does_not_cascade_as_a_kill) {
  for (const trap how : {trap::off, trap::on}) {
    runtime rt{{.workers = 2, .level = log_level::off}};
    outcome seen;
    rt.wait(rt.spawn(kill_a_peer, how, &seen));
    if (how == trap::off)
      EXPECT_TRUE(dies_with(seen, exit_reason::killed()));
    else
      EXPECT_TRUE(is_told_and_lives(seen, exit_reason::killed()));
  }
}

// ---- whether a signal is trapped is decided when it is received

task<> traps_late(self& me, std::latch* begun, std::latch* sent, exit_reason* into) {
  begun->count_down();
  sent->wait();  // the signal is on its way before anything is trapped
  me.trap_exits();
  const exited x = co_await me.receive<exited>();
  *into = x.reason;
}
TEST(exit_signal, whether_it_is_trapped_is_decided_when_it_is_received) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  std::latch begun{1};
  std::latch sent{1};
  exit_reason seen;
  const pid p = rt.spawn(traps_late, &begun, &sent, &seen);
  begun.wait();
  rt.exit(p, exit_reason::error("early"));
  sent.count_down();
  rt.wait(p);
  EXPECT_EQ(seen, exit_reason::error("early"));
}

task<> stops_trapping(self& me, std::latch* begun, std::latch* sent) {
  me.trap_exits();
  begun->count_down();
  sent->wait();
  me.trap_exits(trap::off);
  co_await me.receive<exited>();
}
task<> watches(self& me, pid who, std::latch* watched, exit_reason* into) {
  me.monitor(who);
  watched->count_down();
  const down d = co_await me.receive<down>();
  *into = d.reason;
}
TEST(exit_signal, trapping_can_be_switched_off_again) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  std::latch begun{1};
  std::latch sent{1};
  std::latch watched{1};
  exit_reason seen;
  const pid p = rt.spawn(stops_trapping, &begun, &sent);
  begun.wait();
  const pid w = rt.spawn(watches, p, &watched, &seen);
  watched.wait();
  rt.exit(p, exit_reason::error("late"));
  sent.count_down();
  rt.wait(w);
  EXPECT_EQ(seen, exit_reason::error("late"));
}

// ---- from outside, and to nobody

TEST(exit_signal, from_outside_has_nobody_as_its_sender) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  exited seen;
  std::latch begun{1};
  const auto body = [](self& me, std::latch* go, exited* into) -> task<> {
    me.trap_exits();
    go->count_down();
    *into = co_await me.receive<exited>();
  };
  const pid p = rt.spawn(body, &begun, &seen);
  begun.wait();
  rt.exit(p, exit_reason::shutdown());
  rt.wait(p);
  EXPECT_EQ(seen.from, pid{});
  EXPECT_EQ(seen.reason, exit_reason::shutdown());
}

TEST(exit_signal, to_a_process_that_has_ended_is_nothing) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const pid p = rt.spawn(peer);
  rt.kill(p);
  rt.wait(p);
  for (int i = 0; i < 10; ++i) rt.kill(p);
  rt.exit(pid{}, exit_reason::kill());
  EXPECT_EQ(rt.wait(p), exit_reason::noproc());
}

task<> works_through(self& me, std::latch* begun, std::latch* filled, std::atomic<int>* handled) {
  begun->count_down();
  filled->wait();
  for (;;) {
    co_await me.receive<int>();
    ++*handled;
  }
}
TEST(exit_signal, a_kill_does_not_wait_for_the_mail_before_it) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  std::latch begun{1};
  std::latch filled{1};
  std::atomic<int> handled{0};
  const pid p = rt.spawn(works_through, &begun, &filled, &handled);
  begun.wait();
  for (int i = 0; i < 10'000; ++i) rt.send(p, i);
  rt.kill(p);
  filled.count_down();
  rt.wait(p);
  EXPECT_LT(handled, 1000);
}

struct counts_numbers {
  using protocol = coppice::protocol<int>;
  explicit counts_numbers(std::atomic<int>* n) : handled{n} {}
  void handle(int) const { ++*handled; }
  std::atomic<int>* handled;
};
task<> takes_numbers(self& me, std::atomic<int>* handled) {
  for (;;) {
    co_await me.receive<int>();
    ++*handled;
  }
}
task<> kills_newborns(self& me, std::atomic<int>* handled) {
  const pid body = me.spawn(takes_numbers, handled);
  const pid object = me.spawn<counts_numbers>(handled).id();
  for (const pid p : {body, object}) {  // neither has begun: the only worker is here
    for (int i = 0; i < 50; ++i) me.send(p, i);
    me.kill(p);
  }
  co_return;
}
TEST(exit_signal, a_kill_does_not_wait_for_the_mail_of_a_process_that_has_not_begun) {
  runtime rt{{.workers = 1, .stall_after = std::chrono::milliseconds{0}, .level = log_level::off}};
  std::atomic<int> handled{0};
  rt.spawn(kills_newborns, &handled);
  while (rt.counters().ended < 3) std::this_thread::yield();
  EXPECT_EQ(handled, 0);
}

}  // namespace
