#pragma once
/// Messages to one busy receiver, held back for a moment and pushed together.
#include <atomic>
#include <cstdint>

#include <coppice/env/threads.hpp>
#include <coppice/runtime/detail/slot.hpp>

namespace coppice::detail {

/// A lock between its owner, which takes it nearly always, and one other thread, which takes it rarely. The owner's
/// side needs no atomic read-modify-write; the other thread pays for both with a barrier on all threads.
class biased_lock {
 public:
  enum class access : std::uint8_t { open, held, closed };
  /// By the owner. False: it was closed for good.
  [[nodiscard]] bool enter() noexcept {
    for (;;) {
      busy_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      const access a = access_.load(std::memory_order_acquire);
      if (a == access::open) [[likely]]
        return true;
      busy_.store(false, std::memory_order_release);
      if (a == access::closed) return false;
      cpu_pause();
    }
  }
  void leave() noexcept { busy_.store(false, std::memory_order_release); }
  void enter_from_outside(threads& all) noexcept {
    access_.store(access::held, std::memory_order_seq_cst);
    all.barrier_everywhere();
    while (busy_.load(std::memory_order_acquire)) cpu_pause();  // a few instructions, unless it was interrupted there
  }
  void leave_from_outside(access afterwards) noexcept { access_.store(afterwards, std::memory_order_release); }

 private:
  std::atomic<bool> busy_{false};
  std::atomic<access> access_{access::open};
};

/// The tail of a mailbox is the one place where many senders meet, so a handler that sends many messages in a row to a
/// busy receiver pushes them as one chain: when there are enough, when the handler returns, before any other signal,
/// and from outside when the handler takes long.
struct burst {
  static constexpr std::uint32_t begins_after = 64;  // messages in a row to a receiver that was not idle
  static constexpr std::uint32_t length = 64;
  slot* target = nullptr;
  envelope* first = nullptr;
  envelope* last = nullptr;
  std::uint32_t count = 0;
  std::uint32_t in_a_row = 0;
  std::uint32_t met_busy = 0;       // how many receivers were not idle, since the thread began
  slot* busy = nullptr;             // the receiver of that row
  std::atomic<bool> closed{false};  // nobody flushes this thread from outside any more: hold nothing back
  biased_lock lock;                 // of the chain
};

}  // namespace coppice::detail
