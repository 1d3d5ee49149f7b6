#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <coppice/runtime/spawn.hpp>

namespace coppice {

namespace detail {

using hook_args = std::vector<std::string>;

/// Moves the arguments into the hook if it has a parameter for them.
template <class F>
decltype(auto) call_hook(const F& f, self& me, hook_args& args) {
  if constexpr (std::invocable<const F&, self&, hook_args>)
    return f(me, std::move(args));
  else if constexpr (std::invocable<const F&, self&>)
    return f(me);
  else
    return f();
}

template <class F>
concept callable_as_hook =
    std::invocable<const F&, self&, hook_args> || std::invocable<const F&, self&> || std::invocable<const F&>;

template <class R>
concept hook_answer = std::same_as<R, void> || std::same_as<R, result<void>> || std::same_as<R, task<void>> ||
                      std::same_as<R, task<result<void>>>;

class hook_function {
 public:
  hook_function() = default;
  virtual ~hook_function() = default;
  hook_function(const hook_function&) = delete;
  hook_function& operator=(const hook_function&) = delete;
  [[nodiscard]] virtual task<result<void>> run(self& me, hook_args args) const = 0;
};

/// Keeps the function as long as the program runs, so that it may be a capturing lambda, even one that is a coroutine.
template <class F>
class hook_of final : public hook_function {
 public:
  using answer = decltype(call_hook(std::declval<const F&>(), std::declval<self&>(), std::declval<hook_args&>()));
  static_assert(hook_answer<answer>,
                "a hook returns void or result<void>, or is a coroutine that does: task<>, task<result<void>>");

  template <class Given>
  explicit hook_of(std::in_place_t, Given&& f) : f_(std::forward<Given>(f)) {}
  [[nodiscard]] task<result<void>> run(self& me, hook_args args) const override {
    if constexpr (std::same_as<answer, task<result<void>>>) {
      result<void> returned = co_await call_hook(f_, me, args);
      co_return returned;
    } else if constexpr (std::same_as<answer, task<void>>) {
      co_await call_hook(f_, me, args);
      co_return result<void>{};
    } else if constexpr (std::same_as<answer, result<void>>) {
      co_return call_hook(f_, me, args);
    } else {
      call_hook(f_, me, args);
      co_return result<void>{};
    }
  }

 private:
  F f_;
};

}  // namespace detail

/// Something an application does when it starts or stops: any function of the form
///
///     void f();     void f(self& me);     void f(self& me, std::vector<std::string> args);
///
/// that returns void or `result<void>`, or is a coroutine that does (`task<> f(self& me)`). It fails by an exception or
/// by an error. Blocking work belongs into a coroutine that awaits `me.blocking(...)`.
class application_hook {
 public:
  /// A hook without a function: nothing is done.
  application_hook() = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, application_hook> && detail::callable_as_hook<std::decay_t<F>>)
  application_hook(F&& f)  // NOLINT(google-explicit-constructor): a function is given as a hook
      : function_{std::make_shared<const detail::hook_of<std::decay_t<F>>>(std::in_place, std::forward<F>(f))} {}

  explicit operator bool() const noexcept { return function_ != nullptr; }
  /// For the library. There must be a function.
  [[nodiscard]] task<result<void>> run(self& me, detail::hook_args args) const {
    return function_->run(me, std::move(args));
  }

 private:
  std::shared_ptr<const detail::hook_function> function_;
};

}  // namespace coppice
