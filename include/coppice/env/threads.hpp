#pragma once
/// Threads and how they wait, for the parts of the runtime that need real ones.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <coppice/base/cxx23.hpp>
#include <coppice/env/clock.hpp>

namespace coppice {

/// A started thread. Destroying it neither waits nor stops: call one of the two first.
class thread_handle {
 public:
  virtual ~thread_handle() = default;
  virtual void join() = 0;
  /// Lets the thread go on by itself, for one that is stuck and may never come back.
  virtual void detach() = 0;
};

/// Thread safety: any thread.
class threads {
 public:
  virtual ~threads() = default;
  /// Starts a thread named `name` (as debuggers show it), pinned to core `core` when given. Throws `std::system_error`.
  [[nodiscard]] virtual std::unique_ptr<thread_handle> start(std::string name, std::optional<unsigned> core,
                                                             std::move_only_function<void()> body) = 0;
  /// How many threads can run at once here.
  [[nodiscard]] virtual unsigned cores() const noexcept = 0;
  /// Sleeps while `word` is `expected`, until woken or `until`; may also return early for no reason.
  virtual void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::optional<time_point> until) = 0;
  virtual void wake_one(std::atomic<std::uint32_t>& word) noexcept = 0;
  virtual void wake_all(std::atomic<std::uint32_t>& word) noexcept = 0;
  /// A full barrier in every thread of the program, so that a frequent path on the other side needs none.
  virtual void barrier_everywhere() noexcept = 0;
};

}  // namespace coppice
