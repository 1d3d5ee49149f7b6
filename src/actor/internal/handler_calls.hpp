#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Calls the handlers of an actor, through middleware and behaviours.
class handler_calls : public duty {
 public:
  using duty::duty;
  /// Consumes the payload of the envelope.
  void deliver(envelope& e);
  /// A message about the actor or about others. Handlers for these are optional.
  void deliver_notice(const message_type& type, void* message);
  /// The same for `started`: exceptions pass through.
  template <class E>
  bool notify(E event) {
    mail_origin nobody;
    context self{me_, t_, nobody, plain<E>};
    bool handled = false;
    through_middleware(self, plain<E>, &event, [&] { handled = dispatch(self, plain<E>, &event, true); });
    return handled;
  }
  /// The same in a hook of the end of an instance: exceptions are logged and ignored.
  template <class E>
  void notify_ignoring_exceptions(E event) {
    const message_type* before = std::exchange(t_.message, &plain<E>);
    try {
      notify(std::move(event));
    } catch (const broken_invariant&) {
      throw;
    } catch (...) {
      log_ignored_exception(plain<E>.name);
    }
    t_.message = before;
  }

 private:
  void deliver_opened(envelope& e);
  /// True: `whole` was moved out of its envelope.
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
