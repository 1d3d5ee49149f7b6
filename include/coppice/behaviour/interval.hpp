#pragma once
/// Periodic work of a process or a server.
///
///     struct pulse {
///       explicit pulse(self& me) : beat{me, 5s} {}
///       void handle(timer_fired t, self& me) {
///         if (beat.fired(me, t)) ...
///       }
///       interval beat;
///     };
#include <stdexcept>

#include <coppice/runtime/self.hpp>

namespace coppice {

/// Sends `timer_fired` to its process at each multiple of the period from its start, until it is cancelled or the
/// process ends. A time that comes before the process has handled the last one is skipped: a process that was late or
/// frozen receives one `timer_fired`, not many, and the next one comes on time.
/// Thread safety: for the process that made it only.
class interval {
 public:
  /// Throws `std::invalid_argument` unless the period is positive and shorter than `forever`.
  interval(self& me, std::chrono::nanoseconds period) : period_{period} {
    if (period.count() <= 0 || period == forever)
      throw std::invalid_argument{"the period of an interval must be positive, and not forever"};
    due_ = me.host().time_after(period);
    next_ = me.start_timer(period);
  }

  /// To be called with each `timer_fired`: whether it is one of this interval. If so, the next one is started.
  [[nodiscard]] bool fired(self& me, timer_fired t) {
    if (!next_ || t.ref != next_) return false;
    const time_point now = me.now();
    const std::int64_t missed = now > due_ ? (now - due_) / period_ : 0;
    due_ += period_ * (missed + 1);
    next_ = me.start_timer(due_ - now);
    return true;
  }
  /// No more `timer_fired` of this interval is received. False: it was cancelled before.
  bool cancel(self& me) {
    const timer_ref last = std::exchange(next_, {});
    if (last) me.cancel(last);
    return static_cast<bool>(last);
  }

 private:
  std::chrono::nanoseconds period_;
  time_point due_;
  timer_ref next_;
};

}  // namespace coppice
