// What a restart changes, what it keeps, and what can interrupt it.
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

/// A top-level actor "p" with two children.
void family(stage& s, const actor_options& how = {}) {
  s.root("p", how);
  s.child("p", "a");
  s.child("p", "b");
  s.book.take();
}

TEST(actor_restart, notifies_the_old_instance_then_stops_the_children_then_starts_the_new_one) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s);
    s.fail("p");
    const lines log = s.book.take();
    ASSERT_EQ(log.size(), 6U);
    EXPECT_EQ(log.front(), "p restarting");
    EXPECT_LT(place(log, "a stopping"), place(log, "a stopped"));
    EXPECT_LT(place(log, "b stopping"), place(log, "b stopped"));
    EXPECT_EQ(log.back(), "p started");
    s.act("p", [](player&, context& me) { EXPECT_TRUE(me.children().empty()); });
  });
}

TEST(actor_restart, tells_the_cause) {
  stage s;
  s.root("p");
  s.fail("p", "out of luck");
  const exit_reason cause = s.book.heard["p restarting"];
  EXPECT_EQ(cause.what(), exit_reason::kind::error);
  EXPECT_EQ(cause.exception_type(), "std::runtime_error");
  EXPECT_EQ(cause.text(), "out of luck");
  EXPECT_EQ(cause.message(), "coppice::theatre::act");
}

TEST(actor_restart, shows_the_old_instance_its_children_and_the_new_one_none) {
  stage s;
  family(s);
  std::vector<std::size_t> seen;
  for (const char* hook : {"p restarting", "p made", "p started"})
    s.book.always[hook] = [&](player&, context& me) { seen.push_back(me.children().size()); };
  s.fail("p");
  EXPECT_EQ(seen, (std::vector<std::size_t>{2, 0, 0}));
}

TEST(actor_restart, keeps_the_pid_the_name_and_the_mail_but_not_the_state) {
  stage s;
  s.root("g");
  s.child("g", "p");
  s.say("p", "one");
  s.book.take();
  const pid before = s.who("p");
  s.act("p", [](player&, context& me) {
    me.send(me.id(), say{"two"});
    me.send(me.id(), say{"three"});
    throw std::runtime_error{"boom"};
  });
  EXPECT_EQ(s.book.take(), (lines{"p restarting", "p started", "p: two", "p: three"}));
  EXPECT_EQ(s.said("p"), 2) << "the first was said by another one";
  s.act("g", [&](player&, context& me) { EXPECT_EQ(me.child("p"), before); });
}

TEST(actor_restart, lets_the_new_instance_have_children_of_the_same_names) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.book.always["p started"] = spawns("a");
    s.root("p");
    const pid first = s.who("a");
    s.book.take();
    s.fail("p");
    EXPECT_EQ(s.book.take(), (lines{"p restarting", "a stopping", "a stopped", "p started", "a started"}));
    EXPECT_NE(s.who("a"), first);
    EXPECT_FALSE(s.rt().alive(first));
  });
}

TEST(actor_restart, ends_behaviours_timers_and_the_receive_timeout) {
  stage s;
  s.root("p");
  s.act("p", [](player& p, context& me) {
    (void)me.after(1s, say{"once"});
    (void)me.every(1s, say{"again"});
    me.set_receive_timeout(1s);
    me.become_stacked(behaviour{[&p](const say&) { p.note(" in another way"); }, [](const act&) { throw 1; }});
  });
  s.book.take();
  s.fail("p");
  s.pass(10s);
  s.say("p", "hello");
  EXPECT_EQ(s.book.take(), (lines{"p restarting", "p started", "p: hello"}));
}

TEST(actor_restart, ends_a_timer_whose_message_is_already_in_the_mailbox) {
  stage s;
  s.root("p");
  s.stick("p", 2s);
  s.tell("p", [](player&, context& me) { (void)me.after(0s, say{"of the old one"}); });
  s.tell("p", [](player&, context& me) { me.send(me.id(), say{"mail"}); });
  s.tell("p", throws());
  s.pass(3s);
  EXPECT_EQ(s.book.take(), (lines{"p started", "p restarting", "p started", "p: mail"}));
}

struct query {
  using reply = int;
};
struct oracle {
  using protocol = coppice::protocol<query, say>;
  void handle(query m, context& me) { me.stash(std::move(m)); }
  void handle(const say&, context& me) {
    me.become(behaviour{[](query, context& in) { in.reply(7); }});
    me.unstash_all();
  }
};

TEST(actor_restart, ends_continuations) {
  stage s;
  const auto wise = spawn_actor(s.rt(), props<oracle>());
  s.root("p");
  const deed asks = [&](player& p, context& me) {
    const auto answer = me.call(wise.call<query>().within(forever));
    me.reenter_after(answer, [&p](const result<int>& n, context&) { p.note(" knows " + std::to_string(n.value())); });
  };
  s.act("p", asks);
  s.fail("p");
  s.act("p", asks);
  s.book.take();
  s.rt().cast<say>(wise, "now");
  s.settle();
  EXPECT_EQ(s.book.take(), (lines{"p knows 7"})) << "that of the new instance only";
}

TEST(actor_restart, ends_continuations_whose_answer_came_while_it_waited) {
  for (const directive d : {directive::resume, directive::restart}) {
    stage s;
    const auto wise = spawn_actor(s.rt(), props<oracle>());
    s.root("g", {.strategy = one_for_one({.decide = [d](const auto&) { return d; }})});
    s.child("g", "p");
    s.act("p", [&](player& p, context& me) {
      const auto answer = me.call(wise.call<query>().within(forever));
      me.reenter_after(answer, [&p](const result<int>&, context&) { p.note(" knows"); });
    });
    s.stick("g", 1s);
    s.fail("p");
    s.rt().cast<say>(wise, "now");
    s.settle();
    s.book.take();
    s.pass(2s);
    EXPECT_EQ(s.book.take(), d == directive::resume ? (lines{"p knows"}) : (lines{"p restarting", "p started"}));
  }
}

TEST(actor_restart, puts_the_stash_back_ahead_of_the_mail_in_its_order) {
  stage s;
  s.root("p");
  const auto later = [](const std::string& text) { return [text](player&, context& me) { me.stash(say{text}); }; };
  s.act("p", later("one"));
  s.act("p", later("two"));
  s.book.take();
  s.act("p", [](player&, context& me) {
    me.send(me.id(), say{"three"});
    throw std::runtime_error{"boom"};
  });
  EXPECT_EQ(s.book.take(), (lines{"p restarting", "p started", "p: one", "p: two", "p: three"}));
  s.act("p", [](player&, context& me) { EXPECT_EQ(me.stashed(), 0U); });
}

// ---- watches

TEST(actor_restart, is_not_told_to_those_who_watch_it) {
  stage s;
  s.root("p");
  s.root("w");
  s.act("w", [&](player&, context& me) { me.watch(s.who("p")); });
  s.book.take();
  s.fail("p");
  EXPECT_EQ(s.book.take(), (lines{"p restarting", "p started"}));
  s.stop("p");
  EXPECT_EQ(s.book.take(), (lines{"p stopping", "p stopped", "w terminated p"})) << "but its end is";
}

TEST(actor_restart, keeps_watches_except_of_the_children_it_stops) {
  stage s;
  s.root("other");
  family(s);
  s.act("p", [&](player&, context& me) {
    for (const char* name : {"other", "a", "b"}) me.watch(s.who(name));
  });
  s.fail("p");
  EXPECT_EQ(std::ranges::count_if(s.book.take(), [](const auto& l) { return l.contains("terminated"); }), 0);
  s.stop("other");
  EXPECT_EQ(s.book.take(), (lines{"other stopping", "other stopped", "p terminated other"}));
}

TEST(actor_restart, leaves_a_death_during_it_to_the_new_instance) {
  stage s;
  s.root("other");
  family(s);
  s.act("p", [&](player&, context& me) { me.watch(s.who("other")); });
  s.stick("a", 1s);
  s.fail("p");
  s.stop("other");
  s.root("late");
  s.act("late", [&](player&, context& me) { me.watch(s.who("p")); });
  s.book.take();
  s.pass(2s);
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "a stopped", "p started", "p terminated other"}))
      << "and who began to watch meanwhile hears nothing of it";
}

// ---- what gets in the way

TEST(actor_restart, goes_on_when_the_hook_throws) {
  stage s;
  family(s);
  s.book.always["p restarting"] = throws();
  s.fail("p");
  EXPECT_EQ(s.book.log.back(), "p started");
  EXPECT_EQ(std::ranges::count(s.book.log, "p restarting"), 1);
  EXPECT_EQ(s.events.size(), 1U) << "it is no failure of its own";
  s.book.next["p restarting"] = {[](player&, context&) { throw exit_with{exit_reason::error("no more")}; }};
  s.book.always.clear();
  s.fail("p");
  EXPECT_EQ(s.said("p"), 0) << "nor does exit_with stop it there";
}

TEST(actor_restart, is_not_held_up_by_children_whose_hooks_throw) {
  stage s;
  family(s);
  for (const char* hook : {"a stopping", "a stopped", "b stopped"}) s.book.always[hook] = throws();
  s.fail("p");
  EXPECT_EQ(s.book.log.back(), "p started");
  EXPECT_EQ(s.said("p"), 0);
  EXPECT_EQ(s.events.size(), 1U);
}

TEST(actor_restart, allows_no_children_of_the_old_instance) {
  stage s;
  s.root("p");
  s.book.always["p restarting"] = [](player& p, context& me) {
    EXPECT_THROW(spawns("late")(p, me), spawn_failed);
    p.note(" tried");
  };
  s.book.take();
  s.fail("p");
  EXPECT_EQ(s.book.take(), (lines{"p restarting", "p tried", "p started"}));
}

TEST(actor_restart, takes_no_mail_while_it_waits_for_a_child) {
  stage s;
  family(s);
  s.stick("a", 1s);
  s.fail("p");
  s.say("p", "hello");
  EXPECT_EQ(std::ranges::count(s.book.log, "p: hello"), 0);
  s.pass(2s);
  ASSERT_GE(s.book.log.size(), 2U);
  EXPECT_EQ(s.book.log.back(), "p: hello");
  EXPECT_LT(place(s.book.log, "p started"), place(s.book.log, "p: hello"));
}

TEST(actor_restart, gives_way_to_a_stop_and_the_old_instance_receives_nothing_more) {
  stage s;
  family(s);
  s.stick("a", 1s);
  s.fail("p");
  s.stop("p");
  s.pass(2s);
  const lines log = s.book.take();
  EXPECT_EQ(std::ranges::count_if(log, [](const auto& l) { return l.starts_with("p "); }), 1) << "p restarting";
  EXPECT_EQ(s.end_of("p"), "normal");
  EXPECT_FALSE(s.rt().alive(s.who("a")));
}

TEST(actor_restart, never_follows_a_stop) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("g");
    s.child("g", "p");
    s.child("p", "a");
    s.book.take();
    s.tell("p", throws());
    stop_actor(s.rt(), s.who("p"));
    s.settle();
    const lines log = s.book.take();
    EXPECT_FALSE(s.rt().alive(s.who("p")));
    EXPECT_FALSE(s.rt().alive(s.who("a")));
    const auto stop = std::ranges::find(log, "p stopping");
    EXPECT_EQ(std::find(stop, log.end(), "p started"), log.end());
    EXPECT_EQ(s.said("g"), 0);
  });
}

TEST(actor_restart, that_still_waits_its_time_is_called_off_by_a_stop) {
  stage s;
  s.root("g", {.strategy = one_for_one({.wait = backoff{.first = 10s}})});
  s.child("g", "p");
  s.fail("p");
  s.stop("p");
  EXPECT_EQ(s.end_of("p"), "normal");
  s.pass(1min);
  EXPECT_EQ(std::ranges::count(s.book.log, "p started"), 1);
  EXPECT_EQ(s.said("g"), 0);
}

TEST(actor_restart, with_a_child_that_fails_meanwhile_ends_all_the_same) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s);
    s.tell("a", throws());
    s.tell("p", throws());
    s.tell("b", throws());
    s.settle();
    EXPECT_EQ(s.book.log.back(), "p started");
    EXPECT_FALSE(s.rt().alive(s.who("a")));
    EXPECT_FALSE(s.rt().alive(s.who("b")));
    EXPECT_EQ(s.said("p"), 0);
  });
}

TEST(actor_restart, is_completed_when_those_above_fail_while_it_waits_for_a_child) {
  for (const directive d : {directive::resume, directive::restart})
    in_many_orders([d](std::uint64_t seed) {
      stage s{seed};
      s.root("top", {.strategy = one_for_one({.decide = [d](const auto&) { return d; }})});
      s.child("top", "g", {.keep_children = true});
      s.child("g", "p");
      s.child("p", "a");
      s.stick("a", 1s);
      s.fail("p");
      s.fail("g");
      s.say("p", "hello");
      EXPECT_EQ(std::ranges::count(s.book.log, "p: hello"), 0);
      s.pass(2s);
      EXPECT_EQ(s.book.log.back(), "p: hello");
      EXPECT_EQ(std::ranges::count(s.book.log, "p started"), 2);
      EXPECT_EQ(s.said("p"), 1);
      EXPECT_EQ(s.said("g"), 0);
    });
}

TEST(actor_stop, with_a_child_that_fails_meanwhile_ends_all_the_same) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s);
    s.tell("a", throws());
    stop_actor(s.rt(), s.who("p"));
    s.tell("b", throws());
    s.settle();
    EXPECT_EQ(s.end_of("p"), "normal");
    EXPECT_FALSE(s.rt().alive(s.who("a")));
    EXPECT_FALSE(s.rt().alive(s.who("b")));
  });
}

// ---- children that are kept

TEST(actor_restart, that_keeps_children_does_not_touch_them) {
  stage s;
  family(s, {.keep_children = true});
  s.say("a", "one");
  s.act("p", [&](player&, context& me) { me.watch(s.who("a")); });
  s.book.take();
  s.act("p", [&](player&, context& me) {
    me.send(s.who("a"), say{"two"});
    throw std::runtime_error{"boom"};
  });
  EXPECT_EQ(s.said("a"), 2);
  EXPECT_EQ(s.book.take(), (lines{"p restarting", "p started", "a: two"}));
  s.act("p", [&](player&, context& me) { EXPECT_EQ(me.children(), (std::vector{s.who("a"), s.who("b")})); });
  s.stop("a");
  EXPECT_EQ(s.book.log.back(), "p terminated a") << "it is watched as before";
}

}  // namespace
