#pragma once
/// Timers that a process starts for itself: it receives `timer_fired`, unless it cancels first.
#include "side_block.hpp"

namespace coppice::detail {

/// Thread safety: each function is for the owner of the slot it is given.
class process_timers {
 public:
  explicit process_timers(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  [[nodiscard]] timer_ref start(slot& me, std::chrono::nanoseconds after);
  /// Also makes sure that a `timer_fired` already in the queue is never received. False: the timer is unknown, was
  /// cancelled before, or its `timer_fired` was received.
  bool cancel(slot& me, timer_ref ref);
  /// Removes the timer of the `timer_fired` in `e`. False: it was cancelled, so the message must not be received.
  [[nodiscard]] bool take_timer(slot& p, const envelope& e);
  /// Called when the process has ended.
  void cancel_all(const side_block& side);

 private:
  kernel& kernel_;
  process_table& table_;
};

}  // namespace coppice::detail
