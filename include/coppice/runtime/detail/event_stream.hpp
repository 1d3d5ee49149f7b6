#pragma once
/// Sends typed events to their subscribers, as messages.
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

/// Thread safety: any thread.
class event_stream {
 public:
  explicit event_stream(kernel& k) : kernel_{k} {}

  void subscribe(const message_type& type, pid who);
  bool unsubscribe(const message_type& type, pid who);
  /// Sends a copy of `event` to each live subscriber.
  template <class E>
  void publish(const E& event) {
    if (count_of(plain<E>).load(std::memory_order_relaxed) == 0) return;
    if constexpr (requires(tracer& t) { t.saw(event); })
      if (tracer_ != nullptr) tracer_->saw(event);
    turn* t = turn_here();
    const bool before = t != nullptr && std::exchange(t->publishes, true);
    for (const pid who : subscribers(plain<E>)) kernel_.send(who, signal::message, make_mail<E>(plain<E>, event));
    if (t != nullptr) t->publishes = before;
  }
  /// Whether a live process, or the tracer, wants to know events of this type. If nobody does, this usually costs
  /// one load.
  [[nodiscard]] bool wanted(const message_type& type) {
    if (count_of(type).load(std::memory_order_relaxed) == 0) return false;
    return (tracer_ != nullptr && is_seen(type)) || !subscribers(type).empty();
  }
  /// For a simulation, once: `by` sees the ends of processes, stalls and dead letters, and must outlive the runtime.
  void set_tracer(tracer& by);

 private:
  /// Whether `tracer` has a `saw` for this type.
  [[nodiscard]] static bool is_seen(const message_type& type) noexcept;
  struct entry {
    const message_type* type = nullptr;
    pid who;
  };
  /// The live subscribers. Also removes the subscriptions of processes that have ended.
  [[nodiscard]] std::vector<pid> subscribers(const message_type& type);
  template <class Unwanted>
  bool remove_if(const Unwanted& unwanted);
  /// The number of subscriptions to a type. Types with the same hash share a counter; then events of a type without
  /// subscribers cost a search of the list.
  [[nodiscard]] std::atomic<std::uint32_t>& count_of(const message_type& type) noexcept {
#ifdef __clang_analyzer__  // the analyzer of clang 19 crashes on arithmetic with addresses
    return counts_[type.size % counts_.size()];
#else
    return counts_[(std::bit_cast<std::uintptr_t>(&type) / alignof(message_type)) * 0x9e3779b97f4a7c15ULL >> 56U];
#endif
  }

  kernel& kernel_;
  tracer* tracer_ = nullptr;
  std::array<std::atomic<std::uint32_t>, 256> counts_{};
  std::mutex mutex_;
  std::vector<entry> entries_;
};

}  // namespace coppice::detail
