// Limit, then back off: what supervisors and actors ask before a restart.
#include <gtest/gtest.h>

#include <coppice/spec/next_restart.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

/// Counts how often it is asked.
class counting_random final : public random_source {
 public:
  std::uint64_t next() override {
    ++asked;
    return 0;
  }
  int asked = 0;
};

struct next_restart_of : testing::Test {
  next_restart fail_at(std::chrono::nanoseconds at, std::optional<std::chrono::nanoseconds> uptime = 0s) {
    return limit_then_back_off(rules, window, failures, time_point{1000s} + at, uptime, random);
  }
  backoff wait{.curve = backoff_curve::exponential, .first = 1s, .cap = 1h, .reset_after = 10s};
  restart_rules rules{.limit = {.restarts = 2, .within = 5s}};
  restart_window window;
  std::uint32_t failures = 0;
  counting_random random;
};

constexpr next_restart at_once{.allowed = true};
constexpr next_restart refused{.allowed = false};
constexpr next_restart after(std::chrono::nanoseconds wait) { return {.allowed = true, .wait = wait}; }

TEST_F(next_restart_of, a_child_without_backoff_follows_at_once_until_the_limit_is_reached) {
  EXPECT_EQ(fail_at(0s), at_once);
  EXPECT_EQ(fail_at(1s), at_once);
  EXPECT_EQ(fail_at(2s), refused);
  EXPECT_EQ(failures, 0U);
}

TEST_F(next_restart_of, a_child_with_backoff_waits_longer_with_each_failure_in_a_row) {
  rules = {.limit = {.restarts = 9, .within = 5s}, .backoff = &wait};
  EXPECT_EQ(fail_at(0s), after(1s));
  EXPECT_EQ(fail_at(2s), after(2s));
  EXPECT_EQ(fail_at(5s), after(4s));
}

TEST_F(next_restart_of, a_child_that_ran_for_long_enough_waits_as_at_first) {
  rules = {.limit = {.restarts = 9, .within = 5s}, .backoff = &wait};
  EXPECT_EQ(fail_at(0s), after(1s));
  EXPECT_EQ(fail_at(10s, 10s - 1ns), after(2s));
  EXPECT_EQ(fail_at(20s, 10s), after(1s));
}

TEST_F(next_restart_of, a_child_that_could_not_be_started_has_not_run) {
  wait.reset_after = 0s;
  rules = {.limit = {.restarts = 9, .within = 5s}, .backoff = &wait};
  EXPECT_EQ(fail_at(0s, std::nullopt), after(1s));
  EXPECT_EQ(fail_at(1s, std::nullopt), after(2s));
  EXPECT_EQ(fail_at(2s, 0s), after(1s));
}

TEST_F(next_restart_of, a_child_over_the_limit_does_not_wait_and_counts_no_failure) {
  rules = {.limit = {.restarts = 1, .within = 5s}, .backoff = &wait};
  EXPECT_EQ(fail_at(0s), after(1s));
  EXPECT_EQ(fail_at(1s), refused);
  EXPECT_EQ(failures, 1U);
}

TEST_F(next_restart_of, a_child_without_limit_is_not_counted) {
  rules.limit.restarts = unlimited_restarts;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(fail_at(0s), at_once);
  EXPECT_EQ(window.size(), 0U);
}

TEST_F(next_restart_of, a_child_takes_a_random_number_only_for_jitter) {
  rules = {.limit = {.restarts = 9, .within = 5s}, .backoff = &wait};
  (void)fail_at(0s);
  EXPECT_EQ(random.asked, 0);
  wait.jitter = 0.5;
  EXPECT_EQ(fail_at(1s), after(1s)) << "the smallest random number makes the wait of 2 s half as long";
  EXPECT_EQ(random.asked, 1);
}

TEST_F(next_restart_of, a_negative_limit_is_a_defect) {
  rules.limit.restarts = -1;
  EXPECT_THROW((void)fail_at(0s), broken_invariant);
}

TEST_F(next_restart_of, time_that_runs_backwards_is_a_defect) {
  (void)fail_at(2s);
  EXPECT_THROW((void)fail_at(1s), broken_invariant);
}

}  // namespace
