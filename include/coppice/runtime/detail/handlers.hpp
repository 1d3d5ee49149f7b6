#pragma once
/// The members of a user's class that the library calls; handlers, `init`, `terminate` and `handle_continue` may have
/// `me` as their last argument. Objects, servers that wait, actors and event handlers all find and call their handlers
/// through this header.
#include <chrono>
#include <concepts>
#include <utility>

#include <coppice/base/error.hpp>
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/fwd.hpp>

namespace coppice {

template <class M>
concept callable_message = requires { typename M::reply; };

namespace detail {
template <class M>
struct reply_type {
  static_assert(callable_message<M>,
                "this message cannot be called, because it names no reply: add `using reply = ...;` to it, or cast it");
  using type = void;
};
template <callable_message M>
struct reply_type<M> {
  using type = typename M::reply;
};
}  // namespace detail

/// The type of the reply to a message that can be called: `struct bump { using reply = int; int by; };`.
template <class M>
using reply_of = typename detail::reply_type<M>::type;

namespace detail {

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

template <class T>
struct value_of_task;
template <class T>
struct value_of_task<task<T>> {
  using type = T;
};
template <class T>
using task_value = typename value_of_task<T>::type;

// ---- handle

template <class T, class... Args>
concept handles = requires(T& t) { t.handle(std::declval<Args>()...); };
template <class T, class Me, class... Args>
concept handles_with_or_without = handles<T, Args...> || handles<T, Args..., Me&>;

/// Which form of the handler is called if the class has both.
enum class preferred : bool { without_me, with_me };

/// Calls `object.handle(args...)` or `object.handle(args..., me())`, whichever the class has.
template <preferred Form = preferred::without_me, class T, class MakeMe, class... Args>
decltype(auto) call_handle(T& object, MakeMe&& me, Args&&... args) {
  if constexpr (handles<T, Args...> && (Form == preferred::without_me || !handles<T, Args..., decltype(me())>)) {
    return object.handle(std::forward<Args>(args)...);
  } else {
    auto&& mine = me();
    return object.handle(std::forward<Args>(args)..., mine);
  }
}

/// What the handler of `M` returns; void if there is none.
template <class T, class M>
struct handler_gives {
  using type = void;
};
template <class T, class M>
  requires handles<T, M>
struct handler_gives<T, M> {
  using type = decltype(std::declval<T&>().handle(std::declval<M>()));
};
template <class T, class M>
  requires(!handles<T, M> && handles<T, M, self&>)
struct handler_gives<T, M> {
  using type = decltype(std::declval<T&>().handle(std::declval<M>(), std::declval<self&>()));
};

template <class T, class M>
concept casts_to = handles_with_or_without<T, self, M>;
/// Whether a value of a handler can be the reply: it is one, or a `result` of one, or a task of either.
template <class V, class R>
inline constexpr bool gives_reply = std::is_convertible_v<V, R> || std::is_same_v<V, result<R>>;
template <class V, class R>
inline constexpr bool gives_reply<task<V>, R> = gives_reply<V, R>;
template <class T, class M>
concept calls_to =
    callable_message<M> && casts_to<T, M> && gives_reply<typename handler_gives<T, M>::type, reply_of<M>>;
template <class T, class M>
concept defers_to = callable_message<M> && handles_with_or_without<T, self, M, reply_to<reply_of<M>>>;

/// Refuses a protocol with a message that the class does not handle.
template <class T, class... Ms>
consteval void must_handle_all() {
  static_assert(((casts_to<T, Ms> || calls_to<T, Ms> || defers_to<T, Ms>) && ...),
                "the protocol lists a message that the class does not handle");
}

/// Refuses a message that the class does not handle, and says why it does not.
template <class T, class M>
consteval bool must_handle_cast() {
  if constexpr (!casts_to<T, M>) {
    constexpr bool by_reference = handles_with_or_without<T, self, M&>;
    static_assert(!by_reference, "the handler takes this message by reference: take it by value, or by const&");
    static_assert(by_reference,
                  "the class has no handler for this message: it needs a public member `handle`, whose first parameter "
                  "is the message and whose second, if any, is a self&");
  }
  return casts_to<T, M>;
}
/// The same for a call.
template <class T, class M>
consteval bool must_handle_call() {
  if constexpr (defers_to<T, M>) {
    return true;
  } else if constexpr (must_handle_cast<T, M>()) {
    constexpr bool returns_nothing = std::is_void_v<typename handler_gives<T, M>::type>;
    static_assert(!returns_nothing || calls_to<T, M>,
                  "the handler of this message returns nothing, but the message names a reply: return the reply, or "
                  "take a reply_to behind the message and answer later");
    static_assert(returns_nothing || calls_to<T, M>,
                  "the handler of this message must return the reply that the message names, or a result of it, or a "
                  "task of either");
    return calls_to<T, M>;
  } else {
    return false;
  }
}

/// The value of a handler as the answer to a call. A handler may return the reply, or a `result` of it, whose error the
/// caller gets.
template <class R, class V>
result<R> as_answer(V&& value) {
  if constexpr (std::is_same_v<std::decay_t<V>, result<R>>)
    return std::forward<V>(value);
  else if constexpr (std::is_void_v<R>)
    return {};
  else
    return result<R>{std::in_place, std::forward<V>(value)};
}

// ---- init, terminate, handle_continue, idle_after, traps_exits

template <class T>
concept has_init = requires(T& t, self& me) { t.init(me); } || requires(T& t) { t.init(); };
template <class T>
concept has_terminate = requires(T& t, const exit_reason& why, self& me) { t.terminate(why, me); } ||
                        requires(T& t, const exit_reason& why) { t.terminate(why); };
template <class T>
concept has_continue = requires(T& t, self& me) { t.handle_continue(me); } || requires(T& t) { t.handle_continue(); };
template <class T>
concept has_idle = requires(const T& t) {
  { t.idle_after() } -> std::convertible_to<std::chrono::nanoseconds>;
};
template <class T>
concept says_it_traps = requires { requires T::traps_exits; };

/// Refuses a member that has the name of one that the runtime calls, but that it can't call: it would never run.
template <class T>
consteval bool has_sound_members() {
  static_assert(has_init<T> || !requires { &T::init; }, "init() is never called: it must take nothing, or a self&");
  static_assert(
      has_terminate<T> || !requires { &T::terminate; },
      "terminate() is never called: it must take a const exit_reason&, and may take a self& behind it");
  static_assert(
      has_continue<T> || !requires { &T::handle_continue; },
      "handle_continue() is never called: it must take nothing, or a self&");
  static_assert(
      has_idle<T> || !requires { &T::idle_after; },
      "idle_after() is never called: it must be const, take nothing and return a duration");
  return true;
}

template <class T>
decltype(auto) call_init(T& t, self& me) {
  if constexpr (requires { t.init(me); })
    return t.init(me);
  else
    return t.init();
}
template <class T>
decltype(auto) call_terminate(T& t, const exit_reason& why, self& me) {
  if constexpr (requires { t.terminate(why, me); })
    return t.terminate(why, me);
  else
    return t.terminate(why);
}
template <class T>
decltype(auto) call_continue(T& t, self& me) {
  if constexpr (requires { t.handle_continue(me); })
    return t.handle_continue(me);
  else
    return t.handle_continue();
}

// ---- which kind of process a class becomes

template <class T>
struct waiting_protocol : std::false_type {};
template <class T>
  requires requires { typename T::protocol; }
struct waiting_protocol<T> {
  template <class... Ms>
  static constexpr bool any(protocol<Ms...>*) {
    return (is_task<typename handler_gives<T, Ms>::type> || ...);
  }
  static constexpr bool value = any(static_cast<typename T::protocol*>(nullptr));
};
template <class T>
consteval bool hooks_wait() {
  bool any = false;
  if constexpr (has_init<T>) any = any || is_task<decltype(call_init(std::declval<T&>(), std::declval<self&>()))>;
  if constexpr (has_terminate<T>)
    any = any || is_task<decltype(call_terminate(std::declval<T&>(), std::declval<const exit_reason&>(),
                                                 std::declval<self&>()))>;
  if constexpr (has_continue<T>)
    any = any || is_task<decltype(call_continue(std::declval<T&>(), std::declval<self&>()))>;
  return any;
}
/// True: a member of the class is a coroutine. Its process is then a coroutine too (serving.hpp); otherwise it is a
/// plain object (object_body.hpp).
template <class T>
inline constexpr bool waits = waiting_protocol<T>::value || hooks_wait<T>();

/// Set for a server class that is compiled once, in a library: messages to it carry no handler, and the server finds
/// the handler by its protocol.
template <class T>
inline constexpr bool is_compiled_once = false;

/// Instantiated for each class that becomes a server. Other libraries specialise it to refuse classes of theirs.
template <class T>
struct server_check : std::true_type {};

}  // namespace detail

/// A message that can be cast to a `T`. If its handler returns a value, the value is dropped.
template <class T, class M>
concept handles_cast = detail::casts_to<T, M>;
/// A message that `T` answers.
template <class T, class M>
concept handles_call = detail::calls_to<T, M> || detail::defers_to<T, M>;

}  // namespace coppice
