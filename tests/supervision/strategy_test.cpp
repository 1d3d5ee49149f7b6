// Who is restarted when a child ends: restart types, strategies, simultaneous deaths.
#include <gtest/gtest.h>

#include <array>

#include "family.hpp"

namespace {

using namespace coppice;

constexpr restart_limit generous{.restarts = 100, .within = 1h};
constexpr std::array all_strategies = {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one};

// ---- restart types

struct expected_end {
  restart type;
  exit_reason why;
  std::string state;
};
const std::vector<expected_end>& table() {
  static const std::vector<expected_end> rows = {
      {restart::permanent, exit_reason::normal(), "a:running b:running"},
      {restart::permanent, exit_reason::shutdown(), "a:running b:running"},
      {restart::permanent, exit_reason::shutdown("done"), "a:running b:running"},
      {restart::permanent, exit_reason::error("x"), "a:running b:running"},
      {restart::permanent, exit_reason::killed(), "a:running b:running"},
      {restart::transient, exit_reason::normal(), "a:running b:undefined"},
      {restart::transient, exit_reason::shutdown(), "a:running b:undefined"},
      {restart::transient, exit_reason::shutdown("done"), "a:running b:undefined"},
      {restart::transient, exit_reason::error("x"), "a:running b:running"},
      {restart::transient, exit_reason::killed(), "a:running b:running"},
      {restart::temporary, exit_reason::normal(), "a:running"},
      {restart::temporary, exit_reason::shutdown(), "a:running"},
      {restart::temporary, exit_reason::shutdown("done"), "a:running"},
      {restart::temporary, exit_reason::error("x"), "a:running"},
      {restart::temporary, exit_reason::killed(), "a:running"},
  };
  return rows;
}
TEST(restart_type, decides_with_the_reason_whether_a_child_is_restarted) {
  for (const auto how : all_strategies)
    for (const expected_end& row : table()) {
      family f;
      ASSERT_TRUE(f.start(
          {.strategy = how, .limit = generous, .children = {f.child("a"), f.child("b", {.restart = row.type})}}));
      f.finish("b", row.why);
      EXPECT_EQ(f.state(), row.state) << to_string(row.type) << ", " << row.why << ", " << to_string(how);
    }
}

TEST(restart_type, of_a_child_that_is_killed_from_outside) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous,
                       .children = {f.child("p"), f.child("t", {.restart = restart::transient}),
                                    f.child("x", {.restart = restart::temporary})}}));
  f.kill("p");
  f.kill("t");
  f.kill("x");
  EXPECT_EQ(f.state(), "p:running t:running");
  EXPECT_EQ(f.ask(which_child(f.tree, "t"))->last_reason, exit_reason::killed());
}

TEST(strategy, is_only_asked_when_a_child_needs_a_restart) {
  for (const auto how : all_strategies) {
    family f;
    ASSERT_TRUE(f.start({.strategy = how,
                         .limit = generous,
                         .children = {f.child("a", {.restart = restart::transient}),
                                      f.child("b", {.restart = restart::temporary}), f.child("c")}}));
    f.book.take();
    f.finish("a", exit_reason::normal());
    f.finish("b", exit_reason::error("x"));
    EXPECT_EQ(f.book.take(), (lines{"stop a normal", "stop b error"})) << to_string(how);
    EXPECT_EQ(f.state(), "a:undefined c:running");
    EXPECT_EQ(f.ask(which_child(f.tree, "c"))->restarts, 0U);
  }
}

// ---- strategies

TEST(one_for_all, replaces_every_process) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all, .children = {f.child("a"), f.child("b"), f.child("c")}}));
  const std::vector<pid> before = {f.who("a"), f.who("b"), f.who("c")};
  f.kill("a");
  for (const pid old : before) EXPECT_FALSE(f.rt().alive(old));
  EXPECT_EQ(f.state(), "a:running b:running c:running");
  const auto all = f.ask(which_children(f.tree));
  for (const auto& c : *all) EXPECT_TRUE(f.rt().alive(c.who));
}

TEST(rest_for_one, of_the_first_is_as_one_for_all_and_of_the_last_as_one_for_one) {
  family f;
  ASSERT_TRUE(f.start(
      {.strategy = strategy::rest_for_one, .limit = generous, .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.book.take();
  f.crash("a");
  EXPECT_EQ(f.book.take(),
            (lines{"stop a error", "stop c shutdown", "stop b shutdown", "start a", "start b", "start c"}));
  f.crash("c");
  EXPECT_EQ(f.book.take(), (lines{"stop c error", "start c"}));
}

TEST(strategy, revives_those_in_its_range_that_were_down) {
  for (const auto how : {strategy::one_for_all, strategy::rest_for_one}) {
    family f;
    f.book.starts["ignored"] = {"ignore"};
    ASSERT_TRUE(f.start({.strategy = how,
                         .limit = generous,
                         .children = {f.child("a"), f.child("stopped"),
                                      f.child("done", {.restart = restart::transient}), f.child("ignored")}}));
    EXPECT_TRUE(f.ask(terminate_child(f.tree, "stopped")));
    f.finish("done", exit_reason::normal());
    EXPECT_EQ(f.state(), "a:running stopped:undefined done:undefined ignored:undefined");
    f.crash("a");
    EXPECT_EQ(f.state(), "a:running stopped:running done:running ignored:running") << to_string(how);
  }
}

TEST(rest_for_one, leaves_those_before_it_as_they_are) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one, .children = {f.child("down"), f.child("a"), f.child("b")}}));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "down")));
  f.crash("a");
  EXPECT_EQ(f.state(), "down:undefined a:running b:running");
}

TEST(strategy, forgets_temporary_children_in_its_range) {
  for (const auto how : {strategy::one_for_all, strategy::rest_for_one}) {
    family f;
    ASSERT_TRUE(f.start({.strategy = how,
                         .limit = generous,
                         .children = {f.child("a"), f.child("t", {.restart = restart::temporary}), f.child("b")}}));
    f.book.take();
    f.crash("a");
    EXPECT_EQ(f.book.take(), (lines{"stop a error", "stop b shutdown", "stop t shutdown", "start a", "start b"}));
    EXPECT_EQ(f.state(), "a:running b:running");
    f.crash("b");
    EXPECT_EQ(f.state(), "a:running b:running") << "nothing is broken by that";
  }
}

TEST(strategy, goes_on_behind_a_child_that_has_nothing_to_do_any_more) {
  for (const auto how : {strategy::one_for_all, strategy::rest_for_one}) {
    family f;
    ASSERT_TRUE(f.start({.strategy = how, .children = {f.child("a"), f.child("b"), f.child("c")}}));
    f.book.starts["b"] = {"ignore"};
    f.crash("a");
    EXPECT_EQ(f.state(), "a:running b:undefined c:running");
  }
}

TEST(one_for_one, keeps_a_child_that_has_nothing_to_do_any_more_as_undefined) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b")}}));
  f.book.starts["a"] = {"ignore"};
  f.crash("a");
  EXPECT_EQ(f.state(), "a:undefined b:running");
  EXPECT_TRUE(f.ask(restart_child(f.tree, "a")));
}

TEST(restarted_child, keeps_its_place_and_its_arguments) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a"), f.child("b"), f.child("c")}}));
  for (int i = 0; i < 3; ++i) f.crash("a");
  EXPECT_EQ(f.state(), "a:running b:running c:running");
  f.book.take();
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop c shutdown", "stop b shutdown", "stop a shutdown"}));
}

TEST(strategy, waits_for_the_shutdown_of_each_sibling) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .children = {f.child("a"), f.child("b", {.shutdown = 2s}, true, true),
                                    f.child("c", {.shutdown = 3s}, true, true)}}));
  f.book.take();
  f.crash("a");
  f.pass(3s + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"stop a error", "stop c shutdown", "stop b shutdown"}));
  f.pass(2s + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"start a", "start b", "start c"})) << "the sum of their times";
}

// ---- several deaths at once

/// All of them end before the supervisor is notified of the first.
void kill_together(family& f, const std::vector<std::string>& ids) {
  f.stick(f.tree.id(), 1s);
  for (const std::string& id : ids) f.kill(id);
  f.pass(1s + a_tick);
}

TEST(simultaneous_deaths, cost_one_restart_each_in_one_for_one) {
  family f;
  ASSERT_TRUE(
      f.start({.limit = {.restarts = 3, .within = 5s}, .children = {f.child("a"), f.child("b"), f.child("c")}}));
  kill_together(f, {"a", "b", "c"});
  EXPECT_EQ(f.state(), "a:running b:running c:running");
  f.kill("a");
  EXPECT_EQ(f.ended(), exit_reason::shutdown()) << "the three before were three";
}

TEST(simultaneous_deaths, cost_one_restart_together_in_one_for_all) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .limit = {.restarts = 1, .within = 5s},
                       .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.book.take();
  kill_together(f, {"b", "a", "c"});
  EXPECT_FALSE(f.ended());
  EXPECT_EQ(f.book.take(), (lines{"start a", "start b", "start c"}));
  EXPECT_EQ(f.state(), "a:running b:running c:running");
}

TEST(simultaneous_deaths, of_the_earlier_first_cost_one_restart_in_rest_for_one) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one,
                       .limit = {.restarts = 1, .within = 5s},
                       .children = {f.child("a"), f.child("b")}}));
  kill_together(f, {"a", "b"});
  EXPECT_FALSE(f.ended());
  EXPECT_EQ(f.state(), "a:running b:running");
}

TEST(simultaneous_deaths, of_the_later_first_cost_two_restarts_in_rest_for_one) {
  for (const int limit : {1, 2}) {
    family f;
    ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one,
                         .limit = {.restarts = limit, .within = 5s},
                         .children = {f.child("a"), f.child("b")}}));
    kill_together(f, {"b", "a"});
    EXPECT_EQ(f.ended().has_value(), limit == 1);
  }
}

TEST(simultaneous_deaths, are_all_noticed_for_every_seed) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    for (const auto how : all_strategies) {
      family f{seed};
      ASSERT_TRUE(
          f.start({.strategy = how, .limit = generous, .children = {f.child("a"), f.child("b"), f.child("c")}}));
      for (const char* id : {"c", "a", "b"}) f.rt().kill(f.who(id));
      f.settle();
      EXPECT_EQ(f.state(), "a:running b:running c:running") << "seed " << seed;
      const auto all = f.ask(which_children(f.tree));
      for (const auto& c : *all) EXPECT_TRUE(f.rt().alive(c.who)) << c.id;
      EXPECT_EQ(f.ask(count_children(f.tree))->active, 3U);
    }
}

// ---- trees

TEST(supervisor_tree, restarts_locally_and_rebuilds_a_branch_that_gave_up) {
  family f;
  supervisor_spec branch{.strategy = strategy::one_for_all, .children = {f.child("x"), f.child("y")}};
  ASSERT_TRUE(f.start({.children = {f.child("a"), child<supervisor>(branch).with({.id = "branch"})}}));
  const pid a = f.who("a");
  const pid inner = f.ask(which_child(f.tree, "branch"))->who;
  EXPECT_TRUE(f.ask(start_child(ref<supervisor>{inner}, f.child("extra"))));
  EXPECT_TRUE(f.ask(terminate_child(ref<supervisor>{inner}, "y")));
  f.crash("x");
  EXPECT_EQ(f.ask(which_child(f.tree, "branch"))->who, inner) << "that was settled below";
  EXPECT_TRUE(f.rt().alive(f.who("y"))) << "one_for_all revives it";
  EXPECT_TRUE(f.rt().alive(f.who("extra")));
  f.crash("x");
  const pid next = f.ask(which_child(f.tree, "branch"))->who;
  EXPECT_NE(next, inner) << "a second crash is more than the branch may take";
  EXPECT_FALSE(f.rt().alive(f.who("extra"))) << "children added at run time are gone with it";
  EXPECT_EQ(f.ask(count_children(ref<supervisor>{next}))->active, 2U);
  EXPECT_EQ(f.who("a"), a);
  EXPECT_TRUE(f.rt().alive(a));
}

}  // namespace
