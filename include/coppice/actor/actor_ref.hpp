#pragma once
/// The address of an actor, with its class.
#include <coppice/actor/detail/actor_body.hpp>

namespace coppice {

/// The address of an actor of class `A`, a value as a pid is. It stays the same over restarts.
template <class A>
class actor_ref {
 public:
  constexpr actor_ref() noexcept = default;
  /// If the process is not an `A`, messages are handled there by their type, if at all.
  constexpr explicit actor_ref(pid who) noexcept : pid_{who} {}
  [[nodiscard]] constexpr pid id() const noexcept { return pid_; }
  constexpr explicit operator bool() const noexcept { return static_cast<bool>(pid_); }
  friend constexpr auto operator<=>(const actor_ref&, const actor_ref&) noexcept = default;

  /// Sends a message from a process or a plain thread: `counters.tell(me, bump{3})`. Never fails and never waits.
  template <class Host, class M>
  void tell(Host& from, M&& message) const {
    using body = std::decay_t<M>;
    detail::must_receive<A, body>();
    from.host().send(pid_, detail::signal::message,
                     detail::make_mail<body>(detail::mail_to<A, body>, std::forward<M>(message)));
  }
  /// A call from a process that is not an actor: `const auto n = co_await counters.call<bump>(3);`; from a plain
  /// thread: `rt.call(counters.call<bump>(3))`. Actors use `context::request_future`.
  template <callable_message M, class... Args>
  [[nodiscard]] pending_call<M> call(Args&&... args) const {
    detail::must_receive<A, M>();
    return pending_call<M>{std::in_place, detail::request_to<A, M>, pid_, std::forward<Args>(args)...};
  }

 private:
  pid pid_;
};

}  // namespace coppice
