// What the four directives do to the child, to its descendants, and up the tree.
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

[[nodiscard]] actor_options answers(directive what) {
  return {.strategy = one_for_one({.decide = [what](const child_failure&) { return what; }})};
}
/// A top-level actor that answers so, with "p" below it that does otherwise, "a" and "b" below that.
void family(stage& s, directive top, directive parent = directive::escalate) {
  s.root("g", answers(top));
  s.child("g", "p", answers(parent));
  s.child("p", "a");
  s.child("p", "b");
  s.book.take();
}
TEST(directive_names, are_words) {
  EXPECT_EQ(to_string(directive::resume), "resume");
  EXPECT_EQ(to_string(directive::restart), "restart");
  EXPECT_EQ(to_string(directive::stop), "stop");
  EXPECT_EQ(to_string(directive::escalate), "escalate");
}

// ---- resume, restart, stop

TEST(directive_resume, keeps_everything_and_goes_on_with_the_next_message) {
  stage s;
  family(s, directive::resume);
  s.say("p", "one");
  s.act("p", [](player&, context& me) {
    (void)me.after(1s, say{"timer"});
    me.stash(say{"stashed"});
  });
  s.book.take();
  s.act("p", [](player&, context& me) {
    me.send(me.id(), say{"two"});
    throw std::runtime_error{"boom"};
  });
  EXPECT_EQ(s.said("p"), 2);
  s.pass(2s);
  s.act("p", [](player&, context& me) { me.unstash_all(); });
  EXPECT_EQ(s.book.take(), (lines{"p: two", "p: timer", "p: stashed"}));
  s.act("p", [](player&, context& me) { EXPECT_EQ(me.children().size(), 2U); });
}

TEST(directive_resume, is_not_counted) {
  stage s;
  s.root("p", {.strategy = one_for_one({.limit = {.restarts = 0, .within = 1h},
                                        .decide = [](const child_failure&) { return directive::resume; }})});
  s.child("p", "a");
  for (int i = 0; i < 20; ++i) s.fail("a");
  EXPECT_EQ(s.said("a"), 0);
  EXPECT_EQ(s.end_of("a"), "lives");
}

TEST(directive_restart, touches_no_sibling) {
  stage s;
  family(s, directive::stop, directive::restart);
  s.say("b", "one");
  s.book.take();
  s.fail("a");
  EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started"}));
  EXPECT_EQ(s.said("b"), 1);
}

TEST(directive_stop, ends_the_child_with_its_reason_and_those_below_it) {
  stage s;
  family(s, directive::stop);
  s.act("g", [&](player&, context& me) { me.watch(s.who("p")); });
  s.fail("p", "hopeless");
  EXPECT_EQ(s.ended("p")->text(), "hopeless");
  EXPECT_EQ(s.end_of("a"), "shutdown");
  EXPECT_EQ(s.end_of("b"), "shutdown");
  EXPECT_EQ(s.book.log.back(), "g terminated p");
  EXPECT_EQ(s.book.ends.back().text(), "hopeless") << "whoever watches hears why";
  EXPECT_EQ(s.book.heard["p stopping"].text(), "hopeless");
  EXPECT_EQ(s.answers(), (lines{"p stop"}));
}

TEST(directive_stop, notifies_the_parent_only_if_it_watches) {
  stage s;
  family(s, directive::stop);
  s.fail("p");
  EXPECT_EQ(std::ranges::count(s.book.log, "g terminated p"), 0);
}

// ---- those below are suspended meanwhile

TEST(suspension, reaches_all_descendants_until_the_failure_is_answered) {
  for (const directive d : {directive::resume, directive::restart}) {
    stage s;
    s.root("g", answers(d));
    s.child("g", "p", {.keep_children = true});
    s.child("p", "a");
    s.child("a", "x");
    s.stick("g", 1s);
    s.fail("p");
    s.book.take();
    s.say("a", "hello");
    s.say("x", "hello");
    EXPECT_EQ(s.book.take(), lines{}) << to_string(d);
    s.pass(2s);
    EXPECT_EQ(std::ranges::count(s.book.log, "a: hello"), 1) << to_string(d);
    EXPECT_EQ(std::ranges::count(s.book.log, "x: hello"), 1) << to_string(d);
  }
}

TEST(suspension, of_a_child_that_failed_itself_ends_with_both) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, directive::resume, directive::resume);
    s.tell("a", throws());
    s.tell("p", throws());
    s.tell("b", throws());
    s.tell("a", "hello");
    s.tell("b", "hello");
    s.settle();
    EXPECT_EQ(s.events.size(), 3U);
    EXPECT_EQ(s.said("a"), 1);
    EXPECT_EQ(s.said("b"), 1);
    EXPECT_EQ(s.said("p"), 0);
  });
}

TEST(suspension, holds_for_a_child_that_is_born_meanwhile) {
  stage s;
  family(s, directive::resume);
  s.stick("g", 1s);
  s.act("p", [](player& p, context& me) {
    me.fail(exit_reason::error("but first"));
    spawns("late")(p, me);
    me.send(p.book().pids["late"], say{"hello"});
  });
  EXPECT_EQ(s.book.take(), (lines{"late started"}));
  s.pass(2s);
  EXPECT_EQ(s.book.take(), (lines{"late: hello"}));
  s.say("late", "again");
  EXPECT_EQ(s.book.take(), (lines{"late: again"}));
}

TEST(suspension, holds_for_a_child_born_in_the_handler_that_throws) {
  stage s;
  family(s, directive::resume);
  s.stick("g", 1s);
  s.act("p", [](player& p, context& me) {
    spawns("late")(p, me);
    me.send(p.book().pids["late"], say{"hello"});
    throw std::runtime_error{"boom"};
  });
  EXPECT_EQ(std::ranges::count(s.book.log, "late: hello"), 0);
  s.pass(2s);
  EXPECT_EQ(s.book.log.back(), "late: hello");
}

TEST(suspension, keeps_back_what_has_to_be_decided) {
  int kept_back = 0;
  in_many_orders([&](std::uint64_t seed) {
    stage s{seed};
    s.root("top", answers(directive::resume));
    s.child("top", "g");
    s.child("g", "p");
    s.child("p", "a");
    s.stick("top", 1s);
    s.tell("g", throws());
    s.tell("a", throws());
    s.settle();
    // When a has failed too, p is suspended and judges nobody.
    kept_back += s.answers().empty() && s.rt().info(s.who("a"))->mailbox == 0 ? 1 : 0;
    s.pass(2s);
    EXPECT_EQ(s.said("a"), 0);
    EXPECT_EQ(s.said("p"), 0);
    EXPECT_EQ(s.events.size(), 2U);
  });
  EXPECT_GT(kept_back, 0) << "the orders of things in which both have failed are among those tried";
}

TEST(suspension, does_not_count_towards_a_receive_timeout) {
  stage s;
  family(s, directive::resume);
  s.act("p", [](player&, context& me) { me.set_receive_timeout(10s); });
  s.stick("g", 1min);
  s.fail("p");
  s.pass(59s);
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(20s);
  EXPECT_GE(s.book.take().size(), 1U) << "it goes on with the actor";
}

TEST(suspension, does_not_hold_up_a_stop) {
  stage s;
  family(s, directive::resume);
  s.stick("g", 1h);
  s.fail("p");
  s.stop("a");
  EXPECT_EQ(s.end_of("a"), "normal");
  s.stop("p");
  EXPECT_EQ(s.end_of("p"), "normal");
  EXPECT_EQ(s.end_of("b"), "shutdown");
}

// ---- escalation

TEST(directive_escalate, fails_the_parent_with_the_reason_of_the_child) {
  stage s;
  family(s, directive::stop);
  s.fail("a", "out of luck");
  EXPECT_EQ(s.answers(), (lines{"a escalate", "p stop"}));
  EXPECT_EQ(s.ended("p")->text(), "out of luck");
  EXPECT_EQ(s.events[1].reason, s.events[0].reason);
  EXPECT_FALSE(s.rt().alive(s.who("a")));
  EXPECT_FALSE(s.rt().alive(s.who("b")));
  EXPECT_EQ(s.end_of("g"), "lives");
}

TEST(directive_escalate, hands_on_the_exception_itself) {
  stage s;
  std::exception_ptr seen;
  s.root("g", {.strategy = one_for_one({.decide = [&](const child_failure& f) {
                 seen = f.what;
                 return directive::restart;
               }})});
  s.child("g", "p", answers(directive::escalate));
  s.child("p", "a");
  s.act("a", [](player&, context&) { throw std::out_of_range{"far"}; });
  EXPECT_THROW(std::rethrow_exception(seen), std::out_of_range);
}

TEST(directive_escalate, answered_by_resume_resumes_the_child_as_well) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, directive::resume);
    s.say("a", "before");
    s.say("p", "before");
    s.tell("a", throws());
    for (const char* name : {"a", "b", "p"}) s.tell(name, "after");
    s.settle();
    EXPECT_EQ(s.said("a"), 2);
    EXPECT_EQ(s.said("b"), 1);
    EXPECT_EQ(s.said("p"), 2);
    EXPECT_EQ(s.answers(), (lines{"a escalate", "p resume"}));
  });
}

TEST(directive_escalate, answered_by_resume_undoes_exactly_what_was_suspended) {
  stage s;
  family(s, directive::resume);
  for (int i = 0; i < 5; ++i) {
    s.fail(i % 2 == 0 ? "a" : "b");
    s.fail("p");
  }
  s.stick("g", 1s);
  s.fail("p");
  s.book.take();
  s.say("a", "hello");
  s.say("b", "hello");
  EXPECT_EQ(s.book.take(), lines{}) << "one suspension is enough again";
  s.pass(2s);
  EXPECT_EQ(s.book.take().size(), 2U);
}

TEST(directive_escalate, of_a_child_without_an_instance_answered_by_resume_makes_one_and_counts) {
  stage s;
  s.root("g", answers(directive::resume));
  s.child("g", "p", {.strategy = one_for_one({.limit = {.restarts = 2, .within = 1h}, .decide = [](const auto&) {
                                                return directive::escalate;
                                              }})});
  s.book.next["a made"] = {throws(), throws()};
  s.child("p", "a");
  s.say("a", "hello");
  EXPECT_EQ(s.said("a"), 1);
  s.book.always["b made"] = throws("never");
  s.child("p", "b");
  EXPECT_EQ(s.ended("b")->text(), "never") << "the limit of its parent holds";
  EXPECT_EQ(s.said("p"), 0);
}

TEST(directive_escalate, answered_by_restart_stops_the_child) {
  stage s;
  family(s, directive::restart);
  s.fail("a");
  EXPECT_EQ(s.book.log.front(), "p restarting");
  EXPECT_EQ(s.book.log.back(), "p started");
  EXPECT_EQ(s.end_of("a"), "shutdown");
  EXPECT_EQ(s.end_of("b"), "shutdown");
}

TEST(directive_escalate, answered_by_a_restart_that_keeps_children_restarts_the_one_that_failed) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("g");
    actor_options keeping = answers(directive::escalate);
    keeping.keep_children = true;
    s.child("g", "p", keeping);
    s.child("p", "a");
    s.child("p", "b");
    s.say("a", "before");
    s.say("b", "before");
    s.book.take();
    s.fail("a");
    const lines log = s.book.take();
    EXPECT_EQ(log.size(), 4U);
    EXPECT_LT(place(log, "p restarting"), place(log, "p started"));
    EXPECT_LT(place(log, "a restarting"), place(log, "a started"));
    s.say("a", "after");
    s.say("b", "after");
    EXPECT_EQ(s.said("a"), 1) << "a new one";
    EXPECT_EQ(s.said("b"), 2) << "untouched";
  });
}

TEST(directive_escalate, goes_up_as_far_as_it_is_handed_on) {
  stage s;
  s.root("top");
  s.child("top", "g", answers(directive::escalate));
  s.child("g", "p", answers(directive::escalate));
  s.child("p", "a");
  s.book.take();
  s.fail("a", "deep");
  EXPECT_EQ(s.answers(), (lines{"a escalate", "p escalate", "g restart"}));
  EXPECT_EQ(s.book.heard["g restarting"].text(), "deep");
  EXPECT_FALSE(s.rt().alive(s.who("p")));
  EXPECT_EQ(s.said("g"), 0);
}

TEST(directive_escalate, over_several_levels_answered_by_resume_resumes_all_of_them) {
  stage s;
  s.root("top", answers(directive::resume));
  s.child("top", "g", answers(directive::escalate));
  s.child("g", "p", answers(directive::escalate));
  s.child("p", "a");
  s.child("p", "b");
  s.fail("a");
  for (const char* name : {"g", "p", "a", "b"}) EXPECT_EQ(s.said(name), 0) << name;
  EXPECT_EQ(s.book.log.size(), 5U) << "all the same instances";
}

TEST(directive_escalate, of_two_children_at_once_leaves_nobody_suspended) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, directive::resume);
    s.tell("a", throws());
    s.tell("b", throws());
    s.settle();
    EXPECT_EQ(s.events.size(), 4U);
    for (const char* name : {"a", "b", "p"}) EXPECT_EQ(s.said(name), 0) << name;
  });
}

TEST(directive_escalate, by_a_child_that_is_gone_when_it_is_answered_does_no_harm) {
  stage s;
  family(s, directive::resume);
  s.stick("g", 1s);
  s.fail("a");
  s.stop("a");
  s.pass(2s);
  EXPECT_EQ(s.said("p"), 0);
  EXPECT_EQ(s.said("b"), 0);
}

/// Fails itself for a failure of its child, and escalates that, too.
class despairing {
 public:
  using protocol = coppice::protocol<say>;
  despairing(script& book, directive also) : book_{&book}, also_{also} {}
  void handle(started, context& me) { book_->pids["a"] = me.spawn(part(*book_, "a")).id(); }
  void handle(const say& m) { book_->log.push_back("p: " + m.text); }
  [[nodiscard]] directive decide(const child_failure& f, context& me) const {
    me.fail(f.reason);
    return also_;
  }

 private:
  script* book_;
  directive also_;
};

TEST(directive_escalate, by_a_parent_that_fails_while_it_decides_leaves_nobody_suspended) {
  for (const directive also : {directive::escalate, directive::resume, directive::restart}) {
    stage s;
    s.book.pids["p"] =
        spawn_actor(s.rt(),
                    props<despairing>(std::ref(s.book), also)
                        .with({.guardian = one_for_one({.decide = [](const auto&) { return directive::resume; }})}))
            .id();
    s.settle();
    s.fail("a");
    s.book.take();
    s.say("a", "here");
    s.rt().send(s.who("p"), say{"here"});
    s.pass(100s);
    EXPECT_EQ(s.book.take(), (lines{"a: here", "p: here"})) << to_string(also);
  }
}

}  // namespace
