#pragma once
/// The timers of one instance of an actor, and its receive timeout.
#include <functional>
#include <unordered_map>

#include <coppice/runtime/object.hpp>

namespace coppice::detail {

struct timer_entry {
  timer_ref armed;
  time_point due{};
  std::chrono::nanoseconds period{0};
  std::function<envelope*()> make_next{};  // empty: the timer fires once
};

/// The timers of `context::after` and `context::every`.
class instance_timers {
 public:
  void add(kernel& k, pid me, std::uint64_t number, std::chrono::nanoseconds delay, timer_entry entry, envelope* first);
  bool cancel(kernel& k, std::uint64_t number);
  /// The message of a timer has arrived; a repeating timer is armed again. False: the timer was cancelled meanwhile.
  /// Throws what copying the next message throws.
  [[nodiscard]] bool fired(kernel& k, pid me, std::uint64_t number);
  void cancel_all(kernel& k) noexcept;

 private:
  std::unordered_map<std::uint64_t, timer_entry> by_number_;
};

/// The wake-up that checks a receive timeout.
struct receive_check {
  std::uint64_t number;
};

/// The timeout of `context::set_receive_timeout`. Handling a message only stores the time; one timer checks it later,
/// so that a message needs no timer operation.
class receive_timeout_check {
 public:
  [[nodiscard]] bool is_set() const noexcept { return limit_ != no_timeout; }
  [[nodiscard]] std::chrono::nanoseconds limit() const noexcept { return limit_; }
  /// `no_timeout` turns the timeout off.
  void set(kernel& k, pid me, std::chrono::nanoseconds limit);
  /// Turns the timeout off at the end of the instance. Checks in flight are ignored.
  void forget() noexcept;
  void note_message(time_point now) noexcept { last_message_ = now; }
  [[nodiscard]] bool is_current(receive_check check) const noexcept { return check.number == number_; }
  /// How much of the limit is left; zero or less: it is over.
  [[nodiscard]] std::chrono::nanoseconds left(time_point now) const noexcept { return limit_ - (now - last_message_); }
  void arm(kernel& k, pid me, std::chrono::nanoseconds after);
  void disarm(kernel& k) const noexcept;

 private:
  std::chrono::nanoseconds limit_ = no_timeout;
  time_point last_message_{};
  std::uint64_t number_ = 0;
  timer_ref timer_{};
};

}  // namespace coppice::detail
