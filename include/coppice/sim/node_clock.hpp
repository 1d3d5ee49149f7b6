#pragma once
/// The clocks of one node of a simulated world, and how they differ from the time of the world.
#include <chrono>
#include <cstdint>

#include <coppice/env/clock.hpp>

namespace coppice::sim {

/// How the clocks of a node differ from the time of the world.
struct clock_quality {
  /// How far monotonic and boot time are ahead of the world when the node is added; not negative. Machines of different
  /// age differ by this: points in time of one mean nothing on another. The wall clock is not affected.
  std::chrono::nanoseconds offset{0};
  /// How much faster than the world all clocks of the node go: 1.0001 gains a tenth of a millisecond per second. From
  /// 0.01 to 10.
  double rate = 1;
};

/// Converts between the time of the world and that of a node. It calculates in whole numbers, so that all machines give
/// the same results, and a timer is due at exactly one point of the world's time.
class node_clock {
 public:
  /// Throws `std::invalid_argument` for a quality out of range.
  node_clock(const clock_quality& quality, time_point world_now);

  [[nodiscard]] time_point monotonic(time_point world) const noexcept;
  [[nodiscard]] boot_time boot(time_point world) const noexcept;
  /// The wall clock before anybody sets it: it starts on the first of January 2030.
  [[nodiscard]] wall_time wall(time_point world) const noexcept;
  /// The first point in time of the world at which `monotonic` gives `mine` or more. `time_point::max()` if that is too
  /// far away to count.
  [[nodiscard]] time_point world_time_of(time_point mine) const noexcept;

  /// Throws `std::invalid_argument` for a rate out of range.
  void set_rate(double rate, time_point world_now);
  /// Monotonic time stands still until `until`; if it already does, until the later of the two.
  void stop(time_point world_now, time_point until) noexcept;
  /// Monotonic time goes on.
  void go_on(time_point world_now) noexcept;
  /// When monotonic time goes on, or went on.
  [[nodiscard]] time_point running_since() const noexcept { return running_since_; }

 private:
  void anchor(time_point world_now) noexcept;
  [[nodiscard]] std::chrono::nanoseconds scaled(std::chrono::nanoseconds elapsed) const noexcept;

  std::chrono::nanoseconds offset_;
  std::int64_t per_second_;  // nanoseconds of the node per second of the world
  time_point anchored_;      // the world's time at which the clocks showed the two values below
  time_point monotonic_;
  boot_time boot_;
  time_point running_since_;  // not before `anchored_`; the world's time from which monotonic time goes on
};

}  // namespace coppice::sim
