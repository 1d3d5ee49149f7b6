#pragma once
/// Restarts that have been decided and are not carried out yet.
#include <coppice/supervision/supervisor.hpp>

#include "supervised.hpp"

namespace coppice::detail {

/// A child whose restart is pending is `restarting`. It waits for one of three things: the timer of its backoff; after
/// a failed start without a backoff, a message of the supervisor to itself; or a sibling that waits for its backoff and
/// is restarted together with the child.
class pending_restarts {
 public:
  /// Restarts the child after `wait`.
  void add_timer(self& me, supervised& c, std::chrono::nanoseconds wait) {
    ensure(!c.wait, "a child that waits for its backoff was to wait once more");
    c.state = child_state::restarting;
    c.wait = me.start_timer(wait);
    waiting_.insert(c.wait.value(), &c);
  }
  /// Restarts the child after the mail that is in the mailbox now, so that calls and a request to stop are handled
  /// between two attempts.
  void add_retry(self& me, supervised& c) {
    c.state = child_state::restarting;
    const std::uint64_t number = ++numbers_;
    retrying_.insert(number, &c);
    me.send(me.id(), calls::retry_start{number});
  }

  /// Starts the child together with `sibling`, whose restart is pending.
  void add_follower(supervised& c, supervised& sibling) {
    ensure(!c.wait && c.waits_for == nullptr, "a child that waits for its restart was to wait for a sibling");
    c.state = child_state::restarting;
    c.waits_for = &sibling;
    ++followers_;
  }
  /// How many children wait for a sibling.
  [[nodiscard]] std::size_t followers() const noexcept { return followers_; }

  /// The child whose timer has fired; null if the wait was cancelled.
  [[nodiscard]] supervised* take_timer(timer_ref wait) {
    const std::optional<supervised*> known = waiting_.take(wait.value());
    if (!known) return nullptr;
    supervised& c = **known;
    ensure(c.wait == wait && c.state == child_state::restarting, "the backoff of a child that does not wait is over");
    c.wait = {};
    return &c;
  }
  /// The child to start again; null if it was started, stopped or removed meanwhile, or waits for something else.
  [[nodiscard]] supervised* take_retry(std::uint64_t number) {
    const std::optional<supervised*> known = retrying_.take(number);
    if (!known || (*known)->state != child_state::restarting) return nullptr;
    return !(*known)->wait && (*known)->waits_for == nullptr ? *known : nullptr;
  }

  /// Cancels the wait for a timer or a sibling. A retry message stays in flight: `take_retry` checks whether it still
  /// applies.
  void cancel(self& me, supervised& c) {
    if (std::exchange(c.waits_for, nullptr) != nullptr) {
      ensure(followers_ > 0, "a child stops waiting for a sibling although none was counted");
      --followers_;
    }
    if (!c.wait) return;
    me.cancel(c.wait);
    const bool known = waiting_.erase(c.wait.value());
    ensure(known, "a child waits for a timer that its supervisor does not know");
    c.wait = {};
  }
  /// Cancels everything before a child is removed.
  void forget(self& me, supervised& c) {
    cancel(me, c);
    if (retrying_.empty()) return;
    std::vector<std::uint64_t> numbers;
    retrying_.for_each([&](std::uint64_t number, const supervised* each) {
      if (each == &c) numbers.push_back(number);
    });
    for (const std::uint64_t number : numbers) retrying_.erase(number);
  }

 private:
  struct number_hash {
    static constexpr std::uint64_t none = 0;
    std::uint64_t operator()(std::uint64_t n) const noexcept { return mix(n); }
  };
  flat_map<std::uint64_t, supervised*, number_hash> waiting_;   // by the timer of their backoff
  flat_map<std::uint64_t, supervised*, number_hash> retrying_;  // by the number in the message `retry_start`
  std::uint64_t numbers_ = 0;
  std::size_t followers_ = 0;
};

}  // namespace coppice::detail
