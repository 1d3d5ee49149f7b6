#pragma once
/// The receivers whose mailboxes have no room for messages of this actor. While there is one, the actor reads no mail.
#include <unordered_map>

#include <coppice/actor/detail/guarded_counter.hpp>
#include <coppice/runtime/object.hpp>

namespace coppice::detail {

class room_waits {
 public:
  struct wait {
    guarded_counter messages{};  // messages that wait for room
    std::uint64_t number = 0;
    timer_ref deadline{};
    bool timed_out = false;  // ignore signals the receiver sent before the timeout
  };
  /// Adds a message. Null: the signal was sent before a timeout and does not count.
  [[nodiscard]] wait* add_message(pid receiver);
  /// Removes a message. Returns the timer to cancel when it was the last one; nothing: the signal does not count.
  struct removal {
    bool counts = false;
    timer_ref deadline{};
  };
  [[nodiscard]] removal remove_message(pid receiver);
  /// How many messages waited; 0: this wait is over already.
  [[nodiscard]] std::uint32_t time_out(pid receiver, std::uint64_t number);
  /// All signals from before the timeout have been handled.
  void caught_up(pid receiver) { by_receiver_.erase(receiver); }
  void cancel_deadlines(kernel& k) const noexcept;

 private:
  std::unordered_map<pid, wait> by_receiver_;
};

}  // namespace coppice::detail
