#include "internal/room_waiting.hpp"

#include "internal/life_cycle.hpp"

namespace coppice::detail {

void room_waiting::on(const signals::receiver_full& s) {
  room_waits::wait* w = me_.parts().room.add_message(s.receiver);
  if (w == nullptr) return;
  me_.add_message_without_room();
  if (w->messages.value() != 1) return;
  w->number = me_.next_number();
  const auto policy = host().policy_of(s.receiver);
  if (!policy) return;  // the receiver is ending, and `receiver_has_room` is on its way
  w->deadline = arm_signal(host(), me_.id(), policy->box.waits_at_most,
                           {signals::wait_for_room_timed_out{.receiver = s.receiver, .wait = w->number}});
}

void room_waiting::on(const signals::receiver_has_room& s) {
  const room_waits::removal done = me_.parts().room.remove_message(s.receiver);
  if (!done.counts) return;
  host().disarm(done.deadline);
  remove_messages(1);
}

void room_waiting::on(const signals::wait_for_room_timed_out& s) {
  const std::uint32_t waiting = me_.parts().room.time_out(s.receiver, s.wait);
  if (waiting == 0) return;
  if (const auto policy = host().policy_of(s.receiver))
    for (envelope* e : policy->withdraw(me_.id())) host().turn_away(s.receiver, e);
  signal_to(me_.id(), signals::room_signals_caught_up{s.receiver});
  remove_messages(waiting);
}

void room_waiting::on(const signals::room_signals_caught_up& s) { me_.parts().room.caught_up(s.receiver); }

void room_waiting::remove_messages(std::uint32_t how_many) {
  me_.remove_messages_without_room(how_many);
  if (!me_.waits_for_room() && me_.is_active()) life_cycle{me_, t_}.continue_work();
}

}  // namespace coppice::detail
