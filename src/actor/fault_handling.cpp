// The path of a failure, from top to bottom: a child fails, its parent decides, the directive is carried out, the child
// follows it.
#include "internal/fault_handling.hpp"

#include <array>

#include "internal/child_processes.hpp"
#include "internal/child_stopping.hpp"
#include "internal/failure_counters.hpp"
#include "internal/life_cycle.hpp"

namespace coppice::detail {

// ---- 1. this actor fails

void fault_handling::fail(exit_reason why, std::exception_ptr thrown, pid escalated, const mail_origin& handling) {
  if (me_.change(life_event::failed) != life_action::report_failure) return;
  me_.escalated_child = escalated;
  me_.set_failed_on({.sender = handling.sender, .called = handling.called});
  tell_children(signals::suspend{}, escalated);  // that child is suspended by its own failure
  if (me_.failures != decided_by::parent) return let_guardian_decide(why, thrown);
  signal_to(me_.parent, signals::child_failed{.child = me_.id(),
                                              .instance = me_.instance_number,
                                              .has_instance = me_.instance.exists(),
                                              .reason = std::move(why),
                                              .thrown = std::move(thrown)});
}

// ---- 2. the parent decides

void fault_handling::on(signals::child_failed f) {
  child_record* c = me_.find_child(f.child);
  if (c == nullptr || f.instance != c->instance) return;  // it has ended, or was restarted with a sibling meanwhile
  if (me_.is_stopping() || (me_.is_restarting() && !me_.settings->keep_children))
    return child_stopping{me_, t_}.stop(*c, exit_reason::shutdown());
  if (c->stopping) return;
  c->failure_is_open = true;
  c->has_instance = f.has_instance;
  c->last_failure = f.reason;
  if (!me_.decides()) return me_.parts().undecided.push_back(std::move(f));
  decide_about(*c, f);
}

void fault_handling::decide_about(child_record& c, const signals::child_failed& f) {
  judgement j;
  try {
    j = judge(me_.settings->strategy, c, f, true);
  } catch (const broken_invariant&) {
    throw;
  } catch (...) {  // a decider that throws fails this actor, as if it had returned `escalate`
    if (!me_.failure_is_open()) return fail(reason_of_failure(t_), std::current_exception(), c.who);
  }
  if (me_.failure_is_open()) {  // the decider has called `context::fail`
    me_.escalated_child = c.who;
    if (!c.spec) signal_to(c.who, signals::resume{});  // it was suspended together with its siblings
    return;
  }
  announce(c, f, j);
  carry_out(c, j, f);
}

judgement fault_handling::judge(const actor_strategy& by, child_record& c, const signals::child_failed& f,
                                bool ask_the_instance) {
  const actor_strategy::rules& rules = by.get();
  const strategy_options& options = rules.options;
  const bool counts = !rules.custom && options.limit.restarts != unlimited_restarts;
  const child_failure failure{.child = f.child,
                              .name = c.name,
                              .reason = f.reason,
                              .what = f.thrown,
                              .restarts = counts ? c.window.count(host().now(), options.limit) : c.restarts};
  judgement j{.all = rules.all};
  if (rules.custom)
    j = rules.custom(failure);
  else if (ask_the_instance && me_.type_of_actor().decide != nullptr)
    j.what = ask_instance(failure);
  else if (options.decide)
    j.what = options.decide(failure);
  if (j.what == directive::resume && !f.has_instance) j.what = directive::restart;  // there is nothing to resume
  if (j.what == directive::restart && !rules.custom) limit_restart(c, options, j);
  return j;
}

void fault_handling::limit_restart(child_record& c, const strategy_options& options, judgement& j) {
  if (options.limit.restarts == unlimited_restarts && !options.wait) return;  // without reading the clock
  const time_point now = host().now();
  const next_restart next =
      limit_then_back_off({.limit = options.limit, .backoff = options.wait ? &*options.wait : nullptr}, c.window,
                          c.failures_in_a_row, now, now - c.running_since, host().env().random());
  j.what = next.allowed ? directive::restart : directive::stop;
  j.after = next.wait;
}

directive fault_handling::ask_instance(const child_failure& f) {
  mail_origin nobody;
  context self{me_, t_, nobody, plain<child_failure>};
  return me_.type_of_actor().decide(me_, self, f);
}

void fault_handling::announce(const child_record& c, const signals::child_failed& f, const judgement& j) {
  metrics_in(host()).of<failure_counters>().of(j.what).add();
  // A stop is logged when the process ends, an escalation by the parent that decides about it in the end.
  const bool cancel_at_timeout = j.what == directive::resume || j.what == directive::restart;
  if (cancel_at_timeout && !f.logged && host().logs(log_level::warning, log_parts::actor)) {
    const std::array<log_field, 4> fields{{{"pid", to_string(c.who)},
                                           {"name", c.name},
                                           {"reason", f.reason.to_string()},
                                           {"answer", std::string{to_string(j.what)}}}};
    host().log_throttled({"actor failed", std::hash<pid>{}(c.who)}, log_parts::actor, log_level::warning,
                         "actor failed", fields);
  }
  if (host().events().wanted(plain<supervision_event>))
    host().events().publish(supervision_event{
        .parent = me_.id(), .child = c.who, .name = c.name, .reason = f.reason, .what = j.what, .after = j.after});
}

// ---- 3. the parent carries out its decision

void fault_handling::carry_out(child_record& c, const judgement& j, const signals::child_failed& f) {
  switch (j.what) {
    case directive::resume: return resume_child(c);
    case directive::restart: return schedule_restart(c, j, f.reason);
    case directive::stop:
      if (!j.all) return child_stopping{me_, t_}.stop(c, f.reason);
      for (child_record* each : me_.parts().children.in_order()) child_stopping{me_, t_}.stop(*each, f.reason);
      return;
    case directive::escalate: return fail(f.reason, f.thrown, c.who);
  }
}

void fault_handling::resume_child(child_record& c) {
  c.failure_is_open = false;
  signal_to(c.who, signals::resume_own_failure{c.instance});
}

/// A child without an instance cannot be resumed. The restart counts, because otherwise a constructor that always fails
/// would be called without end.
void fault_handling::restart_instead_of_resume(child_record& c) {
  const actor_strategy::rules& rules = me_.settings->strategy.get();
  const exit_reason cause = c.last_failure.value_or(exit_reason{});
  judgement j{.what = directive::restart, .all = rules.all};
  if (!rules.custom) limit_restart(c, rules.options, j);
  const signals::child_failed failure{.child = c.who, .instance = c.instance, .reason = cause};
  announce(c, failure, j);
  carry_out(c, j, failure);
}

void fault_handling::schedule_restart(child_record& c, const judgement& j, const exit_reason& cause) {
  if (j.all)
    for (child_record* each : me_.parts().children.in_order())
      if (each != &c && !each->spec && !each->stopping && !each->suspended_for) {
        each->suspended_for = c.who;
        signal_to(each->who, signals::suspend{});
      }
  if (j.after.count() <= 0) return restart_children(c, j.all, cause);
  c.restart_timer =
      arm_signal(host(), me_.id(), j.after,
                 {signals::child_restart_due{.child = c.who, .instance = c.instance, .all = j.all, .cause = cause}});
}

void fault_handling::on(const signals::child_restart_due& s) {
  if (me_.is_stopping()) return;
  child_record* c = me_.find_child(s.child);
  if (c == nullptr || c->stopping) {
    if (s.all) restart_siblings_waiting_for(s.child, s.cause);
    return;
  }
  if (c->instance == s.instance) restart_children(*c, s.all, s.cause);
}

/// `gone` has ended or is stopping. Restarts the siblings that waited for its restart, and those that waited for these
/// in turn.
void fault_handling::restart_siblings_waiting_for(pid gone, const exit_reason& cause) {
  std::vector<pid> awaited{gone};
  while (!awaited.empty()) {
    const pid one = awaited.back();
    awaited.pop_back();
    for (child_record* each : me_.parts().children.in_order()) {
      if (each->suspended_for != one) continue;
      awaited.push_back(each->who);
      if (each->stopping)
        each->suspended_for = {};  // two children may wait for each other; without this the loop would not end
      else
        restart_child(*each, cause);
    }
  }
}

void fault_handling::restart_children(child_record& failed, bool all, const exit_reason& cause) {
  ++failed.restarts;
  if (!all) return restart_child(failed, cause);
  for (child_record* each : me_.parts().children.in_order()) restart_child(*each, cause);
}

void fault_handling::restart_child(child_record& c, const exit_reason& cause) {
  if (c.stopping) return;
  const bool has_failed = std::exchange(c.failure_is_open, false);
  c.running_since = host().now();
  if (c.spec) {
    if (has_failed) return child_processes{me_, t_}.start_again(c);
    child_stopping{me_, t_}.stop(c, exit_reason::shutdown());
    c.start_again = true;
    return;
  }
  signal_to(c.who, signals::restart{.instance = ++c.instance,
                                    .was_suspended = static_cast<bool>(std::exchange(c.suspended_for, {})),
                                    .cause = cause});
}

// ---- 4. the child follows

void fault_handling::on(const signals::suspend&) {
  if (me_.is_stopping() || me_.has_ended()) return;
  me_.suspend();
  tell_children(signals::suspend{});
}

void fault_handling::on(const signals::resume&) {
  if (me_.is_stopping() || me_.has_ended()) return;
  me_.end_suspensions(1);
  tell_children(signals::resume{});
  if (me_.is_active()) life_cycle{me_, t_}.continue_work();
}

void fault_handling::on(const signals::resume_own_failure& s) {
  if (!me_.failure_is_open() || s.instance != me_.instance_number) return;  // it was answered in another way meanwhile
  const life_action next = me_.change(life_event::failure_resumed);
  me_.set_failed_on({});
  const pid escalated = std::exchange(me_.escalated_child, {});
  tell_children(signals::resume{}, escalated);
  if (child_record* c = me_.find_child(escalated)) {  // this resume also answers the failure of that child
    if (c->has_instance)
      resume_child(*c);
    else
      restart_instead_of_resume(*c);
  }
  life_cycle{me_, t_}.execute(next);
}

void fault_handling::on(const signals::restart& s) {
  if (me_.is_stopping() || me_.has_ended()) return;
  ensure(s.instance > me_.instance_number, "a restart has the number of an older instance");
  me_.instance_number = s.instance;
  if (s.was_suspended) me_.add_suspension_of_restart();
  life_cycle{me_, t_}.restart(s.cause);  // without effect during a restart, which then serves for both
}

// ---- top-level actors: their guardian decides

void fault_handling::let_guardian_decide(const exit_reason& why, const std::exception_ptr& thrown) {
  child_record& own = me_.parts().own;
  own.who = me_.id();
  own.name = host().name_of(me_.id());
  const signals::child_failed failure{.child = me_.id(),
                                      .instance = me_.instance_number,
                                      .has_instance = me_.instance.exists(),
                                      .reason = why,
                                      .thrown = thrown};
  judgement j{.what = directive::escalate};
  exit_reason stop_with = why;
  if (me_.settings->guardian || me_.failures != decided_by::supervisor) {
    try {
      j = judge(me_.settings->guardian.value_or(actor_strategy{}), own, failure, false);
    } catch (const broken_invariant&) {
      throw;
    } catch (...) {
      stop_with = reason_of_failure(t_);
    }
  }
  announce(own, failure, j);
  // The decision is carried out by signals, because this may run inside of a handler.
  switch (j.what) {
    case directive::resume: return signal_to(me_.id(), signals::resume_own_failure{me_.instance_number});
    case directive::restart: {
      ++own.restarts;
      actor_signal due{signals::own_restart_due{.instance = me_.instance_number, .cause = why}};
      if (j.after.count() <= 0) return signal_to(me_.id(), std::move(due));
      own.restart_timer = arm_signal(host(), me_.id(), j.after, std::move(due));
      return;
    }
    case directive::stop:
    case directive::escalate: return signal_to(me_.id(), signals::stop{stop_with});
  }
}

void fault_handling::on(const signals::own_restart_due& s) {
  if (me_.state() != life::failed || s.instance != me_.instance_number) return;
  ++me_.instance_number;
  me_.parts().own.running_since = host().now();
  life_cycle{me_, t_}.restart(s.cause);
}

}  // namespace coppice::detail
