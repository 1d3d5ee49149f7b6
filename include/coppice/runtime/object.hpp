#pragma once
/// Processes that are plain objects with handlers: no coroutine frame, the smallest and fastest kind.
///
///     struct counter {
///       struct bump { using reply = int; int by = 1; };   // a call names its reply
///       struct reset {};                                  // a cast has none
///       int handle(bump m) { return value += m.by; }      // or result<int>: the caller gets the error as its own
///       void handle(reset, coppice::self& me) { ... }     // handlers that need it also take `self&`
///       void handle(slow, coppice::reply_to<int> later);  // answers later, from anywhere
///       int value = 0;
///     };
///     const ref<counter> counters = rt.spawn<counter>();
///
/// The object is made by its process (its constructor may take `self&` first), handles one message at a time, and is
/// destroyed when the process ends. A message that the class does not handle is refused where it is sent, at compile
/// time. With `using protocol = coppice::protocol<bump, reset>;` messages sent to its pid without a `ref` reach the
/// handlers too; `exited`, `down` and `timer_fired` do so whenever there is a handler for them.
///
/// Such a class is a server. It may have more members that the library calls, all optional, each with or without a
/// `self&` as its last parameter:
///
///     init_result init(self& me);                 // or void: after the constructor; the starter waits for it
///     void terminate(const exit_reason& why);     // when it stops or fails, or when its parent stops it (if it traps
///                                                 // exits); not when it is killed: then only destructors run
///     void handle_continue(self& me);             // requested by `continue_next(me)`, runs before any queued mail
///     std::chrono::nanoseconds idle_after() const;  // read after each handler: if no message arrives for that long,
///     void handle(became_idle);                     // this is called
///     static constexpr bool traps_exits = true;   // as if by `me.trap_exits()` before the constructor
///
/// An exit signal from its parent ends a server with that reason, also if the server traps exits: it is not offered to
/// a handler. A handler stops the server with `me.stop(reason)`; the answer to a call is then sent after `terminate`.
///
/// Handlers, `init`, `terminate` and `handle_continue` may be coroutines (`task<int> handle(bump m, self& me)`). While
/// one of them waits, other mail stays queued. A class with such handlers lists its messages in `protocol`.
#include <coppice/runtime/detail/object_body.hpp>
#include <coppice/runtime/detail/serving.hpp>
#include <coppice/runtime/ref.hpp>

namespace coppice {

/// In `init` or a handler: `handle_continue` runs right after it, before any queued mail.
void continue_next(self& me);

namespace detail {

template <class T, class M>
consteval message_type handled_type() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<M>), .drop = &drop_body<M>};
  type.relocate = &relocate_body<M>;
  type.mailbox = traits_of<M, M, itself<M>>::mailbox();
  if constexpr (waits<T>) {
    type.server.run = &run_cast<T, M>;
    type.server.for_server = &server_mark<T>;
    type.untyped = &plain<M>;
  } else {
    type.object.deliver = &deliver_cast<T, M>;
    type.object.for_body = &object_type<T>;
  }
  return type;
}
template <class T, class M>
consteval message_type handled_request_type() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<request_body<M>>), .drop = &drop_request<M>};
  type.fail = &fail_request<M>;
  type.relocate = &relocate_body<request_body<M>>;
  type.mailbox = traits_of<M, request_body<M>, in_request<M>>::mailbox();
  if constexpr (waits<T>) {
    type.server.run = &run_call<T, M>;
    type.server.for_server = &server_mark<T>;
    type.untyped = &plain_request<M>;
  } else {
    type.object.deliver = &deliver_call<T, M>;
    type.object.for_body = &object_type<T>;
  }
  return type;
}
/// The types of messages sent through a `ref<T>`: they carry their handler.
template <class T, class M>
inline constexpr message_type handled = handled_type<T, M>();
template <class T, class M>
inline constexpr message_type handled_request = handled_request_type<T, M>();

/// The message type that a `ref<T>` sends an `M` with.
template <class T, class M>
[[nodiscard]] constexpr const message_type& cast_type() noexcept {
  if constexpr (is_compiled_once<T>)
    return plain<M>;
  else
    return handled<T, M>;
}
template <class T, class M>
[[nodiscard]] constexpr const message_type& call_type() noexcept {
  if constexpr (is_compiled_once<T>)
    return plain_request<M>;
  else
    return handled_request<T, M>;
}

}  // namespace detail

template <class T>
template <class M, class... Args>
void ref<T>::cast(Args&&... args) const {
  if constexpr (detail::must_handle_cast<T, M>()) {
    detail::kernel& k = detail::kernel_here();
    k.send(pid_, detail::signal::message, detail::make_mail<M>(detail::cast_type<T, M>(), std::forward<Args>(args)...));
  }
}

template <class T>
template <class M, class... Args>
pending_call<M> ref<T>::call(Args&&... args) const {
  if constexpr (detail::must_handle_call<T, M>())
    return pending_call<M>{std::in_place, detail::call_type<T, M>(), pid_, std::forward<Args>(args)...};
}

}  // namespace coppice
