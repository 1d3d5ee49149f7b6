// How long a supervisor waits before a restart.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <coppice/sim/world.hpp>
#include <coppice/spec/backoff.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using waits = std::vector<std::chrono::nanoseconds>;

TEST(backoff, constant_waits_the_same_each_time) {
  const backoff b{.curve = backoff_curve::constant, .first = 1s};
  EXPECT_EQ(next_waits(b, 4), (waits{1s, 1s, 1s, 1s}));
}

TEST(backoff, linear_waits_one_more_each_time) {
  const backoff b{.curve = backoff_curve::linear, .first = 2s};
  EXPECT_EQ(next_waits(b, 5), (waits{2s, 4s, 6s, 8s, 10s}));
}

TEST(backoff, exponential_doubles) {
  const backoff b{.curve = backoff_curve::exponential, .first = 100ms};
  EXPECT_EQ(next_waits(b, 6), (waits{100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms}));
}

TEST(backoff, fibonacci_adds_the_last_two) {
  const backoff b{.curve = backoff_curve::fibonacci, .first = 1s};
  EXPECT_EQ(next_waits(b, 7), (waits{1s, 2s, 3s, 5s, 8s, 13s, 21s}));
}

TEST(backoff, never_waits_longer_than_its_cap) {
  for (const auto curve :
       {backoff_curve::constant, backoff_curve::linear, backoff_curve::exponential, backoff_curve::fibonacci}) {
    const backoff b{.curve = curve, .first = 3s, .cap = 10s};
    for (const unsigned failures : {1U, 2U, 5U, 62U, 63U, 64U, 65U, 1000U, 4'000'000'000U}) {
      EXPECT_LE(b.wait_after(failures), 10s) << failures;
      EXPECT_GE(b.wait_after(failures), 3s) << failures;
    }
  }
  EXPECT_EQ((backoff{.first = 3s, .cap = 10s}).wait_after(3), 10s) << "12 s would be too long";
}

TEST(backoff, does_not_overflow) {
  for (const auto curve : {backoff_curve::linear, backoff_curve::exponential, backoff_curve::fibonacci})
    for (const auto first : {1ns, std::chrono::nanoseconds{1h}, std::chrono::nanoseconds{24h * 365 * 100}}) {
      const backoff b{.curve = curve, .first = first, .cap = std::chrono::nanoseconds::max()};
      std::chrono::nanoseconds before{0};
      for (unsigned i = 1; i < 200; ++i) {
        EXPECT_GE(b.wait_after(i), before) << "it never gets shorter";
        before = b.wait_after(i);
      }
    }
}

TEST(backoff, does_not_wait_before_anything_has_failed) { EXPECT_EQ(backoff{}.wait_after(0), 0s); }

TEST(backoff, defaults_are_sensible) {
  const backoff b;
  EXPECT_TRUE(b.check());
  EXPECT_EQ(b.wait_after(1), 100ms);
  EXPECT_EQ(b.wait_after(100), 30s);
  EXPECT_EQ(b.reset_after, 1min);
}

// ---- chance

TEST(backoff_jitter, stays_within_its_share_and_below_the_cap) {
  const backoff b{.curve = backoff_curve::constant, .first = 10s, .cap = 11s, .jitter = 0.2};
  EXPECT_EQ(b.wait_after(1, 0), 8s);
  EXPECT_EQ(b.wait_after(1, 1ULL << 63U), 10s);
  EXPECT_EQ(b.wait_after(1, std::numeric_limits<std::uint64_t>::max()), 11s) << "12 s without the cap";
  sim::dice chance{1};
  bool shorter = false;
  bool longer = false;
  for (int i = 0; i < 1000; ++i) {
    const auto wait = b.wait_after(1, chance.next());
    EXPECT_GE(wait, 8s);
    EXPECT_LE(wait, 11s);
    shorter |= wait < 9s;
    longer |= wait > 10s;
  }
  EXPECT_TRUE(shorter && longer);
}

TEST(backoff_jitter, of_one_may_take_the_whole_wait) {
  const backoff b{.curve = backoff_curve::constant, .first = 10s, .jitter = 1};
  EXPECT_EQ(b.wait_after(1, 0), 0s);
  EXPECT_LE(b.wait_after(1, std::numeric_limits<std::uint64_t>::max()), 20s);
}

TEST(backoff_jitter, of_none_leaves_nothing_to_chance) {
  const backoff b{.first = 7ms};
  for (const std::uint64_t random : {0ULL, 1ULL, 1ULL << 63U, ~0ULL})
    for (unsigned failures = 1; failures < 10; ++failures)
      EXPECT_EQ(b.wait_after(failures, random), b.wait_after(failures));
}

// ---- settings that make no sense

void expect_refused(const backoff& b, std::string_view field) {
  const auto checked = b.check();
  ASSERT_FALSE(checked) << field;
  EXPECT_EQ(checked.error().code(), errc::invalid);
  EXPECT_NE(checked.error().text().find(field), std::string_view::npos) << checked.error();
}

TEST(backoff_check, names_the_field_that_makes_no_sense) {
  expect_refused({.curve = static_cast<backoff_curve>(9)}, "backoff.curve");
  expect_refused({.first = 0s}, "backoff.first is 0s");
  expect_refused({.first = -1s}, "backoff.first is -1s");
  expect_refused({.first = 10s, .cap = 9s}, "backoff.cap is 9s, less than backoff.first (10s)");
  expect_refused({.jitter = -0.1}, "backoff.jitter");
  expect_refused({.jitter = 1.1}, "backoff.jitter");
  expect_refused({.jitter = std::nan("")}, "backoff.jitter");
  expect_refused({.reset_after = -1s}, "backoff.reset_after");
}

TEST(backoff_check, takes_the_limits_of_what_makes_sense) {
  EXPECT_TRUE((backoff{.first = 1ns, .cap = 1ns, .jitter = 0, .reset_after = 0s}.check()));
  EXPECT_TRUE((backoff{.jitter = 1}.check()));
}

TEST(backoff_text, shows_the_waits_and_what_is_left_to_chance) {
  EXPECT_EQ(to_string(backoff{.first = 1s, .cap = 8s}), "1s, 2s, 4s, 8s, 8s, 8s, 8s, 8s, 8s, 8s");
  EXPECT_EQ(to_string(backoff{.curve = backoff_curve::constant, .first = 1s, .jitter = 0.2}),
            "1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, each up to 20 % shorter or longer");
}

}  // namespace
