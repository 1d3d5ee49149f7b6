#pragma once
/// Time as the runtime sees it: monotonic, in nanoseconds, never adjusted. The wall clock is for display only.
#include <chrono>

namespace coppice {

/// Tags time points of the runtime's clock. It has no `now()`: time comes from a `clock`, real or simulated.
struct monotonic {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  static constexpr bool is_steady = true;
};
using time_point = std::chrono::time_point<monotonic, std::chrono::nanoseconds>;
using wall_time = std::chrono::sys_time<std::chrono::nanoseconds>;

/// Thread safety: any thread.
class clock {
 public:
  virtual ~clock() = default;
  [[nodiscard]] virtual time_point now() noexcept = 0;
  /// Cheaper than `now()`, and late by some milliseconds, more on a busy virtual machine. It is precise enough for the
  /// age of something, but not for deadlines.
  [[nodiscard]] virtual time_point coarse_now() noexcept = 0;
  /// The time for display. It may jump.
  [[nodiscard]] virtual wall_time wall() noexcept = 0;
};

}  // namespace coppice
