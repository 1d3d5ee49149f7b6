#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Calls the handlers of an actor, through middleware and behaviours.
class handler_calls : public duty {
 public:
  using duty::duty;
  /// Consumes the payload of the envelope.
  void deliver(envelope& e);
  /// Delivers a message about the actor or about others, for which a handler is optional.
  void deliver_notice(const message_type& type, void* message);
  /// The same, but exceptions pass through. Returns whether there was a handler.
  template <class E>
  bool notify(E event, mail_origin origin = {}) {
    context self{me_, t_, origin, plain<E>};
    bool handled = false;
    through_middleware(self, plain<E>, &event, [&] { handled = dispatch(self, plain<E>, &event, true); });
    return handled;
  }
  /// The same for `restarting`, `stopping` and `stopped`: exceptions are logged and ignored, except broken invariants.
  /// After a failure the sender is that of the message whose handler has failed.
  template <class E>
  void notify_ignoring_exceptions(E event) {
    const message_type* before = std::exchange(t_.message, &plain<E>);
    try {
      const failed_message failed = me_.rare ? me_.rare->failed_on : failed_message{};
      notify(std::move(event), {.sender = failed.sender, .called = failed.called});
    } catch (const broken_invariant&) {
      throw;
    } catch (...) {
      log_ignored_exception(plain<E>.name);
    }
    t_.message = before;
  }

 private:
  void deliver_opened(envelope& e);
  /// Returns whether the message was moved out of `whole`, its envelope. Null: it has none.
  bool run_message(mail_origin& origin, const message_type& type, void* message, envelope* whole);
  void note_unhandled(mail_origin& origin, const message_type& type, const envelope& whole);
  [[nodiscard]] bool call_rest_handler(context& self, envelope& whole, bool& moved);
  [[nodiscard]] bool dispatch(context& self, const message_type& type, void* message, bool of_life);
  template <class F>
  void through_middleware(context& self, const message_type& type, void* message, const F& inner) {
    if (me_.settings->on_receive.empty()) return inner();
    run_middleware(self, type, message, inner);
  }
  void run_middleware(context& self, const message_type& type, void* message, const std::function<void()>& inner);
  void note_received(const message_type& type);
  void log_ignored_exception(std::string_view hook);
};

}  // namespace coppice::detail
