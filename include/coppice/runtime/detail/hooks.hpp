#pragma once
/// The optional members of a class that is a process, found by their names; see object.hpp for what they mean.
#include <chrono>
#include <concepts>

#include <coppice/runtime/call.hpp>
#include <coppice/runtime/init_result.hpp>

namespace coppice {

template <class... Ms>
struct protocol {};

/// To a server whose `idle_after` has passed without a message.
struct idle {};

namespace detail {

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

/// What a handler of `M` gives, before it is known whether there is one: void when there is none.
template <class T, class M>
struct handler_gives {
  using type = void;
};
template <class T, class M>
  requires requires(T& t, M m) { t.handle(std::move(m)); }
struct handler_gives<T, M> {
  using type = decltype(std::declval<T&>().handle(std::declval<M>()));
};
template <class T, class M>
  requires(
      !requires(T& t, M m) { t.handle(std::move(m)); } && requires(T& t, M m, self& me) { t.handle(std::move(m), me); })
struct handler_gives<T, M> {
  using type = decltype(std::declval<T&>().handle(std::declval<M>(), std::declval<self&>()));
};

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
/// One of its members is a coroutine: then the process is one, too, which hands it one message after the other.
template <class T>
inline constexpr bool waits = waiting_protocol<T>::value || hooks_wait<T>();

/// How a start went, as the new process tells whoever waits for it.
struct start_news {
  std::uint64_t call;
  init_result how;
};
/// Who waits for a process to be started; nobody when the number is 0.
struct start_ack {
  pid to{};
  std::uint64_t call = 0;
  void give(kernel& k, init_result how) const {
    // The end of the process will say it all.
    if (how.what() == init_result::kind::stop && how.why() == nullptr) return;
    if (call != 0) k.send(to, signal::reply, make_letter<start_news>(plain<start_news>, call, std::move(how)));
  }
};

}  // namespace detail
}  // namespace coppice
