// What an actor does with what comes to it.
#include <coppice/actor/actor.hpp>

#include "internal/hear.hpp"

namespace coppice::detail {

error no_answer(const actor_core& who) {
  return error{errc::no_reply,
               to_string(who.id()) + (who.has_failed() ? " failed" : " handled the request and did not answer")};
}

namespace {
/// Meanwhile, in code of the user that has come back late: then nothing else of it happens.
bool was_abandoned(const turn& t) {
  return t.guard.state.load(std::memory_order_acquire) != stall_guard::none && t.guard.was_taken();
}
}  // namespace

verdict actor_core::keep(envelope& e) {
  kept_.add(&e);
  return verdict::kept;
}

/// News that came while it was suspended, as mail for later.
void actor_core::keep_letter(turn& t, envelope* e) {
  e->tag = envelope::tag_of(t.p->serial(), e->type == &plain<continuation_ready> ? signal::reply : signal::message);
  e->next.store(nullptr, std::memory_order_relaxed);
  kept_.add(e);
}

verdict actor_core::take_message(turn& t, envelope& e) {
  verdict v = verdict::alive;
  if (take_own(t, e, v)) return v;
  if (!in_turn()) return keep(e);
  hand_over(t, e);
  return verdict::alive;
}

/// Mail that was put aside comes before what is in the mailbox; where it waits at a gate, before that.
void actor_core::go_on_with_mail(turn& t) {
  settle();
  if (!takes_mail() || replays_) return;
  if (kept_.size() != 0) {
    if (!std::exchange(will_replay_, true))
      t.k->send(me_, signal::wake, make_letter<replay_order>(plain<replay_order>));
  } else if (parts_ && std::exchange(parts_->token_parked, false)) {
    t.k->push_token(me_);
  }
}

/// As much as a turn allows, and nothing that an order should come before. What is left stays where it is: a failure
/// does not move all of it.
void actor_core::replay(turn& t) {
  will_replay_ = false;
  struct replaying {
    bool& flag;
    explicit replaying(bool& f) : flag{f} { flag = true; }
    ~replaying() { flag = false; }
  };
  {
    const replaying now{replays_};
    while (takes_mail() && kept_.size() != 0 && !t.ends && t.budget > 0 &&
           t.p->urgent.load(std::memory_order_relaxed) == 0) {
      --t.budget;
      const open_envelope e{kept_.take()};
      if (e.get().what() == signal::reply)
        take_reply(t, e.get());
      else
        take_from_hand(t, e.get());
      if (was_abandoned(t)) return;
    }
  }
  if (phase_ == phase::running) go_on_with_mail(t);
}

/// Mail that did not come straight from the queue: whoever abandons the actor has to know of it.
void actor_core::take_from_hand(turn& t, envelope& e) {
  struct holding {
    std::atomic<envelope*>& hand;
    const turn& t;
    holding(std::atomic<envelope*>& h, const turn& now, envelope& mail) : hand{h}, t{now} {
      hand.store(&mail, std::memory_order_release);
    }
    ~holding() {
      hand.store(nullptr, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the other side has the barrier
      (void)was_abandoned(t);                               // who is about to must be done with the envelope
    }
    holding(const holding&) = delete;
    holding& operator=(const holding&) = delete;
  };
  const holding now{in_hand_, t, e};
  verdict v = verdict::alive;
  if (!take_own(t, e, v)) hand_over(t, e);
}

/// What is not for its handlers, or not just so.
bool actor_core::take_own(turn& t, envelope& e, verdict& v) {
  if (e.type == &plain<exited>) {
    take_exited(t, e, v);
  } else if (e.type == &plain<down>) {
    take_down(t, e);
  } else if (e.type == &plain<terminated>) {
    if (in_turn())
      take_terminated(t, e);
    else
      v = keep(e);
  } else if (e.type == &plain<poison_pill>) {
    if (in_turn())
      begin_stop(t, exit_reason::normal(), true);
    else if (phase_ == phase::running || phase_ == phase::restarting)
      v = keep(e);
  } else if (e.type == &plain_request<calls::which_children>) {
    answer_children(t, e);
  } else {
    return false;
  }
  return true;
}

void actor_core::hand_over(turn& t, envelope& e) {
  t.message = e.type;
  const bool simple = settings_->on_receive.empty() && (!parts_ || parts_->behaviours.empty());
  if (!simple || e.type->for_body != &class_->plain) return run_letter(t, e);
  touch(t, content_of(*e.type));
  e.type->deliver(*this, t, e);
}

namespace {
/// Whoever handles the message answers for it from here on, not the request.
void let_go_of_call(envelope& e) {
  mail_origin nobody;
  if (e.type->is_request) e.type->close(e, nobody);
}
}  // namespace

void actor_core::run_letter(turn& t, envelope& e) {
  if (e.type->open == nullptr) {
    t.k->note_unhandled(me_, e);
    return e.type->drop(*t.k, e, {});
  }
  mail_origin origin;
  void* message = e.type->open(e, origin);
  if (origin.timer != 0) {
    bool over = true;
    try {
      over = timer_is_over(t, origin);
    } catch (...) {  // its message could not be copied for the next time, so that there is none
      (void)cancel_timer(*t.k, origin.timer);
      e.type->drop(*t.k, e, {});
      throw;
    }
    if (over) return e.type->drop(*t.k, e, {});
    e.type->close(e, origin);
  }
  if (run_message(t, origin, content_of(*e.type), message, &e)) return;
  let_go_of_call(e);
  e.type->drop(*t.k, e, {});
}

bool actor_core::run_message(turn& t, mail_origin& origin, const message_type& what, void* message, envelope* whole) {
  bool given = false;
  touch(t, what);
  t.message = &what;
  try {
    context me{*this, t, origin, what};
    through_middleware(me, what, message, [&] {
      if (given || dispatch(me, what, message, whole == nullptr) || whole == nullptr) return;
      if (give_rest(me, *whole, given)) return;
      t.k->note_unhandled(me_, *whole);
      if (const std::uint64_t call = std::exchange(origin.call, 0))
        origin.fail(*t.k, origin.sender, call,
                    error{errc::no_reply, to_string(me_) + " has no handler for " + std::string{what.name}});
    });
  } catch (const exit_with& x) {
    stops_itself(t, origin, x.reason());
  } catch (const std::exception& x) {
    failed(t, origin, reason_of_failure(x, t));
  } catch (...) {
    failed(t, origin, reason_of_failure(t));
  }
  if (const std::uint64_t call = std::exchange(origin.call, 0))
    origin.fail(*t.k, origin.sender, call, no_answer(*this));
  return given;
}

/// To the handler for what no other takes. False: there is none.
bool actor_core::give_rest(context& me, envelope& whole, bool& given) {
  const auto take = [&] {
    let_go_of_call(whole);
    any_message rest{me.host(), whole.type->relocate(whole)};
    given = true;  // whatever becomes of it
    return rest;
  };
  if (parts_ && !parts_->behaviours.empty()) {
    const behaviour now = parts_->behaviours.back();
    if (!now.handles_rest()) return false;
    any_message rest = take();
    return now.handle(me, plain<any_message>, &rest);
  }
  if (class_->rest == nullptr) return false;
  class_->rest(*this, me, take());
  return true;
}

void actor_core::run_middleware(context& me, const message_type& what, void* message,
                                const std::function<void()>& inner) {
  const auto& chain = settings_->on_receive;
  const message_view view{what, message};
  const std::function<void(std::size_t)> from = [&](std::size_t i) {
    if (i == chain.size()) return inner();
    chain[i](me, view, [&, i] { from(i + 1); });
  };
  from(0);
}

bool actor_core::dispatch(context& me, const message_type& what, void* message, bool of_life) {
  if (parts_ && !parts_->behaviours.empty()) {
    const behaviour now = parts_->behaviours.back();
    if (now.handle(me, what, message)) return true;
    if (!of_life) return false;
  }
  return made_ && class_->dispatch(*this, me, what, message);
}

// ---- ends of others

void actor_core::watch(self& me, pid who) {
  if (who == me_ || parts().watching.contains(who)) return;
  parts().watching.emplace(who, watched{me.monitor(who)});
}

void actor_core::unwatch(self& me, pid who) {
  if (!parts_) return;
  const auto found = parts_->watching.find(who);
  if (found == parts_->watching.end()) return;
  me.demonitor(found->second.ref);
  parts_->watching.erase(found);
}

namespace {
terminated notice_of(const down& d) {
  using cause = terminated::cause;
  const auto kind = d.reason.what();
  return {.who = d.who,
          .why = kind == exit_reason::kind::noproc         ? cause::not_found
                 : kind == exit_reason::kind::noconnection ? cause::node_gone
                                                           : cause::stopped,
          .reason = d.reason};
}
}  // namespace

void actor_core::take_down(turn& t, envelope& e) {
  const terminated notice = notice_of(static_cast<letter<down>&>(e).body);
  const monitor_ref ref = take_body<down>(e).ref;
  if (!parts_) return;
  if (const auto end = parts_->ends.find(ref.value()); end != parts_->ends.end()) {
    const auto f = std::move(end->second);
    parts_->ends.erase(end);
    t.k->disarm(f->due);
    result<terminated> value{notice};
    f->complete(*t.k, &value);
    if (!f->continuations.empty()) run_continuations(t, f);
    return;
  }
  const auto found = parts_->watching.find(notice.who);
  if (found == parts_->watching.end() || found->second.ref != ref) return;
  found->second.over = true;
  envelope* news = make_letter<terminated>(plain<terminated>, notice);
  if (parts_->gate) {
    news->tag = envelope::tag_of(t.p->serial(), signal::message);
    if (parts_->gate->put(*t.k, me_, news, {}).wake) t.k->push_token(me_);
    return;
  }
  if (!in_turn()) return keep_letter(t, news);
  take_terminated(t, *news);
  release(news);
}

void actor_core::take_terminated(turn& t, envelope& e) {
  terminated notice = take_body<terminated>(e);
  if (!parts_) return;
  const auto found = parts_->watching.find(notice.who);
  if (found == parts_->watching.end() || !found->second.over) return;  // it does not watch any more, or it is forged
  parts_->watching.erase(found);
  mail_origin nobody;
  run_message(t, nobody, plain<terminated>, &notice, nullptr);
}

// ---- futures

void actor_core::expect(turn& t, std::shared_ptr<future_base> f, std::chrono::nanoseconds timeout) {
  f->number = next_number();
  if (timeout != no_timeout)
    f->due = arm_order(*t.k, me_, timeout, {.what = actor_order::kind::future_due, .number = f->number});
  parts().futures.emplace(f->number, std::move(f));
}

void actor_core::expect_end(self& me, turn& t, pid who, const std::shared_ptr<future_base>& f,
                            std::chrono::nanoseconds timeout) {
  const monitor_ref ref = me.monitor(who);
  f->number = ref.value();
  f->target = who;
  if (timeout != no_timeout)
    f->due =
        arm_order(*t.k, me_, timeout, {.what = actor_order::kind::future_due, .number = f->number, .marked = true});
  parts().ends.emplace(ref.value(), f);
}

void actor_core::future_due(turn& t, const actor_order& o) {
  auto& open = o.marked ? parts().ends : parts().futures;
  const auto found = open.find(o.number);
  if (found == open.end()) return;
  const auto f = std::move(found->second);
  open.erase(found);
  if (o.marked) {
    handler_self me{t};
    me.demonitor(monitor_ref{o.number});
  }
  if (f->remote) t.k->remote_reply_over(me_, f->number, f->target);
  f->fail(*t.k, error{errc::timeout, (o.marked ? "no end of " : "no answer from ") + to_string(f->target)});
  run_continuations(t, f);
}

void actor_core::take_reply(turn& t, envelope& e) {
  if (e.type == &plain<continuation_ready>) {
    const auto f = take_body<continuation_ready>(e).future;
    return run_continuations(t, f);
  }
  if (e.type == &plain<child_ended>) {
    const child_ended end = take_body<child_ended>(e);
    return child_gone(t, end.who, end.reason);
  }
  mail_origin origin;
  void* answer = e.type->open != nullptr ? e.type->open(e, origin) : nullptr;
  const auto found = origin.call != 0 && parts_ ? parts_->futures.find(origin.call) : decltype(parts_->futures.end()){};
  if (origin.call == 0 || !parts_ || found == parts_->futures.end()) return e.type->drop(*t.k, e, {});
  if (found->second->reply != e.type) return e.type->drop(*t.k, e, {});
  const auto f = std::move(found->second);
  parts_->futures.erase(found);
  t.k->disarm(f->due);
  if (f->remote) t.k->remote_reply_over(me_, f->number, f->target);
  f->complete(*t.k, answer);
  e.type->drop(*t.k, e, {});
  run_continuations(t, f);
}

/// Now, or when it takes mail again; not those of an earlier instance.
void actor_core::run_continuations(turn& t, const std::shared_ptr<future_base>& f) {
  if (phase_ == phase::stopping) return parts_->done_too_late.push_back(f);
  auto open = std::exchange(f->continuations, {});
  for (auto at = open.begin(); at != open.end(); ++at) {
    if (at->generation != generation_) continue;
    if (!takes_mail()) {
      for (; at != open.end(); ++at) f->continuations.push_back(std::move(*at));
      return keep_letter(t, make_letter<continuation_ready>(plain<continuation_ready>, f));
    }
    t.message = at->message;
    mail_origin& origin = at->call.origin;
    try {
      context me{*this, t, origin, *at->message};
      at->run(me);
    } catch (const exit_with& x) {
      stops_itself(t, origin, x.reason());
    } catch (...) {
      failed(t, origin, reason_of_failure(t));
    }
    if (was_abandoned(t)) {
      const exit_reason why = exit_reason::abandoned();
      for (; at != open.end(); ++at) at->call.drop(error_of({loss::kind::ended, &why}));
      return;
    }
  }
}

// ---- time

bool actor_core::timer_is_over(turn& t, mail_origin& origin) {
  if (!parts_) return true;
  const auto found = parts_->timers.find(origin.timer);
  if (found == parts_->timers.end()) return true;
  timer_entry& timer = found->second;
  if (timer.again) {
    // In step with the first, however late this one is; what was missed is not made up for.
    const auto late = std::max(t.k->now() - timer.due, std::chrono::nanoseconds{0});
    timer.due += timer.period * (1 + late / timer.period);
    timer.armed = t.k->arm(timer.due, me_, signal::message, timer.again());
  } else {
    parts_->timers.erase(found);
  }
  return false;
}

bool actor_core::cancel_timer(kernel& k, std::uint64_t id) {
  if (!parts_) return false;
  const auto found = parts_->timers.find(id);
  if (found == parts_->timers.end()) return false;
  k.disarm(found->second.armed);
  parts_->timers.erase(found);
  return true;
}

void actor_core::set_receive_timeout(turn& t, std::chrono::nanoseconds after) {
  if (after.count() <= 0) throw std::invalid_argument{"set_receive_timeout: the time must be positive"};
  actor_parts& mine = parts();
  mine.receive_timeout = after;
  mine.last_received = t.k->now();
  ++mine.receive_checks;
  t.k->disarm(mine.receive_timer);
  if (after != no_timeout) arm_receive_check(t, after);
  settle();
}

void actor_core::arm_receive_check(turn& t, std::chrono::nanoseconds after) {
  parts_->receive_timer = t.k->arm(t.k->time_after(after), me_, signal::wake,
                                   make_letter<receive_check>(plain<receive_check>, parts_->receive_checks));
}

void actor_core::touch(turn& t, const message_type& what) {
  if (parts_ && parts_->receive_timeout != no_timeout && !what.unnoticed) parts_->last_received = t.k->now();
}

void actor_core::check_receive_timeout(turn& t, receive_check check) {
  if (!parts_ || check.number != parts_->receive_checks) return;
  const std::chrono::nanoseconds limit = parts_->receive_timeout;
  if (!takes_mail()) return arm_receive_check(t, limit);
  const auto idle = t.k->now() - parts_->last_received;
  if (idle < limit) return arm_receive_check(t, limit - idle);
  receive_timeout event{limit};
  mail_origin nobody;
  run_message(t, nobody, plain<receive_timeout>, &event, nullptr);
  if (check.number == parts_->receive_checks) arm_receive_check(t, limit);
}

// ---- mailboxes with a limit: its own, and those of others

void actor_core::take_token(turn& t) {
  if (!in_turn()) {
    parts().token_parked = true;
    return;
  }
  envelope* mail = parts().gate->take(*t.k, me_);
  if (mail == nullptr) return;
  const open_envelope e{mail};
  t.message = mail->type;
  try {
    take_from_hand(t, *mail);
  } catch (...) {  // without a token nobody would look at the gate again
    t.k->push_token(me_);
    throw;
  }
  if (phase_ != phase::ended) t.k->push_token(me_);
}

void actor_core::on_hold(turn& t, const actor_order& o) {
  hold& mine = parts().holds[o.from];
  if (mine.over) return;
  ++holds_;
  settle();
  if (mine.messages++ != 0) return;
  mine.number = next_number();
  const auto theirs = t.k->gate_of(o.from);
  if (!theirs) return;  // its end lets go of us
  mine.due = arm_order(*t.k, me_, theirs->waits_at_most,
                       {.what = actor_order::kind::hold_due, .from = o.from, .number = mine.number});
}

void actor_core::on_let_go(turn& t, const actor_order& o) {
  const auto found = parts().holds.find(o.from);
  if (found == parts().holds.end() || found->second.over) return;
  --holds_;
  if (--found->second.messages == 0) {
    t.k->disarm(found->second.due);
    parts().holds.erase(found);
  }
  if (holds_ == 0 && phase_ == phase::running) go_on(t);
}

void actor_core::on_hold_due(turn& t, const actor_order& o) {
  const auto found = parts().holds.find(o.from);
  if (found == parts().holds.end() || found->second.number != o.number) return;
  holds_ -= found->second.messages;
  found->second = {.over = true};
  if (const auto theirs = t.k->gate_of(o.from))
    for (envelope* e : theirs->withdraw(me_)) t.k->turn_away(o.from, e);
  send_order(*t.k, me_, {.what = actor_order::kind::hold_over, .from = o.from});
  if (holds_ == 0 && phase_ == phase::running) go_on(t);
}

// ---- stash

void actor_core::unstash(turn& t, std::size_t how_many) {
  if (!parts_) return;
  std::vector<envelope*> next;
  for (; how_many > 0 && !parts_->stash.empty(); --how_many) {
    next.push_back(parts_->stash.front());
    parts_->stash.pop_front();
  }
  for (auto e = next.rbegin(); e != next.rend(); ++e) kept_.add_first(*e);
  go_on_with_mail(t);
}

}  // namespace coppice::detail
