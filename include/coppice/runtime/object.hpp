#pragma once
/// Processes that are plain objects with handlers: no frame, the smallest and fastest kind.
///
///     struct counter {
///       struct bump { using reply = int; int by = 1; };   // a call names its reply
///       struct reset {};                                  // a cast has none
///       int handle(bump m) { return value += m.by; }
///       void handle(reset, coppice::self& me) { ... }     // handlers that need it also take `self&`
///       void handle(slow, coppice::reply_to<int> later);  // answers later, from anywhere
///       int value = 0;
///     };
///     const ref<counter> counters = rt.spawn<counter>();
///
/// The object is made by its process (its constructor may take `self&` first), handles one message at a time, and is
/// destroyed when the process ends. A message that the class does not handle is refused where it is sent, at compile
/// time. `using protocol = coppice::protocol<bump, reset>;` lets untyped sends to its pid reach the handlers, too; so
/// do `exited`, `down` and `timeout` when there is a handler for them.
#include <coppice/runtime/call.hpp>

namespace coppice {

template <class... Ms>
struct protocol {};

namespace detail {

/// A `self` on the stack of a handler.
class handler_self final : public self {
 public:
  explicit handler_self(turn& t) noexcept : self{*t.k} { become(*t.p); }
};

template <class T, class M>
concept casts_to =
    requires(T& t, M m) { t.handle(std::move(m)); } || requires(T& t, M m, self& me) { t.handle(std::move(m), me); };
template <class T, class M>
concept calls_to = callable_message<M> && (requires(T& t, M m) {
                     { t.handle(std::move(m)) } -> std::convertible_to<reply_of<M>>;
                   } || requires(T& t, M m, self& me) {
                     { t.handle(std::move(m), me) } -> std::convertible_to<reply_of<M>>;
                   });
template <class T, class M>
concept defers_to = callable_message<M> && (requires(T& t, M m, reply_to<reply_of<M>> to) {
                      t.handle(std::move(m), std::move(to));
                    } || requires(T& t, M m, reply_to<reply_of<M>> to, self& me) {
                      t.handle(std::move(m), std::move(to), me);
                    });

template <class T>
struct object_body : body {
  T object;
  template <class... Args>
  explicit object_body(Args&&... args);
};

template <class T>
verdict offer_to_object(body& b, turn& t, envelope& e);

template <class T>
inline constexpr body_type object_type{.offer = &offer_to_object<T>,
                                       .destroy =
                                           [](body& b, kernel&) noexcept {
                                             auto& mine = static_cast<object_body<T>&>(b);
                                             std::destroy_at(&mine);
                                             release(&mine, sizeof(mine));
                                           },
                                       .held = [](const body&) noexcept { return 0U; }};

template <class T>
template <class... Args>
object_body<T>::object_body(Args&&... args) : body{&object_type<T>}, object(std::forward<Args>(args)...) {}

template <class Result>
constexpr void check_handler() {
  static_assert(
      !is_task<Result>,
      "a handler of an object must not be a coroutine: take a reply_to and answer later, or write the process "
      "as a coroutine");
}

template <class T, class M>
decltype(auto) handle_one(T& object, turn& t, M& m) {
  if constexpr (requires { object.handle(std::move(m)); }) {
    check_handler<decltype(object.handle(std::move(m)))>();
    return object.handle(std::move(m));
  } else {
    handler_self me{t};
    check_handler<decltype(object.handle(std::move(m), me))>();
    return object.handle(std::move(m), me);
  }
}

template <class T, class M>
void deliver_cast(body& b, turn& t, envelope& e) {
  struct cleaning {
    M& message;
    ~cleaning() { std::destroy_at(&message); }
  } content{static_cast<letter<M>&>(e).body};
  handle_one(static_cast<object_body<T>&>(b).object, t, content.message);
}

template <class T, class M>
void deliver_deferred(T& object, turn& t, envelope& e) {
  using R = reply_of<M>;
  auto& body = static_cast<letter<request_body<M>>&>(e).body;
  auto state = std::make_shared<pending_reply_of<R>>(t.k->weak_from_this(), t.k->pid_of(*t.p), body.caller, body.call);
  M message(std::move(body.message));
  std::destroy_at(&body);
  if (const kernel_section mine{*t.p, t.p->serial()}) t.k->defer(*t.p, state);
  reply_to<R> later{std::move(state)};
  if constexpr (requires { object.handle(std::move(message), std::move(later)); }) {
    object.handle(std::move(message), std::move(later));
  } else {
    handler_self me{t};
    object.handle(std::move(message), std::move(later), me);
  }
}

template <class T, class M>
void deliver_call(body& b, turn& t, envelope& e) {
  using R = reply_of<M>;
  T& object = static_cast<object_body<T>&>(b).object;
  if constexpr (defers_to<T, M>) {
    deliver_deferred<T, M>(object, t, e);
  } else {
    struct answering {
      request_body<M>& body;
      turn& t;
      bool answered = false;
      ~answering() {
        if (!answered) answer_dropped(*t.k, t.k->pid_of(*t.p), {body.caller, body.call, &answer_error<R>});
        std::destroy_at(&body);
      }
    } guard{static_cast<letter<request_body<M>>&>(e).body, t};
    auto& [caller, call, message] = guard.body;
    if constexpr (std::is_void_v<R>) {
      handle_one(object, t, message);
      guard.answered = true;
      answer<R>(*t.k, caller, call, {});
    } else {
      result<R> value{std::in_place, handle_one(object, t, message)};
      guard.answered = true;
      answer<R>(*t.k, caller, call, std::move(value));
    }
  }
}

/// The types of messages sent through a `ref<T>`: they carry their handler.
template <class T, class M>
inline constexpr message_type handled{.name = type_name<M>(),
                                      .size = sizeof(letter<M>),
                                      .drop = &drop_body<M>,
                                      .deliver = &deliver_cast<T, M>,
                                      .for_body = &object_type<T>,
                                      .relocate = &relocate_body<M>};
template <class T, class M>
inline constexpr message_type handled_request{.name = type_name<M>(),
                                              .size = sizeof(letter<request_body<M>>),
                                              .drop = &drop_request<M>,
                                              .deliver = &deliver_call<T, M>,
                                              .for_body = &object_type<T>,
                                              .is_request = true,
                                              .fail = &fail_request<M>,
                                              .relocate = &relocate_body<request_body<M>>};

template <class T, class M>
bool try_untyped(body& b, turn& t, envelope& e) {
  if constexpr (calls_to<T, M> || defers_to<T, M>) {
    if (e.type == &plain_request<M>) return deliver_call<T, M>(b, t, e), true;
  }
  if constexpr (casts_to<T, M>) {
    if (e.type == &plain<M>) return deliver_cast<T, M>(b, t, e), true;
  }
  return false;
}
template <class T, class... Ms>
bool try_protocol(body& b, turn& t, envelope& e, protocol<Ms...>*) {
  static_assert(((casts_to<T, Ms> || calls_to<T, Ms> || defers_to<T, Ms>) && ...),
                "the protocol lists a message that the class does not handle");
  return (try_untyped<T, Ms>(b, t, e) || ...);
}
template <class T>
bool offer_untyped(body& b, turn& t, envelope& e) {
  if (try_untyped<T, exited>(b, t, e) || try_untyped<T, down>(b, t, e) || try_untyped<T, timeout>(b, t, e)) return true;
  if constexpr (requires { typename T::protocol; })
    return try_protocol<T>(b, t, e, static_cast<typename T::protocol*>(nullptr));
  return false;
}

/// What did not come through a `ref<T>`: that goes straight to its handler.
template <class T>
verdict offer_to_object(body& b, turn& t, envelope& e) {
  if (e.what() == signal::message) {
    if (!offer_untyped<T>(b, t, e)) {
      if (!e.type->is_request) t.k->note_dead_letter(t.k->pid_of(*t.p), e);
      e.type->drop(*t.k, e, {});
    }
  } else if (e.what() != signal::start) {
    e.type->drop(*t.k, e, {});
  }
  return t.ends ? verdict::ended : verdict::alive;
}

}  // namespace detail

/// A message that `T` handles without an answer (its answer, if it has one, is dropped).
template <class T, class M>
concept handles_cast = detail::casts_to<T, M>;
/// A message that `T` answers.
template <class T, class M>
concept handles_call = detail::calls_to<T, M> || detail::defers_to<T, M>;

/// The address of an object process, with its type. A value, as a pid is.
template <class T>
class ref {
 public:
  constexpr ref() noexcept = default;
  /// When the process is an object of another type, what is sent through it ends as a dead letter; a coroutine keeps it
  /// in its mailbox, and a call gets no answer in time.
  constexpr explicit ref(pid who) noexcept : pid_{who} {}
  [[nodiscard]] constexpr pid id() const noexcept { return pid_; }
  constexpr explicit operator bool() const noexcept { return static_cast<bool>(pid_); }
  friend constexpr auto operator<=>(const ref&, const ref&) noexcept = default;

  /// From inside a process. Never fails and never waits.
  template <class M, class... Args>
    requires handles_cast<T, M>
  void cast(Args&&... args) const {
    detail::kernel& k = detail::kernel_here();
    k.send(pid_, detail::signal::message, detail::make_letter<M>(detail::handled<T, M>, std::forward<Args>(args)...));
  }
  /// From inside a process: `const auto n = co_await counters.call<counter::bump>(3);`
  template <class M, class... Args>
    requires handles_call<T, M>
  [[nodiscard]] detail::calling<M> call(Args&&... args) const {
    return detail::calling<M>{std::in_place, detail::handled_request<T, M>, pid_, std::forward<Args>(args)...};
  }

 private:
  pid pid_;
};

}  // namespace coppice
