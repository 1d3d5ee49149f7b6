#pragma once
/// The address of an actor, with its class.
#include <coppice/actor/detail/actor_body.hpp>

namespace coppice::actor {

/// The address of an actor of class `A`, a value like a pid. A restart does not change it.
template <class A>
class actor_ref {
 public:
  constexpr actor_ref() noexcept = default;
  /// A process that is not an `A` receives the messages as if they had been sent to its pid.
  constexpr explicit actor_ref(pid who) noexcept : pid_{who} {}
  [[nodiscard]] constexpr pid id() const noexcept { return pid_; }
  constexpr explicit operator bool() const noexcept { return static_cast<bool>(pid_); }
  friend constexpr auto operator<=>(const actor_ref&, const actor_ref&) noexcept = default;

  /// Sends an `M` made from the arguments, from inside a process: `counters.cast<bump>(3)`; from a plain thread:
  /// `rt.cast<bump>(counters, 3)`. Never waits; the sender does not learn whether the message was received. Throws
  /// `std::logic_error` outside of a process. Handlers of actors use `context::cast`, which also runs the
  /// `send_middleware` of the actor.
  template <class M, class... Args>
  void cast(Args&&... args) const {
    detail::kernel_here().send(pid_, detail::signal::message,
                               detail::make_mail<M>(cast_type<M>(), std::forward<Args>(args)...));
  }
  /// A call, from a process that is not an actor: `const auto n = co_await counters.call<bump>(3);`; from a plain
  /// thread: `rt.call(counters.call<bump>(3))`; in a handler of an actor: `me.call(counters.call<bump>(3))`.
  template <callable_message M, class... Args>
  [[nodiscard]] pending_call<M> call(Args&&... args) const {
    detail::must_receive<A, M>();
    return pending_call<M>{std::in_place, detail::request_to<A, M>, pid_, std::forward<Args>(args)...};
  }

  /// For the library: the type of a message to this actor, with its handler.
  template <class M>
  [[nodiscard]] static const detail::message_type& cast_type() noexcept {
    detail::must_receive<A, M>();
    return detail::mail_to<A, M>;
  }

 private:
  pid pid_;
};

}  // namespace coppice::actor
