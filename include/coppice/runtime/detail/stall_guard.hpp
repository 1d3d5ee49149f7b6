#pragma once
/// How a thread that runs processes and a thread that finds it stuck agree on which of them has the process.
#include <atomic>
#include <cstdint>

#include <coppice/runtime/detail/mailbox.hpp>

namespace coppice::detail {

struct stall_guard {
  static constexpr std::uint32_t none = 0, asked = 1, taken = 2, over = 3;  // over: the taker is done with the slot
  std::atomic<std::uint32_t> phase{0};                                      // odd while in a body's code
  std::atomic<std::uint32_t> section{0};                                    // odd while that code has called the kernel
  std::atomic<std::uint32_t> state{none};
  static void step(std::atomic<std::uint32_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Called by the thread that runs, when `state` is not `none`: waits for the decision.
  [[nodiscard]] bool was_taken() const noexcept {
    std::uint32_t now = state.load(std::memory_order_acquire);
    for (; now == asked || now == taken; now = state.load(std::memory_order_acquire)) cpu_pause();
    return now == over;
  }
};

/// The user's code that runs when a process ends. A stall there is noticed, but the process can't be taken away.
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
