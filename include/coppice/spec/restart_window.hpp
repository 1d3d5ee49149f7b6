#pragma once
#include <chrono>
#include <deque>

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
    times_.push_back(now);
    return times_.size() <= static_cast<std::size_t>(limit.restarts);
  }
  /// Those within the time of the limit.
  [[nodiscard]] std::size_t count(time_point now, const restart_limit& limit) {
    while (!times_.empty() && now - times_.front() > limit.within) times_.pop_front();
    return times_.size();
  }
  [[nodiscard]] std::size_t size() const noexcept { return times_.size(); }

 private:
  std::deque<time_point> times_;
};

}  // namespace coppice
