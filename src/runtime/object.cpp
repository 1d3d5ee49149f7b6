#include <coppice/runtime/object.hpp>

namespace coppice::detail {

/// One timer is on its way for an object, one more each time it wants to hear sooner. When it comes back it finds out
/// how long nothing has happened, so that a message costs a look at the clock and not a timer.
void watch_for_idleness(turn& t, idle_watch& w, std::chrono::nanoseconds limit) {
  if (limit == no_timeout) return;
  const pid me = t.k->pid_of(*t.p);
  envelope* check = make_letter<idle_check>(plain<idle_check>, w.handled, ++w.checks);
  w.armed = true;
  w.due = w.last + std::max(limit, std::chrono::nanoseconds{0});
  if (limit.count() <= 0)
    t.k->send(me, signal::message, check);  // behind what waits already
  else
    (void)t.k->arm(w.due, me, signal::message, check);
}

}  // namespace coppice::detail
