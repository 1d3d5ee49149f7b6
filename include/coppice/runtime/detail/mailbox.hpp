#pragma once
/// The queue of a process: many senders push, one owner takes.
#include <atomic>
#include <cstdint>

#include <coppice/base/machine.hpp>
#include <coppice/runtime/detail/envelope.hpp>

namespace coppice::detail {

struct mailbox {
  std::atomic<envelope*> tail{nullptr};  // null when idle, else the newest envelope
  envelope* head = nullptr;              // for the owner: the envelope being handled

  /// True: the caller owns the process now and has to schedule it.
  [[nodiscard]] bool push(envelope* e) noexcept { return push_chain(e, e); }
  /// The same for a chain of envelopes that are linked already.
  [[nodiscard]] bool push_chain(envelope* first, envelope* last) noexcept {
    envelope* before = tail.exchange(last, std::memory_order_acq_rel);
    if (before == nullptr) {
      head = first;
      return true;
    }
    before->next.store(first, std::memory_order_release);
    return false;
  }
  /// Makes the caller the owner of an idle process by pushing `e`, which the caller keeps. False: the process is not
  /// idle.
  [[nodiscard]] bool claim(envelope* e) noexcept {
    envelope* idle = nullptr;
    if (!tail.compare_exchange_strong(idle, e, std::memory_order_acq_rel, std::memory_order_relaxed)) return false;
    head = e;
    return true;
  }
  enum class step : std::uint8_t { next, idle, hidden };
  /// Moves past `e`. `next`: the next envelope is in `n`. `idle`: the queue is empty, and the caller no longer owns the
  /// process. `hidden`: the next envelope can't be seen yet, because its sender was interrupted in the middle of its
  /// push.
  [[nodiscard]] step advance(envelope* e, envelope*& n) noexcept {
    n = e->next.load(std::memory_order_acquire);
    if (n != nullptr) return step::next;
    envelope* last = e;
    if (tail.load(std::memory_order_relaxed) == e &&
        tail.compare_exchange_strong(last, nullptr, std::memory_order_acq_rel, std::memory_order_relaxed))
      return step::idle;
    for (int i = 0; i < 1000; ++i) {  // the sender usually needs a few nanoseconds
      n = e->next.load(std::memory_order_acquire);
      if (n != nullptr) return step::next;
      cpu_pause();
    }
    return step::hidden;
  }
};

}  // namespace coppice::detail
