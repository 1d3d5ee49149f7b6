#pragma once
#include <chrono>
#include <vector>

#include <coppice/env/clock.hpp>

namespace coppice {

/// How many restarts a supervisor may need within a time before it gives up. `restarts = 0`: it gives up at the first.
struct restart_limit {
  int restarts = 1;
  std::chrono::nanoseconds within = std::chrono::seconds{5};
  friend bool operator==(const restart_limit&, const restart_limit&) = default;
};

/// The restarts of the last while. Exact: one that is older than `within` by a nanosecond does not count.
class restart_window {
 public:
  /// Counts one more; false when there were more than the limit allows within its time, this one included.
  [[nodiscard]] bool add(time_point now, const restart_limit& limit) {
    (void)count(now, limit);
    if (first_ > times_.size() / 2) {  // more room than times
      times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    times_.push_back(now);
    return size() <= static_cast<std::size_t>(limit.restarts);
  }
  /// Those within the time of the limit.
  [[nodiscard]] std::size_t count(time_point now, const restart_limit& limit) {
    while (first_ < times_.size() && now - times_[first_] > limit.within) ++first_;
    return size();
  }
  [[nodiscard]] std::size_t size() const noexcept { return times_.size() - first_; }

 private:
  std::vector<time_point> times_;  // not a deque: an empty one takes half a kilobyte
  std::size_t first_ = 0;          // of those that count
};

}  // namespace coppice
