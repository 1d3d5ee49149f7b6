#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Stops reading mail while the mailbox of a receiver is full (`when_full::sender_waits`).
class room_waiting : public duty {
 public:
  using duty::duty;
  void on(const signals::receiver_full& s);
  void on(const signals::receiver_has_room& s);
  void on(const signals::wait_for_room_timed_out& s);
  void on(const signals::room_signals_caught_up& s);

 private:
  void remove_messages(std::uint32_t how_many);
};

}  // namespace coppice::detail
