// Mailboxes with a limit or with priorities.
#include <gtest/gtest.h>

#include <set>

#include <coppice/runtime/runtime.hpp>
#include <coppice/supervision/supervisor.hpp>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

actor_options bounded(std::size_t capacity, when_full what) {
  return {.mailbox = mailbox{.capacity = capacity, .when_full = what}};
}

/// Sends notes 0 to n - 1 in one go, before the actor gets to run.
void flood(stage& s, player_ref who, int n) {
  for (int i = 0; i < n; ++i) s.tell(who, std::to_string(i));
}

TEST(bounded_mailbox, drops_the_newest_into_dead_letters) {
  stage s;
  const auto a = s.enter("a", bounded(3, when_full::drop_newest));
  (void)s.heard();
  flood(s, a, 5);
  EXPECT_EQ(s.heard(), (lines{"a: 0", "a: 1", "a: 2"}));
  EXPECT_EQ(s.dead_letters(), 2U);
  s.in(a, [](context& me) { EXPECT_EQ(me.dropped(), 2U); });
}

TEST(bounded_mailbox, drops_the_oldest_into_dead_letters) {
  stage s;
  const auto a = s.enter("a", bounded(3, when_full::drop_oldest));
  (void)s.heard();
  flood(s, a, 5);
  EXPECT_EQ(s.heard(), (lines{"a: 2", "a: 3", "a: 4"}));
  EXPECT_EQ(s.dead_letters(), 2U);
}

TEST(bounded_mailbox, counts_what_is_sent_before_the_actor_begins) {
  stage s;
  const player_ref a = spawn_actor(s.rt, s.role("a").with(bounded(2, when_full::drop_newest)));
  flood(s, a, 5);
  EXPECT_EQ(s.heard(), (lines{"a: started", "a: 0", "a: 1"}));
  EXPECT_EQ(s.dead_letters(), 3U);
}

TEST(bounded_mailbox, takes_mail_again_when_there_is_room) {
  stage s;
  const auto a = s.enter("a", bounded(2, when_full::drop_newest));
  (void)s.heard();
  for (int round = 0; round < 3; ++round) {
    flood(s, a, 4);
    EXPECT_EQ(s.heard(), (lines{"a: 0", "a: 1"}));
  }
  EXPECT_EQ(s.dead_letters(), 6U);
}

TEST(bounded_mailbox, is_of_each_actor_also_when_they_share_their_props) {
  stage s;
  const auto how = s.role("a").with(bounded(2, when_full::drop_newest));
  const player_ref one = spawn_actor(s.rt, how);
  const player_ref other = spawn_actor(s.rt, how);
  (void)s.heard();
  flood(s, one, 2);
  flood(s, other, 2);
  EXPECT_EQ(s.heard().size(), 4U);
  EXPECT_EQ(s.dead_letters(), 0U);
}

task<> supervises_one(self& me, child_spec spec, pid* child) {
  supervisor_spec tree{.children = {std::move(spec)}};
  const result<ref<supervisor>> top = co_await start<supervisor>(me, std::move(tree));
  const result<child_info> found = co_await which_child(*top, "player");
  *child = found->who;
}
TEST(bounded_mailbox, of_a_child_spec_replaces_that_of_the_props) {
  stage s;
  const auto role = s.role("a").with(bounded(1, when_full::drop_newest));
  pid a;
  s.rt.spawn(supervises_one, child<any_actor>(role).with({.mailbox = mailbox{.capacity = 3}}), &a);
  (void)s.heard();
  for (int i = 0; i < 5; ++i) s.rt.send(a, note{std::to_string(i)});
  EXPECT_EQ(s.heard(), (lines{"a: 0", "a: 1", "a: 2"}));
  EXPECT_EQ(s.dead_letters(), 2U);
}

TEST(bounded_mailbox, of_a_child_spec_can_lift_the_limit_of_the_props) {
  stage s;
  const auto role = s.role("a").with(bounded(1, when_full::drop_newest));
  pid a;
  s.rt.spawn(supervises_one, child<any_actor>(role).with({.mailbox = mailbox{}}), &a);
  (void)s.heard();
  for (int i = 0; i < 5; ++i) s.rt.send(a, note{std::to_string(i)});
  EXPECT_EQ(s.heard().size(), 5U);
  EXPECT_EQ(s.dead_letters(), 0U);
}

TEST(bounded_mailbox, an_order_to_stop_needs_no_room) {
  stage s;
  const auto a = s.enter("a", bounded(1, when_full::drop_newest));
  (void)s.heard();
  flood(s, a, 3);
  poison_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: 0", "a: stopping", "a: stopped"}));
}

task<> asks(self&, player_ref who, std::string* got) {
  const auto answer = co_await who.call<question>("x");
  *got = answer ? *answer : std::string{to_string(answer.error().code())};
}

TEST(bounded_mailbox, a_call_without_room_fails_at_once) {
  stage s;
  auto options = bounded(1, when_full::drop_newest);
  options.guardian = one_for_one({.wait = backoff{.first = 1s, .jitter = 0}});
  const auto a = s.enter("a", options);
  s.in(a, [](context&) { throw 1; });
  std::string first;
  std::string second;
  s.rt.spawn(asks, a, &first);
  s.rt.spawn(asks, a, &second);
  s.world.settle();
  EXPECT_EQ(first + second, "capacity");
  s.pass(2s);
  EXPECT_EQ((std::set<std::string>{first, second}), (std::set<std::string>{"x", "capacity"}));
}

TEST(bounded_mailbox, keeps_its_limit_while_the_actor_is_suspended) {
  stage s;
  const auto slowly = one_for_one({.wait = backoff{.first = 10s, .jitter = 0}});
  auto options = bounded(2, when_full::drop_newest);
  options.guardian = slowly;
  const auto a = s.enter("a", options);
  (void)s.heard();
  s.in(a, [](context&) { throw 1; });
  flood(s, a, 5);
  EXPECT_EQ(s.heard(), lines{});
  EXPECT_EQ(s.dead_letters(), 3U);
  s.pass(11s);
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "a: started", "a: 0", "a: 1"}));
}

TEST(waiting_senders, take_no_mail_until_there_is_room) {
  stage s;
  const auto b = s.enter("b");
  // It is busy with its restart: it takes mail when its wait is over.
  const auto slow = s.enter("slow", {.guardian = one_for_one({.wait = backoff{.first = 1s, .jitter = 0}}),
                                     .mailbox = mailbox{.capacity = 1, .when_full = when_full::sender_waits}});
  (void)s.heard();
  s.in(slow, [](context&) { throw 1; });
  s.in(b, [slow](context& me) {
    for (int i = 0; i < 3; ++i) me.cast<note>(slow, std::to_string(i));
  });
  s.tell(b, "mine");
  EXPECT_EQ(s.heard(), lines{}) << "b waits";
  s.pass(1100ms);
  const lines heard = s.heard();
  EXPECT_EQ(std::ranges::count(heard, "b: mine"), 1);
  lines of_slow;
  for (const auto& l : heard)
    if (l.starts_with("slow: ") && l.size() == 7) of_slow.push_back(l);
  EXPECT_EQ(of_slow, (lines{"slow: 0", "slow: 1", "slow: 2"}));
  EXPECT_EQ(s.dead_letters(), 0U);
}

task<> takes_notes_slowly(self& me, std::shared_ptr<lines> book) {
  for (;;) {
    co_await me.sleep(1s);
    const note m = co_await me.receive<note>();
    book->push_back("slow: " + m.text);
  }
}
TEST(waiting_senders, wait_for_room_in_the_mailbox_of_a_process_too) {
  stage s;
  const auto b = s.enter("b");
  const spawn_options room_for_one{.mailbox = {.capacity = 1, .when_full = when_full::sender_waits}};
  const auto book = std::make_shared<lines>();
  const pid slow = *s.rt.spawn(room_for_one, takes_notes_slowly, book);
  (void)s.heard();
  s.in(b, [slow](context& me) {
    for (int i = 0; i < 4; ++i) me.send(slow, note{std::to_string(i)});
  });
  s.tell(b, "mine");
  EXPECT_EQ(s.heard(), lines{}) << "b waits";
  s.pass(5s);
  EXPECT_EQ(s.heard(), (lines{"b: mine"}));
  EXPECT_EQ(*book, (lines{"slow: 0", "slow: 1", "slow: 2", "slow: 3"}));
  EXPECT_EQ(s.dead_letters(), 0U);
}
TEST(waiting_senders, of_a_process_that_takes_nothing_go_on_after_a_while) {
  stage s;
  const auto b = s.enter("b");
  const spawn_options room_for_one{
      .mailbox = {.capacity = 1, .when_full = when_full::sender_waits, .waits_at_most = 2s}};
  const pid deaf = *s.rt.spawn(room_for_one, +[](self& me) -> task<> { co_await me.sleep(1h); });
  (void)s.heard();
  s.in(b, [deaf](context& me) {
    for (int i = 0; i < 3; ++i) me.send(deaf, note{std::to_string(i)});
  });
  s.tell(b, "mine");
  s.pass(1900ms);
  EXPECT_EQ(s.heard(), lines{});
  s.pass(200ms);
  EXPECT_EQ(s.heard(), (lines{"b: mine"}));
  EXPECT_EQ(s.dead_letters(), 1U) << "one is put aside, and one was let in while the process looked at the first";
}

TEST(waiting_senders, go_on_after_a_while_and_their_message_is_a_dead_letter) {
  stage s;
  const auto slow =
      s.enter("slow", {.guardian = one_for_one({.wait = backoff{.first = 1min, .cap = 1h, .jitter = 0}}),
                       .mailbox = mailbox{.capacity = 1, .when_full = when_full::sender_waits, .waits_at_most = 2s}});
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(slow, [](context&) { throw 1; });
  s.in(b, [slow](context& me) {
    for (int i = 0; i < 3; ++i) me.cast<note>(slow, std::to_string(i));
  });
  s.tell(b, "mine");
  s.pass(1900ms);
  EXPECT_EQ(s.heard(), lines{});
  s.pass(200ms);
  EXPECT_EQ(s.heard(), (lines{"b: mine"}));
  EXPECT_EQ(s.dead_letters(), 2U);
}

/// Sends once more while it judges its child, which it does while it waits.
struct sends_when_asked {
  using protocol = coppice::protocol<act, note>;
  sends_when_asked(pid t, std::shared_ptr<lines> b) : to{t}, book{std::move(b)} {}
  static void handle(const act& m, context& me) { m.what(me); }
  void handle(const note& m) const { book->push_back(m.text); }
  directive decide(const child_failure&, context& me) const {
    me.send(to, note{"one more"});
    return directive::resume;
  }
  pid to;
  std::shared_ptr<lines> book;
};
TEST(waiting_senders, that_have_waited_too_long_do_not_wait_for_what_they_sent_meanwhile) {
  stage s;
  const auto slow =
      s.enter("slow", {.guardian = one_for_one({.wait = backoff{.first = 1h, .cap = 1h, .jitter = 0}}),
                       .mailbox = mailbox{.capacity = 1, .when_full = when_full::sender_waits, .waits_at_most = 10s}});
  const auto b = spawn_actor(s.rt, props<sends_when_asked>(slow.id(), s.book));
  player_ref c;
  s.rt.cast<act>(b, [&](context& me) { c = me.spawn(s.role("c")); });
  s.in(slow, [](context&) { throw 1; });
  s.rt.cast<act>(b, [slow](context& me) {
    for (int i = 0; i < 2; ++i) me.cast<note>(slow, std::to_string(i));
  });
  s.pass(9900ms);
  s.world.nodes().front().stick(b.id(), 1s);  // its time is over before it has decided
  s.in(c, [](context&) { throw 1; });
  s.pass(2s);
  (void)s.heard();
  s.rt.cast<note>(b, "mine");
  EXPECT_EQ(s.heard(), (lines{"mine"}));
}

TEST(waiting_senders, go_on_when_the_receiver_ends) {
  stage s;
  const auto slow = s.enter("slow", {.guardian = one_for_one({.wait = backoff{.first = 1min, .cap = 1h, .jitter = 0}}),
                                     .mailbox = mailbox{.capacity = 1, .when_full = when_full::sender_waits}});
  const auto b = s.enter("b");
  s.in(slow, [](context&) { throw 1; });
  s.in(b, [slow](context& me) {
    for (int i = 0; i < 3; ++i) me.cast<note>(slow, std::to_string(i));
  });
  (void)s.heard();
  s.tell(b, "mine");
  s.rt.kill(slow.id());
  EXPECT_EQ(s.heard(), (lines{"b: mine"}));
  EXPECT_EQ(s.dead_letters(), 3U);
}

TEST(waiting_senders, two_that_wait_for_each_other_come_free) {
  stage s;
  const actor_options tight{.mailbox =
                                mailbox{.capacity = 1, .when_full = when_full::sender_waits, .waits_at_most = 2s}};
  const auto a = s.enter("a", tight);
  const auto b = s.enter("b", tight);
  (void)s.heard();
  const auto flood_other = [](player_ref other) {
    return [other](context& me) {
      for (int i = 0; i < 4; ++i) me.cast<note>(other, "x");
    };
  };
  s.rt.cast<act>(a, flood_other(b));
  s.rt.cast<act>(b, flood_other(a));
  s.pass(20s);
  (void)s.heard();
  s.tell(a, "alive");
  s.tell(b, "alive");
  lines heard = s.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard, (lines{"a: alive", "b: alive"}));
}

TEST(waiting_senders, that_are_not_actors_are_turned_away) {
  stage s;
  const auto a = s.enter("a", bounded(1, when_full::sender_waits));
  (void)s.heard();
  flood(s, a, 3);
  EXPECT_EQ(s.heard(), (lines{"a: 0"}));
  EXPECT_EQ(s.dead_letters(), 2U);
}

TEST(priority_mailbox, takes_the_highest_first_and_keeps_the_order_within_one) {
  stage s;
  const auto a = s.enter("a", {.mailbox = mailbox{.by_priority = true}});
  (void)s.heard();
  s.tell(a, "usual 1");
  s.rt.cast<ranked_note>(a, 1, "low");
  s.rt.cast<urgent_note>(a, "urgent 1");
  s.tell(a, "usual 2");
  s.rt.cast<ranked_note>(a, 99, "beyond");
  s.rt.cast<ranked_note>(a, -99, "below");
  s.rt.cast<ranked_note>(a, 4, "usual 3");
  EXPECT_EQ(s.heard(),
            (lines{"a: urgent 1", "a: beyond", "a: usual 1", "a: usual 2", "a: usual 3", "a: low", "a: below"}));
}

TEST(priority_mailbox, looks_at_the_message_also_when_it_has_a_sender) {
  stage s;
  const auto a = s.enter("a", {.mailbox = mailbox{.by_priority = true}});
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(b, [a](context& me) {
    me.send_from(me.id(), a, note{"usual"});
    me.send_from(me.id(), a, urgent_note{"urgent"});
  });
  EXPECT_EQ(s.heard(), (lines{"a: urgent", "a: usual from somebody"}));
}

TEST(priority_mailbox, a_poison_pill_comes_last) {
  stage s;
  const auto a = s.enter("a", {.mailbox = mailbox{.by_priority = true}});
  (void)s.heard();
  poison_actor(s.rt, a.id());
  s.tell(a, "x");
  EXPECT_EQ(s.heard(), (lines{"a: x", "a: stopping", "a: stopped"}));
}

TEST(mailbox_options, nonsense_is_refused) {
  stage s;
  EXPECT_THROW((void)s.role("a").with({.mailbox = mailbox{.when_full = when_full::sender_waits}}),
               std::invalid_argument);
  EXPECT_THROW((void)s.role("a").with({.mailbox = mailbox{.waits_at_most = 0s}}), std::invalid_argument);
}

struct tick {};
struct total {
  using reply = int;
};
struct tally {
  using protocol = coppice::protocol<tick, total>;
  void handle(tick) { ++n; }
  int handle(total) { return n; }
  int n = 0;
};

task<> sends_many(self&, actor_ref<tally> to, int n) {
  for (int i = 0; i < n; ++i) to.cast<tick>();
  co_return;
}

TEST(mailbox, loses_nothing_of_many_senders_on_many_threads) {
  runtime rt{{.workers = 4, .level = log_level::off}};
  const auto a = spawn_actor(rt, props<tally>());
  const auto b = spawn_actor(rt, props<tally>().with({.mailbox = mailbox{.by_priority = true}}));
  std::vector<pid> senders;
  for (int i = 0; i < 100; ++i) {
    senders.push_back(rt.spawn(sends_many, a, 1000));
    senders.push_back(rt.spawn(sends_many, b, 1000));
  }
  for (const pid p : senders) rt.wait(p);
  EXPECT_EQ(rt.call(a.call<total>().within(forever)), 100'000);
  EXPECT_EQ(rt.call(b.call<total>().within(forever)), 100'000);
}

}  // namespace
