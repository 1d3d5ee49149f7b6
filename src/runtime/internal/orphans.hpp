#pragma once
/// Frames of processes that have ended while an operation was using them.
#include <mutex>
#include <string>

#include <coppice/runtime/detail/operation.hpp>

#include "chain.hpp"

namespace coppice::detail {

/// The frames of one process, in one of the lists of `orphans`.
struct orphan {
  std::string operation;  // empty: something else reports it
  coroutine* frames = nullptr;
  pid who{};
  exit_reason why{};
  orphan* next = nullptr;
  orphan* prev = nullptr;
};

/// Thread safety: any thread. An operation that is not over keeps the kernel, so that no frames are kept when this
/// object is destroyed.
class orphans {
 public:
  explicit orphans(kernel& k) noexcept : kernel_{k} {}

  /// Keeps the frames until `over` is called. Owns `one` until then.
  void add(orphan& one) noexcept;
  /// The operation was over before the process ended: nothing is kept, and `one` is the caller's again.
  void forget(orphan& one) noexcept;
  /// The operation is over: a process destroys the frames, or this thread does if the runtime has ended.
  void over(orphan& one);
  /// Destroys all frames whose operations are over.
  void destroy_ready();
  /// The same at the end of a runtime with threads. False: a destructor of the frames was stuck at `deadline`, and its
  /// thread is left behind.
  [[nodiscard]] bool destroy_ready_by(time_point deadline);
  /// The number of operations that are not over.
  [[nodiscard]] std::size_t waiting();
  /// Logs the operations that are not over, at the end of the runtime.
  void report_left_behind();

 private:
  [[nodiscard]] bool start_helper() noexcept;
  [[nodiscard]] bool any_ready();

  kernel& kernel_;
  std::mutex mutex_;
  chain<orphan> waiting_;
  std::size_t waiting_count_ = 0;
  // In the order in which they became ready, so that a simulation repeats it.
  orphan* ready_ = nullptr;
  orphan** ready_end_ = &ready_;
};

}  // namespace coppice::detail
