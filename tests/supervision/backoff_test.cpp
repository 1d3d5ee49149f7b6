// Restarts that wait.
#include <gtest/gtest.h>

#include <set>

#include "family.hpp"

namespace {

using namespace coppice;

constexpr restart_limit generous{.restarts = 100, .within = 1h};
constexpr backoff doubling{.first = 1s, .cap = 8s, .reset_after = 1min};

TEST(backoff_restart, waits_longer_each_time_up_to_the_cap) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a", {.backoff = doubling})}}));
  for (const auto wait : {1s, 2s, 4s, 8s, 8s}) {
    f.book.take();
    f.crash("a");
    EXPECT_EQ(f.state(), "a:restarting");
    f.pass(wait - a_tick);
    EXPECT_EQ(f.book.take(), (lines{"stop a error"})) << "still waiting after " << wait.count() << " s";
    f.pass(2 * a_tick);
    EXPECT_EQ(f.book.take(), (lines{"start a"}));
  }
}

TEST(backoff_restart, starts_over_after_a_healthy_run) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a", {.backoff = doubling})}}));
  for (int i = 0; i < 3; ++i) {
    f.crash("a");
    f.pass(8s + a_tick);
  }
  f.pass(1min);
  f.crash("a");
  f.pass(1s + a_tick);
  EXPECT_EQ(f.state(), "a:running") << "one second again";
  f.pass(50s);
  f.crash("a");
  f.pass(1s + a_tick);
  EXPECT_EQ(f.state(), "a:restarting") << "that was too short to be healthy";
}

TEST(backoff_restart, shows_how_long_it_still_waits) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.backoff = doubling})}}));
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->waits, 0s);
  f.crash("a");
  f.pass(400ms);
  const auto info = f.ask(which_child(f.tree, "a"));
  EXPECT_EQ(info->state, child_state::restarting);
  EXPECT_EQ(info->who, pid{});
  EXPECT_LE(info->waits, 600ms + a_tick);
  EXPECT_GE(info->waits, 600ms - a_tick);
}

TEST(backoff_restart, does_not_hold_up_siblings_or_calls) {
  family f;
  const backoff long_wait{.first = 1h, .cap = 1h};
  ASSERT_TRUE(
      f.start({.limit = generous, .children = {f.child("a", {.backoff = long_wait}), f.child("b"), f.child("c")}}));
  f.crash("a");
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "start b"}));
  EXPECT_TRUE(f.ask(start_child(f.tree, f.child("d"))));
  EXPECT_EQ(f.ask(count_children(f.tree)), (child_counts{.specs = 4, .active = 3, .supervisors = 0, .workers = 4}));
  EXPECT_EQ(f.ask(restart_child(f.tree, "a")).error().code(), supervision_errc::restarting);
  EXPECT_EQ(f.ask(delete_child(f.tree, "a")).error().code(), supervision_errc::restarting);
  EXPECT_EQ(f.ask(start_child(f.tree, f.child("a"))).error().code(), supervision_errc::already_present);
}

TEST(backoff_restart, does_not_hold_up_a_stop) {
  family f;
  const backoff long_wait{.first = 1h, .cap = 1h};
  ASSERT_TRUE(f.start({.children = {f.child("a", {.backoff = long_wait}), f.child("b")}}));
  f.crash("a");
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  f.book.take();
  f.pass(2h);
  EXPECT_EQ(f.book.take(), lines{});
}

TEST(backoff_restart, is_called_off_by_terminate_child) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.backoff = doubling})}}));
  f.crash("a");
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_EQ(f.state(), "a:undefined");
  f.pass(1h);
  EXPECT_EQ(f.state(), "a:undefined");
  EXPECT_TRUE(f.ask(delete_child(f.tree, "a")));
  EXPECT_TRUE(f.ask(start_child(f.tree, f.child("a", {.backoff = doubling}))));
  const pid next = f.who("a");
  f.pass(1h);
  EXPECT_EQ(f.who("a"), next) << "the wait of the former one does not touch it";
}

TEST(retry_now_call, ends_the_wait) {
  family f;
  const backoff long_wait{.first = 1h, .cap = 1h};
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a", {.backoff = long_wait})}}));
  EXPECT_EQ(f.ask(retry_now(f.tree, "a")).error().code(), errc::invalid);
  f.crash("a");
  EXPECT_TRUE(f.ask(retry_now(f.tree, "a")));
  EXPECT_EQ(f.state(), "a:running");
  const pid next = f.who("a");
  EXPECT_EQ(f.ask(retry_now(f.tree, "a")).error().code(), errc::invalid);
  f.pass(2h);
  EXPECT_EQ(f.who("a"), next) << "the old wait is over";
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 1U);
}

TEST(retry_now_call, tells_that_the_start_failed) {
  family f;
  const backoff long_wait{.first = 1h, .cap = 1h};
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .limit = {.restarts = 2, .within = 1min},
                       .children = {f.child("a"), f.child("b", {.backoff = long_wait})}}));
  f.crash("b");
  f.book.starts["b"] = {"fail"};
  const auto failed = f.ask(retry_now(f.tree, "b"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), (error{errc::start_failed, "child 'b' could not be started"}));
  EXPECT_EQ(failed.error().root().text(), "error: failed");
  EXPECT_EQ(f.state(), "a:running b:restarting");
  EXPECT_TRUE(f.ask(retry_now(f.tree, "b")));
  EXPECT_EQ(f.state(), "a:running b:running");
}

TEST(backoff_restart, whose_start_fails_waits_again_and_longer) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a", {.backoff = doubling}), f.child("b")}}));
  f.book.starts["a"] = {"fail", "throw"};
  f.crash("a");
  f.book.take();
  f.pass(1s + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"fail a"}));
  EXPECT_EQ(f.state(), "a:restarting b:running");
  f.pass(2s + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"throw a"}));
  f.pass(4s - 2 * a_tick);
  EXPECT_EQ(f.book.take(), lines{});
  f.pass(4 * a_tick);
  EXPECT_EQ(f.book.take(), (lines{"start a"}));
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 3U);
}

TEST(backoff_restart, counts_towards_the_limit) {
  family f;
  ASSERT_TRUE(f.start(
      {.limit = {.restarts = 2, .within = 1h}, .children = {f.child("a", {.backoff = doubling}), f.child("b")}}));
  f.crash("a");
  f.pass(1s + a_tick);
  f.crash("a");
  f.pass(2s + a_tick);
  EXPECT_EQ(f.state(), "a:running b:running");
  f.crash("a");
  EXPECT_EQ(f.ended(), exit_reason::shutdown()) << "at once, not after a wait";
}

TEST(backoff_restart, that_fails_to_start_counts_towards_the_limit) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 3, .within = 1h}, .children = {f.child("a", {.backoff = doubling})}}));
  f.book.starts["a"] = always("fail");
  f.crash("a");
  f.pass(1min);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_EQ(std::ranges::count(f.book.lines, "fail a"), 3);
}

TEST(backoff_restart, of_a_transient_child_that_is_done_does_not_come) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.restart = restart::transient, .backoff = doubling})}}));
  f.finish("a", exit_reason::normal());
  EXPECT_EQ(f.state(), "a:undefined");
  f.pass(1h);
  EXPECT_EQ(f.state(), "a:undefined");
}

TEST(backoff_restart, in_a_group_stops_the_others_at_once_and_starts_them_with_it) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .children = {f.child("a"), f.child("b", {.backoff = doubling}), f.child("c")}}));
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop c shutdown", "stop a shutdown"}));
  EXPECT_EQ(f.state(), "a:restarting b:restarting c:restarting");
  EXPECT_GT(f.ask(which_child(f.tree, "c"))->waits, 0s);
  f.pass(1s + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"start a", "start b", "start c"}));
}

TEST(backoff_restart, in_rest_for_one_leaves_those_before_it_running) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one,
                       .limit = generous,
                       .children = {f.child("a"), f.child("b", {.backoff = doubling}), f.child("c")}}));
  f.book.take();
  f.crash("b");
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop c shutdown"}));
  f.crash("a");
  EXPECT_EQ(f.book.take(), (lines{"stop a error", "start a", "start b", "start c"}))
      << "the death of an earlier one takes all along";
  const pid b = f.who("b");
  f.pass(1min);
  EXPECT_EQ(f.who("b"), b) << "and its wait is over";
  EXPECT_EQ(f.state(), "a:running b:running c:running");
}

// ---- a group that waits

TEST(waiting_group, is_started_even_if_the_strategy_changes_meanwhile) {
  for (const auto before : {strategy::one_for_all, strategy::rest_for_one})
    for (const auto after : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
      family f;
      const auto spec = [&](strategy how) {
        return supervisor_spec{.strategy = how,
                               .limit = generous,
                               .children = {f.child("a"), f.child("b", {.backoff = doubling}), f.child("c")}};
      };
      ASSERT_TRUE(f.start(spec(before)));
      f.crash("b");
      EXPECT_TRUE(f.ask(upgrade(f.tree, spec(after))));
      f.pass(1s + a_tick);
      EXPECT_EQ(f.state(), "a:running b:running c:running") << to_string(before) << " to " << to_string(after);
    }
}

TEST(waiting_group, under_a_new_strategy_does_not_wait_for_one_that_fails_to_start) {
  family f;
  const auto spec = [&](strategy how) {
    return supervisor_spec{
        .strategy = how,
        .limit = generous,
        .children = {f.child("a", {.backoff = doubling}), f.child("b", {.backoff = doubling}), f.child("c")}};
  };
  ASSERT_TRUE(f.start(spec(strategy::one_for_all)));
  f.crash("b");
  EXPECT_TRUE(f.ask(upgrade(f.tree, spec(strategy::one_for_one))));
  f.book.starts["a"] = {"fail"};
  f.pass(1s + a_tick);
  EXPECT_EQ(f.state(), "a:restarting b:running c:running");
  f.pass(2s);
  EXPECT_EQ(f.state(), "a:running b:running c:running");
}

TEST(waiting_group, waits_for_another_child_that_ends_meanwhile) {
  family f;
  const auto spec = [&](strategy how) {
    return supervisor_spec{.strategy = how,
                           .limit = generous,
                           .children = {f.child("a"), f.child("b"), f.child("c", {.backoff = doubling})}};
  };
  ASSERT_TRUE(f.start(spec(strategy::one_for_all)));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "b")));
  f.crash("c");
  EXPECT_EQ(f.state(), "a:restarting b:undefined c:restarting") << "b was stopped by a call before";
  EXPECT_TRUE(f.ask(restart_child(f.tree, "b")));
  EXPECT_TRUE(f.ask(upgrade(f.tree, spec(strategy::rest_for_one))));
  f.crash("b");
  EXPECT_EQ(f.state(), "a:running b:running c:running") << "a waited for c, which was restarted with b";
}

TEST(waiting_group, keeps_the_supervisor_from_ending_for_lack_of_significant_children) {
  family f;
  const child_options significant{.restart = restart::transient, .significant = true};
  ASSERT_TRUE(f.start(
      {.strategy = strategy::rest_for_one,
       .limit = generous,
       .auto_shutdown = auto_shutdown::all_significant,
       .children = {f.child("a", significant), f.child("b", {.backoff = doubling}), f.child("c", significant)}}));
  f.crash("b");
  f.finish("a", exit_reason::normal());
  EXPECT_FALSE(f.ended()) << "c has not ended by itself";
  f.pass(1s + a_tick);
  EXPECT_EQ(f.state(), "a:undefined b:running c:running");
  f.finish("c", exit_reason::normal());
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(waiting_group, is_started_when_the_child_it_waits_for_is_terminated) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .limit = generous,
                       .children = {f.child("a"), f.child("b", {.backoff = doubling}), f.child("c")}}));
  f.crash("b");
  f.book.take();
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "b")));
  EXPECT_EQ(f.book.take(), (lines{"start a", "start c"}));
  EXPECT_EQ(f.state(), "a:running b:undefined c:running");
  f.pass(1h);
  EXPECT_EQ(f.state(), "a:running b:undefined c:running");
}

TEST(waiting_group, includes_a_child_with_a_wait_of_its_own) {
  family f;
  ASSERT_TRUE(
      f.start({.strategy = strategy::rest_for_one,
               .limit = generous,
               .children = {f.child("a", {.backoff = doubling}), f.child("b", {.backoff = doubling}), f.child("c")}}));
  f.crash("b");
  f.crash("a");
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_EQ(f.state(), "a:undefined b:running c:running");
}

TEST(waiting_group, waits_on_when_a_start_fails) {
  family f;
  ASSERT_TRUE(
      f.start({.strategy = strategy::one_for_all,
               .limit = generous,
               .children = {f.child("a", {.backoff = doubling}), f.child("b", {.backoff = doubling}), f.child("c")}}));
  f.crash("b");
  f.book.starts["a"] = {"fail"};
  f.pass(1s + a_tick);
  EXPECT_EQ(f.state(), "a:restarting b:restarting c:restarting") << "b and c wait for a now";
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_EQ(f.state(), "a:undefined b:running c:running");
}

TEST(waiting_group, gives_up_like_any_child_if_one_fails_to_start_too_often) {
  family f;
  const auto spec = [&](strategy how) {
    return supervisor_spec{.strategy = how,
                           .limit = {.restarts = 1, .within = 1h},
                           .children = {f.child("a", {.backoff = doubling}), f.child("b", {.backoff = doubling})}};
  };
  ASSERT_TRUE(f.start(spec(strategy::one_for_all)));
  f.crash("b");
  EXPECT_TRUE(f.ask(upgrade(f.tree, spec(strategy::one_for_one))));
  f.book.starts["a"] = {"fail"};
  f.book.take();
  f.pass(1s + a_tick);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_EQ(f.book.take(), (lines{"fail a"})) << "b was not started for nothing";
}

TEST(waiting_group, can_lose_a_member_by_a_call) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::rest_for_one,
                       .limit = generous,
                       .children = {f.child("a", {.backoff = doubling}), f.child("b"), f.child("c")}}));
  f.crash("a");
  EXPECT_EQ(f.ask(restart_child(f.tree, "b")).error().code(), supervision_errc::restarting);
  EXPECT_EQ(f.ask(retry_now(f.tree, "b")).error().text(),
            "child 'b' is started together with 'a'; call retry_now for that one");
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "b")));
  EXPECT_TRUE(f.ask(delete_child(f.tree, "b")));
  EXPECT_TRUE(f.ask(retry_now(f.tree, "a")));
  EXPECT_EQ(f.state(), "a:running c:running");
}

TEST(backoff_restart, with_jitter_stays_within_its_share) {
  const backoff jittery{.curve = backoff_curve::constant, .first = 10s, .cap = 1min, .jitter = 0.5};
  std::set<std::chrono::nanoseconds> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    family f{seed};
    ASSERT_TRUE(f.start({.children = {f.child("a", {.backoff = jittery})}}));
    f.crash("a");
    const auto waits = f.ask(which_child(f.tree, "a"))->waits;
    EXPECT_GE(waits, 5s - a_tick);
    EXPECT_LE(waits, 15s + a_tick);
    seen.insert(waits);
    f.pass(15s + a_tick);
    EXPECT_EQ(f.state(), "a:running");
  }
  EXPECT_GT(seen.size(), 10U) << "not all alike";
}

}  // namespace
