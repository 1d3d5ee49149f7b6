#pragma once
/// Blocking work of the processes: the pool of its threads, and what is under way.
#include <map>
#include <mutex>
#include <string>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// Thread safety: any thread.
class blocking_work {
 public:
  explicit blocking_work(kernel& k);

  /// `what` names the work if it never returns. After `close` the job is dropped. Throws `std::system_error` when there
  /// is no thread for it and none can be started.
  void submit(std::move_only_function<void()> job, std::string_view what);
  /// Drops the jobs that have not begun. Those that have begun go on.
  void close();
  void count(runtime_counters& into);
  /// The number of jobs that wait or run.
  [[nodiscard]] std::size_t pending();
  /// Logs the jobs that have not returned, at the end of the runtime.
  void report_left_behind();

 private:
  class tracked_job;
  struct running_job {
    pid owner;
    std::string what;
    time_point since;
  };

  kernel& kernel_;
  std::mutex mutex_;
  std::shared_ptr<blocking_pool> pool_;  // null: closed
  std::map<std::uint64_t, running_job> running_;
  std::uint64_t submitted_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace coppice::detail
