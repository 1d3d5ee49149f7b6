#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include <coppice/sim/node_clock.hpp>

namespace coppice::sim {

namespace {

constexpr std::int64_t second = 1'000'000'000;

std::int64_t checked(double rate) {
  const bool allowed = rate >= 0.01 && rate <= 10;  // false also for what is not a number
  if (!allowed)
    throw std::invalid_argument{"the rate of a clock is " + std::to_string(rate) + "; it must be from 0.01 to 10"};
  return std::llround(rate * second);
}

}  // namespace

node_clock::node_clock(const clock_quality& quality, time_point world_now)
    : offset_{quality.offset},
      per_second_{checked(quality.rate)},
      anchored_{world_now},
      monotonic_{world_now + quality.offset},
      boot_{monotonic_.time_since_epoch()},
      running_since_{world_now} {
  if (offset_.count() < 0) throw std::invalid_argument{"clock_quality::offset must not be negative"};
}

/// Seconds and the rest apart, because the product of a long time and the rate would overflow.
std::chrono::nanoseconds node_clock::scaled(std::chrono::nanoseconds elapsed) const noexcept {
  const std::int64_t whole = elapsed.count() / second;
  const std::int64_t rest = elapsed.count() % second;
  const auto scaled_rest = static_cast<std::uint64_t>(rest) * static_cast<std::uint64_t>(per_second_) / second;
  return std::chrono::nanoseconds{whole * per_second_ + static_cast<std::int64_t>(scaled_rest)};
}

time_point node_clock::monotonic(time_point world) const noexcept {
  return monotonic_ + scaled(std::max(world - running_since_, std::chrono::nanoseconds{0}));
}

boot_time node_clock::boot(time_point world) const noexcept { return boot_ + scaled(world - anchored_); }

wall_time node_clock::wall(time_point world) const noexcept {
  return wall_time{std::chrono::seconds{1893456000} + boot(world).time_since_epoch() - offset_};
}

time_point node_clock::world_time_of(time_point mine) const noexcept {
  if (mine <= monotonic_) return running_since_;
  const std::int64_t needed = (mine - monotonic_).count();
  const std::int64_t whole = needed / per_second_;
  const std::chrono::nanoseconds left = time_point::max() - running_since_;
  if (whole >= left.count() / second) return time_point::max();
  // Rounded up: one nanosecond earlier the clock does not show `mine` yet.
  const auto rest = static_cast<std::uint64_t>(needed % per_second_) * second;
  const auto divisor = static_cast<std::uint64_t>(per_second_);
  return running_since_ +
         std::chrono::nanoseconds{whole * second + static_cast<std::int64_t>((rest + divisor - 1) / divisor)};
}

void node_clock::anchor(time_point world_now) noexcept {
  monotonic_ = monotonic(world_now);
  boot_ = boot(world_now);
  anchored_ = world_now;
  running_since_ = std::max(running_since_, world_now);
}

void node_clock::set_rate(double rate, time_point world_now) {
  const std::int64_t next = checked(rate);
  anchor(world_now);
  per_second_ = next;
}

void node_clock::stop(time_point world_now, time_point until) noexcept {
  anchor(world_now);
  running_since_ = std::max(running_since_, until);
}

void node_clock::go_on(time_point world_now) noexcept {
  anchor(world_now);
  running_since_ = world_now;
}

}  // namespace coppice::sim
