#pragma once
/// An agent: a process around one value, changed and read by functions that are sent to it.
///
///     const auto scores = me.spawn_link<agent<std::map<std::string, int>>>();
///     const result<void> noted = co_await agents::update(scores, add_points, name, 3);
///     const result<int> anna = co_await agents::get(scores, points_of, name);
///
/// Here `void add_points(map&, std::string, int)` and `int points_of(const map&, std::string)` are your own functions.
/// The functions run in the agent, one after the other; their arguments are copied into the message. An exception ends
/// the agent, and the caller gets the error `exited` with the reason. Capture nothing by reference: the agent may run
/// the function after its caller has timed out. From a plain thread: `rt.call(agents::get(scores, points_of, name))`.
#include <coppice/runtime/runtime.hpp>

namespace coppice {

template <class State>
class agent {
 public:
  /// The process of the agent makes the value: from the arguments, or by a function of your own.
  template <class... Args>
    requires std::is_constructible_v<State, Args...>
  explicit agent(Args&&... args) : state_(std::forward<Args>(args)...) {}
  template <class Make, class... Args>
    requires(!std::is_constructible_v<State, Make, Args...> &&
             std::is_convertible_v<std::invoke_result_t<Make, Args...>, State>)
  explicit agent(Make make, Args&&... args) : state_(std::invoke(make, std::forward<Args>(args)...)) {}

  /// A function to be run with the state.
  template <class R>
  struct apply {
    using reply = R;
    std::move_only_function<R(State&)> function;
  };

  template <class R>
  R handle(apply<R> m) {
    return m.function(state_);
  }

 private:
  State state_;
};

namespace detail {

template <class F, class State, class... Args>
using agent_reply = std::decay_t<std::invoke_result_t<F, State, std::decay_t<Args>...>>;

template <class State, class F, class... Args>
[[nodiscard]] auto reading(F f, Args&&... args) {
  using R = agent_reply<F, const State&, Args...>;
  return std::move_only_function<R(State&)>{
      [f = std::move(f), ... args = std::decay_t<Args>(std::forward<Args>(args))](State& s) mutable -> R {
        return std::invoke(f, std::as_const(s), std::move(args)...);
      }};
}
template <class State, class F, class... Args>
[[nodiscard]] auto changing(F f, Args&&... args) {
  using R = agent_reply<F, State&, Args...>;
  return std::move_only_function<R(State&)>{
      [f = std::move(f), ... args = std::decay_t<Args>(std::forward<Args>(args))](State& s) mutable -> R {
        return std::invoke(f, s, std::move(args)...);
      }};
}

/// A function for `update` changes the state in place, or returns the next state.
template <class F, class State, class... Args>
concept changes_in_place = std::is_invocable_r_v<void, F, State&, std::decay_t<Args>...> &&
                           std::is_void_v<std::invoke_result_t<F, State&, std::decay_t<Args>...>>;
template <class F, class State, class... Args>
concept gives_next_state = !changes_in_place<F, State, Args...> && requires(F f, State s, std::decay_t<Args>... args) {
  { std::invoke(f, std::move(s), std::move(args)...) } -> std::convertible_to<State>;
};
template <class F, class State, class... Args>
concept updates = changes_in_place<F, State, Args...> || gives_next_state<F, State, Args...>;

template <class State, class F, class... Args>
[[nodiscard]] std::move_only_function<void(State&)> updating(F f, Args&&... args) {
  return [f = std::move(f), ... args = std::decay_t<Args>(std::forward<Args>(args))](State& s) mutable {
    if constexpr (changes_in_place<F, State, Args...>)
      std::invoke(f, s, std::move(args)...);
    else
      s = std::invoke(f, std::move(s), std::move(args)...);
  };
}

}  // namespace detail

namespace agents {

/// Returns `f(state, args...)`; `f` must not change the state. The timeout is 5 s; for another one:
/// `co_await agents::get(a, f).within(1s)`.
template <class State, class F, class... Args>
  requires std::is_invocable_v<F, const State&, std::decay_t<Args>...>
[[nodiscard]] auto get(ref<agent<State>> from, F f, Args&&... args) {
  using R = detail::agent_reply<F, const State&, Args...>;
  using message = typename agent<State>::template apply<R>;
  return from.template call<message>(detail::reading<State>(std::move(f), std::forward<Args>(args)...));
}
/// Changes the state: `void f(state&, args...)`, or `state f(state, args...)`.
template <class State, class F, class... Args>
  requires detail::updates<F, State, Args...>
[[nodiscard]] auto update(ref<agent<State>> which, F f, Args&&... args) {
  using message = typename agent<State>::template apply<void>;
  return which.template call<message>(detail::updating<State>(std::move(f), std::forward<Args>(args)...));
}
/// Changes the state and returns a value in one step: `R f(state&, args...)`.
template <class State, class F, class... Args>
  requires std::is_invocable_v<F, State&, std::decay_t<Args>...>
[[nodiscard]] auto get_and_update(ref<agent<State>> which, F f, Args&&... args) {
  using R = detail::agent_reply<F, State&, Args...>;
  using message = typename agent<State>::template apply<R>;
  return which.template call<message>(detail::changing<State>(std::move(f), std::forward<Args>(args)...));
}
/// Like `update`, but does not wait and reports no error.
template <class State, class F, class... Args>
  requires detail::updates<F, State, Args...>
void cast(ref<agent<State>> which, F f, Args&&... args) {
  using message = typename agent<State>::template apply<void>;
  which.template cast<message>(detail::updating<State>(std::move(f), std::forward<Args>(args)...));
}

/// The same from a plain thread.
template <class State, class F, class... Args>
  requires detail::updates<F, State, Args...>
void cast(runtime& rt, ref<agent<State>> which, F f, Args&&... args) {
  using message = typename agent<State>::template apply<void>;
  rt.cast<message>(which, detail::updating<State>(std::move(f), std::forward<Args>(args)...));
}

}  // namespace agents

}  // namespace coppice
