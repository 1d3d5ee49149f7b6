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
  /// Called by the owner. False: the other thread has closed the lock.
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
    while (busy_.load(std::memory_order_acquire)) cpu_pause();  // the owner leaves soon, unless it was preempted there
  }
  void leave_from_outside(access afterwards) noexcept { access_.store(afterwards, std::memory_order_release); }

 private:
  std::atomic<bool> busy_{false};
  std::atomic<access> access_{access::open};
};

/// The tail of a mailbox is the one place where many senders meet. A handler that sends many messages in a row to one
/// busy receiver therefore pushes them as one chain: when there are `length` of them, when the handler returns, before
/// an exit, link, monitor or fast-lane signal, before a burst to another receiver, and from another thread when the
/// handler takes long or its process is abandoned.
struct burst {
  static constexpr std::uint32_t begins_after = 64;  // messages in a row to a receiver that was not idle
  static constexpr std::uint32_t length = 64;
  slot* target = nullptr;
  envelope* first = nullptr;
  envelope* last = nullptr;
  std::uint32_t count = 0;
  std::uint32_t in_a_row = 0;
  std::uint32_t met_busy = 0;       // signals that met a receiver that was not idle, without those held back
  slot* busy = nullptr;             // the receiver that `in_a_row` counts for
  std::atomic<bool> closed{false};  // the worker was replaced and is not watched any more: hold nothing back
  biased_lock lock;                 // protects the chain
};

}  // namespace coppice::detail
