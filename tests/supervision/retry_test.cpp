// Restarts whose start fails: tried again behind what waits, each counted.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

constexpr restart_limit endless{.restarts = 1'000'000, .within = 1h};

/// A supervisor that tries and tries to start one of its children.
struct stuck_family : family {
  explicit stuck_family(strategy how = strategy::one_for_one, std::string failing = "b") {
    EXPECT_TRUE(start({.strategy = how, .limit = endless, .children = {child("a"), child("b"), child("c")}}));
    book.starts[failing] = always("fail");
    rt().send(who(failing), worker::finish{exit_reason::error("crash")});
    EXPECT_TRUE(until([&] { return std::ranges::count(book.lines, "fail " + failing) > 3; }));
  }
  /// As `ask`, though the supervisor never rests.
  template <class M>
  result<reply_of<M>> insist(pending_call<M> call) {
    auto answer = begin(std::move(call));
    EXPECT_TRUE(until([&] { return answer->has_value(); }));
    return **answer;
  }
};

TEST(failed_restart, is_tried_again_until_it_succeeds) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 4, .within = 5s}, .children = {f.child("a"), f.child("b")}}));
  f.book.take();
  f.book.starts["a"] = {"fail", "throw", "refuse"};
  f.crash("a");
  EXPECT_EQ(f.book.take(), (lines{"stop a error", "fail a", "throw a", "refuse a", "start a"}));
  EXPECT_EQ(f.state(), "a:running b:running");
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 4U);
}

TEST(failed_restart, leaves_siblings_alone_and_shows_as_restarting) {
  stuck_family f;
  const auto all = f.insist(which_children(f.tree));
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ((*all)[0].state, child_state::running);
  EXPECT_EQ((*all)[1].state, child_state::restarting);
  EXPECT_EQ((*all)[1].who, pid{});
  EXPECT_EQ((*all)[2].state, child_state::running);
  EXPECT_EQ(f.insist(which_child(f.tree, "b"))->state, child_state::restarting);
  EXPECT_EQ(f.insist(count_children(f.tree)), (child_counts{.specs = 3, .active = 2, .supervisors = 0, .workers = 3}));
}

TEST(failed_restart, answers_calls_meanwhile) {
  stuck_family f;
  EXPECT_EQ(f.insist(restart_child(f.tree, "b")).error().code(), supervision_errc::restarting);
  EXPECT_EQ(f.insist(delete_child(f.tree, "b")).error().code(), supervision_errc::restarting);
  EXPECT_EQ(f.insist(start_child(f.tree, f.child("b"))).error().code(), supervision_errc::already_present);
  EXPECT_TRUE(f.insist(start_child(f.tree, f.child("d"))));
  EXPECT_TRUE(f.insist(get_childspec(f.tree, "b")));
}

TEST(failed_restart, is_given_up_by_terminate_child) {
  stuck_family f;
  EXPECT_TRUE(f.insist(terminate_child(f.tree, "b")));
  f.settle();
  EXPECT_EQ(f.state(), "a:running b:undefined c:running");
  f.book.take();
  f.pass(1h);
  EXPECT_EQ(f.book.take(), lines{}) << "no try is left over";
  f.book.starts["b"].clear();
  EXPECT_TRUE(f.ask(restart_child(f.tree, "b")));
  EXPECT_EQ(f.state(), "a:running b:running c:running");
}

TEST(failed_restart, does_not_hold_up_a_stop) {
  for (const auto how : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    stuck_family f{how};
    f.stop();
    EXPECT_EQ(f.ended(), exit_reason::shutdown()) << to_string(how);
  }
}

TEST(failed_restart, succeeds_when_the_cause_is_gone) {
  for (const auto how : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    stuck_family f{how};
    f.book.starts["b"].clear();
    f.settle();
    EXPECT_EQ(f.state(), "a:running b:running c:running") << to_string(how);
  }
}

// ---- in groups

TEST(failed_restart, in_one_for_all_leaves_those_after_it_down_and_starts_all_over) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .limit = {.restarts = 3, .within = 5s},
                       .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.book.take();
  f.book.starts["b"] = {"fail"};
  f.crash("a");
  EXPECT_EQ(f.book.take(), (lines{"stop a error", "stop c shutdown", "stop b shutdown", "start a", "fail b",
                                  "stop a shutdown", "start a", "start b", "start c"}));
  EXPECT_EQ(f.state(), "a:running b:running c:running");
}

TEST(failed_restart, in_rest_for_one_does_not_touch_those_that_came_up) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one,
                       .limit = {.restarts = 3, .within = 5s},
                       .children = {f.child("a"), f.child("b"), f.child("c")}}));
  f.book.take();
  f.book.starts["b"] = {"fail"};
  f.crash("a");
  EXPECT_EQ(f.book.take(),
            (lines{"stop a error", "stop c shutdown", "stop b shutdown", "start a", "fail b", "start b", "start c"}));
}

TEST(failed_restart, in_a_group_counts_each_attempt) {
  for (const auto how : {strategy::one_for_all, strategy::rest_for_one}) {
    family f;
    ASSERT_TRUE(f.start({.strategy = how,
                         .limit = {.restarts = 3, .within = 5s},
                         .children = {f.child("a"), f.child("b"), f.child("c")}}));
    f.book.starts["b"] = always("fail");
    f.crash("a");
    EXPECT_EQ(std::ranges::count(f.book.lines, "fail b"), 3) << to_string(how);
    EXPECT_EQ(f.ended(), exit_reason::shutdown());
    EXPECT_EQ(f.rt().alive(f.who("a")), false);
  }
}

TEST(failed_restart, in_a_group_that_is_given_up_leaves_those_after_it_down) {
  for (const auto how : {strategy::one_for_all, strategy::rest_for_one}) {
    stuck_family f{how};
    EXPECT_TRUE(f.insist(terminate_child(f.tree, "b")));
    f.settle();
    EXPECT_EQ(f.state(), "a:running b:undefined c:undefined") << to_string(how);
    EXPECT_TRUE(f.ask(restart_child(f.tree, "c")));
    EXPECT_EQ(f.state(), "a:running b:undefined c:running");
    f.book.starts["b"].clear();
    f.crash("a");
    EXPECT_EQ(f.state(), "a:running b:running c:running") << "the next restart of the group takes them along";
  }
}

TEST(failed_restart, in_a_group_stops_a_sibling_again_that_was_started_by_hand) {
  for (const auto how : {strategy::one_for_all, strategy::rest_for_one}) {
    stuck_family f{how};
    EXPECT_TRUE(f.insist(restart_child(f.tree, "c")));
    const pid by_hand = f.who("c");
    EXPECT_TRUE(f.until([&] { return !f.rt().alive(by_hand); })) << to_string(how);
  }
}

TEST(failed_restart, is_over_when_the_death_of_another_brings_it_up) {
  stuck_family f{strategy::one_for_all, "c"};
  const auto tries = std::ranges::count(f.book.lines, "fail c");
  EXPECT_GT(tries, 3);
  f.book.starts["c"].clear();
  f.rt().kill(f.who("a"));
  f.settle();
  EXPECT_EQ(f.state(), "a:running b:running c:running");
  const pid a = f.who("a");
  f.pass(1h);
  EXPECT_EQ(f.who("a"), a) << "no try is left over";
}

TEST(failed_restart, does_not_keep_others_from_being_restarted) {
  stuck_family f;
  const pid before = f.who("a");
  f.rt().kill(before);
  EXPECT_TRUE(f.until([&] { return f.who("a") != before; }));
  EXPECT_EQ(f.insist(which_child(f.tree, "a"))->state, child_state::running);
  EXPECT_EQ(f.insist(which_child(f.tree, "b"))->state, child_state::restarting);
}

}  // namespace
