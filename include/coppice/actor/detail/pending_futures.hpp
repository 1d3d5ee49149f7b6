#pragma once
/// The futures that an actor waits for: replies, results of blocking work, and ends of other processes.
#include <coppice/actor/detail/continuations.hpp>

namespace coppice::detail {

/// A message of an actor to itself: the future is done, and its continuations run as soon as the actor takes mail.
struct continuation_ready {
  std::shared_ptr<future_base> future;
};

class pending_futures {
 public:
  using pointer = std::shared_ptr<future_base>;
  void add_answer(pointer f);
  void add_end(monitor_ref by, pointer f);
  /// Removes a future and hands it over; null: it is not pending any more.
  [[nodiscard]] pointer take_answer(std::uint64_t number);
  [[nodiscard]] pointer take_end(std::uint64_t monitor);
  /// Null: there is none with that number.
  [[nodiscard]] const future_base* find_answer(std::uint64_t number) const;
  /// A future that became done while the actor was stopping. Its continuations do not run; their callers get an error.
  void add_too_late(pointer f) { done_too_late_.push_back(std::move(f)); }
  /// Drops the continuations of an instance that has ended.
  void drop_continuations() noexcept;
  /// Fails all pending futures, because the actor has ended.
  void fail_all(kernel& k, const loss& how);

 private:
  std::unordered_map<std::uint64_t, pointer> answers_;
  std::unordered_map<std::uint64_t, pointer> ends_;  // by the number of the monitor
  std::vector<pointer> done_too_late_;
};

/// Fails one future and the calls that its continuations were to answer.
void fail_future(kernel& k, future_base& f, const loss& how);

}  // namespace coppice::detail
