#include "internal/process_timers.hpp"

#include <coppice/base/ensure.hpp>

namespace coppice::detail {

timer_ref process_timers::start(slot& me, std::chrono::nanoseconds after) {
  auto* e = make_letter<timer_fired>(plain<timer_fired>);
  side_block& side = side_of(table_, me);
  const timer_ref ref = kernel_.arm(kernel_.time_after(after), table_.pid_of(me), signal::timeout, e);
  e->body.ref = ref;  // safe even if it has fired: only this process opens the letter, and it is busy here
  const bool fresh = side.timers.insert(ref.value(), {});
  ensure(fresh, "a new timer has the number of another one");
  return ref;
}

bool process_timers::cancel(slot& me, timer_ref ref) {
  const bool pending = kernel_.disarm(ref);
  side_block* side = me.side;
  if (side == nullptr) return pending;
  return side->timers.erase(ref.value()) || pending;
}

bool process_timers::take_timer(slot& p, const envelope& e) {
  return p.side != nullptr && p.side->timers.erase(static_cast<const letter<timer_fired>&>(e).body.ref.value());
}

void process_timers::cancel_all(const side_block& side) {
  side.timers.for_each([&](std::uint64_t ref, nothing) { kernel_.disarm(timer_ref{ref}); });
}

}  // namespace coppice::detail
