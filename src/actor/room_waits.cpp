#include <coppice/actor/detail/room_waits.hpp>

namespace coppice::detail {

room_waits::wait* room_waits::add_message(pid receiver) {
  wait& w = by_receiver_[receiver];
  if (w.timed_out) return nullptr;
  w.messages.raise();
  return &w;
}

room_waits::removal room_waits::remove_message(pid receiver) {
  const auto found = by_receiver_.find(receiver);
  if (found == by_receiver_.end() || found->second.timed_out) return {};
  wait& w = found->second;
  w.messages.lower(1, "a receiver has made room for more messages than it had refused");
  if (!w.messages.is_zero()) return {.counts = true};
  const timer_ref deadline = w.deadline;
  by_receiver_.erase(found);
  return {.counts = true, .deadline = deadline};
}

std::uint32_t room_waits::time_out(pid receiver, std::uint64_t number) {
  const auto found = by_receiver_.find(receiver);
  if (found == by_receiver_.end() || found->second.number != number) return 0;
  const std::uint32_t waiting = found->second.messages.value();
  found->second = {.timed_out = true};
  return waiting;
}

void room_waits::cancel_deadlines(kernel& k) const noexcept {
  for (const auto& [receiver, w] : by_receiver_) k.disarm(w.deadline);
}

}  // namespace coppice::detail
