// The life of an actor: from its birth over its restarts to its end.
#include <coppice/actor/actor.hpp>

#include "internal/hear.hpp"

namespace coppice::detail {

void send_order(kernel& k, pid to, actor_order o) {
  k.send_order(to, make_letter<actor_order>(plain<actor_order>, std::move(o)));
}

timer_ref arm_order(kernel& k, pid me, std::chrono::nanoseconds after, actor_order o) {
  return k.arm(k.time_after(after), me, signal::order, make_letter<actor_order>(plain<actor_order>, std::move(o)));
}

actor_core::actor_core(const actor_class& c, std::shared_ptr<const actor_settings> s, actor_birth how) noexcept
    : body{&c.rare},
      class_{&c},
      settings_{std::move(s)},
      suspended_{how.suspended},
      of_actor_{how.of_actor},
      supervised_{how.supervised} {}

void actor_core::settle() noexcept {
  const bool plainly = takes_mail() && kept_.size() == 0 && settings_->on_receive.empty() &&
                       (!parts_ || (parts_->behaviours.empty() && parts_->receive_timeout == no_timeout));
  turn* t = turn_here();
  if (t == nullptr) return;
  const kernel_section mine{*t->p, me_.serial()};
  if (!mine) return;
  type = plainly ? &class_->plain : &class_->rare;
  // While it drained, nobody looked for orders.
  if (t->p->is(slot::drains) && takes_mail()) t->p->urgent.fetch_or(look_for_orders, std::memory_order_relaxed);
  t->p->set(slot::drains, !takes_mail());
}

verdict actor_core::offer(body& b, turn& t, envelope& e) {
  auto& me = static_cast<actor_core&>(b);
  verdict v = verdict::alive;
  try {
    v = me.take_signal(t, e);
  } catch (...) {  // not in a handler: a message could not be copied, say
    mail_origin nobody;
    me.failed(t, nobody, reason_of_failure(t));
  }
  return t.ends ? verdict::ended : v;
}

verdict actor_core::take_signal(turn& t, envelope& e) {
  verdict v = verdict::alive;
  switch (e.what()) {
    case signal::start: begin(t, static_cast<start_letter&>(e)); break;
    case signal::order: take_order(t, take_body<actor_order>(e)); break;
    case signal::reply: take_reply(t, e); break;
    case signal::message: v = take_message(t, e); break;
    case signal::wake:
      if (e.type == &plain<gate_token>) {
        take_token(t);
      } else if (e.type == &plain<replay_order>) {
        replay(t);
      } else if (e.type == &plain<receive_check>) {
        check_receive_timeout(t, take_body<receive_check>(e));
      } else {
        e.type->drop(*t.k, e, {});
      }
      break;
    default: e.type->drop(*t.k, e, {}); break;
  }
  return v;
}

std::shared_ptr<gate> make_gate(const actor_settings& s) {
  const coppice::mailbox& box = s.mailbox;
  if (box.capacity == 0 && !box.by_priority) return nullptr;
  static constexpr auto tell_sender = [](kernel& k, pid sender, pid receiver, bool waits) {
    send_order(k, sender, {.what = waits ? actor_order::kind::hold : actor_order::kind::let_go, .from = receiver});
  };
  return std::make_shared<gate>(box.capacity, box.when_full, box.by_priority, box.waits_at_most, tell_sender);
}

void actor_core::begin(turn& t, const start_letter& first) {
  me_ = t.k->pid_of(*t.p);
  parent_ = first.with.parent;
  ack_ = {first.with.parent, first.with.ack};
  if (first.with.gate) parts().gate = first.with.gate;
  create(t);
}

/// A new instance.
void actor_core::create(turn& t) {
  phase_ = phase::running;
  try {
    mail_origin nobody;
    {
      context me{*this, t, nobody, plain<started>};
      initialise(me);
      if (!failed_) {
        class_->make(*this, me);
        if (failed_)  // by `context::fail`: as by an exception
          class_->unmake(*this);
        else
          made_ = true;
      }
    }
    t.message = &plain<started>;
    if (made_) hear(t, started{});
  } catch (const exit_with& x) {
    mail_origin nobody;
    stops_itself(t, nobody, x.reason());
  } catch (...) {
    mail_origin nobody;
    failed(t, nobody, reason_of_failure(t));
  }
  if (!failed_ && phase_ == phase::running) {
    ack_.give(*t.k, init_result::ok());
    ack_ = {};
    go_on(t);
  }
}

void actor_core::initialise(context& me) {
  if (initialised_) return;
  for (const auto& hook : settings_->on_init) {
    hook(me);
    if (failed_) return;
  }
  initialised_ = true;
}

/// Takes up its mail, and what it has to decide, if nothing is in the way.
void actor_core::go_on(turn& t) {
  settle();
  if (decides() && parts_ && !parts_->deferred.empty())
    for (actor_order& o : std::exchange(parts_->deferred, {})) child_failed(t, std::move(o));
  go_on_with_mail(t);
}

void actor_core::failed(turn& t, mail_origin& origin, exit_reason why) {
  if (const std::uint64_t call = std::exchange(origin.call, 0))
    origin.fail(*t.k, origin.sender, call, error{errc::no_reply, to_string(me_) + " failed: " + why.to_string()});
  fail(t, std::move(why), std::current_exception());
}

void actor_core::fail(turn& t, exit_reason why, std::exception_ptr thrown, pid perpetrator) {
  if (failed_ || phase_ != phase::running) return;  // it is being answered, or is at its end
  failed_ = true;
  perpetrator_ = perpetrator;
  ++suspended_;
  settle();
  tell_children(t, actor_order::kind::suspend, perpetrator_);
  if (!of_actor_) return judge_self(t, why, thrown);
  send_order(*t.k, parent_,
             {.what = actor_order::kind::failed,
              .from = me_,
              .number = instance_,
              .marked = made_,
              .reason = std::move(why),
              .thrown = std::move(thrown)});
}

void actor_core::stops_itself(turn& t, mail_origin& origin, exit_reason why) {
  if (const std::uint64_t call = std::exchange(origin.call, 0))
    origin.fail(*t.k, origin.sender, call, error{errc::exited, why.to_string()});
  begin_stop(t, std::move(why), false);
}

// ---- restart

void actor_core::begin_restart(turn& t, const exit_reason& cause) {
  phase_ = phase::restarting;
  settle();
  if (made_) hear_quietly(t, restarting{cause});
  end_instance(t);
  drop_continuations();
  if (parts_) {
    parts_->behaviours.clear();
    parts_->first_behaviours = 0;
    while (!parts_->stash.empty()) {  // older than what is kept
      kept_.add_first(parts_->stash.back());
      parts_->stash.pop_back();
    }
    if (!settings_->keep_children) {
      handler_self me{t};
      for (const child_record* c : children_in_order()) unwatch(me, c->who);
      stop_children(t, exit_reason::shutdown(), false);
      // The last of them goes on with it, or has done so: one that waited for its restart is gone at once.
      if (!parts_->children.empty() || phase_ != phase::restarting) return;
    }
  }
  complete_restart(t);
}

void actor_core::complete_restart(turn& t) {
  if (std::exchange(made_, false)) class_->unmake(*this);
  const bool own_failure = std::exchange(failed_, false);
  const std::uint32_t over = (own_failure ? 1U : 0U) + std::exchange(extra_, 0U);
  suspended_ -= over;
  const pid escalated = std::exchange(perpetrator_, {});
  if (child_record* c = find_child(escalated)) {
    restart_one(t, *c, exit_reason::shutdown("its parent was restarted for it"));
    tell_children(t, actor_order::kind::resume, escalated);
    for (std::uint32_t i = 1; i < over; ++i) tell_children(t, actor_order::kind::resume, {});
  } else {
    for (std::uint32_t i = 0; i < over; ++i) tell_children(t, actor_order::kind::resume, {});
  }
  create(t);
}

/// What belongs to the instance goes with it.
void actor_core::end_instance(turn& t) {
  ++generation_;
  if (!parts_) return;
  for (const auto& [id, timer] : std::exchange(parts_->timers, {})) t.k->disarm(timer.armed);
  parts_->receive_timeout = no_timeout;
  ++parts_->receive_checks;
}

/// So do these at a restart; at the end, who waits for them shall hear that it has ended.
void actor_core::drop_continuations() {
  if (!parts_) return;
  for (const auto* all : {&parts_->futures, &parts_->ends})
    for (const auto& [number, f] : *all) f->continuations.clear();
}

// ---- the end

void actor_core::begin_stop(turn& t, exit_reason reason, bool drain) {
  if (phase_ == phase::stopping && drains_ && !drain) {  // now it has no time for that
    drains_ = false;
    stop_children(t, exit_reason::shutdown(), false);
  }
  if (phase_ == phase::stopping || phase_ == phase::ended) return;
  if (phase_ == phase::restarting && std::exchange(made_, false)) class_->unmake(*this);  // it has heard its last
  phase_ = phase::stopping;
  drains_ = drain;
  ending_ = std::move(reason);
  if (parts_) t.k->disarm(parts_->own.due);
  settle();
  if (made_) hear_quietly(t, stopping{ending_});
  end_instance(t);
  stop_children(t, exit_reason::shutdown(), drain);
  if (phase_ == phase::stopping && (!parts_ || parts_->children.empty())) finish_stop(t);
}

void actor_core::finish_stop(turn& t) {
  if (made_) hear_quietly(t, stopped{ending_});
  phase_ = phase::ended;
  t.ending = std::move(ending_);
  t.ends = true;
}

namespace {
/// What waits for an answer here hears that there is none; and what holds itself is let go of.
void end_future(kernel& k, future_base& f, const loss& how) {
  k.disarm(f.due);
  f.fail(k, error_of(how));
  for (future_base::continuation& c : std::exchange(f.continuations, {})) c.call.drop(error_of(how));
}

void end_timers(kernel& k, const actor_parts& parts) {
  for (const auto& [id, timer] : parts.timers) k.disarm(timer.armed);
  for (const auto& [who, c] : parts.children) k.disarm(c.due);
  for (const auto& [who, h] : parts.holds) k.disarm(h.due);
  k.disarm(parts.receive_timer);
  k.disarm(parts.own.due);
}
}  // namespace

void actor_core::destroy(body& b, kernel& k) noexcept {
  auto& me = static_cast<actor_core&>(b);
  if (std::exchange(me.made_, false)) me.class_->unmake(me);
  const loss how = loss_by(me.me_);
  const auto drop = [&](envelope* e) {
    if (e->type == &plain<continuation_ready>)
      end_future(k, *static_cast<letter<continuation_ready>*>(e)->body.future, how);
    const bool own = e->what() != signal::message || e->type == &plain<poison_pill> || e->type == &plain<terminated>;
    if (!own && !k.crashed()) k.note_dead_letter(me.me_, *e);
    discard(k, e, how);
  };
  if (me.parts_) {
    end_timers(k, *me.parts_);
    for (envelope* e : std::exchange(me.parts_->stash, {})) drop(e);
    for (const auto* all : {&me.parts_->futures, &me.parts_->ends})
      for (const auto& [number, f] : *all) end_future(k, *f, how);
    for (const auto& f : me.parts_->done_too_late) end_future(k, *f, how);
  }
  while (envelope* e = me.kept_.take()) drop(e);
  if (me.parts_ && me.parts_->gate)
    for (envelope* e : k.close_gate(me.me_)) drop(e);
  me.class_->free(me);
}

envelope* actor_core::in_hand(const body& b) noexcept {
  return static_cast<const actor_core&>(b).in_hand_.load(std::memory_order_acquire);
}

std::uint32_t actor_core::held(const body& b) noexcept {
  const auto& me = static_cast<const actor_core&>(b);
  std::size_t all = me.kept_.size();
  if (me.parts_) all += me.parts_->stash.size() + (me.parts_->gate ? me.parts_->gate->size() : 0);
  return static_cast<std::uint32_t>(all);
}

void actor_core::log_failure(turn& t, std::string_view where) {
  t.k->log(log_level::error, "actor failed where that changes nothing",
           {{"pid", to_string(me_)}, {"in", std::string{where}}, {"reason", reason_of_failure(t).to_string()}});
}

}  // namespace coppice::detail
