#pragma once
/// Frames of processes that have ended while an operation was using them.
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include <coppice/runtime/detail/operation.hpp>

namespace coppice::detail {

/// Thread safety: any thread.
class orphans {
 public:
  explicit orphans(kernel& k) noexcept : kernel_{k} {}

  /// `frames` stay until `over` is called for them. The process `who` has ended because of `why`.
  void add(coroutine& frames, pid who, const exit_reason& why, std::string_view operation);
  /// The operation was over before the process ended: nothing is kept.
  void forget(coroutine& frames);
  /// The operation is over: a process destroys the frames, or this thread does if the runtime has ended.
  void over(coroutine& frames);
  /// Destroys all frames whose operations are over.
  void destroy_ready();
  /// The number of operations that are not over.
  [[nodiscard]] std::size_t waiting();
  /// Logs the operations that are not over, at the end of the runtime.
  void report_left_behind();

 private:
  struct entry {
    pid who;
    exit_reason why;
    std::string operation;
  };
  using list = std::map<coroutine*, entry>;
  [[nodiscard]] bool start_helper() noexcept;
  static void destroy(list::node_type one) noexcept;

  kernel& kernel_;
  std::mutex mutex_;
  list waiting_;
  std::deque<list::node_type> ready_;  // in the order in which they became ready, so that a simulation repeats it
};

}  // namespace coppice::detail
