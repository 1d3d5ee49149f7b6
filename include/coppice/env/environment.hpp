#pragma once
/// Everything outside the program's own logic: time, random numbers, threads, blocking work, files, faults, signals,
/// other programs. The real environment comes from `platform`, the simulated one from `sim`; nothing else in Coppice
/// touches the machine.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <coppice/base/cxx23.hpp>
#include <coppice/env/clock.hpp>
#include <coppice/env/fwd.hpp>
#include <coppice/env/os_signals.hpp>
#include <coppice/env/threads.hpp>

namespace coppice {

/// Thread safety: any thread.
class random_source {
 public:
  virtual ~random_source() = default;
  [[nodiscard]] virtual std::uint64_t next() = 0;
};

/// Runs work that blocks its thread (files, name look-ups, C libraries), away from the scheduler's workers.
/// Thread safety: any thread.
class blocking_pool {
 public:
  /// Does not wait: jobs that have not begun are dropped, and those that have begun go on.
  virtual ~blocking_pool() = default;
  /// Runs `job` on some thread, later. `job` must not throw. Throws `std::system_error` when there is no thread and
  /// none can be started: then the job will not run.
  virtual void submit(std::move_only_function<void()> job) = 0;
};

/// Decides at named places of the code whether an operation fails there. The real environment has no fault plan.
class fault_plan {
 public:
  virtual ~fault_plan() = default;
  [[nodiscard]] virtual bool fails(std::string_view point) = 0;
};

class environment {
 public:
  virtual ~environment() = default;
  [[nodiscard]] virtual coppice::clock& clock() noexcept = 0;
  [[nodiscard]] virtual random_source& random() noexcept = 0;
  /// Null when there are no threads: then something outside, such as `sim::world`, runs the processes.
  [[nodiscard]] virtual coppice::threads* threads() noexcept = 0;
  /// A pool of its own for each runtime, with at most that many threads; further jobs wait.
  [[nodiscard]] virtual std::unique_ptr<blocking_pool> make_blocking_pool(unsigned most_threads) = 0;
  /// Include `env/disk.hpp` and `env/lanes.hpp` to use them.
  [[nodiscard]] virtual coppice::disk& disk() noexcept = 0;
  [[nodiscard]] virtual coppice::lanes& lanes() noexcept = 0;
  [[nodiscard]] virtual fault_plan* faults() noexcept = 0;
  [[nodiscard]] virtual coppice::os_signals& os_signals() noexcept = 0;
  [[nodiscard]] virtual coppice::os_processes& os_processes() noexcept = 0;
  /// The name of the function at that address, without its parameters. Empty: not known.
  [[nodiscard]] virtual std::string function_at(const void* code) = 0;
  /// A node number that no other runtime of this environment has had.
  [[nodiscard]] virtual std::uint64_t new_node_number() noexcept = 0;
};

/// The environment of this machine; implemented by `platform`. Each call gives the same one.
[[nodiscard]] std::shared_ptr<environment> real_environment();

}  // namespace coppice
