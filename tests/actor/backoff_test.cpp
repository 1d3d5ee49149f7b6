// Restarts of actors after a wait.
#include <set>

#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

constexpr std::chrono::milliseconds a_tick{10};
constexpr backoff doubling{.first = 1s, .cap = 8s, .reset_after = 1min};

/// "p" with that strategy and two children.
void family(stage& s, actor_strategy how) {
  s.root("p", {.strategy = std::move(how)});
  s.child("p", "a");
  s.child("p", "b");
  s.book.take();
}
/// How long "a" waits for its restart.
[[nodiscard]] std::chrono::nanoseconds wait_of(stage& s) {
  s.events.clear();
  s.fail("a");
  return s.events.empty() ? -1ns : s.events[0].after;
}

TEST(actor_backoff, waits_longer_each_time_up_to_the_cap) {
  stage s;
  family(s, exponential_backoff(doubling));
  for (const auto wait : {1s, 2s, 4s, 8s, 8s}) {
    s.fail("a");
    s.pass(wait - a_tick);
    EXPECT_EQ(s.book.take(), lines{}) << "still waiting after " << wait.count() << " s";
    s.pass(2 * a_tick);
    EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started"}));
  }
}

TEST(actor_backoff, has_no_limit_unless_one_is_given) {
  stage s;
  family(s, exponential_backoff({.first = 1ms, .cap = 1ms}));
  for (int i = 0; i < 50; ++i) {
    s.fail("a");
    s.pass(a_tick);
  }
  EXPECT_EQ(s.said("a"), 0);
  stage limited;
  family(limited, exponential_backoff({.first = 1ms, .cap = 1ms}, {.restarts = 2, .within = 1h}));
  for (int i = 0; i < 3; ++i) {
    limited.fail("a");
    limited.pass(a_tick);
  }
  EXPECT_FALSE(limited.rt().alive(limited.who("a"))) << "at once, not after a wait";
}

TEST(actor_backoff, doubles_whatever_curve_is_said_but_one_for_one_takes_any) {
  stage s;
  family(s, exponential_backoff({.curve = backoff_curve::linear, .first = 1s}));
  stage line;
  family(line, one_for_one({.limit = unlimited, .wait = backoff{.curve = backoff_curve::linear, .first = 1s}}));
  for (const auto& [doubled, linear] : {std::pair{1s, 1s}, {2s, 2s}, {4s, 3s}, {8s, 4s}}) {
    EXPECT_EQ(wait_of(s), doubled);
    s.pass(doubled + a_tick);
    EXPECT_EQ(wait_of(line), linear);
    line.pass(linear + a_tick);
  }
}

TEST(actor_backoff, starts_over_after_a_healthy_run) {
  stage s;
  family(s, exponential_backoff(doubling));
  for (const auto wait : {1s, 2s, 4s}) {
    EXPECT_EQ(wait_of(s), wait);
    s.pass(wait + a_tick);
  }
  s.pass(50s);
  EXPECT_EQ(wait_of(s), 8s) << "that was too short to be healthy";
  s.pass(8s + 1min + a_tick);
  EXPECT_EQ(wait_of(s), 1s);
}

TEST(actor_backoff, does_not_take_its_own_wait_for_a_healthy_run) {
  stage s;
  const backoff slow{.first = 1min, .cap = 1h, .reset_after = 30s};
  family(s, exponential_backoff(slow));
  EXPECT_EQ(wait_of(s), 1min);
  s.pass(1min + a_tick);
  EXPECT_EQ(wait_of(s), 2min);
  s.pass(2min + a_tick);
  EXPECT_EQ(wait_of(s), 4min);
}

TEST(actor_backoff, of_a_guardian_does_not_take_its_own_wait_for_a_healthy_run) {
  stage s;
  s.root("a", {.guardian = exponential_backoff({.first = 1min, .cap = 1h, .reset_after = 30s})});
  for (const auto wait : {1min, 2min, 4min}) {
    EXPECT_EQ(wait_of(s), wait);
    s.book.take();
    s.pass(wait - a_tick);
    EXPECT_EQ(s.book.take(), lines{});
    s.pass(2 * a_tick);
    EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started"}));
  }
}

TEST(actor_backoff, keeps_the_mail_meanwhile) {
  stage s;
  family(s, exponential_backoff(doubling));
  s.fail("a");
  s.say("a", "one");
  s.pass(500ms);
  s.say("a", "two");
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(1s);
  EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started", "a: one", "a: two"}));
}

TEST(actor_backoff, holds_up_neither_siblings_nor_the_parent) {
  stage s;
  family(s, exponential_backoff({.first = 1h, .cap = 1h}));
  s.fail("a");
  s.say("b", "hello");
  s.say("p", "hello");
  EXPECT_EQ(s.book.take(), (lines{"b: hello", "p: hello"}));
  s.stop("p");
  EXPECT_EQ(s.end_of("p"), "normal");
  EXPECT_EQ(s.end_of("a"), "shutdown");
}

TEST(actor_backoff, is_called_off_by_the_restart_of_the_parent) {
  stage s;
  s.book.always["p started"] = spawns("a");
  s.root("p", {.strategy = exponential_backoff(doubling)});
  s.fail("a");
  s.fail("p");
  EXPECT_EQ(s.said("a"), 0) << "another one";
  s.book.take();
  s.pass(1h);
  EXPECT_EQ(s.book.take(), lines{}) << "the wait of the former one does not touch it";
}

TEST(actor_backoff, ends_while_the_parent_is_suspended) {
  stage s;
  s.root("g", {.strategy = one_for_one({.decide = [](const auto&) { return directive::resume; }})});
  s.child("g", "p", {.strategy = exponential_backoff(doubling)});
  s.child("p", "a");
  s.fail("a");
  s.stick("g", 10s);
  s.fail("p");
  s.pass(5s);
  s.book.take();
  s.say("a", "hello");
  EXPECT_EQ(s.book.take(), lines{}) << "all below p is suspended with it";
  s.pass(10s);
  EXPECT_EQ(s.said("a"), 1);
  EXPECT_EQ(s.said("p"), 0);
}

TEST(actor_backoff, whose_start_fails_waits_again_and_longer) {
  stage s;
  family(s, exponential_backoff(doubling));
  s.book.next["a made"] = {throws(), throws()};
  s.fail("a");
  s.pass(1s + 2s + 4s - a_tick);
  EXPECT_EQ(s.book.take(), (lines{"a restarting"}));
  s.pass(2 * a_tick);
  EXPECT_EQ(s.book.take(), (lines{"a started"}));
}

TEST(actor_backoff, of_all_restarts_the_others_with_it) {
  stage s;
  family(s, all_for_one({.wait = doubling}));
  s.fail("a");
  s.pass(1s - a_tick);
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(2 * a_tick);
  const lines log = s.book.take();
  EXPECT_EQ(log.size(), 4U);
  EXPECT_LT(place(log, "b restarting"), place(log, "b started"));
  EXPECT_EQ(s.said("b"), 0);
}

TEST(actor_backoff, of_all_with_two_failures_at_once_leaves_nobody_waiting) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, all_for_one({.wait = doubling}));
    s.tell("a", throws());
    s.tell("b", throws());
    s.settle();
    s.pass(1min);
    for (const char* name : {"a", "b"}) {
      EXPECT_GE(std::ranges::count(s.book.log, std::string{name} + " restarting"), 1) << name;
      EXPECT_EQ(s.said(name), 0) << name;
    }
  });
}

TEST(actor_backoff, of_all_does_not_hold_up_a_stop_or_a_poison_of_the_parent) {
  for (const bool poisoned : {false, true}) {
    stage s;
    family(s, all_for_one({.wait = backoff{.first = 1h, .cap = 1h}}));
    s.fail("a");
    if (poisoned)
      poison_actor(s.rt(), s.who("p"));
    else
      stop_actor(s.rt(), s.who("p"));
    s.settle();
    EXPECT_EQ(s.end_of("p"), "normal") << (poisoned ? "poisoned" : "stopped");
    EXPECT_FALSE(s.rt().alive(s.who("b")));
  }
}

TEST(actor_backoff, of_all_is_over_for_the_others_when_the_one_that_failed_is_stopped) {
  stage s;
  family(s, all_for_one({.wait = doubling}));
  s.fail("a");
  s.stop("a");
  EXPECT_EQ(s.end_of("a"), "normal");
  s.book.take();
  s.pass(1min);
  EXPECT_EQ(s.book.take(), (lines{"b restarting", "b started"})) << "as it was decided";
  EXPECT_EQ(s.said("b"), 0);
}

TEST(actor_backoff, with_jitter_stays_within_its_share) {
  std::set<std::chrono::nanoseconds> seen;
  in_many_orders([&](std::uint64_t seed) {
    stage s{seed};
    family(s, exponential_backoff({.first = 10s, .cap = 1min, .jitter = 0.5}));
    const auto wait = wait_of(s);
    EXPECT_GE(wait, 5s);
    EXPECT_LE(wait, 15s);
    seen.insert(wait);
    s.pass(15s + a_tick);
    EXPECT_EQ(s.said("a"), 0);
  });
  EXPECT_GT(seen.size(), 10U) << "not all alike";
}

TEST(actor_backoff, is_for_restarts_only) {
  stage s;
  family(s, one_for_one({.decide = decide_by(directive::restart, on<int>(directive::resume),
                                             on<std::logic_error>(directive::stop)),
                         .wait = backoff{.first = 1h, .cap = 1h}}));
  s.say("a", "one");
  s.act("a", [](player&, context&) { throw 1; });
  EXPECT_EQ(s.said("a"), 1) << "goes on at once";
  s.act("a", [](player&, context&) { throw std::logic_error{"hopeless"}; });
  EXPECT_EQ(s.ended("a")->text(), "hopeless");
  s.fail("b");
  EXPECT_EQ(s.said("b"), -1);
}

TEST(actor_backoff, does_not_round_to_seconds) {
  stage s;
  family(s, exponential_backoff({.first = 250ms, .cap = 1min}));
  for (const auto wait : {250ms, 500ms, 1000ms, 2000ms}) {
    EXPECT_EQ(wait_of(s), wait);
    s.pass(wait - a_tick);
    EXPECT_EQ(s.said("a"), -1);
    s.pass(2 * a_tick);
    EXPECT_EQ(s.said("a"), 0);
  }
}

}  // namespace
