#include <coppice/actor/detail/actor_signal.hpp>

namespace coppice::detail {

timer_ref arm_signal(kernel& k, pid me, std::chrono::nanoseconds after, actor_signal s) {
  return k.arm(k.time_after(after), me, signal::fast, make_letter<actor_signal>(plain<actor_signal>, std::move(s)));
}

}  // namespace coppice::detail
