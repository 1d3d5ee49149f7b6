// What an actor does about its children, and what it is told by its parent.
#include <algorithm>

#include <coppice/actor/actor.hpp>

#include "internal/hear.hpp"

namespace coppice::detail {

using kind = actor_order::kind;

child_record* actor_core::find_child(pid who) noexcept {
  if (!parts_) return nullptr;
  const auto found = parts_->children.find(who);
  return found != parts_->children.end() ? &found->second : nullptr;
}

std::vector<child_record*> actor_core::children_in_order() {
  std::vector<child_record*> all;
  if (!parts_) return all;
  for (auto& [who, c] : parts_->children) all.push_back(&c);
  std::ranges::sort(all, {}, &child_record::place);
  return all;
}

void actor_core::before_spawn() const {
  if (phase_ != phase::running)
    throw spawn_failed{error{errc::stopped, to_string(me_) + " is stopping or restarting, and starts no children"}};
}

void actor_core::add_child(turn& t, pid who, std::string name, std::shared_ptr<const child_spec> spec) {
  child_record c;
  c.who = who;
  c.name = std::move(name);
  c.place = ++parts().places;
  c.spec = std::move(spec);
  c.since = t.k->now();
  parts().children.emplace(who, std::move(c));
  t.k->adopt(*t.p, me_, who, true, {});
}

void actor_core::take_order(turn& t, actor_order o) {
  switch (o.what) {
    case kind::failed: return child_failed(t, std::move(o));
    case kind::suspend: return on_suspend(t);
    case kind::resume: return on_resume(t, o);
    case kind::restart: return on_restart(t, o);
    case kind::stop: return begin_stop(t, std::move(o.reason), false);
    case kind::stop_child: {
      const auto c = std::ranges::find(parts().children, o.number, [](const auto& each) { return each.second.place; });
      if (c != parts().children.end()) stop_child(t, c->second, o.reason, false);
      return;
    }
    case kind::restart_due: return restart_due(t, o);
    case kind::kill_due: {
      handler_self me{t};
      if (find_child(o.from) != nullptr) me.kill(o.from);
      return;
    }
    case kind::future_due: return future_due(t, o);
    case kind::hold: return on_hold(t, o);
    case kind::let_go: return on_let_go(t, o);
    case kind::hold_due: return on_hold_due(t, o);
    case kind::hold_over: parts().holds.erase(o.from); return;
  }
}

// ---- as a child

void actor_core::tell_children(turn& t, kind what, pid except) {
  if (!parts_) return;
  for (const auto& [who, c] : parts_->children)
    if (who != except && !c.spec) send_order(*t.k, who, {.what = what});
}

void actor_core::on_suspend(turn& t) {
  if (phase_ == phase::stopping || phase_ == phase::ended) return;
  ++suspended_;
  settle();
  tell_children(t, kind::suspend, {});
}

void actor_core::on_resume(turn& t, const actor_order& o) {
  if (phase_ == phase::stopping || phase_ == phase::ended) return;
  const bool own_failure = o.marked;
  if (own_failure && (!failed_ || o.number != instance_)) return;  // it was answered otherwise
  --suspended_;
  if (own_failure) {
    failed_ = false;
    ack_.give(*t.k, init_result::ok());  // it may have failed in its start
    ack_ = {};
  }
  const pid escalated = own_failure ? std::exchange(perpetrator_, {}) : pid{};
  tell_children(t, kind::resume, escalated);
  if (child_record* c = find_child(escalated)) {
    if (c->hollow) {
      revive(t, *c);
    } else {
      c->failed = false;
      send_order(*t.k, c->who, {.what = kind::resume, .number = c->instance, .marked = true});
    }
  }
  if (phase_ == phase::running) go_on(t);
}

void actor_core::on_restart(turn& t, const actor_order& o) {
  if (phase_ == phase::stopping || phase_ == phase::ended) return;
  instance_ = o.number;
  if (o.marked) ++extra_;
  if (phase_ == phase::running) begin_restart(t, o.reason);  // otherwise the one under way does for both
}

/// There is nothing to resume: a restart, which counts. Otherwise one that can't be made would be made for ever.
void actor_core::revive(turn& t, child_record& c) {
  const actor_strategy::rules& rules = settings_->strategy.get();
  const restart_limit& limit = rules.options.limit;
  const exit_reason cause = c.last.value_or(exit_reason{});
  judgement j;
  if (!rules.custom && limit.restarts != unlimited.restarts && !c.window.add(t.k->now(), limit))
    j.what = directive::stop;
  else if (!rules.custom)
    j.after = wait_before(t, c, rules.options);
  announce(t, c, cause, j);
  apply(t, c, j, {.what = kind::failed, .from = c.who, .number = c.instance, .reason = cause});
}

// ---- as a parent: what is answered

void actor_core::child_failed(turn& t, actor_order o) {
  child_record* c = find_child(o.from);
  if (c == nullptr || o.number != c->instance) return;  // it is gone, or was answered with another's failure
  if (phase_ == phase::stopping || (phase_ == phase::restarting && !settings_->keep_children))
    return stop_child(t, *c, exit_reason::shutdown(), false);
  if (c->stops) return;
  c->failed = true;
  c->hollow = !o.marked;
  c->last = o.reason;
  if (!decides()) return parts_->deferred.push_back(std::move(o));
  judge_child(t, *c, o);
}

void actor_core::judge_child(turn& t, child_record& c, const actor_order& o) {
  judgement j;
  try {
    j = judge(t, settings_->strategy, c, o, true);
  } catch (...) {  // the decider has failed, and with it this actor, as by `escalate`
    if (!failed_) return fail(t, reason_of_failure(t), std::current_exception(), c.who);
  }
  if (failed_) {  // it has done so by `context::fail`
    perpetrator_ = c.who;
    if (!c.spec) send_order(*t.k, c.who, {.what = kind::resume});  // it was suspended with the others
    return;
  }
  announce(t, c, o.reason, j);
  apply(t, c, j, o);
}

judgement actor_core::judge(turn& t, const actor_strategy& by, child_record& c, const actor_order& o, bool own_word) {
  const actor_strategy::rules& rules = by.get();
  const strategy_options& options = rules.options;
  const time_point now = t.k->now();
  const bool counts = !rules.custom && options.limit.restarts != unlimited.restarts;
  const child_failure f{.child = o.from,
                        .name = c.name,
                        .reason = o.reason,
                        .what = o.thrown,
                        .restarts = counts ? c.window.count(now, options.limit) : c.restarts};
  judgement j{.all = rules.all};
  if (rules.custom)
    j = rules.custom(f);
  else if (own_word && class_->decide != nullptr)
    j.what = ask_instance(t, f);
  else if (options.decide)
    j.what = options.decide(f);
  if (j.what == directive::resume && !o.marked) j.what = directive::restart;  // there is nothing to go on with
  if (j.what != directive::restart || rules.custom) return j;
  if (counts && !c.window.add(now, options.limit)) {
    j.what = directive::stop;
    return j;
  }
  j.after = wait_before(t, c, options);
  return j;
}

std::chrono::nanoseconds actor_core::wait_before(turn& t, child_record& c, const strategy_options& options) {
  if (!options.wait) return std::chrono::nanoseconds{0};
  if (t.k->now() - c.since >= options.wait->reset_after) c.in_a_row = 0;
  return options.wait->wait_after(++c.in_a_row, t.k->env().random().next());
}

directive actor_core::ask_instance(turn& t, const child_failure& f) {
  mail_origin nobody;
  context me{*this, t, nobody, plain<child_failure>};
  return class_->decide(*this, me, f);
}

void actor_core::announce(turn& t, const child_record& c, const exit_reason& why, const judgement& j) {
  if ((j.what == directive::resume || j.what == directive::restart) && t.k->logs(log_level::warning))
    t.k->log_throttled(flood::failures, log_level::warning, "actor failed",
                       {{"pid", to_string(c.who)},
                        {"name", c.name},
                        {"reason", why.to_string()},
                        {"answer", std::string{to_string(j.what)}}});
  if (t.k->events().wanted(plain<supervision_event>))
    t.k->events().publish(supervision_event{
        .parent = me_, .child = c.who, .name = c.name, .reason = why, .what = j.what, .after = j.after});
}

void actor_core::apply(turn& t, child_record& c, const judgement& j, const actor_order& o) {
  switch (j.what) {
    case directive::resume:
      if (c.spec) return restart_process(t, c);
      c.failed = false;
      return send_order(*t.k, c.who, {.what = kind::resume, .number = c.instance, .marked = true});
    case directive::restart: return restart_later(t, c, j, o.reason);
    case directive::stop:
      if (j.all) {
        for (child_record* each : children_in_order()) stop_child(t, *each, o.reason, false);
      } else {
        stop_child(t, c, o.reason, false);
      }
      return;
    case directive::escalate: {
      const pid who = c.spec ? pid{} : c.who;
      if (c.spec) forget_child(t, c.who);  // there is nothing left of it
      return fail(t, o.reason, o.thrown, who);
    }
  }
}

// ---- restarts of children

void actor_core::restart_later(turn& t, child_record& c, const judgement& j, const exit_reason& cause) {
  if (j.all)
    for (child_record* each : children_in_order())
      if (each != &c && !each->spec && !each->stops && !each->held_for) {
        each->held_for = c.who;
        send_order(*t.k, each->who, {.what = kind::suspend});
      }
  if (j.after.count() <= 0) return restart_now(t, c, j.all, cause);
  c.due = arm_order(*t.k, me_, j.after,
                    {.what = kind::restart_due, .from = c.who, .number = c.instance, .marked = j.all, .reason = cause});
}

void actor_core::restart_due(turn& t, const actor_order& o) {
  if (o.from == me_) {  // its guardian waited
    if (failed_ && o.number == instance_ && phase_ == phase::running) {
      ++instance_;
      parts().own.since = t.k->now();
      begin_restart(t, o.reason);
    }
    return;
  }
  if (phase_ == phase::stopping) return;
  child_record* c = find_child(o.from);
  if (c == nullptr || c->stops) {
    if (o.marked) restart_held(t, o.from, o.reason);
    return;
  }
  if (c->instance == o.number) restart_now(t, *c, o.marked, o.reason);
}

/// Those that waited with one that is gone, and those that waited with them: their own times no longer count.
void actor_core::restart_held(turn& t, pid gone, const exit_reason& cause) {
  std::vector<pid> whose{gone};
  while (!whose.empty()) {
    const pid one = whose.back();
    whose.pop_back();
    for (child_record* each : children_in_order()) {
      if (each->held_for != one) continue;
      whose.push_back(each->who);
      if (each->stops)
        each->held_for = {};  // two may wait for each other
      else
        restart_one(t, *each, cause);
    }
  }
}

void actor_core::restart_now(turn& t, child_record& c, bool all, const exit_reason& cause) {
  ++c.restarts;
  if (!all) return restart_one(t, c, cause);
  for (child_record* each : children_in_order()) restart_one(t, *each, cause);
}

void actor_core::restart_one(turn& t, child_record& c, const exit_reason& cause) {
  if (c.stops) return;
  const bool waited = std::exchange(c.failed, false);
  c.since = t.k->now();
  if (c.spec) {
    if (waited) return restart_process(t, c);
    stop_child(t, c, exit_reason::shutdown(), false);
    c.again = true;
    return;
  }
  send_order(*t.k, c.who,
             {.what = kind::restart,
              .number = ++c.instance,
              .marked = static_cast<bool>(std::exchange(c.held_for, {})),
              .reason = cause});
}

// ---- ends of children

void actor_core::stop(turn& t, pid who, exit_reason reason) {
  if (const child_record* c = find_child(who); c != nullptr && c->spec)  // not in the middle of a handler
    return send_order(*t.k, me_, {.what = kind::stop_child, .number = c->place, .reason = std::move(reason)});
  send_order(*t.k, who, {.what = kind::stop, .reason = std::move(reason)});
}

void actor_core::stop_child(turn& t, child_record& c, const exit_reason& reason, bool drain) {
  const bool again = std::exchange(c.stops, true);
  c.again = false;
  if (!c.spec) {
    if (drain && !c.failed && !c.held_for && !again)
      t.k->send(c.who, signal::message, make_letter<poison_pill>(plain<poison_pill>));
    else
      send_order(*t.k, c.who, {.what = kind::stop, .reason = reason});
    return;
  }
  if (again) return;
  handler_self me{t};
  if (c.failed) return forget_child(t, c.who);  // it has ended; of one that has not, the end is still to be heard
  const coppice::shutdown how = c.spec->shutdown.value_or(default_shutdown(c.spec->type));
  if (how.is_brutal()) return me.kill(c.who);
  me.exit(c.who, exit_reason::shutdown());
  if (how.time() != no_timeout) c.due = arm_order(*t.k, me_, how.time(), {.what = kind::kill_due, .from = c.who});
}

/// The last that was spawned first.
void actor_core::stop_children(turn& t, const exit_reason& reason, bool drain) {
  auto all = children_in_order();
  std::ranges::reverse(all);
  std::vector<pid> who;
  for (const child_record* c : all) who.push_back(c->who);
  for (const pid each : who)  // a process that waits for its restart is gone at once
    if (child_record* c = find_child(each)) stop_child(t, *c, reason, drain);
}

void actor_core::take_exited(turn& t, envelope& e, verdict& v) {
  const exited& x = static_cast<letter<exited>&>(e).body;
  if (x.linked && find_child(x.from) != nullptr) {
    const exited end = take_body<exited>(e);
    return child_gone(t, end.from, end.reason);
  }
  if (t.k->is_order(*t.p, x)) return begin_stop(t, take_body<exited>(e).reason, false);
  if (!in_turn()) {
    v = keep(e);
    return;
  }
  // Somebody else's: for a handler, or as an exit ends a process that does not trap it.
  exited end = take_body<exited>(e);
  mail_origin nobody;
  bool handled = false;
  try {
    context me{*this, t, nobody, plain<exited>};
    through_middleware(me, plain<exited>, &end, [&] { handled = dispatch(me, plain<exited>, &end, true); });
  } catch (const exit_with& out) {
    return stops_itself(t, nobody, out.reason());
  } catch (...) {
    return failed(t, nobody, reason_of_failure(t));
  }
  if (!handled && end.signalled && end.reason.what() != exit_reason::kind::normal) begin_stop(t, end.reason, false);
}

void actor_core::child_gone(turn& t, pid who, const exit_reason& reason) {
  child_record* c = find_child(who);
  if (c == nullptr) return;
  if (c->spec) t.k->disarm(c->due);
  if (c->again && phase_ == phase::running) return restart_process(t, *c);
  const bool gave_up = c->spec && c->spec->type == child_type::supervisor && c->spec->restart == restart::permanent &&
                       reason.what() == exit_reason::kind::shutdown;
  if (c->spec && !c->stops && (reason.abnormal() || gave_up) && phase_ == phase::running)
    return child_failed(t, {.what = kind::failed, .from = who, .number = c->instance, .reason = reason});
  forget_child(t, who);
}

void actor_core::forget_child(turn& t, pid who) {
  parts_->children.erase(who);
  if (perpetrator_ == who) perpetrator_ = {};
  if (!parts_->children.empty()) return;
  if (phase_ == phase::restarting)
    complete_restart(t);
  else if (phase_ == phase::stopping)
    finish_stop(t);
}

// ---- processes that are no actors

result<pid> actor_core::start_process(turn& t, const child_spec& spec) {
  before_spawn();
  if (const auto wrong = check(spec); !wrong) return std::unexpected{wrong.error()};
  if (spec.type == child_type::actor)
    return coppice::fail(errc::invalid, "'" + spec.id + "' is an actor: spawn its props, and it is supervised as one");
  if (spec.start.how().how == recipe::kind::function)
    return coppice::fail(errc::invalid, "'" + spec.id + "' has a start function, which only a supervisor can run");
  const result<pid> started = spawn_process(t, spec);
  if (started) add_child(t, *started, spec.id, std::make_shared<const child_spec>(spec));
  return started;
}

result<pid> actor_core::spawn_process(turn& t, const child_spec& spec) {
  birth with{.parent = me_, .linked = true};
  if (!spec.name.empty()) with.called = birth::by(spec.name, {});
  return spec.start.how().spawn(*t.k, std::move(with));
}

/// In the place of one that has ended, under what is known of it.
void actor_core::restart_process(turn& t, child_record& c) {
  child_record old = std::move(c);
  parts_->children.erase(old.who);
  result<pid> started = coppice::fail(errc::start_failed);
  try {
    started = spawn_process(t, *old.spec);
  } catch (...) {  // its arguments could not be copied, say
    started = coppice::fail(errc::start_failed, reason_of_failure(t).to_string());
  }
  if (!started)
    return fail(t, exit_reason::error("can't start '" + old.name + "': " + started.error().to_string()), nullptr);
  old.who = *started;
  old.failed = old.stops = old.again = false;
  old.since = t.k->now();
  ++old.instance;
  t.k->adopt(*t.p, me_, *started, true, {});
  parts_->children.emplace(*started, std::move(old));
}

// ---- top-level actors

void actor_core::judge_self(turn& t, const exit_reason& why, const std::exception_ptr& thrown) {
  child_record& own = parts().own;
  own.who = me_;
  own.name = t.k->name_of(me_);
  const actor_order o{
      .what = kind::failed, .from = me_, .number = instance_, .marked = made_, .reason = why, .thrown = thrown};
  judgement j{.what = directive::escalate};
  exit_reason ends_with = why;
  if (settings_->guardian || !supervised_) {
    try {
      j = judge(t, settings_->guardian.value_or(actor_strategy{}), own, o, false);
    } catch (...) {
      ends_with = reason_of_failure(t);
    }
  }
  announce(t, own, why, j);
  switch (j.what) {
    case directive::resume: return send_order(*t.k, me_, {.what = kind::resume, .number = instance_, .marked = true});
    case directive::restart: {
      ++own.restarts;
      actor_order due{.what = kind::restart_due, .from = me_, .number = instance_, .reason = why};
      if (j.after.count() <= 0) return send_order(*t.k, me_, std::move(due));
      own.due = arm_order(*t.k, me_, j.after, std::move(due));
      return;
    }
    case directive::stop:
    case directive::escalate: return send_order(*t.k, me_, {.what = kind::stop, .reason = ends_with});
  }
}

// ---- what people see

void actor_core::answer_children(turn& t, envelope& e) {
  const auto asked = take_body<request_body<calls::which_children>>(e);
  std::vector<child_info> all;
  const time_point now = t.k->now();
  for (const child_record* c : children_in_order()) {
    const bool down = c->spec && !t.k->alive(c->who);  // it waits for its restart, as one that has failed may
    const auto waits =
        c->failed || down ? t.k->remaining(c->due).value_or(std::chrono::nanoseconds{0}) : std::chrono::nanoseconds{0};
    all.push_back({.id = c->name.empty() ? to_string(c->who) : c->name,
                   .who = down ? pid{} : c->who,
                   .state = down || waits.count() > 0 ? child_state::restarting : child_state::running,
                   .type = c->spec ? c->spec->type : child_type::actor,
                   .restarts = c->restarts,
                   .last_reason = c->last,
                   .uptime = down ? std::chrono::nanoseconds{0} : now - c->since,
                   .waits = waits});
  }
  answer<std::vector<child_info>>(*t.k, asked.caller, asked.call, std::move(all));
}

}  // namespace coppice::detail
