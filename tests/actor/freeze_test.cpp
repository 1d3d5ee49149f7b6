// Actors that are frozen, and parents of frozen actors.
#include <gtest/gtest.h>

#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

/// A parent and a frozen child.
struct family : stage {
  explicit family(const actor_options& how = {}) {
    root("p");
    child("p", "c", how);
    EXPECT_TRUE(rt().freeze(who("c")).has_value());
    (void)book.take();
  }
  void thaw() {
    EXPECT_TRUE(rt().thaw(who("c")));
    settle();
  }
};

TEST(frozen_child, is_killed_at_its_deadline_when_its_parent_stops) {
  family s;
  s.stop("p");
  s.pass(4900ms);
  EXPECT_EQ(s.end_of("c"), "lives");
  s.pass(200ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "killed");
  EXPECT_EQ(s.end_of("p"), "normal");
  EXPECT_EQ(s.book.take(), (lines{"p stopping", "p stopped"})) << "the child has run nothing";
}

TEST(frozen_child, is_killed_at_its_deadline_when_its_parent_is_restarted) {
  family s;
  s.fail("p");
  s.pass(5100ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "killed");
  EXPECT_EQ(s.said("p"), 0) << "a new instance takes mail";
}

TEST(frozen_child, without_a_deadline_is_waited_for_until_its_thaw) {
  family s{{.shutdown = coppice::shutdown::infinity()}};
  s.stop("p");
  s.pass(1h);
  EXPECT_EQ(s.end_of("p"), "lives");
  s.thaw();
  EXPECT_EQ(s.end_of("c"), "shutdown");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(frozen_child, that_is_thawed_before_its_deadline_stops_by_itself) {
  family s;
  s.stop("p");
  s.pass(4900ms);
  s.thaw();
  EXPECT_EQ(s.end_of("c"), "shutdown");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(frozen_grandchild, is_killed_and_nobody_else) {
  stage s;
  s.root("top");
  s.child("top", "middle");
  s.child("middle", "leaf");
  EXPECT_TRUE(s.rt().freeze(s.who("leaf")).has_value());
  s.stop("top");
  s.pass(5100ms);
  s.settle();
  EXPECT_EQ(s.end_of("leaf"), "killed");
  EXPECT_EQ(s.end_of("middle"), "shutdown");
  EXPECT_EQ(s.end_of("top"), "normal");
}

TEST(frozen_parent, restarts_a_child_that_failed_meanwhile_after_the_thaw) {
  stage s;
  s.root("p");
  s.child("p", "c");
  EXPECT_TRUE(s.rt().freeze(s.who("p")).has_value());
  (void)s.book.take();
  s.fail("c");
  s.pass(1h);
  EXPECT_EQ(s.book.take(), lines{});
  EXPECT_TRUE(s.rt().thaw(s.who("p")));
  s.settle();
  EXPECT_EQ(s.book.take(), (lines{"c restarting", "c started"}));
}

TEST(frozen_subtree, of_an_actor_holds_its_children_and_their_mail) {
  stage s;
  s.root("p");
  s.child("p", "c");
  EXPECT_TRUE(s.rt().freeze(subtree{s.who("p")}).has_value());
  (void)s.book.take();
  s.say("p", "one");
  s.say("c", "two");
  s.pass(1h);
  EXPECT_EQ(s.book.take(), lines{});
  EXPECT_TRUE(s.rt().thaw(subtree{s.who("p")}));
  s.settle();
  EXPECT_EQ(s.book.take().size(), 2U);
}

// ---- timers

/// Says "tick" every second.
deed ticks() {
  return [](player&, context& me) { (void)me.every(1s, say{"tick"}); };
}

TEST(frozen_actor, whose_repeating_timer_was_due_many_times_receives_one_message) {
  stage s;
  s.root("a");
  s.act("a", ticks());
  (void)s.book.take();
  s.pass(2500ms);
  EXPECT_EQ(s.book.take().size(), 2U);
  EXPECT_TRUE(s.rt().freeze(s.who("a")).has_value());
  s.pass(10s);
  EXPECT_EQ(s.book.take(), lines{});
  EXPECT_TRUE(s.rt().thaw(s.who("a")));
  s.settle();
  EXPECT_EQ(s.book.take(), (lines{"a: tick"})) << "it was due ten times";
  s.pass(3s);
  EXPECT_EQ(s.book.take(), (lines{"a: tick", "a: tick", "a: tick"})) << "and goes on";
}

TEST(frozen_actor, gets_its_receive_timeout_once_after_the_thaw) {
  stage s;
  s.root("a");
  s.act("a", [](player&, context& me) { me.set_receive_timeout(1s); });
  EXPECT_TRUE(s.rt().freeze(s.who("a")).has_value());
  (void)s.book.take();
  s.pass(10s);
  EXPECT_EQ(s.book.take(), lines{});
  EXPECT_TRUE(s.rt().thaw(s.who("a")));
  s.settle();
  EXPECT_EQ(s.book.take(), (lines{"a idle"}));
}

}  // namespace
