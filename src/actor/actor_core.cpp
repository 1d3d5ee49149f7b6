// The functions that the kernel calls: to deliver a signal or a message, to observe an actor, and to destroy it.
#include <typeinfo>

#include <coppice/actor/detail/actor_core.hpp>

#include "internal/child_stopping.hpp"
#include "internal/fault_handling.hpp"
#include "internal/future_handling.hpp"
#include "internal/life_cycle.hpp"
#include "internal/mail_handling.hpp"
#include "internal/room_waiting.hpp"

namespace coppice::detail {

actor_core::actor_core(const actor_class& c, std::shared_ptr<const actor_settings> s, actor_birth how) noexcept
    : life_status{c, how.suspended}, settings{std::move(s)}, aside{*this}, failures{how.failures} {
  if (!settings->on_receive.empty()) set_slow_path(slow_path::middleware, true);
}

namespace {

/// One line for each signal: who handles it.
class signal_dispatch : public duty {
 public:
  using duty::duty;
  void operator()(signals::child_failed& s) { fault_handling{me_, t_}.on(std::move(s)); }
  void operator()(const signals::child_restart_due& s) { fault_handling{me_, t_}.on(s); }
  void operator()(const signals::suspend& s) { fault_handling{me_, t_}.on(s); }
  void operator()(const signals::resume& s) { fault_handling{me_, t_}.on(s); }
  void operator()(const signals::resume_own_failure& s) { fault_handling{me_, t_}.on(s); }
  void operator()(const signals::restart& s) { fault_handling{me_, t_}.on(s); }
  void operator()(const signals::own_restart_due& s) { fault_handling{me_, t_}.on(s); }
  void operator()(const signals::stop& s) { life_cycle{me_, t_}.stop(s.reason); }
  void operator()(const signals::stop_child_process& s) { child_stopping{me_, t_}.on(s); }
  void operator()(const signals::child_stop_overdue& s) { child_stopping{me_, t_}.on(s); }
  void operator()(const signals::child_waits_for_children& s) { child_stopping{me_, t_}.on(s); }
  void operator()(const signals::child_is_ending& s) { child_stopping{me_, t_}.on(s); }
  void operator()(const signals::future_timed_out& s) { future_handling{me_, t_}.on(s); }
  void operator()(const signals::end_wait_timed_out& s) { future_handling{me_, t_}.on(s); }
  void operator()(const signals::receiver_full& s) { room_waiting{me_, t_}.on(s); }
  void operator()(const signals::receiver_has_room& s) { room_waiting{me_, t_}.on(s); }
  void operator()(const signals::wait_for_room_timed_out& s) { room_waiting{me_, t_}.on(s); }
  void operator()(const signals::room_signals_caught_up& s) { room_waiting{me_, t_}.on(s); }
};

void handle_wake_up(actor_core& me, turn& t, envelope& e) {
  if (e.type == &plain<mail_token>)
    mail_handling{me, t}.receive_under_policy();
  else if (e.type == &plain<replay_mail>)
    mail_handling{me, t}.replay();
  else if (e.type == &plain<receive_check>)
    mail_handling{me, t}.check_receive_timeout(take_body<receive_check>(e));
  else
    e.type->drop(*t.k, e, {});
}

verdict handle(actor_core& me, turn& t, envelope& e) {
  switch (e.what()) {
    case signal::start: life_cycle{me, t}.begin(static_cast<start_letter&>(e)); return verdict::alive;
    case signal::fast: {
      struct emptying {
        actor_signal& s;
        ~emptying() { std::destroy_at(&s); }
      } const from{static_cast<letter<actor_signal>&>(e).body};
      std::visit(signal_dispatch{me, t}, from.s.what);
      return verdict::alive;
    }
    case signal::reply:
    case signal::notice: future_handling{me, t}.receive_reply(e); return verdict::alive;
    case signal::message: return mail_handling{me, t}.receive(e);
    case signal::wake: handle_wake_up(me, t, e); return verdict::alive;
    default: e.type->drop(*t.k, e, {}); return verdict::alive;
  }
}

}  // namespace

verdict actor_core::offer(body& b, turn& t, envelope& e) {
  auto& me = static_cast<actor_core&>(b);
  verdict v = verdict::alive;
  mail_origin nobody;
  // An exception outside of a handler is a failure of the actor too: for example, a message could not be copied.
  call_guarded(me, t, nobody, [&] { v = handle(me, t, e); });
  return t.ends ? verdict::ended : v;
}

// ---- exceptions

void actor_core::handler_threw(turn& t, mail_origin& origin, const std::exception& x) {
  if (typeid(x) == typeid(broken_invariant)) return end_broken(t, origin, static_cast<const broken_invariant&>(x));
  handler_threw(t, origin, reason_of_failure(x, t));
}

void actor_core::handler_threw(turn& t, mail_origin& origin, exit_reason why) {
  if (origin.call != 0) fail_call(*t.k, origin, error{errc::no_reply, to_string(id()) + " failed: " + why.to_string()});
  fault_handling{*this, t}.fail(std::move(why), std::current_exception(), {}, origin);
}

void actor_core::handler_threw_exit_with(turn& t, mail_origin& origin, const exit_reason& why) {
  if (origin.call != 0) fail_call(*t.k, origin, error{errc::exited, why.to_string()});
  life_cycle{*this, t}.stop(why);
}

void actor_core::end_broken(turn& t, mail_origin& origin, const broken_invariant& found) {
  set_broken();
  t.ending = reason_of_failure(found, t);
  t.ends = true;
  if (origin.call != 0) fail_call(*t.k, origin, error{errc::exited, t.ending.to_string()});
}

// ---- the end, and questions of observers

namespace {
void cancel_timers(kernel& k, rare_parts& parts) noexcept {
  parts.timers.cancel_all(k);
  parts.receive_timeout.disarm(k);
  parts.room.cancel_deadlines(k);
  k.disarm(parts.own.restart_timer);
  for (const auto& [who, c] : parts.children) {
    k.disarm(c.restart_timer);
    k.disarm(c.stop_timer);
  }
}

/// Drops mail that the actor did not handle.
void drop_left_mail(kernel& k, pid me, envelope* e, const loss& how) {
  if (e->type == &plain<continuation_ready>)
    fail_future(k, *static_cast<letter<continuation_ready>*>(e)->body.future, how);
  const bool is_mail = e->what() == signal::message && e->type != &plain<poison_pill> && e->type != &plain<terminated>;
  if (is_mail && !k.crashed()) k.note_dead_letter(me, *e);
  discard(k, e, how);
}
}  // namespace

void actor_core::destroy(body& b, kernel& k) noexcept {
  auto& me = static_cast<actor_core&>(b);
  me.instance.destroy_if_any(me, me.type_of_actor());
  const loss how = loss_by(me.id());
  if (me.rare) {
    cancel_timers(k, *me.rare);
    for (envelope* e : std::exchange(me.rare->stash, {})) drop_left_mail(k, me.id(), e, how);
    me.rare->futures.fail_all(k, how);
  }
  while (envelope* e = me.aside.take()) drop_left_mail(k, me.id(), e, how);
  if (me.rare && me.rare->policy)
    for (envelope* e : k.close_policy(me.id())) drop_left_mail(k, me.id(), e, how);
  me.type_of_actor().free(me);
}

envelope* actor_core::in_hand(const body& b) noexcept {
  return static_cast<const actor_core&>(b).mail_in_hand.load(std::memory_order_acquire);
}

void actor_core::describe(const body& b, kernel&, process_info& into) {
  const auto& me = static_cast<const actor_core&>(b);
  if (me.is_restarting() || me.is_stopping())
    into.waits.kind = wait_kind::children;
  else if (!me.decides())
    into.waits.kind = wait_kind::decision;
  else
    into.waits.kind = me.waits_for_room() ? wait_kind::room : wait_kind::mail;
  me.aside.for_each([&](const envelope& e) { count_mail(into.mail, e.type->name); });
  if (!me.rare) return;
  for (const envelope* e : me.rare->stash) count_mail(into.mail, e->type->name);
}

void actor_core::tell_of_room(kernel& k, pid sender, pid receiver, bool waits) {
  if (waits)
    send_signal(k, sender, signals::receiver_full{receiver});
  else
    send_signal(k, sender, signals::receiver_has_room{receiver});
}

std::uint32_t actor_core::held(const body& b) noexcept {
  const auto& me = static_cast<const actor_core&>(b);
  std::size_t all = me.aside.size();
  if (me.rare) all += me.rare->stash.size();
  return static_cast<std::uint32_t>(all);
}

}  // namespace coppice::detail
