// How many restarts are too many.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

// What happens in the simulation takes a few hundred nanoseconds.
constexpr std::chrono::microseconds a_moment{50};

TEST(limit, counts_the_restarts_of_all_children_together) {
  family f;
  ASSERT_TRUE(
      f.start({.limit = {.restarts = 2, .within = 5s}, .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.crash("a");
  f.crash("b");
  EXPECT_FALSE(f.ended());
  f.crash("c");
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(limit, of_zero_ends_the_supervisor_at_the_first_death_that_calls_for_a_restart) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 0, .within = 5s},
                       .children = {f.child("a", {.restart = restart::transient}),
                                    f.child("t", {.restart = restart::temporary}), f.child("b")}}));
  f.finish("a", exit_reason::normal());
  f.crash("t");
  EXPECT_FALSE(f.ended());
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error"})) << "it is not restarted first";
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(limit, counts_one_for_a_restart_of_many) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .limit = {.restarts = 2, .within = 5s},
                       .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.crash("a");
  f.crash("b");
  EXPECT_FALSE(f.ended());
  EXPECT_EQ(f.state(), "a:running b:running c:running");
  f.crash("c");
  EXPECT_TRUE(f.ended());
}

TEST(limit, still_counts_a_restart_that_is_almost_as_old_as_its_time) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 1, .within = 5s}, .children = {f.child("a")}}));
  f.crash("a");
  f.pass(5s - a_moment);
  f.crash("a");
  EXPECT_TRUE(f.ended());
}

TEST(limit, does_not_count_one_that_is_older_and_does_not_round_to_seconds) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 1, .within = 5s}, .children = {f.child("a")}}));
  for (int i = 0; i < 20; ++i) {
    f.crash("a");
    f.pass(5s + a_moment);
    ASSERT_FALSE(f.ended()) << i;
  }
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 20U);
}

TEST(limit, may_be_shorter_than_a_second) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 1, .within = 10ms}, .children = {f.child("a")}}));
  f.crash("a");
  f.pass(10ms + a_moment);
  f.crash("a");
  EXPECT_FALSE(f.ended());
  f.pass(10ms - a_moment);
  f.crash("a");
  EXPECT_TRUE(f.ended());
}

TEST(limit, that_is_reached_stops_the_others_in_reverse_and_ends_with_shutdown) {
  for (const auto how : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    family f;
    ASSERT_TRUE(f.start({.strategy = how,
                         .limit = {.restarts = 0, .within = 5s},
                         .children = {f.child("a"), f.child("b"), f.child("c")}}));
    f.book.take();
    f.crash("b");
    EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop c shutdown", "stop a shutdown"})) << to_string(how);
    EXPECT_EQ(f.ended(), exit_reason::shutdown());
  }
}

TEST(limit, of_a_branch_is_a_restart_of_its_parent_unless_it_is_transient) {
  for (const auto type : {restart::permanent, restart::transient, restart::temporary}) {
    family f;
    supervisor_spec branch{.limit = {.restarts = 0, .within = 5s}, .children = {f.child("x")}};
    ASSERT_TRUE(f.start({.children = {child<supervisor>(branch).with({.id = "branch", .restart = type})}}));
    f.crash("x");
    const std::string expected = type == restart::permanent   ? "branch:running"
                                 : type == restart::transient ? "branch:undefined"
                                                              : "";
    EXPECT_EQ(f.state(), expected) << to_string(type);
    if (type == restart::permanent) {
      EXPECT_EQ(f.ask(which_child(f.tree, "branch"))->restarts, 1U);
      EXPECT_EQ(f.ask(which_child(f.tree, "branch"))->last_reason, exit_reason::shutdown());
    }
  }
}

struct short_lived {
  static void init(self& me) { me.send(me.id(), 1); }
  explicit short_lived(int* n) { ++*n; }
  using protocol = coppice::protocol<int>;
  static void handle(int) { throw std::runtime_error{"short life"}; }
};
TEST(limit, of_nested_supervisors_multiply) {
  family f;
  int starts = 0;
  supervisor_spec inner{.limit = {.restarts = 3, .within = 5s}, .children = {child<short_lived>(&starts)}};
  f.start({.limit = {.restarts = 2, .within = 5s}, .children = {child<supervisor>(inner).with({.id = "inner"})}});
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_EQ(starts, (2 + 1) * (3 + 1));
}

TEST(limit, does_not_count_what_is_asked_for) {
  family f;
  f.book.starts["bad"] = {"fail", "fail"};
  ASSERT_TRUE(f.start({.limit = {.restarts = 1, .within = 1h}, .children = {f.child("a")}}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
    EXPECT_TRUE(f.ask(restart_child(f.tree, "a")));
  }
  EXPECT_FALSE(f.ask(start_child(f.tree, f.child("bad"))));
  EXPECT_FALSE(f.ask(start_child(f.tree, f.child("bad"))));
  EXPECT_TRUE(f.ask(start_child(f.tree, f.child("t", {.restart = restart::temporary}))));
  f.crash("t");
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 0U);
  f.crash("a");
  EXPECT_FALSE(f.ended());
  f.crash("a");
  EXPECT_TRUE(f.ended());
}

TEST(limit, counts_failed_attempts) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 5, .within = 5s}, .children = {f.child("a"), f.child("b")}}));
  f.book.take();
  f.book.starts["b"] = always("fail");
  f.crash("b");
  EXPECT_EQ(f.book.take(),
            (lines{"stop b error", "fail b", "fail b", "fail b", "fail b", "fail b", "stop a shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(limit, is_not_reset_by_a_healthy_run_within_its_time) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 2, .within = 1h}, .children = {f.child("a")}}));
  f.crash("a");
  f.pass(25min);
  f.crash("a");
  f.pass(25min);
  f.crash("a");
  EXPECT_TRUE(f.ended());
}

}  // namespace
