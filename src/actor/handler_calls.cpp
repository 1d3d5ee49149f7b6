#include "internal/handler_calls.hpp"

namespace coppice::detail {

error no_answer(const actor_core& who) {
  return error{errc::no_reply,
               to_string(who.id()) + (who.failure_is_open() ? " failed" : " handled the request and did not answer")};
}

void handler_calls::deliver(envelope& e) {
  t_.message = e.type;
  const bool direct = me_.settings->on_receive.empty() && !me_.has_behaviours();
  if (!direct || e.type->object.for_body != &me_.type_of_actor().direct) return deliver_opened(e);
  note_received(content_of(*e.type));
  e.type->object.deliver(me_, t_, e);
}

namespace {
/// From now on the call is answered by the handler of the message, and not when the envelope is dropped.
void detach_call(envelope& e) {
  mail_origin nobody;
  if (e.type->is_request()) e.type->mail.close(e, nobody);
}
}  // namespace

void handler_calls::deliver_opened(envelope& e) {
  if (e.type->mail.open == nullptr) {
    host().note_unhandled(me_.id(), e);
    return e.type->drop(host(), e, {});
  }
  mail_origin origin;
  void* message = e.type->mail.open(e, origin);
  if (origin.timer != 0) {
    bool wanted = false;
    try {
      wanted = me_.rare && me_.rare->timers.fired(host(), me_.id(), origin.timer);
    } catch (...) {  // the next message could not be copied: the timer ends
      (void)me_.rare->timers.cancel(host(), origin.timer);
      e.type->drop(host(), e, {});
      throw;
    }
    if (!wanted) return e.type->drop(host(), e, {});
    e.type->mail.close(e, origin);
  }
  if (run_message(origin, content_of(*e.type), message, &e)) return;
  detach_call(e);
  e.type->drop(host(), e, {});
}

void handler_calls::deliver_notice(const message_type& type, void* message) {
  mail_origin nobody;
  (void)run_message(nobody, type, message, nullptr);
}

bool handler_calls::run_message(mail_origin& origin, const message_type& type, void* message, envelope* whole) {
  bool moved = false;
  note_received(type);
  t_.message = &type;
  call_guarded(me_, t_, origin, [&] {
    context self{me_, t_, origin, type};
    through_middleware(self, type, message, [&] {
      if (moved || dispatch(self, type, message, whole == nullptr) || whole == nullptr) return;
      if (!call_rest_handler(self, *whole, moved)) note_unhandled(origin, type, *whole);
    });
  });
  if (origin.call != 0) fail_call(host(), origin, no_answer(me_));
  return moved;
}

void handler_calls::note_unhandled(mail_origin& origin, const message_type& type, const envelope& whole) {
  host().note_unhandled(me_.id(), whole);
  if (origin.call != 0)
    fail_call(host(), origin,
              error{errc::no_reply, to_string(me_.id()) + " has no handler for " + std::string{type.name}});
}

/// Calls the handler for `any_message`. False: there is none.
bool handler_calls::call_rest_handler(context& self, envelope& whole, bool& moved) {
  const auto move_out = [&] {
    detach_call(whole);
    any_message rest{host(), whole.type->relocate(whole)};
    moved = true;
    return rest;
  };
  if (me_.has_behaviours()) {
    const behaviour now = me_.rare->behaviours.all.back();
    if (!now.handles_rest()) return false;
    any_message rest = move_out();
    return now.handle(self, plain<any_message>, &rest);
  }
  if (me_.type_of_actor().rest == nullptr) return false;
  me_.type_of_actor().rest(me_, self, move_out());
  return true;
}

void handler_calls::run_middleware(context& self, const message_type& type, void* message,
                                   const std::function<void()>& inner) {
  run_through(me_.settings->on_receive, inner, self, message_view{type, message});
}

bool handler_calls::dispatch(context& self, const message_type& type, void* message, bool of_life) {
  if (me_.has_behaviours()) {
    const behaviour now = me_.rare->behaviours.all.back();  // a copy: the handler may replace it
    if (now.handle(self, type, message)) return true;
    if (!of_life) return false;
  }
  return me_.instance.exists() && me_.type_of_actor().dispatch(me_, self, type, message);
}

void handler_calls::note_received(const message_type& type) {
  if (me_.rare && me_.rare->receive_timeout.is_set() && !type.mailbox.keeps_receive_timeout)
    me_.rare->receive_timeout.note_message(host().now());
}

void handler_calls::log_ignored_exception(std::string_view hook) {
  host().log(
      log_parts::actor, log_level::error, "exception in life-cycle hook ignored",
      {{"pid", to_string(me_.id())}, {"hook", std::string{hook}}, {"reason", reason_of_failure(t_).to_string()}});
}

}  // namespace coppice::detail
