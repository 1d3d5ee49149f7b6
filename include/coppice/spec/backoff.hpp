#pragma once
/// Waits before restarts that get longer with each failure in a row.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <coppice/base/error.hpp>

namespace coppice {

enum class backoff_curve : std::uint8_t {
  constant,     ///< always `first`
  linear,       ///< 1, 2, 3, 4, ... times `first`
  exponential,  ///< 1, 2, 4, 8, ... times `first`
  fibonacci,    ///< 1, 2, 3, 5, ... times `first`
};

/// How long a supervisor waits before it starts a failed child again. The child is `restarting` meanwhile, and the
/// supervisor goes on with its other children, answers calls and can be stopped.
struct backoff {
  backoff_curve curve = backoff_curve::exponential;
  std::chrono::nanoseconds first = std::chrono::milliseconds{100};
  /// The longest wait.
  std::chrono::nanoseconds cap = std::chrono::seconds{30};
  /// The share of a wait that is random, from 0 to 1, so that many children do not restart at the same moment. With
  /// 0.2, a wait of 10 s becomes one between 8 s and 12 s, but never longer than the cap.
  double jitter = 0;
  /// After a child has run for this long, its next wait is `first` again.
  std::chrono::nanoseconds reset_after = std::chrono::minutes{1};

  /// The wait before the restart that follows `failures` failures in a row (from 1), without jitter.
  [[nodiscard]] std::chrono::nanoseconds wait_after(unsigned failures) const noexcept;
  /// The same with jitter; `random` is 64 random bits.
  [[nodiscard]] std::chrono::nanoseconds wait_after(unsigned failures, std::uint64_t random) const noexcept;
  /// Error: `invalid`; its text names the first field that is wrong.
  [[nodiscard]] result<void> check() const;
  friend bool operator==(const backoff&, const backoff&) = default;
};

/// The first waits without jitter, for people who want to see them in advance.
[[nodiscard]] std::vector<std::chrono::nanoseconds> next_waits(const backoff& b, std::size_t how_many = 10);
/// The first ten waits, `100ms, 200ms, 400ms, ...`, and the jitter if there is one.
[[nodiscard]] std::string to_string(const backoff& b);

}  // namespace coppice
