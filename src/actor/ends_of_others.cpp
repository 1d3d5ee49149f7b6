#include "internal/ends_of_others.hpp"

#include "internal/child_stopping.hpp"
#include "internal/future_handling.hpp"
#include "internal/handler_calls.hpp"
#include "internal/life_cycle.hpp"
#include "internal/mail_handling.hpp"

namespace coppice::detail {

void ends_of_others::watch(pid who) {
  if (who == me_.id() || me_.parts().watches.watches(who)) return;
  handler_self self{t_, me_.id()};
  me_.parts().watches.add(who, self.monitor(who));
}

void ends_of_others::unwatch(pid who) {
  if (!me_.rare) return;
  const auto by = me_.rare->watches.remove(who);
  if (!by) return;
  handler_self self{t_, me_.id()};
  self.demonitor(*by);
}

namespace {
terminated::cause cause_of(const exit_reason& reason) {
  switch (reason.what()) {
    case exit_reason::kind::noproc: return terminated::cause::not_found;
    case exit_reason::kind::noconnection: return terminated::cause::node_gone;
    default: return terminated::cause::stopped;
  }
}
}  // namespace

void ends_of_others::receive_down(envelope& e) {
  const down d = take_body<down>(e);
  if (!me_.rare) return;
  const terminated notice{.who = d.who, .why = cause_of(d.reason), .reason = d.reason};
  if (future_handling{me_, t_}.receive_end(d.ref, notice)) return;
  if (!me_.rare->watches.note_ended(d.who, d.ref)) return;
  envelope* news = make_letter<terminated>(plain<terminated>, notice);
  if (me_.rare->policy) {  // mail that the ended process had sent may still wait there, and comes first
    news->tag = envelope::tag_of(t_.p->serial(), signal::message);
    (void)me_.rare->policy->put(host(), me_.id(), news, {});
    return;
  }
  if (!me_.next_in_turn()) return mail_handling{me_, t_}.put_aside(news);
  receive_terminated(*news);
  release(news);
}

void ends_of_others::receive_terminated(envelope& e) {
  terminated notice = take_body<terminated>(e);
  if (!me_.rare || !me_.rare->watches.take_ended(notice.who)) return;
  handler_calls{me_, t_}.deliver_notice(plain<terminated>, &notice);
}

bool ends_of_others::receive_exited(envelope& e) {
  const exited& x = static_cast<letter<exited>&>(e).body;
  if (x.linked && me_.find_child(x.from) != nullptr) {
    child_stopping{me_, t_}.child_ended(take_body<exited>(e));
    return true;
  }
  if (host().is_stop_from_parent(*t_.p, x)) {  // the parent tells it to stop
    life_cycle{me_, t_}.stop(take_body<exited>(e).reason);
    return true;
  }
  if (!me_.next_in_turn()) return false;
  // An exit of another process goes to the actor's handler. Without a handler, an exit signal stops the actor, as it
  // ends a process that does not trap exits.
  const exited end = take_body<exited>(e);
  mail_origin nobody;
  bool handled = false;
  bool returned = false;
  call_guarded(me_, t_, nobody, [&] {
    handled = handler_calls{me_, t_}.notify(exited{end});
    returned = true;
  });
  if (returned && !handled && end.signalled && end.reason.what() != exit_reason::kind::normal)
    life_cycle{me_, t_}.stop(end.reason);
  return true;
}

}  // namespace coppice::detail
