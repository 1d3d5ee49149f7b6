#pragma once
/// Blocking work of the processes: the pool of its threads, and what is under way.
#include <map>
#include <mutex>
#include <string_view>

#include <coppice/runtime/detail/blocking_token.hpp>

namespace coppice::detail {

/// Thread safety: any thread.
class blocking_work {
 public:
  explicit blocking_work(kernel& k);

  /// `what` names the work if it never returns, and must not be destroyed before. After `close` the job is dropped.
  /// Throws `std::system_error` when there is no thread for it and none can be started.
  void submit(std::move_only_function<void()> job, std::string_view what);
  /// For work of the running process that something else runs, such as a lane.
  [[nodiscard]] std::shared_ptr<blocking_token> track(std::string_view what);
  /// Drops the jobs that have not begun. Those that have begun go on.
  void close();
  void count(runtime_counters& into);
  /// The number of jobs that wait or run.
  [[nodiscard]] std::size_t pending();
  /// Logs the jobs that have not returned, at the end of the runtime.
  void report_left_behind();

 private:
  friend class blocking_token;
  struct running_job {
    pid owner;
    std::string_view what;
    time_point since;
  };

  kernel& kernel_;
  std::mutex mutex_;
  std::shared_ptr<blocking_pool> pool_;  // null: closed
  std::map<const blocking_token*, running_job> running_;
  std::uint64_t waiting_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace coppice::detail
