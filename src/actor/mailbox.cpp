#include <stdexcept>

#include <coppice/actor/detail/actor_core.hpp>
#include <coppice/runtime/detail/mailbox_policy.hpp>

namespace coppice::actor {

void check(const mailbox& box) {
  if (box.waits_at_most.count() <= 0)
    throw std::invalid_argument{"actor_options::mailbox: waits_at_most must be positive"};
  if (box.when_full == when_full::sender_waits && box.capacity == 0)
    throw std::invalid_argument{"actor_options::mailbox: sender_waits needs a capacity"};
}

}  // namespace coppice::actor

namespace coppice::detail {

std::shared_ptr<mailbox_policy> make_policy(const actor_settings& s) {
  const actor::mailbox& box = s.mailbox;
  if (box.capacity == 0 && !box.by_priority) return nullptr;
  static constexpr auto tell_sender = [](kernel& k, pid sender, pid receiver, bool full) {
    if (full)
      send_signal(k, sender, signals::receiver_full{receiver});
    else
      send_signal(k, sender, signals::receiver_has_room{receiver});
  };
  return std::make_shared<mailbox_policy>(box.capacity, box.when_full, box.by_priority, box.waits_at_most, tell_sender);
}

}  // namespace coppice::detail
