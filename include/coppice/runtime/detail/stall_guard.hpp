#pragma once
/// How a thread that runs a process and a thread that finds it stuck agree on which of them owns the process.
#include <atomic>
#include <cstdint>

#include <coppice/runtime/detail/mailbox.hpp>

namespace coppice::detail {

struct stall_guard {
  // `asked`: another thread wants the process. `taken`: it owns the process. `over`: it is done with the slot.
  static constexpr std::uint32_t none = 0, asked = 1, taken = 2, over = 3;
  std::atomic<std::uint32_t> phase{0};    // odd while the thread runs the code of a body
  std::atomic<std::uint32_t> section{0};  // odd while that code is in a `kernel_section` or is `last_code`
  std::atomic<std::uint32_t> state{none};
  static void step(std::atomic<std::uint32_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Called by the thread that runs the process, if `state` is not `none`: waits until the other thread has decided.
  /// True: the other thread has taken the process.
  [[nodiscard]] bool was_taken() const noexcept {
    std::uint32_t now = state.load(std::memory_order_acquire);
    for (; now == asked || now == taken; now = state.load(std::memory_order_acquire)) cpu_pause();
    return now == over;
  }
};

/// Marks the user's code that runs when a process ends: destructors. A worker that stalls there is replaced, but the
/// process can't be taken from it.
class last_code {
 public:
  explicit last_code(stall_guard* guard) noexcept : guard_{guard} { step(); }
  ~last_code() { step(); }
  last_code(const last_code&) = delete;
  last_code& operator=(const last_code&) = delete;

 private:
  void step() noexcept {
    if (guard_ == nullptr) return;
    stall_guard::step(guard_->section);
    stall_guard::step(guard_->phase);
  }
  stall_guard* guard_;
};

}  // namespace coppice::detail
