#include "internal/future_handling.hpp"

#include <span>

#include "internal/child_stopping.hpp"
#include "internal/mail_handling.hpp"

namespace coppice::detail {

void future_handling::expect_answer(const std::shared_ptr<future_base>& f, std::chrono::nanoseconds timeout) {
  f->owner = me_.id();
  f->number = me_.next_number();
  if (timeout != no_timeout) f->due = arm_signal(host(), me_.id(), timeout, {signals::future_timed_out{f->number}});
  me_.parts().futures.add_answer(f);
}

void future_handling::expect_end(pid who, const std::shared_ptr<future_base>& f, std::chrono::nanoseconds timeout) {
  handler_self self{t_, me_.id()};
  const monitor_ref by = self.monitor(who);
  f->owner = me_.id();
  f->number = by.value();
  f->target = who;
  if (timeout != no_timeout) f->due = arm_signal(host(), me_.id(), timeout, {signals::end_wait_timed_out{f->number}});
  me_.parts().futures.add_end(by, f);
}

void future_handling::on(const signals::future_timed_out& s) {
  const auto f = me_.parts().futures.take_answer(s.number);
  if (!f) return;
  time_out(*f, "no answer from ");
  run_continuations(f);
}

void future_handling::on(const signals::end_wait_timed_out& s) {
  const auto f = me_.parts().futures.take_end(s.monitor);
  if (!f) return;
  handler_self self{t_};
  self.demonitor(monitor_ref{s.monitor});
  time_out(*f, "timed out while waiting for the end of ");
  run_continuations(f);
}

void future_handling::time_out(future_base& f, std::string_view what) {
  if (f.remote) host().remote_reply_over(me_.id(), f.number, f.target);
  f.fail(host(), error{errc::timeout, std::string{what} + to_string(f.target)});
}

bool future_handling::receive_end(monitor_ref by, const terminated& notice) {
  const auto f = me_.parts().futures.take_end(by.value());
  if (!f) return false;
  host().disarm(f->due);
  result<terminated> value{notice};
  f->complete(host(), &value);
  if (has_continuations(*f)) run_continuations(f);
  return true;
}

void future_handling::receive_reply(envelope& e) {
  if (e.type == &plain<continuation_ready>) return run_continuations(take_body<continuation_ready>(e).future);
  if (e.type == &plain<child_ended>) {
    const child_ended end = take_body<child_ended>(e);
    return child_stopping{me_, t_}.child_ended({.from = end.who,
                                                .reason = end.reason,
                                                .linked = true,
                                                .reported = end.reason.what() == exit_reason::kind::error});
  }
  mail_origin origin;
  void* answer = e.type->mail.open != nullptr ? e.type->mail.open(e, origin) : nullptr;
  const future_base* waiting = origin.call != 0 && me_.rare ? me_.rare->futures.find_answer(origin.call) : nullptr;
  // The reply is too late, or forged.
  if (waiting == nullptr || waiting->reply != e.type) return e.type->drop(host(), e, {});
  const auto f = me_.rare->futures.take_answer(origin.call);
  host().disarm(f->due);
  if (f->remote) host().remote_reply_over(me_.id(), f->number, f->target);
  f->complete(host(), answer);
  e.type->drop(host(), e, {});
  run_continuations(f);
}

namespace {
/// The call of the continuation that runs, and those of the continuations behind it. Copies, because the continuations
/// belong to the thread that runs them.
struct calls_in_hand {
  mail_origin first;
  std::span<const mail_origin> rest;
};
void fail_calls(kernel& k, envelope& e, error why) {
  const auto fail = [&](const mail_origin& each) {
    if (each.call != 0) each.fail(k, each.sender, each.call, why);
  };
  const calls_in_hand& calls = static_cast<letter<calls_in_hand>&>(e).body;
  fail(calls.first);
  for (const mail_origin& each : calls.rest) fail(each);
}
constexpr message_type calls_in_hand_type{.name = "continuation",
                                          .size = sizeof(letter<calls_in_hand>),
                                          .drop = &drop_body<calls_in_hand>,
                                          .fail = &fail_calls};

[[nodiscard]] std::vector<mail_origin> origins_behind_the_first(const std::vector<continuation>& all) {
  std::vector<mail_origin> origins;
  for (std::size_t i = 1; i < all.size(); ++i) origins.push_back(all[i].call.origin);
  return origins;
}
}  // namespace

/// Runs the continuations now, or when the actor takes mail again. Those of an earlier instance are dropped.
void future_handling::run_continuations(const std::shared_ptr<future_base>& f) {
  if (me_.is_stopping()) return me_.parts().futures.add_too_late(f);
  std::vector<continuation> open = take_continuations(*f);
  const std::vector<mail_origin> behind = origins_behind_the_first(open);
  for (auto at = open.begin(); at != open.end(); ++at) {
    if (at->generation != me_.instance.generation()) continue;
    if (!me_.takes_mail()) {
      for (; at != open.end(); ++at) add_continuation(*f, std::move(*at));
      return mail_handling{me_, t_}.put_aside(make_letter<continuation_ready>(plain<continuation_ready>, f));
    }
    t_.message = at->message;
    t_.trace = at->trace;
    mail_origin& origin = at->call.origin;
    letter<calls_in_hand> calls{
        &calls_in_hand_type,
        calls_in_hand{origin, std::span{behind}.subspan(static_cast<std::size_t>(at - open.begin()))}};
    const message_in_hand now{me_.mail_in_hand, t_, calls};
    call_guarded(me_, t_, origin, [&] {
      context self{me_, t_, origin, *at->message};
      at->run(self);
    });
    if (was_abandoned(t_)) {
      const exit_reason why = exit_reason::abandoned();
      for (; at != open.end(); ++at) at->call.drop(error_of({loss::kind::ended, &why}));
      return;
    }
  }
}

}  // namespace coppice::detail
