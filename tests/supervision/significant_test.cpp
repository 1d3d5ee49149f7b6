// Supervisors that end when their significant children have, and upgrades of a running one.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

constexpr auto never = auto_shutdown::never;
constexpr auto any = auto_shutdown::any_significant;
constexpr auto all = auto_shutdown::all_significant;

/// Three children: two significant ones of that restart type, and one that is not.
struct team : family {
  team(auto_shutdown when, restart type, strategy how = strategy::one_for_one) {
    EXPECT_TRUE(start({.strategy = how,
                       .limit = {.restarts = 100, .within = 1h},
                       .auto_shutdown = when,
                       .children = {child("x"), child("s1", {.restart = type, .significant = true}),
                                    child("s2", {.restart = type, .significant = true})}}));
    book.take();
  }
};

TEST(auto_shutdown, of_any_comes_with_the_first_significant_child_that_is_done) {
  for (const auto type : {restart::transient, restart::temporary})
    for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::shutdown("done")}) {
      team t{any, type};
      t.finish("s1", why);
      EXPECT_EQ(t.ended(), exit_reason::shutdown());
      EXPECT_EQ(t.book.take(),
                (lines{"stop s1 " + std::string{to_string(why.what())}, "stop s2 shutdown", "stop x shutdown"}))
          << "the others in reverse";
    }
}

TEST(auto_shutdown, of_any_comes_with_a_temporary_child_that_fails_too) {
  team t{any, restart::temporary};
  t.crash("s2");
  EXPECT_EQ(t.ended(), exit_reason::shutdown());
  team killed{any, restart::temporary};
  killed.kill("s2");
  EXPECT_EQ(killed.ended(), exit_reason::shutdown());
}

TEST(auto_shutdown, does_not_come_with_a_transient_child_that_is_restarted) {
  for (const auto when : {any, all}) {
    team t{when, restart::transient};
    t.crash("s1");
    t.kill("s2");
    EXPECT_FALSE(t.ended());
    EXPECT_EQ(t.state(), "x:running s1:running s2:running");
  }
}

TEST(auto_shutdown, of_all_comes_with_the_last_significant_child) {
  for (const auto type : {restart::transient, restart::temporary}) {
    team t{all, type};
    t.finish("s2", exit_reason::normal());
    EXPECT_FALSE(t.ended());
    t.finish("s1", exit_reason::normal());
    EXPECT_EQ(t.ended(), exit_reason::shutdown());
  }
}

TEST(auto_shutdown, of_all_does_not_wait_for_one_that_was_stopped_by_hand) {
  team t{all, restart::transient};
  EXPECT_TRUE(t.ask(terminate_child(t.tree, "s2")));
  EXPECT_FALSE(t.ended());
  t.finish("s1", exit_reason::normal());
  EXPECT_EQ(t.ended(), exit_reason::shutdown());
}

TEST(auto_shutdown, of_all_waits_for_one_that_is_being_restarted) {
  family f;
  const backoff wait{.first = 10s};
  ASSERT_TRUE(
      f.start({.auto_shutdown = all,
               .children = {f.child("s1", {.restart = restart::transient, .significant = true}),
                            f.child("s2", {.restart = restart::transient, .significant = true, .backoff = wait})}}));
  f.crash("s2");
  f.finish("s1", exit_reason::normal());
  EXPECT_FALSE(f.ended());
  f.pass(10s + a_tick);
  EXPECT_EQ(f.state(), "s1:undefined s2:running");
  f.finish("s2", exit_reason::normal());
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(auto_shutdown, does_not_come_by_calls) {
  for (const auto when : {any, all})
    for (const auto type : {restart::transient, restart::temporary}) {
      team t{when, type};
      EXPECT_TRUE(t.ask(terminate_child(t.tree, "s1")));
      EXPECT_TRUE(t.ask(terminate_child(t.tree, "s2")));
      if (type == restart::transient) {
        EXPECT_TRUE(t.ask(delete_child(t.tree, "s2")));
      }
      EXPECT_FALSE(t.ended());
    }
}

TEST(auto_shutdown, does_not_come_with_children_that_are_stopped_or_have_nothing_to_do_in_a_restart_of_the_group) {
  for (const auto when : {any, all})
    for (const auto type : {restart::transient, restart::temporary}) {
      team t{when, type, strategy::one_for_all};
      t.book.starts["s1"] = {"ignore"};
      t.crash("x");
      EXPECT_FALSE(t.ended());
    }
}

TEST(auto_shutdown, does_not_come_with_a_start_that_fails_or_has_nothing_to_do) {
  for (const auto type : {restart::transient, restart::temporary}) {
    team t{any, type};
    t.book.starts["n"] = {"ignore"};
    t.book.starts["m"] = {"fail"};
    EXPECT_TRUE(t.ask(start_child(t.tree, t.child("n", {.restart = type, .significant = true}))));
    EXPECT_FALSE(t.ask(start_child(t.tree, t.child("m", {.restart = type, .significant = true}))));
    EXPECT_FALSE(t.ended());
  }
}

TEST(auto_shutdown, does_not_come_with_children_that_are_not_significant) {
  for (const auto when : {never, any, all})
    for (const auto type : {restart::transient, restart::temporary})
      for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::error("x")}) {
        family f;
        ASSERT_TRUE(f.start({.auto_shutdown = when, .children = {f.child("a", {.restart = type})}}));
        f.finish("a", why);
        EXPECT_FALSE(f.ended());
      }
}

TEST(auto_shutdown, climbs_up_as_long_as_supervisors_are_significant) {
  for (const bool significant : {true, false}) {
    family f;
    supervisor_spec branch{.auto_shutdown = any,
                           .children = {f.child("s", {.restart = restart::transient, .significant = true})}};
    ASSERT_TRUE(f.start({.auto_shutdown = any,
                         .children = {f.child("a"), child<supervisor>(branch).with({.id = "branch",
                                                                                    .restart = restart::transient,
                                                                                    .significant = significant})}}));
    f.finish("s", exit_reason::normal());
    EXPECT_EQ(f.ended().has_value(), significant);
    if (!significant) {
      EXPECT_EQ(f.state(), "a:running branch:undefined");
    }
  }
}

TEST(auto_shutdown, of_a_permanent_branch_is_a_restart) {
  family f;
  supervisor_spec branch{.auto_shutdown = any,
                         .children = {f.child("s", {.restart = restart::temporary, .significant = true})}};
  ASSERT_TRUE(f.start({.children = {child<supervisor>(branch).with({.id = "branch"})}}));
  const pid before = f.who("s");
  f.finish("s", exit_reason::normal());
  EXPECT_EQ(f.state(), "branch:running");
  EXPECT_NE(f.who("s"), before);
}

// ---- upgrade

TEST(upgrade, changes_flags_and_keeps_what_runs) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 0, .within = 5s}, .children = {f.child("a"), f.child("b")}}));
  const pid a = f.who("a");
  f.book.take();
  EXPECT_TRUE(f.ask(upgrade(f.tree, {.strategy = strategy::one_for_all,
                                     .limit = {.restarts = 5, .within = 5s},
                                     .children = {f.child("a"), f.child("b")}})));
  EXPECT_EQ(f.book.take(), lines{});
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->who, a);
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop a shutdown", "start a", "start b"}));
}

TEST(upgrade, adds_new_children_without_starting_them_and_keeps_those_that_are_missing) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b")}}));
  f.book.take();
  EXPECT_TRUE(f.ask(upgrade(f.tree, {.children = {f.child("a"), f.child("n")}})));
  EXPECT_EQ(f.book.take(), lines{});
  EXPECT_EQ(f.state(), "a:running n:undefined b:running");
  EXPECT_TRUE(f.ask(restart_child(f.tree, "n")));
  EXPECT_EQ(f.state(), "a:running n:running b:running");
}

TEST(upgrade, orders_the_children_as_the_new_spec_does_and_puts_those_it_does_not_name_at_the_end) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("x"), f.child("a"), f.child("y"), f.child("b")}}));
  EXPECT_TRUE(f.ask(start_child(f.tree, f.child("t", {.restart = restart::temporary}))));
  f.finish("t", exit_reason::normal());  // leaves a gap in the list
  EXPECT_TRUE(f.ask(upgrade(f.tree, {.children = {f.child("b"), f.child("n"), f.child("a")}})));
  EXPECT_EQ(f.state(), "b:running n:undefined a:running x:running y:running");
  EXPECT_TRUE(f.ask(start_child(f.tree, f.child("last"))));
  f.book.take();
  f.stop();
  EXPECT_EQ(f.book.take(),
            (lines{"stop last shutdown", "stop y shutdown", "stop x shutdown", "stop a shutdown", "stop b shutdown"}));
}

TEST(upgrade, changes_which_children_a_restart_of_the_rest_concerns) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one, .children = {f.child("a"), f.child("b")}}));
  EXPECT_TRUE(f.ask(upgrade(f.tree, {.strategy = strategy::rest_for_one, .children = {f.child("b"), f.child("a")}})));
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop a shutdown", "start b", "start a"}));
  f.pass(1min);
  f.book.take();
  f.crash("a");
  EXPECT_EQ(f.book.take(), (lines{"stop a error", "start a"}));
}

TEST(upgrade, takes_effect_for_a_child_at_its_next_start) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b")}}));
  const child_spec other = child<worker>(&f.book, "other", true, false).with({.id = "a", .shutdown = 1s});
  EXPECT_TRUE(f.ask(upgrade(f.tree, {.children = {other}})));
  EXPECT_EQ(f.ask(get_childspec(f.tree, "a"))->shutdown, shutdown{1s});
  f.book.take();
  f.crash("a");
  EXPECT_EQ(f.book.take(), (lines{"stop a error", "start other"}));
}

TEST(upgrade, that_makes_no_sense_changes_nothing) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const auto bad = f.ask(upgrade(f.tree, {.limit = {.restarts = -1}, .children = {f.child("n")}}));
  EXPECT_EQ(bad.error().code(), errc::invalid);
  const auto twice = f.ask(upgrade(f.tree, {.children = {f.child("n"), f.child("n")}}));
  EXPECT_EQ(twice.error().code(), errc::duplicate_id);
  EXPECT_EQ(f.state(), "a:running");
  f.crash("a");
  EXPECT_EQ(f.state(), "a:running");
}

TEST(upgrade, changes_when_significant_children_end_the_supervisor) {
  struct step {
    auto_shutdown before;
    auto_shutdown after;
  };
  for (const auto& [before, after] :
       {step{never, any}, step{any, never}, step{never, all}, step{all, never}, step{any, all}, step{all, any}}) {
    family f;
    const auto children = [&](auto_shutdown when) {
      const bool significant = when != never;
      return std::vector{f.child("s1", {.restart = restart::transient, .significant = significant}),
                         f.child("s2", {.restart = restart::transient, .significant = significant})};
    };
    ASSERT_TRUE(f.start({.auto_shutdown = before, .children = children(before)}));
    EXPECT_TRUE(f.ask(upgrade(f.tree, {.auto_shutdown = after, .children = children(after)})));
    f.finish("s1", exit_reason::normal());
    EXPECT_EQ(f.ended().has_value(), after == any) << to_string(before) << " to " << to_string(after);
    if (f.ended()) continue;
    f.finish("s2", exit_reason::normal());
    EXPECT_EQ(f.ended().has_value(), after == all) << to_string(before) << " to " << to_string(after);
  }
}

TEST(upgrade, of_a_child_to_a_significant_one_counts_when_it_ends) {
  family f;
  ASSERT_TRUE(f.start({.auto_shutdown = any, .children = {f.child("a", {.restart = restart::transient})}}));
  EXPECT_TRUE(
      f.ask(upgrade(f.tree, {.auto_shutdown = any,
                             .children = {f.child("a", {.restart = restart::transient, .significant = true})}})));
  f.finish("a", exit_reason::normal());
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(upgrade, may_add_a_temporary_child_that_turns_out_to_have_nothing_to_do) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  EXPECT_TRUE(f.ask(upgrade(f.tree, {.children = {f.child("t", {.restart = restart::temporary})}})));
  f.book.starts["t"] = {"ignore"};
  EXPECT_EQ(f.ask(restart_child(f.tree, "t")), pid{});
  EXPECT_EQ(f.state(), "a:running") << "and it is forgotten";
}

TEST(upgrade, to_a_temporary_child_is_not_tried_again_for_ever) {
  family f;
  const backoff wait{.first = 10s};
  ASSERT_TRUE(f.start({.children = {f.child("a", {.backoff = wait}), f.child("b")}}));
  f.crash("a");
  EXPECT_TRUE(f.ask(upgrade(f.tree, {.children = {f.child("a", {.restart = restart::temporary})}})));
  f.book.starts["a"] = {"ignore"};
  f.pass(10s + a_tick);
  EXPECT_EQ(f.state(), "b:running") << "it had nothing to do, and is forgotten";
}

}  // namespace
