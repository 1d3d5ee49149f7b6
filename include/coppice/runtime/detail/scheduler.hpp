#pragma once
/// The interface of what runs the processes that have mail: worker threads, or a simulated world.
#include <functional>
#include <optional>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

class scheduler {
 public:
  virtual ~scheduler() = default;
  virtual void begin() = 0;
  /// A process became runnable, and the calling thread is not a worker of this runtime or is a worker that was
  /// replaced.
  virtual void inject(slot& p) = 0;
  /// A timer was armed. Timers must be fired at `due`, even if the next wake-up was planned for later.
  virtual void timer_armed(time_point due) = 0;
  /// Blocks the calling thread, which must not be a worker, until `done` is not 0. False: `until` has passed, or
  /// nothing is left to happen in a simulated world.
  virtual bool wait(std::atomic<std::uint32_t>& done, std::optional<time_point> until) = 0;
  virtual void wake(std::atomic<std::uint32_t>& done) noexcept = 0;
  /// Takes a process away from the thread that is stuck in its code, and makes the caller its owner. False: no other
  /// thread is stuck in the code of the process.
  virtual bool take_from_stuck(slot& p, std::uint32_t serial) = 0;
  /// The caller of `take_from_stuck` does not need the process any more: the stuck thread may clean up when it returns.
  virtual void done_with_stuck(slot& p) = 0;
  /// Looks at a process whose code another thread runs. Meanwhile that code goes on, but can't reach the slot. False:
  /// no other thread runs its code, or it is in a part of the runtime, and nothing was called. `since` is when the code
  /// was first seen to run.
  virtual bool look_into_code(slot& p, const std::function<void(time_point since)>& look) = 0;
  /// Where the thread that runs the code of `p` is, the innermost address first. Empty: not known.
  [[nodiscard]] virtual std::vector<const void*> backtrace(slot& p) = 0;
  /// Ends all threads. False: some were still stuck at `deadline` and are left behind.
  virtual bool stop(time_point deadline) = 0;
  virtual void count(runtime_counters& into) = 0;
  /// Whether a worker is running this process now.
  [[nodiscard]] virtual bool is_running(const slot& p) = 0;
};

}  // namespace coppice::detail
