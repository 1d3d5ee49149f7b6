#include "internal/life_cycle.hpp"

#include "internal/child_stopping.hpp"
#include "internal/ends_of_others.hpp"
#include "internal/fault_handling.hpp"
#include "internal/handler_calls.hpp"
#include "internal/mail_handling.hpp"

namespace coppice::detail {

void life_cycle::on(life_event event, const exit_reason& why) {
  const bool failure_was_open = me_.failure_is_open();
  execute(me_.change(event), why, failure_was_open);
}

void life_cycle::execute(life_action what, const exit_reason& why, bool answers_failure) {
  switch (what) {
    case life_action::forbidden:       // `change` does not return it
    case life_action::report_failure:  // done by `fault_handling::fail`
    case life_action::ignore:
    case life_action::none: return;
    case life_action::create_instance: return create();
    case life_action::take_mail: std::exchange(me_.ack, {}).give(host(), init_result::ok()); return continue_work();
    case life_action::begin_restart: return begin_restart(why);
    case life_action::replace_instance: return replace_instance(answers_failure);
    case life_action::begin_stop: return begin_stop(why, me_.state() == life::draining);
    case life_action::drop_and_stop:
      me_.instance.destroy_if_any(me_, me_.type_of_actor());
      return begin_stop(why, false);
    case life_action::hurry_children: return stop_children(false);
    case life_action::report_waiting: return child_stopping{me_, t_}.tell_parent();
    case life_action::end_process: return end_process();
  }
}

void life_cycle::continue_work() {
  if (me_.decides() && me_.rare && !me_.rare->undecided.empty())
    for (signals::child_failed& f : std::exchange(me_.rare->undecided, {})) fault_handling{me_, t_}.on(std::move(f));
  mail_handling{me_, t_}.continue_with_mail();
}

// ---- creation

void life_cycle::begin(const start_letter& first) {
  me_.set_id(host().pid_of(*t_.p));
  me_.parent = first.with.parent;
  me_.ack = {first.with.parent, first.with.ack};
  if (first.with.policy) me_.parts().policy = first.with.policy;
  on(life_event::begun);
  look_for_early_exit();
}

/// Until now the process had no fast lane, so an exit from its parent was enqueued as any other signal.
void life_cycle::look_for_early_exit() {
  const kernel_section mine{*t_.p, me_.id().serial()};
  if (mine && t_.p->mail.tail.load() != t_.p->mail.head)
    t_.p->urgent.fetch_or(look_for_fast, std::memory_order_relaxed);
}

void life_cycle::create() {
  mail_origin nobody;
  call_guarded(me_, t_, nobody, [&] {
    {
      context self{me_, t_, nobody, plain<started>};
      initialise(self);
      if (me_.state() != life::creating) return;  // failed by `context::fail`
      me_.instance.make(me_, self, me_.type_of_actor());
      // A constructor that has called `context::fail` counts as one that has thrown.
      if (me_.state() != life::creating) return me_.instance.destroy(me_, me_.type_of_actor());
    }
    t_.message = &plain<started>;
    handler_calls{me_, t_}.notify(started{});
  });
  if (me_.state() == life::creating) on(life_event::started);
}

void life_cycle::initialise(context& me) {
  if (me_.initialised) return;
  for (const auto& hook : me_.settings->on_init) {
    hook(me);
    if (me_.state() != life::creating) return;
  }
  me_.initialised = true;
}

// ---- restart

void life_cycle::begin_restart(const exit_reason& cause) {
  if (me_.instance.exists()) handler_calls{me_, t_}.notify_ignoring_exceptions(restarting{cause});
  me_.set_failed_on({});
  end_instance();
  if (me_.rare) {
    rare_parts& parts = *me_.rare;
    parts.futures.drop_continuations();
    me_.change_behaviours([](behaviour_stack& b) { b = {}; });
    while (!parts.stash.empty()) {  // the stash is older than the mail that was put aside
      me_.aside.add_first(parts.stash.back());
      parts.stash.pop_back();
    }
    if (!me_.settings->keep_children) {
      for (const child_record* c : parts.children.in_order()) ends_of_others{me_, t_}.unwatch(c->who);
      child_stopping{me_, t_}.stop_all(exit_reason::shutdown(), false);
      // The last child continues the restart when it ends. If no child was running, that has happened already.
      if (me_.has_children() || !me_.is_restarting()) return;
    }
  }
  children_done();
}

void life_cycle::replace_instance(bool answers_failure) {
  me_.instance.destroy_if_any(me_, me_.type_of_actor());
  const std::uint32_t ended = me_.end_suspensions_of_restart() + (answers_failure ? 1U : 0U);
  fault_handling faults{me_, t_};
  const pid escalated = std::exchange(me_.escalated_child, {});
  if (child_record* c = me_.find_child(escalated)) {
    // This child was suspended by its own failure, not by this actor's: it is restarted and skips one resume.
    ensure(c->last_failure.has_value(), "the failure of a child was escalated, but is not known");
    const exit_reason own_failure = *c->last_failure;
    faults.restart_child(*c, own_failure);
    faults.tell_children(signals::resume{}, escalated);
    for (std::uint32_t i = 1; i < ended; ++i) faults.tell_children(signals::resume{});
  } else {
    for (std::uint32_t i = 0; i < ended; ++i) faults.tell_children(signals::resume{});
  }
  create();
}

/// Timers and the receive timeout belong to the instance.
void life_cycle::end_instance() {
  me_.instance.begin_next_generation();
  if (!me_.rare) return;
  me_.rare->timers.cancel_all(host());
  me_.rare->receive_timeout.forget();
  me_.set_slow_path(life_status::slow_path::receive_timeout, false);
}

// ---- stop

void life_cycle::begin_stop(const exit_reason& reason, bool drain) {
  me_.stop_reason = reason;
  if (me_.rare) host().disarm(me_.rare->own.restart_timer);
  if (me_.instance.exists()) handler_calls{me_, t_}.notify_ignoring_exceptions(stopping{me_.stop_reason});
  end_instance();
  stop_children(drain);
}

void life_cycle::stop_children(bool drain) {
  child_stopping{me_, t_}.stop_all(exit_reason::shutdown(), drain);
  if (!me_.is_stopping()) return;  // no child was running, and this actor has ended
  if (!me_.has_children()) return children_done();
  child_stopping{me_, t_}.tell_parent();
}

void life_cycle::end_process() {
  if (me_.rare && me_.rare->children_end_by) signal_to(me_.parent, signals::child_is_ending{me_.id()});
  if (me_.instance.exists()) handler_calls{me_, t_}.notify_ignoring_exceptions(stopped{me_.stop_reason});
  t_.ending = std::move(me_.stop_reason);
  t_.ends = true;
}

}  // namespace coppice::detail
