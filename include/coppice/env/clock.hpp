#pragma once
/// Time as the runtime sees it: monotonic, in nanoseconds, never adjusted. It stands still while the machine is
/// suspended; boot time does not. The wall clock is for display only.
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
/// Tags time points of the clock that goes on while the machine is suspended.
struct since_boot {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  static constexpr bool is_steady = true;
};
using boot_time = std::chrono::time_point<since_boot, std::chrono::nanoseconds>;
using wall_time = std::chrono::sys_time<std::chrono::nanoseconds>;

/// Thread safety: any thread.
class clock {
 public:
  virtual ~clock() = default;
  [[nodiscard]] virtual time_point now() noexcept = 0;
  /// Cheaper than `now()`, and late by some milliseconds, more on a busy virtual machine. It is precise enough for the
  /// age of something, but not for deadlines.
  [[nodiscard]] virtual time_point coarse_now() noexcept = 0;
  /// Monotonic like `now()`, but it goes on while the machine is suspended. Between two readings of both clocks this
  /// one has advanced by the time of all suspends more than `now()` has, apart from the moment between the readings:
  /// who holds something for a limited time, such as a lease, compares the two to notice that the machine was
  /// suspended.
  [[nodiscard]] virtual boot_time boot() noexcept = 0;
  /// The time for display. It may jump.
  [[nodiscard]] virtual wall_time wall() noexcept = 0;
};

}  // namespace coppice
