#pragma once
/// Refuses to compile an actor's class that is spawned as a server.
#include <coppice/actor/fwd.hpp>
#include <coppice/runtime/detail/handlers.hpp>

namespace coppice::detail {

template <class T, class M>
concept handles_as_actor = !handles<T, M, self&> && handles<T, M, context&>;
/// A class with handlers for messages that only actors get, or that take a `context&`, which only actors have.
template <class T>
[[nodiscard]] consteval bool is_actor() {
  bool takes_context = false;
  if constexpr (requires { typename T::protocol; })
    takes_context = []<class... Ms>(protocol<Ms...>*) {
      return (handles_as_actor<T, Ms> || ...);
    }(static_cast<typename T::protocol*>(nullptr));
  return takes_context || handles_as_actor<T, started> || handles_as_actor<T, restarting> ||
         handles_as_actor<T, stopping> || handles_as_actor<T, stopped> || handles_as_actor<T, terminated>;
}

template <class T>
  requires(is_actor<T>())
struct server_check<T> : std::true_type {
  static_assert(!is_actor<T>(),
                "this class has handlers of an actor, which a server would not call: spawn_actor(rt, props<T>()), "
                "context::spawn and child<any_actor>(props<T>()) make actors");
};

}  // namespace coppice::detail
