#include "internal/process_runner.hpp"

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/event_stream.hpp>

#include "internal/failure_text.hpp"
#include "internal/kernel_parts.hpp"

namespace coppice::detail {

constinit thread_local turn* current_turn = nullptr;

void throw_no_process_here() {
  throw std::logic_error{"this needs a process to run in; from a plain thread use the functions of coppice::runtime"};
}

// ---- failures

namespace {

/// Works for any exception, and even when there is no memory to describe it.
template <class Describe>
exit_reason reason_by(const Describe& describe, const turn& t) noexcept {
  try {
    failure_text x = describe();
    return exit_reason::error(std::move(x.type), std::move(x.text),
                              t.message != nullptr ? std::string{t.message->name} : "");
  } catch (...) {
    return exit_reason::killed();
  }
}

exit_reason reason_of(const std::exception& x, const turn& t) noexcept {
  return reason_by([&] { return text_of(x); }, t);
}
exit_reason reason_of_unknown(const turn& t) noexcept { return reason_by(text_of_other, t); }

verdict make_body(body& nobody, turn& t, envelope& e) {
  t.born = nullptr;
  e.type->object.deliver(nobody, t, e);
  ensure(t.born != nullptr, "a start letter has made no body");
  if (const kernel_section mine{*t.p, e.serial()}) t.p->process = t.born;
  return t.born->type->offer(*t.born, t, e);
}
constinit const body_type unborn_type{
    .offer = &make_body, .destroy = [](body&, kernel&) noexcept {}, .held = [](const body&) noexcept { return 0U; }};
constinit body unborn{&unborn_type};

}  // namespace

body& unborn_body() noexcept { return unborn; }

exit_reason reason_of_failure(const turn& t) noexcept {
  try {
    throw;
  } catch (const exit_with& x) {
    return x.reason();
  } catch (const std::exception& x) {
    return reason_of(x, t);
  } catch (...) {
    return reason_of_unknown(t);
  }
}

exit_reason reason_of_failure(const std::exception& x, const turn& t) noexcept { return reason_of(x, t); }

// ---- running

process_runner::process_runner(kernel& k, kernel_parts& parts) noexcept
    : kernel_{k}, table_{k.table()}, parts_{parts} {}

/// The process ends by itself: first it cleans up, then its callers are answered.
void process_runner::terminate(body& b, turn& t) {
  t.ending = b.type->terminate(b, t, std::move(t.ending));
  for (const held_answer& h : std::exchange(t.held, {})) kernel_.send(h.to, signal::reply, h.answer);
}

// Runs the code of the body. The steps of `guard.phase` before and after it belong to a handshake with
// `take_from_stuck`: the other thread must know that this one is in the code, and this thread must know afterwards
// whether the process was taken away meanwhile. Only the other thread has a barrier, for both.
[[gnu::always_inline]] inline verdict process_runner::offer(slot& p, envelope& e, turn& t) {
  stall_guard& guard = t.guard;
  body* mine = p.process;  // while its code runs, another thread may take it out of the slot
  stall_guard::step(guard.phase);
  verdict v = verdict::ended;
  t.message = e.what() == signal::message ? e.type : nullptr;
  try {
    if (e.type->object.for_body == mine->type) [[likely]] {
      e.type->object.deliver(*mine, t, e);
      v = t.ends ? verdict::ended : verdict::alive;
    } else {
      v = mine->type->offer(*mine, t, e);
    }
  } catch (const exit_with& x) {  // caught by type: throwing once more would double the cost
    t.ending = x.reason();
  } catch (const std::exception& x) {
    t.ending = reason_of(x, t);
  } catch (...) {
    t.ending = reason_of_unknown(t);
  }
  if (v == verdict::ended && mine->type->terminate != nullptr) [[unlikely]]
    terminate(*mine, t);
  stall_guard::step(guard.phase);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (guard.state.load(std::memory_order_acquire) != stall_guard::none) [[unlikely]]
    if (guard.was_taken()) t.interrupted = turn::interruption::abandoned;
  if (t.out.target != nullptr) [[unlikely]]
    kernel_.flush_burst(t);
  if (!t.unanswered.empty() && v != verdict::ended) [[unlikely]]  // the failure was caught: the requests were dropped
    for (const open_call& c : std::exchange(t.unanswered, {})) c.fail(kernel_, c.caller, c.call, error_of({}));
  return v;
}

bool process_runner::run(slot& p, int budget, turn& t) {
  t.p = &p;
  t.budget = budget;
  envelope* e = p.mail.head;
  bool more = false;
  std::uint64_t handled = 0;
  for (;;) {
    bool observed = false;
    if (p.urgent.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      const ahead found = look_ahead(p, e, t);
      if (found == ahead::frozen) break;
      if (found == ahead::ends) end(p, t, e);
      e = p.mail.head;
      observed = (p.urgent.load(std::memory_order_relaxed) & is_observed) != 0;
    }
    const verdict v = observed ? handle_observed(p, *e, t) : p.accepts(*e) ? offer(p, *e, t) : handle_rare(p, *e, t);
    --t.budget;
    ++handled;
    if (t.interrupted != turn::interruption::none) [[unlikely]] {
      more = leave(p, e, v, t);
      if (more) --handled;  // its start was interrupted by a freeze, and is handled again after the thaw
      break;
    }
    p.handled.store(p.handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    p.since_cs.store(t.clock_cs.load(std::memory_order_relaxed), std::memory_order_relaxed);
    const bool kept = v == verdict::kept;
    if (v == verdict::ended) [[unlikely]]
      end(p, t, e->next.load(std::memory_order_acquire));
    envelope* n = nullptr;
    const mailbox::step s = p.mail.advance(e, n);
    if (s == mailbox::step::idle) {
      if (!kept) release(e);
      break;
    }
    if (s == mailbox::step::hidden) [[unlikely]] {
      if (!kept) {  // the envelope keeps its place until the sender has finished its push; others run meanwhile
        e->tag = envelope::tag_of(0, signal::done);
        --handled;  // the next turn passes the envelope and counts it
        p.handled.store(p.handled.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
        more = true;
        break;
      }
      while (p.mail.advance(e, n) != mailbox::step::next) cpu_pause();
    }
    if (kept)
      e->next.store(nullptr, std::memory_order_relaxed);  // from here on `next` belongs to the body
    else
      release(e);
    p.mail.head = e = n;
    if (t.budget <= 0) [[unlikely]] {
      more = true;
      break;
    }
  }
  t.handled.store(t.handled.load(std::memory_order_relaxed) + handled, std::memory_order_relaxed);
  if (t.out.target != nullptr) [[unlikely]]  // messages sent by the end of the process, outside of the body
    kernel_.flush_burst(t);
  t.p = nullptr;
  return more;
}

bool process_runner::leave(slot& p, envelope* e, verdict v, turn& t) {
  const auto why = std::exchange(t.interrupted, turn::interruption::none);
  if (why == turn::interruption::frozen) {  // the next turn parks it; the start letter stays queued
    if (p.is_set(has_trace_ids)) parts_.trace_ids.keep(*e, t);
    return true;
  }
  t.ends = false;
  t.ending = {};
  const exit_reason given_up = exit_reason::abandoned();
  for (const open_call& c : std::exchange(t.unanswered, {}))
    c.fail(kernel_, c.caller, c.call, error_of({loss::kind::ended, &given_up}));
  if (v == verdict::kept) e->next.store(nullptr, std::memory_order_relaxed);  // now `next` belongs to the body
  parts_.lifecycle.bury(p, e, v == verdict::kept);
  return false;
}

void process_runner::end(slot& p, turn& t, envelope* rest) {
  t.ends = false;
  const exit_reason why = std::exchange(t.ending, {});
  const auto unanswered = std::exchange(t.unanswered, {});
  parts_.lifecycle.finish(p, why, p.process, rest, unanswered);
  parts_.lifecycle.free_slot(table_.index_of(p));
}

/// As `handle_rare`, for a process of which observers want to know more.
verdict process_runner::handle_observed(slot& p, envelope& e, turn& t) {
  const std::uint8_t by = p.urgent.load(std::memory_order_relaxed);
  if ((by & in_world_trace) != 0) t.tracer->handles(p, e);
  if ((by & has_trace_ids) != 0) parts_.trace_ids.begin(p, e, t);
  if ((by & is_measured) == 0 || e.serial() != p.serial()) return handle_rare(p, e, t);
  t.message = t.piece_of = nullptr;
  t.piece_began = kernel_.now();
  const bool is_message = kernel::is_message(p, e);
  const verdict v = handle_rare(p, e, t);
  const message_type* of = t.piece_of != nullptr ? t.piece_of : t.message;
  const time_point began = std::exchange(t.piece_began, time_point{});
  t.piece_of = nullptr;
  if (of != nullptr && v != verdict::kept && t.interrupted == turn::interruption::none)
    notes_of(side_of(table_, p)).times.add(of->name, is_message ? 1 : 0, kernel_.now() - began);
  return v;
}

verdict process_runner::handle_rare(slot& p, envelope& e, turn& t) try {
  if (e.what() == signal::done) return verdict::alive;
  if (e.serial() != p.serial() || (p.process == nullptr && e.what() != signal::start)) {
    parts_.remote.bounce(pid::from_parts(table_.node(), table_.index_of(p), e.serial()), e, exit_reason::noproc());
    return verdict::alive;
  }
  switch (e.what()) {
    case signal::message: return offer(p, e, t);
    case signal::start: return begin(p, static_cast<start_letter&>(e), t);
    case signal::seen: fast_lane::unmark(p); return e.what() == signal::done ? verdict::alive : offer(p, e, t);
    case signal::exit: return parts_.exits.receive(p, e, t, *this);
    case signal::link_lost: return parts_.exits.receive_link_lost(p, e, t, *this);
    case signal::down: return parts_.links.take_monitor(p, e) ? offer_as_message(p, e, t) : drop(e);
    case signal::timeout: return parts_.process_timers.take_timer(p, e) ? offer_as_message(p, e, t) : drop(e);
    case signal::fast:
    case signal::reply:
    case signal::notice:
    case signal::wait_over:
    case signal::wake: return offer(p, e, t);
    case signal::mail: return receive_under_policy(p, e, t);
    default: parts_.links.apply(p, e); return drop(e);
  }
} catch (const broken_invariant& broken) {
  if (p.process == nullptr) throw;  // there is no process to end: the worker ends the program
  t.ending = reason_of(broken, t);
  return verdict::ended;
}

verdict process_runner::offer_as_message(slot& p, envelope& e, turn& t) {
  const bool observed = p.is_set(has_trace_ids | is_measured);
  if (observed && p.is_set(has_trace_ids)) [[unlikely]]
    parts_.trace_ids.receive(p, e, t);
  e.become(signal::message);
  const verdict v = offer(p, e, t);
  if (observed && p.is_set(is_measured) && v != verdict::kept && t.interrupted == turn::interruption::none) [[unlikely]]
    notes_of(side_of(table_, p)).times.add(e.type->name, 1, {});
  return v;
}

verdict process_runner::receive_under_policy(slot& p, envelope& token, turn& t) {
  const pid me = table_.pid_of(p);
  const std::shared_ptr<mailbox_policy> policy = parts_.policies.of(me);
  envelope* mail = policy != nullptr ? policy->take(kernel_, me) : nullptr;
  ensure(mail != nullptr, "a process has more mail tokens than mail");
  std::atomic_ref<envelope*>{static_cast<letter<mail_token>&>(token).body.in_hand}.store(mail,
                                                                                         std::memory_order_release);
  const verdict v = offer_as_message(p, *mail, t);
  if (v == verdict::kept) {  // the body keeps the message, not the token
    t.message = nullptr;
    return verdict::alive;
  }
  release(mail);
  return v;
}

verdict process_runner::begin(slot& p, start_letter& first, turn& t) {
  const birth& with = first.with;
  std::uint64_t tag = envelope::tag_of(p.serial(), signal::message) | slot::has_process;
  p.parent_index.store(with.parent.index(), std::memory_order_relaxed);
  p.parent_serial.store(with.parent.serial(), std::memory_order_relaxed);
  if (with.linked) tag |= slot::parent_linked | slot::born_linked;
  if (with.parent_reports) tag |= slot::parent_reports;
  if (with.policy) tag |= slot::has_policy;
  p.handled.store(0, std::memory_order_relaxed);
  const auto since_start = kernel_.env().clock().coarse_now() - parts_.lifecycle.started();
  p.born_ds.store(static_cast<std::uint32_t>(since_start / std::chrono::milliseconds{100}), std::memory_order_relaxed);
  p.tag.store(tag, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the barrier of both sides is in `freezer::add_descendants`
  if (parts_.freezer.any() && parts_.freezer.join_freezes(p, with.linked ? with.parent : pid{})) [[unlikely]] {
    t.interrupted = turn::interruption::frozen;
    return verdict::alive;
  }
  if (with.watched_as) parts_.links.add_watcher(p, with.parent, with.watched_as);
  if (with.has_label()) kernel_.set_label(p, with.called->label);
  p.process = &unborn;
  const verdict v = offer(p, first, t);
  (void)drop(first);
  return v;
}

// ---- signals that go before the mail in front of them

process_runner::ahead process_runner::look_ahead(slot& p, envelope* from, turn& t) try {
  if (p.is_set(has_trace_ids)) trace_ids::resume(p, t);  // a process that ends here does so in its own trace
  if ((p.urgent.load(std::memory_order_relaxed) & ~is_observed) == 0) return ahead::goes_on;
  // Before `begin` there is nothing to end or to freeze: the bits stay set until then.
  if (!p.is(slot::has_process)) return ahead::goes_on;
  if ((p.urgent.load(std::memory_order_relaxed) & is_frozen) != 0) return look_while_frozen(p, from, t);
  if (p.process == nullptr) return ahead::goes_on;  // thawed before it began: the bits stay until it has a body
  const std::uint8_t wanted = p.urgent.fetch_and(is_frozen | is_observed, std::memory_order_seq_cst);
  if ((wanted & is_frozen) != 0) {  // frozen since the check above: the other bits stay for later
    p.urgent.fetch_or(wanted & ~is_frozen, std::memory_order_seq_cst);
    return look_while_frozen(p, from, t);
  }
  if ((wanted & look_for_exit) != 0 && parts_.exits.find(p, from, t)) [[unlikely]]
    return ahead::ends;
  if ((wanted & look_for_fast) != 0 && !p.is(slot::puts_mail_aside)) parts_.fast_lane.bring_forward(p, from);
  if ((wanted & describe_yourself) != 0) [[unlikely]]
    parts_.observer.describe_itself(p);
  return ahead::goes_on;
} catch (const broken_invariant& broken) {
  if (p.process == nullptr) throw;  // there is no process to end: the worker ends the program
  t.ending = reason_of(broken, t);
  return ahead::ends;
}

/// Only a kill is looked for. The other bits of `urgent` stay for the first turn after the thaw.
process_runner::ahead process_runner::look_while_frozen(slot& p, envelope* from, turn& t) {
  bounce_mail_of_others(p, from);
  for (;;) {
    const std::uint8_t before =
        p.urgent.fetch_and(static_cast<std::uint8_t>(~look_for_exit), std::memory_order_seq_cst);
    if ((before & look_for_exit) != 0 && parts_.exits.find_kill(p, from, t)) {
      if (p.process == nullptr) end_unborn(p, *from, t);
      return ahead::ends;
    }
    switch (parts_.freezer.park(p)) {
      case freezer::parking::parked: return ahead::frozen;
      case freezer::parking::thawed: return look_ahead(p, from, t);
      case freezer::parking::exit_pending: break;
    }
  }
}

/// Signals for the process that had the slot before must not wait until this one is thawed.
void process_runner::bounce_mail_of_others(slot& p, envelope* from) {
  for (envelope* e = from; e != nullptr; e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() == p.serial() || e->what() == signal::done) continue;
    parts_.remote.bounce(pid::from_parts(table_.node(), table_.index_of(p), e->serial()), *e, exit_reason::noproc());
    e->become(signal::done);
  }
}

/// For a process that was killed while it was frozen and had not begun: sets the monitor of its parent, which was not
/// set yet, and drops the start letter with its arguments.
void process_runner::end_unborn(slot& p, envelope& first, const turn& t) {
  ensure(first.what() == signal::start, "a process without a body has mail in front of its start letter");
  const pid me = table_.pid_of(p);
  const birth& with = static_cast<start_letter&>(first).with;
  if (with.watched_as) parts_.links.add_watcher(p, with.parent, with.watched_as);
  {
    const ending_scope scope{me, t.ending};
    (void)drop(first);
  }
  first.become(signal::done);
}

}  // namespace coppice::detail
