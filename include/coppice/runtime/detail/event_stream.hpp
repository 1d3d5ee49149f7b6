#pragma once
/// Typed events to whoever subscribed, each as a message of its own.
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include <coppice/runtime/detail/kernel.hpp>

namespace coppice::detail {

class event_stream {
 public:
  explicit event_stream(kernel& k) : kernel_{k} {}

  void subscribe(const message_type& type, pid who);
  bool unsubscribe(const message_type& type, pid who);
  /// Sends a copy of `event` to each live subscriber.
  template <class E>
  void publish(const E& event) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    turn* t = turn_here();
    const bool before = t != nullptr && std::exchange(t->publishes, true);
    for (const pid who : subscribers(plain<E>)) kernel_.send(who, signal::message, make_mail<E>(plain<E>, event));
    if (t != nullptr) t->publishes = before;
  }
  [[nodiscard]] bool wanted(const message_type& type) {
    return count_.load(std::memory_order_relaxed) != 0 && !subscribers(type).empty();
  }

 private:
  struct entry {
    const message_type* type = nullptr;
    pid who;
  };
  /// Forgets the dead on the way.
  [[nodiscard]] std::vector<pid> subscribers(const message_type& type);

  kernel& kernel_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::vector<entry> entries_;
};

}  // namespace coppice::detail
