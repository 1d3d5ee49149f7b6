#pragma once
/// Who runs the processes that have mail: threads, or a simulated world.
#include <optional>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

class scheduler {
 public:
  virtual ~scheduler() = default;
  virtual void begin() = 0;
  /// A process became runnable on a thread that is none of this runtime's workers.
  virtual void inject(slot& p) = 0;
  /// A timer was armed that is due earlier than the wake-up planned so far.
  virtual void timer_armed(time_point due) = 0;
  /// The calling thread, no worker, waits until `done` is not 0. False: the time was over first.
  virtual bool wait(std::atomic<std::uint32_t>& done, std::optional<time_point> until) = 0;
  virtual void wake(std::atomic<std::uint32_t>& done) noexcept = 0;
  /// Takes a process away from the thread that is stuck in it; false when it is not stuck. Then the caller owns it.
  virtual bool take_from_stuck(slot& p, std::uint32_t serial) = 0;
  /// The caller has done with that process what was to be done: the thread may clean up when it comes back.
  virtual void done_with_stuck(slot& p) = 0;
  /// Ends all threads; those that are stuck beyond `deadline` are left behind. False: there were such.
  virtual bool stop(time_point deadline) = 0;
  virtual void count(runtime_counters& into) = 0;
  /// The process in whose handler some worker is now.
  [[nodiscard]] virtual bool is_running(const slot& p) = 0;
};

}  // namespace coppice::detail
