// Supervisors that are frozen, and supervisors of frozen children.
#include <gtest/gtest.h>

#include "family.hpp"
#include "line_keeper.hpp"

namespace {

using namespace coppice;

void freeze(family& f, pid who) { ASSERT_TRUE(f.rt().freeze(who).has_value()); }

TEST(frozen_child, is_killed_at_its_shutdown_deadline_when_its_supervisor_stops) {
  family f;
  f.listen();
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.shutdown = 2s}), f.child("c")}}));
  f.book.take();
  f.events.clear();
  freeze(f, f.who("b"));
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop c shutdown"})) << "a waits for the end of b";
  f.pass(2s - a_tick);
  EXPECT_TRUE(f.rt().alive(f.who("b")));
  f.pass(2 * a_tick);
  EXPECT_FALSE(f.rt().alive(f.who("b")));
  EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"})) << "b has run nothing";
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  ASSERT_GE(f.events.size(), 2U);
  EXPECT_EQ(f.events[1].child, "b");
  EXPECT_EQ(f.events[1].reason, exit_reason::killed());
}

TEST(frozen_child, without_a_shutdown_deadline_is_waited_for_until_its_thaw) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = shutdown::infinity()})}}));
  f.book.take();
  freeze(f, f.who("a"));
  f.stop();
  f.pass(1h);
  EXPECT_FALSE(f.ended());
  EXPECT_TRUE(f.rt().thaw(f.who("a")));
  f.settle();
  EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(frozen_child, that_is_asked_to_stop_is_logged) {
  const auto log = std::make_shared<line_keeper>("frozen");
  family f{1, {.processes = 1U << 16U, .level = log_level::warning, .log = log}};
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = shutdown::infinity()})}}));
  freeze(f, f.who("a"));
  f.stop();
  EXPECT_EQ(log->lines, (lines{"warning child 'a' was asked to stop, but is frozen: it can't stop before a thaw"}));
}

TEST(frozen_child, that_is_stopped_brutally_ends_at_once) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = shutdown::brutal_kill()})}}));
  freeze(f, f.who("a"));
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(frozen_child, that_was_killed_is_restarted_and_its_successor_is_not_frozen) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const pid first = f.who("a");
  freeze(f, first);
  freeze(f, first);
  f.kill("a");
  ASSERT_NE(f.who("a"), first);
  EXPECT_EQ(f.who("a").index(), first.index()) << "this is about a successor in the same slot";
  EXPECT_TRUE(f.ask(call<worker::ping>(f.who("a")))) << "it handles mail";
  EXPECT_FALSE(f.rt().thaw(first));
}

TEST(frozen_supervisor, restarts_a_child_that_ended_meanwhile_after_the_thaw) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  f.book.take();
  freeze(f, f.tree.id());
  f.crash("a");
  f.pass(1h);
  EXPECT_EQ(f.book.take(), (lines{"stop a error"}));
  EXPECT_TRUE(f.rt().thaw(f.tree.id()));
  f.settle();
  EXPECT_EQ(f.book.take(), (lines{"start a"}));
}

TEST(frozen_supervisor, counts_ends_of_children_when_it_handles_them) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 1, .within = 1s}, .children = {f.child("a"), f.child("b")}}));
  freeze(f, f.tree.id());
  f.crash("a");
  f.pass(1h);
  f.crash("b");
  EXPECT_TRUE(f.rt().thaw(f.tree.id()));
  f.settle();
  EXPECT_TRUE(f.ended()) << "an hour lies between the ends, but both are handled at the thaw";
}

TEST(frozen_supervisor, restarts_a_child_once_whose_wait_ended_meanwhile) {
  family f;
  const backoff wait{.first = 1s, .jitter = 0};
  ASSERT_TRUE(f.start({.children = {f.child("a", {.backoff = wait})}}));
  f.crash("a");
  f.book.take();
  freeze(f, f.tree.id());
  f.pass(1h);
  EXPECT_EQ(f.book.take(), lines{});
  EXPECT_TRUE(f.rt().thaw(f.tree.id()));
  f.settle();
  EXPECT_EQ(f.book.take(), (lines{"start a"}));
}

TEST(frozen_subtree, of_a_supervisor_holds_children_that_it_was_starting) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    family f{seed};
    ASSERT_TRUE(f.start({.strategy = strategy::one_for_all, .children = {f.child("a"), f.child("b"), f.child("c")}}));
    f.rt().send(f.who("a"), worker::finish{exit_reason::error("crash")});
    for (std::uint64_t steps = seed % 20; steps > 0; --steps) (void)f.world().step();
    ASSERT_TRUE(f.rt().freeze(subtree{f.tree.id()}).has_value());
    f.book.take();
    f.pass(1h);
    EXPECT_EQ(f.book.take(), lines{}) << "something ran in a frozen subtree, seed " << seed;
    EXPECT_TRUE(f.rt().thaw(subtree{f.tree.id()}));
    f.settle();
    EXPECT_EQ(f.state(), "a:running b:running c:running");
  }
}

}  // namespace
