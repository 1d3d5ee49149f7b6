// The steps by which everything stops a process, for every combination of settings.
#include <gtest/gtest.h>

#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/sim/world.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>

#include "line_keeper.hpp"

namespace {

using namespace coppice;
using namespace coppice::detail;
using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds without_limit = std::chrono::nanoseconds::max();

stop_rung nth(const stop_limits& limits, int n) {
  stop_ladder ladder;
  for (int i = 1; i < n; ++i) (void)ladder.next(limits);
  return ladder.next(limits);
}

TEST(stop_ladder, asks_waits_as_long_as_the_shutdown_says_and_kills) {
  for (const auto abandon : {std::optional<std::chrono::nanoseconds>{}, std::optional<std::chrono::nanoseconds>{3s}}) {
    const stop_limits limits{.how = 2s, .abandon_after = abandon};
    EXPECT_EQ(nth(limits, 1), (stop_rung{stop_step::ask, 2s}));
    EXPECT_EQ(nth(limits, 2), (stop_rung{stop_step::kill, abandon.value_or(without_limit)}));
  }
}

TEST(stop_ladder, kills_at_once_when_that_is_what_the_shutdown_says) {
  for (const auto abandon : {std::optional<std::chrono::nanoseconds>{}, std::optional<std::chrono::nanoseconds>{3s}})
    EXPECT_EQ(nth({shutdown::brutal_kill(), abandon}, 1),
              (stop_rung{stop_step::kill, abandon.value_or(without_limit)}));
}

TEST(stop_ladder, asks_and_waits_without_limit_when_the_shutdown_is_infinite) {
  for (const auto abandon : {std::optional<std::chrono::nanoseconds>{}, std::optional<std::chrono::nanoseconds>{3s}})
    EXPECT_EQ(nth({shutdown::infinity(), abandon}, 1), (stop_rung{stop_step::ask, without_limit}));
}

TEST(stop_ladder, asks_and_kills_right_after_it_when_the_time_is_zero) {
  EXPECT_EQ(nth({0s}, 1), (stop_rung{stop_step::ask, 0s}));
  EXPECT_EQ(nth({0s}, 2), (stop_rung{stop_step::kill, without_limit}));
}

TEST(stop_ladder, abandons_after_a_kill_and_tries_that_again_and_again) {
  for (int n = 3; n < 6; ++n) EXPECT_EQ(nth({2s, 3s}, n), (stop_rung{stop_step::abandon, 3s}));
  for (int n = 2; n < 6; ++n) EXPECT_EQ(nth({shutdown::brutal_kill(), 3s}, n), (stop_rung{stop_step::abandon, 3s}));
}

TEST(stop_ladder, knows_the_last_step_it_took) {
  stop_ladder ladder;
  const stop_limits limits{1s, 1s};
  EXPECT_EQ(ladder.taken(), std::nullopt);
  for (const stop_step step : {stop_step::ask, stop_step::kill, stop_step::abandon, stop_step::abandon}) {
    EXPECT_EQ(ladder.next(limits).what, step);
    EXPECT_EQ(ladder.taken(), step);
  }
}

TEST(stop_ladder, knows_how_long_it_has_waited_after_the_last_step) {
  constexpr stop_limits limits{.how = 2s, .abandon_after = 3s};
  stop_ladder ladder;
  EXPECT_EQ(ladder.waited(limits), std::nullopt);
  for (const auto wait : {2s, 3s, 3s, 3s}) {
    EXPECT_EQ(ladder.next(limits).wait, wait);
    EXPECT_EQ(ladder.waited(limits), wait);
  }
}

TEST(stop_ladder, is_known_at_compile_time) {
  static_assert(sizeof(stop_ladder) == 1);
  static_assert([] {
    stop_ladder ladder;
    return ladder.next({1s, 2s}) == stop_rung{stop_step::ask, 1s} &&
           ladder.next({1s, 2s}) == stop_rung{stop_step::kill, 2s} &&
           ladder.next({1s, 2s}) == stop_rung{stop_step::abandon, 2s};
  }());
}

TEST(stop_ladder, refuses_to_go_on_after_a_wait_without_limit) {
  EXPECT_THROW((void)nth({shutdown::infinity(), 1s}, 2), broken_invariant);
  EXPECT_THROW((void)nth({1s}, 3), broken_invariant);
  EXPECT_THROW((void)nth({shutdown::brutal_kill()}, 2), broken_invariant);
}

TEST(stop_ladder, a_deadline_never_overflows) {
  constexpr time_point now{1000s};
  EXPECT_EQ(deadline_after(now, 5s), now + 5s);
  EXPECT_EQ(deadline_after(now, without_limit), time_point::max());
  EXPECT_EQ(deadline_after(now, without_limit - 1ns), time_point::max());
}

TEST(stop_step, has_a_name) {
  EXPECT_EQ(name_of(stop_step::ask), "ask");
  EXPECT_EQ(name_of(stop_step::kill), "kill");
  EXPECT_EQ(name_of(stop_step::abandon), "abandon");
}

// ---- the steps carried out

struct poke {};

task<> idles(self& me, bool traps) {
  if (traps) me.trap_exits();
  for (;;) {
    const auto m = co_await me.receive<poke, exited>();
    (void)m;
  }
}

struct stopped {
  exit_reason reason;
  bool abandoned = false;
  std::chrono::nanoseconds took{0};
};

task<> stops_its_child(self& me, bool traps, shutdown how, std::optional<std::chrono::nanoseconds> abandon_after,
                       pid* child, std::optional<stopped>* into) {
  me.trap_exits();
  const pid who = *child = me.spawn_link(idles, traps);
  co_await me.receive<poke>();
  const time_point begin = me.now();
  process_stop stop{{.by = me.id(), .who = who, .what = "child", .name = "c"}, how, abandon_after};
  std::optional<process_end> end;
  while (!end) {
    const std::chrono::nanoseconds wait = stop.advance(me.host());
    end = co_await until_ended(who, {}, wait);
  }
  EXPECT_EQ(end->who, who);
  *into = stopped{.reason = end->reason, .abandoned = stop.abandoned(), .took = me.now() - begin};
}

/// A process that is stopped by another one, and what the log says about it.
struct stop_rig {
  std::shared_ptr<line_keeper> log = std::make_shared<line_keeper>();
  sim::world world{1};
  sim::node& node = world.add_node({}, {.level = log_level::debug, .log = log});
  pid who{};
  std::optional<stopped> result;

  void stop(bool traps, bool stuck, shutdown how, std::optional<std::chrono::nanoseconds> abandon_after) {
    const pid parent = node.rt().spawn(stops_its_child, traps, how, abandon_after, &who, &result);
    world.run_for(1s);
    if (stuck) {
      node.stick(who, 1h);
      node.rt().send(who, poke{});
      world.run_for(1s);
    }
    log->lines.clear();
    node.rt().send(parent, poke{});
    world.run_for(1min);
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const std::string& line : log->lines)
      if (line.find("child 'c'") != std::string::npos) out.push_back(line);
    return out;
  }
};
using lines = std::vector<std::string>;

TEST(process_stop, of_a_process_that_ends_when_asked_takes_one_step) {
  stop_rig r;
  r.stop(false, false, 2s, 3s);
  ASSERT_TRUE(r.result);
  EXPECT_EQ(r.result->reason, exit_reason::shutdown());
  EXPECT_FALSE(r.result->abandoned);
  EXPECT_EQ(r.lines(), (lines{"debug child 'c' was asked to stop"}));
}

TEST(process_stop, of_a_process_that_does_not_end_when_asked_kills_it_at_the_deadline) {
  stop_rig r;
  r.stop(true, false, 2s, 3s);
  ASSERT_TRUE(r.result);
  EXPECT_EQ(r.result->reason, exit_reason::killed());
  EXPECT_FALSE(r.result->abandoned);
  EXPECT_GE(r.result->took, 2s);
  EXPECT_LT(r.result->took, 3s);
  EXPECT_EQ(r.lines(),
            (lines{"debug child 'c' was asked to stop", "warning child 'c' did not stop within 2s and was killed"}));
}

TEST(process_stop, kills_at_once_when_it_shall) {
  stop_rig r;
  r.stop(true, false, shutdown::brutal_kill(), 3s);
  ASSERT_TRUE(r.result);
  EXPECT_EQ(r.result->reason, exit_reason::killed());
  EXPECT_LT(r.result->took, 1s);
  EXPECT_EQ(r.lines(), (lines{"debug child 'c' was killed"}));
}

TEST(process_stop, of_a_process_that_is_stuck_abandons_it) {
  stop_rig r;
  r.stop(false, true, 2s, 3s);
  ASSERT_TRUE(r.result);
  EXPECT_EQ(r.result->reason, exit_reason::abandoned());
  EXPECT_TRUE(r.result->abandoned);
  EXPECT_GE(r.result->took, 5s);
  EXPECT_LT(r.result->took, 10s);
  ASSERT_EQ(r.lines().size(), 3U);
  EXPECT_EQ(r.lines()[2],
            "error child 'c' did not end within 3s after it was killed, because its code does not return; it was "
            "abandoned");
}

TEST(process_stop, of_a_stuck_process_that_may_not_be_abandoned_waits) {
  stop_rig r;
  r.stop(false, true, 2s, std::nullopt);
  EXPECT_FALSE(r.result);
  r.world.run_for(2h);
  ASSERT_TRUE(r.result);
  EXPECT_FALSE(r.result->abandoned);
}

}  // namespace
