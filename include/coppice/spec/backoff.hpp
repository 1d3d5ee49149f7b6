#pragma once
/// Waiting before a restart, longer each time.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <coppice/base/error.hpp>

namespace coppice {

enum class backoff_curve : std::uint8_t {
  constant,     ///< always `first`
  linear,       ///< 1, 2, 3, 4, ... times `first`
  exponential,  ///< 1, 2, 4, 8, ... times
  fibonacci,    ///< 1, 2, 3, 5, ... times
};

/// How long a supervisor waits before it starts a child again. The wait is a state of the child (`restarting`), not of
/// the supervisor: siblings, calls and a stop are served meanwhile.
struct backoff {
  backoff_curve curve = backoff_curve::exponential;
  std::chrono::nanoseconds first = std::chrono::milliseconds{100};
  /// No wait is longer.
  std::chrono::nanoseconds cap = std::chrono::seconds{30};
  /// The share of a wait that is left to chance, so that many do not come back at once: with 0.2, a wait of 10 s is one
  /// between 8 s and 12 s (and never longer than the cap). From 0 to 1.
  double jitter = 0;
  /// A child that ran for so long was healthy: its next wait is `first` again.
  std::chrono::nanoseconds reset_after = std::chrono::minutes{1};

  /// The wait before the restart that follows `failures` failures in a row (from 1), without chance.
  [[nodiscard]] std::chrono::nanoseconds wait_after(unsigned failures) const noexcept;
  /// The same with chance: `random` is any number.
  [[nodiscard]] std::chrono::nanoseconds wait_after(unsigned failures, std::uint64_t random) const noexcept;
  /// `invalid` with the field named when the settings make no sense.
  [[nodiscard]] result<void> check() const;
  friend bool operator==(const backoff&, const backoff&) = default;
};

/// The first waits, without chance: what an operator wants to see before it happens.
[[nodiscard]] std::vector<std::chrono::nanoseconds> next_waits(const backoff& b, std::size_t how_many = 10);
/// `100ms, 200ms, 400ms, ...` and what is left to chance.
[[nodiscard]] std::string to_string(const backoff& b);

}  // namespace coppice
