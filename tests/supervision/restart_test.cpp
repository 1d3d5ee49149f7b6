// What a supervisor does when a child ends.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

TEST(restart, children_start_in_order_and_stop_in_reverse) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b"), f.child("c")}}));
  EXPECT_EQ(f.book.take(), (lines{"start a", "start b", "start c"}));
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop c shutdown", "stop b shutdown", "stop a shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(restart, one_for_one_restarts_only_the_child_that_ended) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b"), f.child("c")}}));
  const pid before = f.who("b");
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "start b"}));
  EXPECT_NE(f.who("b"), before);
  EXPECT_EQ(f.state(), "a:running b:running c:running");
}

TEST(restart, one_for_all_stops_the_others_in_reverse_and_starts_all_in_order) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all, .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(),
            (lines{"stop b error", "stop c shutdown", "stop a shutdown", "start a", "start b", "start c"}));
}

TEST(restart, rest_for_one_restarts_it_and_those_after_it) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one, .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop c shutdown", "start b", "start c"}));
}

TEST(restart, the_limit_tolerates_so_many_and_not_one_more) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 2, .within = 5s}, .children = {f.child("a"), f.child("b")}}));
  f.crash("b");
  f.crash("b");
  EXPECT_FALSE(f.ended());
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop a shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

}  // namespace
