#pragma once
/// What can be spawned, and the sentences that refuse everything else at compile time.
#include <span>
#include <string_view>
#include <type_traits>

#include <coppice/runtime/detail/handlers.hpp>
#include <coppice/runtime/spawn_options.hpp>

namespace coppice::detail {

/// A function that can be the body of a process: `task<> f(self&, args...)`, called with copies of the arguments.
template <class F, class... Args>
concept body_function = std::is_invocable_v<F, self&, std::decay_t<Args>...> &&
                        is_task<std::invoke_result_t<F, self&, std::decay_t<Args>...>>;
/// A class whose objects can be processes, made from copies of the arguments, with or without `self&` before them.
template <class T, class... Args>
concept object_from =
    std::is_constructible_v<T, std::decay_t<Args>...> || std::is_constructible_v<T, self&, std::decay_t<Args>...>;
/// Whether the first argument is a `spawn_options`, and so not an argument for the process.
template <class... Args>
inline constexpr bool options_first = false;
template <class First, class... Args>
inline constexpr bool options_first<First, Args...> = std::is_same_v<std::remove_cvref_t<First>, spawn_options>;

/// Data of somebody else. A copy of it in another process dangles as soon as the owner of the data is gone.
template <class T>
inline constexpr bool is_view = false;
template <class Char, class Traits>
inline constexpr bool is_view<std::basic_string_view<Char, Traits>> = true;
template <class T, std::size_t Count>
inline constexpr bool is_view<std::span<T, Count>> = true;

/// The parameters and the result of a function or of a class with one `operator()`. Generic callables have none.
template <class F>
struct signature {
  static constexpr bool known = false;
  static constexpr bool takes_values = true;
  static constexpr bool takes_views = false;
};
template <class R, class... Ps>
struct plain_signature {
  static constexpr bool known = true;
  static constexpr bool takes_self = false;
  static constexpr bool takes_values = true;
  static constexpr bool takes_views = false;
  static constexpr bool gives_task = is_task<R>;
};
template <class R, class First, class... Ps>
struct plain_signature<R, First, Ps...> {
  static constexpr bool known = true;
  static constexpr bool takes_self = std::is_convertible_v<self&, First>;
  static constexpr bool takes_values = !(std::is_reference_v<Ps> || ...);
  static constexpr bool takes_views = (is_view<std::remove_cv_t<Ps>> || ...);
  static constexpr bool gives_task = is_task<R>;
};
template <class R, class... Ps, bool Noexcept>
struct signature<R (*)(Ps...) noexcept(Noexcept)> : plain_signature<R, Ps...> {};
template <class R, class C, class... Ps, bool Noexcept>
struct signature<R (C::*)(Ps...) noexcept(Noexcept)> : plain_signature<R, Ps...> {};
template <class R, class C, class... Ps, bool Noexcept>
struct signature<R (C::*)(Ps...) const noexcept(Noexcept)> : plain_signature<R, Ps...> {};
template <class F>
  requires requires { &F::operator(); }
struct signature<F> : signature<decltype(&F::operator())> {};

/// Whether a caller means `F` as a function. If it then cannot be the body of a process, a sentence says why.
template <class F, class... Args>
concept meant_as_body = signature<F>::known || body_function<F, Args...>;
/// Whether a caller means `T` as the class of an object.
template <class T, class... Args>
concept meant_as_object = std::is_class_v<T> && !options_first<Args...>;

/// Refuses a function that cannot be called as the body of a process.
template <class F, class... Args>
consteval bool can_be_a_body() {
  using form = signature<F>;
  if constexpr (body_function<F, Args...>) {
    return true;
  } else if constexpr (!form::takes_self) {
    static_assert(form::takes_self, "the body of a process must take a self& first: task<> body(self& me, ...)");
    return false;
  } else if constexpr (!form::gives_task) {
    static_assert(form::gives_task, "the body of a process must be a coroutine: task<> body(self& me, ...)");
    return false;
  } else {
    static_assert(!form::takes_values,
                  "the body of a process cannot be called with these arguments: their number or the type of one is "
                  "wrong, see the parameters behind its self&");
    return !form::takes_values;  // `is_sound_body` refuses references in a sentence of its own
  }
}

/// Refuses bodies that would dangle: captures and references do when a coroutine first waits, views do when the data of
/// the spawner is gone. Generic callables can't be checked.
template <class F, class... Args>
consteval bool is_sound_body() {
  static_assert(!std::is_class_v<F> || std::is_empty_v<F>,
                "the body of a process must not capture anything: pass it as an argument, by value");
  static_assert(
      signature<F>::takes_values,
      "the body of a process must take its arguments by value: a reference would dangle at its first co_await");
  static_assert(!signature<F>::takes_views,
                "the body of a process must own its arguments: a std::string_view or std::span would dangle when the "
                "data of its spawner is gone, so take a std::string or a std::vector");
  if constexpr (can_be_a_body<F, Args...>()) return signature<F>::takes_values && !signature<F>::takes_views;
  return false;
}

/// Refuses a class that cannot be made from copies of the arguments, in another process and later.
template <class T, class... Args>
consteval bool is_sound_object() {
  static_assert(!(is_view<std::decay_t<Args>> || ...),
                "the arguments of a process are kept until it has made its object: a std::string_view or std::span "
                "would dangle, so pass a std::string or a std::vector");
  static_assert(object_from<T, Args...>,
                "the class has no public constructor for copies of these arguments, with or without a self& first");
  return object_from<T, Args...> && !(is_view<std::decay_t<Args>> || ...) && has_sound_members<T>();
}

}  // namespace coppice::detail
