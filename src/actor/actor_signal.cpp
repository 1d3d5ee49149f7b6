#include <coppice/actor/detail/actor_core.hpp>
#include <coppice/actor/detail/actor_signal.hpp>

namespace coppice::detail {

void send_stop(kernel& k, pid who) { send_signal(k, who, signals::stop{}); }

timer_ref arm_signal(kernel& k, pid me, std::chrono::nanoseconds after, actor_signal s) {
  return k.arm(k.time_after(after), me, signal::fast, make_letter<actor_signal>(plain<actor_signal>, std::move(s)));
}

}  // namespace coppice::detail
