#pragma once
/// Threads and how they wait, for the parts of the runtime that need real ones.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <coppice/base/cxx23.hpp>
#include <coppice/env/clock.hpp>

namespace coppice {

/// A started thread. Call `join` or `detach` before the handle is destroyed: the destructor does neither, and the
/// program would be terminated.
class thread_handle {
 public:
  virtual ~thread_handle() = default;
  virtual void join() = 0;
  /// Lets the thread run without a handle: for a thread that is stuck and may never return.
  virtual void detach() = 0;
  /// Where the thread is, the innermost address first, and return addresses behind it. It is interrupted for a moment.
  /// Empty: not known.
  [[nodiscard]] virtual std::vector<const void*> backtrace() { return {}; }
};

/// Thread safety: any thread.
class threads {
 public:
  virtual ~threads() = default;
  /// Starts a thread named `name` (as debuggers show it), pinned to core `core` when given. Throws `std::system_error`.
  [[nodiscard]] virtual std::unique_ptr<thread_handle> start(std::string name, std::optional<unsigned> core,
                                                             std::move_only_function<void()> body) = 0;
  /// The number of threads that can run at the same time on this machine.
  [[nodiscard]] virtual unsigned cores() const noexcept = 0;
  /// If `word` is `expected`, sleeps until another thread wakes this one or the time is `until`. May also return early
  /// for no reason.
  virtual void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::optional<time_point> until) = 0;
  virtual void wake_one(std::atomic<std::uint32_t>& word) noexcept = 0;
  virtual void wake_all(std::atomic<std::uint32_t>& word) noexcept = 0;
  /// A full memory barrier in every running thread of the program, so that their frequent paths need only a fence for
  /// the compiler.
  virtual void barrier_everywhere() noexcept = 0;
};

}  // namespace coppice
