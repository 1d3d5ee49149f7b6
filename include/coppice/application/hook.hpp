#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <coppice/runtime/spawn.hpp>

namespace coppice {

namespace detail {

using hook_args = std::vector<std::string>;

template <class F>
decltype(auto) call_hook(const F& f, self& me, hook_args args) {
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

/// Runs in the application's own process. `f` lives as long as the program, so that it may be a lambda that captures,
/// coroutine or not.
template <class F>
task<result<void>> run_hook(self& me, const F* f, hook_args args) {
  using answer = decltype(call_hook(*f, me, std::move(args)));
  if constexpr (std::same_as<answer, task<result<void>>>) {
    result<void> said = co_await call_hook(*f, me, std::move(args));
    co_return said;
  } else if constexpr (std::same_as<answer, task<void>>) {
    co_await call_hook(*f, me, std::move(args));
    co_return result<void>{};
  } else if constexpr (std::same_as<answer, result<void>>) {
    co_return call_hook(*f, me, std::move(args));
  } else {
    call_hook(*f, me, std::move(args));
    co_return result<void>{};
  }
}

}  // namespace detail

/// Something an application does when it starts or stops: any function of the form
///
///     void f();     void f(self& me);     void f(self& me, std::vector<std::string> args);
///
/// that answers nothing or `result<void>`, or is a coroutine that does (`task<> f(self& me)`). It fails by throwing, or
/// by its answer. What blocks belongs into a coroutine that awaits `me.blocking(...)`.
class application_hook {
 public:
  /// Nothing to do.
  application_hook() = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, application_hook> && detail::callable_as_hook<std::decay_t<F>>)
  application_hook(F&& f)  // NOLINT(google-explicit-constructor): a function is one
      : run_{of(std::make_shared<const std::decay_t<F>>(std::forward<F>(f)))} {}

  explicit operator bool() const noexcept { return static_cast<bool>(run_); }
  /// For the library. There must be one.
  [[nodiscard]] task<result<void>> run(self& me, detail::hook_args args) const { return run_(me, std::move(args)); }

 private:
  using function = std::function<task<result<void>>(self&, detail::hook_args)>;
  template <class F>
  static function of(std::shared_ptr<const F> f) {
    using answer = decltype(detail::call_hook(*f, std::declval<self&>(), detail::hook_args{}));
    static_assert(detail::hook_answer<answer>,
                  "a hook answers nothing or result<void>, or is a coroutine that does: task<>, task<result<void>>");
    return [f = std::move(f)](self& me, detail::hook_args args) {
      return detail::run_hook<F>(me, f.get(), std::move(args));
    };
  }
  function run_;
};

}  // namespace coppice
