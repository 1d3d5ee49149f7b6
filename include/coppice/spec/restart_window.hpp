#pragma once
/// How often something may be restarted.
#include <chrono>
#include <vector>

#include <coppice/base/ensure.hpp>
#include <coppice/env/clock.hpp>

namespace coppice {

/// The most restarts within a time; one more, and the supervisor gives up. `restarts = 0`: it gives up at the first
/// failure.
struct restart_limit {
  int restarts = 1;
  std::chrono::nanoseconds within = std::chrono::seconds{5};
  friend bool operator==(const restart_limit&, const restart_limit&) = default;
};

/// The times of the latest restarts. The window slides and is exact: a restart that is one nanosecond older than
/// `within` does not count.
class restart_window {
 public:
  /// Counts a restart at `now`. Returns false if the window then has more restarts than the limit allows.
  [[nodiscard]] bool add(time_point now, const restart_limit& limit) {
    ensure(times_.empty() || times_.back() <= now, "a restart is older than the one before it");
    drop_old(now, limit);
    if (first_ > times_.size() / 2) {  // more than half of the entries are old
      times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    times_.push_back(now);
    return size() <= static_cast<std::size_t>(limit.restarts);
  }
  /// The number of restarts within the time of the limit.
  [[nodiscard]] std::size_t count(time_point now, const restart_limit& limit) {
    drop_old(now, limit);
    return size();
  }
  [[nodiscard]] std::size_t size() const noexcept { return times_.size() - first_; }

 private:
  void drop_old(time_point now, const restart_limit& limit) {
    while (first_ < times_.size() && now - times_[first_] > limit.within) ++first_;
  }
  std::vector<time_point> times_;  // a vector, because an empty deque takes half a kilobyte
  std::size_t first_ = 0;          // the first entry that is not old
};

}  // namespace coppice
