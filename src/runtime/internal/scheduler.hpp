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
  virtual bool take_from_stuck(slot& p) = 0;
  /// Ends all threads; those that are stuck are left behind. False: there were such.
  virtual bool stop() = 0;
  virtual void count(runtime_counters& into) = 0;
  /// The process in whose handler some worker is now.
  [[nodiscard]] virtual bool is_running(const slot& p) = 0;
};

/// Work stealing over threads of the environment.
[[nodiscard]] std::unique_ptr<scheduler> make_worker_scheduler(kernel& k, const runtime_options& options);

/// What the current thread is to the runtime `k`: the number of its worker, which chooses its wheel; 0 for others.
[[nodiscard]] std::size_t worker_number(const kernel& k) noexcept;
/// Puts a process into the queue of the current worker; false when the thread is no worker of `k`.
[[nodiscard]] bool push_here(kernel& k, slot& p, bool spawned);
/// A slot index from the current worker's reserve, or 0.
[[nodiscard]] std::uint32_t slot_from_here(kernel& k) noexcept;
[[nodiscard]] bool slot_to_here(kernel& k, std::uint32_t index) noexcept;
void count_spawned(kernel& k) noexcept;
void count_ended(kernel& k) noexcept;
void count_handled(kernel& k, std::uint64_t n) noexcept;

}  // namespace coppice::detail
