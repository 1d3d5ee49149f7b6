#include "internal/mail_handling.hpp"

#include "internal/child_processes.hpp"
#include "internal/ends_of_others.hpp"
#include "internal/future_handling.hpp"
#include "internal/handler_calls.hpp"
#include "internal/life_cycle.hpp"

namespace coppice::detail {

bool was_abandoned(const turn& t) {
  return t.guard.state.load(std::memory_order_acquire) != stall_guard::none && t.guard.was_taken();
}

message_in_hand::message_in_hand(std::atomic<envelope*>& hand, const turn& t, envelope& mail) noexcept
    : hand_{hand}, t_{t}, before_{hand.load(std::memory_order_relaxed)} {
  hand_.store(&mail, std::memory_order_release);
}

message_in_hand::~message_in_hand() {
  hand_.store(before_, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with `barrier_everywhere` of the other thread
  (void)was_abandoned(t_);  // waits until a thread that abandons the actor no longer uses the envelope
}

// ---- from the queue

verdict mail_handling::receive(envelope& e) {
  verdict v = verdict::alive;
  if (!receive_system_message(e, v)) {
    if (me_.next_in_turn())
      handler_calls{me_, t_}.deliver(e);
    else
      v = verdict::kept;
  }
  if (v == verdict::kept) {
    if (t_.p->is_set(has_trace_ids)) host().put_trace_id_aside(*t_.p, me_.id().serial(), e);
    me_.aside.add(&e);
  }
  return v;
}

bool mail_handling::receive_system_message(envelope& e, verdict& v) {
  if (e.type == &plain<exited>) {
    if (!ends_of_others{me_, t_}.receive_exited(e)) v = verdict::kept;
  } else if (e.type == &plain<down>) {
    ends_of_others{me_, t_}.receive_down(e);
  } else if (e.type == &plain<terminated>) {
    if (me_.next_in_turn())
      ends_of_others{me_, t_}.receive_terminated(e);
    else
      v = verdict::kept;
  } else if (e.type == &plain<poison_pill>) {
    if (me_.next_in_turn())
      life_cycle{me_, t_}.drain();
    else if (!me_.is_stopping() && !me_.has_ended())
      v = verdict::kept;
  } else if (e.type == &plain_request<calls::which_children>) {
    answer_which_children(me_, t_, e);
  } else {
    return false;
  }
  return true;
}

// ---- put aside, and replayed

void mail_handling::put_aside(envelope* e) {
  e->tag = envelope::tag_of(t_.p->serial(), e->type == &plain<continuation_ready> ? signal::notice : signal::message);
  e->next.store(nullptr, std::memory_order_relaxed);
  me_.aside.add(e);
}

void mail_handling::continue_with_mail() {
  if (!me_.takes_mail() || me_.aside.replaying) return;
  if (!me_.aside.empty()) {
    if (!std::exchange(me_.aside.replay_scheduled, true))
      host().send(me_.id(), signal::wake, make_letter<replay_mail>(plain<replay_mail>));
  } else if (me_.rare && std::exchange(me_.rare->mail_token_parked, false)) {
    host().push_actor_token(me_.id());
  }
}

/// Stops when the turn's budget is used up or an urgent signal is pending. Mail is taken one by one, so that nothing
/// has to be put back after a failure.
void mail_handling::replay() {
  me_.aside.replay_scheduled = false;
  struct replaying {
    bool& flag;
    explicit replaying(bool& f) : flag{f} { flag = true; }
    ~replaying() { flag = false; }
    replaying(const replaying&) = delete;
    replaying& operator=(const replaying&) = delete;
  };
  {
    const replaying now{me_.aside.replaying};
    while (me_.takes_mail() && !me_.aside.empty() && !t_.ends && t_.budget > 0 &&
           (t_.p->urgent.load(std::memory_order_relaxed) & ~is_observed) == 0) {
      --t_.budget;
      const open_envelope e{me_.aside.take()};
      if (e.get().what() == signal::notice)
        future_handling{me_, t_}.receive_reply(e.get());
      else
        receive_outside_of_queue(e.get());
      if (was_abandoned(t_)) return;
    }
  }
  if (me_.is_active()) continue_with_mail();
}

void mail_handling::receive_outside_of_queue(envelope& e) {
  ensure(me_.mail_in_hand.load(std::memory_order_relaxed) == nullptr, "an actor handles two messages at once");
  const message_in_hand now{me_.mail_in_hand, t_, e};
  if (t_.p->is_set(has_trace_ids | is_measured)) host().note_receipt(*t_.p, me_.id().serial(), e);
  verdict v = verdict::alive;
  if (!receive_system_message(e, v)) handler_calls{me_, t_}.deliver(e);
  ensure(v != verdict::kept, "mail from outside of the queue was put aside again");
}

void mail_handling::unstash(std::size_t how_many) {
  if (!me_.rare) return;
  std::vector<envelope*> next;
  for (std::deque<envelope*>& stash = me_.rare->stash; how_many > 0 && !stash.empty(); --how_many) {
    next.push_back(stash.front());
    stash.pop_front();
  }
  for (auto e = next.rbegin(); e != next.rend(); ++e) me_.aside.add_first(*e);
  continue_with_mail();
}

// ---- mailboxes with a limit or with priorities

void mail_handling::receive_under_policy() {
  ensure(me_.rare && me_.rare->policy, "a mail token reached an actor without a mailbox policy");
  if (!me_.next_in_turn()) {
    me_.rare->mail_token_parked = true;
    return;
  }
  envelope* mail = me_.rare->policy->take(host(), me_.id());
  if (mail == nullptr) return;
  const open_envelope e{mail};
  t_.message = mail->type;
  try {
    receive_outside_of_queue(*mail);
  } catch (...) {  // without a token the actor would take no more mail from the policy
    host().push_actor_token(me_.id());
    throw;
  }
  if (!me_.has_ended()) host().push_actor_token(me_.id());
}

// ---- receive timeout

void mail_handling::check_receive_timeout(receive_check check) {
  if (!me_.rare || !me_.rare->receive_timeout.is_current(check)) return;
  receive_timeout_check& timeout = me_.rare->receive_timeout;
  const std::chrono::nanoseconds limit = timeout.limit();
  if (!me_.takes_mail()) return timeout.arm(host(), me_.id(), limit);
  if (const auto left = timeout.left(host().now()); left.count() > 0) return timeout.arm(host(), me_.id(), left);
  receive_timeout event{limit};
  handler_calls{me_, t_}.deliver_notice(plain<receive_timeout>, &event);
  if (timeout.is_current(check)) timeout.arm(host(), me_.id(), limit);
}

}  // namespace coppice::detail
