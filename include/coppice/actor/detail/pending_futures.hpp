#pragma once
/// The futures that an actor waits for: answers to its requests, and ends of other processes.
#include <coppice/actor/future.hpp>

namespace coppice::detail {

/// A future is done while its actor could not run the continuations: they run later.
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
  /// A future that was done while the actor stops. Its continuations do not run, but their callers get an error.
  void add_too_late(pointer f) { done_too_late_.push_back(std::move(f)); }
  /// The instance has ended: its continuations do not run.
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
