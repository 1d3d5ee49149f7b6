// The parts of a plain object's process that do not depend on its class.
#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/object_body.hpp>

namespace coppice::detail {

// ---- idleness

namespace {
/// An object has one pending check, and one more each time its limit becomes shorter; only the newest counts. When it
/// arrives, it finds out for how long no message was handled. So a message costs a look at the clock, and no timer.
void arm_idle_check(turn& t, idle_watch& w, std::chrono::nanoseconds limit) {
  if (limit == no_timeout) return;
  const pid me = t.k->pid_of(*t.p);
  envelope* check = make_letter<idle_check>(plain<idle_check>, w.handled, ++w.checks);
  w.armed = true;
  w.due = w.last + std::max(limit, std::chrono::nanoseconds{0});
  if (limit.count() <= 0)
    t.k->send(me, signal::message, check);  // behind the queued messages
  else
    (void)t.k->arm(w.due, me, signal::message, check);
}
}  // namespace

void note_handled(turn& t, idle_watch& w, std::chrono::nanoseconds limit) {
  ++w.handled;
  w.last = t.k->now();
  if (!w.armed || (limit != no_timeout && w.last + limit < w.due)) arm_idle_check(t, w, limit);
}

bool is_idle_at_check(turn& t, idle_watch& w, idle_check check, std::chrono::nanoseconds limit) {
  ensure(check.number <= w.checks, "an idle check that was never armed");
  if (check.number != w.checks) return false;  // another one was armed later
  w.armed = false;
  if (check.handled == w.handled || (limit.count() > 0 && t.k->now() - w.last >= limit)) return true;
  arm_idle_check(t, w, limit);
  return false;
}

// ---- handlers

void unanswered_request::drop() noexcept { answer_dropped(*turn_.k, turn_.k->pid_of(*turn_.p), call_); }

std::optional<exit_reason> order_to_end(const kernel& k, const slot& p, envelope& e) {
  if (e.type == &plain<stop_order>) return std::move(static_cast<letter<stop_order>&>(e).body.reason);
  if (e.type != &plain<exited>) return std::nullopt;
  auto& x = static_cast<letter<exited>&>(e).body;
  if (!k.is_stop_from_parent(p, x)) return std::nullopt;
  return std::move(x.reason);
}

bool take_order_to_end(turn& t, envelope& e) {
  std::optional<exit_reason> why = order_to_end(*t.k, *t.p, e);
  if (!why) return false;
  e.type->drop(*t.k, e, {});
  t.ending = std::move(*why);
  t.ends = true;
  return true;
}

void drop_unhandled(turn& t, envelope& e) {
  t.k->note_unhandled(t.k->pid_of(*t.p), e);
  e.type->drop(*t.k, e, {});
}

// ---- starting

bool acknowledge_start(turn& t, const start_letter& first, init_result&& how) {
  const bool begun = how.what() == init_result::kind::ok;
  if (!begun) {
    t.ending = how.reason();
    t.ends = true;
  }
  start_ack{first.with.parent, first.with.ack}.give(*t.k, std::move(how));
  return begun;
}

void start_ack::give(kernel& k, init_result&& how) const {
  // A stop without an error is not reported here: the starter learns the reason from the end of the process.
  if (how.what() == init_result::kind::stop && how.why() == nullptr) return;
  if (call != 0) k.send(to, signal::notice, make_letter<start_news>(plain<start_news>, call, std::move(how)));
}

}  // namespace coppice::detail
