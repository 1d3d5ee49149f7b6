#pragma once
/// Starting and stopping servers, which are plain classes with handlers; see runtime/object.hpp for what they may have.
#include <coppice/runtime/detail/starting.hpp>
#include <coppice/runtime/runtime.hpp>

namespace coppice {
namespace detail {

template <class T, class... Args>
task<result<ref<T>>> start_server(self& me, spawn_options options, std::chrono::nanoseconds within, Args... args) {
  const std::uint64_t number = new_start_number(me);
  monitor_ref watched{};
  if (const kernel_section mine{me.process(), me.id().serial()}) watched = me.host().monitor_unborn(me.process());
  birth with = birth_with(std::move(options), me.id());
  const bool linked = with.linked;
  with.watched_as = watched;
  with.ack = number;
  const result<pid> spawned = spawn_object<T>(me.host(), std::move(with), std::move(args)...);
  if (!spawned) co_return std::unexpected{spawned.error()};
  const pid child = *spawned;
  me.host().adopt(me.process(), me.id(), child, linked, watched);
  const start_outcome out = co_await await_start(me, child, number, within, watched, nullptr);
  me.demonitor(watched, flush::yes);
  if (out.what != start_outcome::kind::ready) co_return std::unexpected{out.to_error(child)};
  co_return ref<T>{child};
}

template <class T, class... Args>
task<result<ref<T>>> start_from_outside(self& me, spawn_options options, Args... args) {
  return start_server<T, Args...>(me, std::move(options), forever, std::move(args)...);
}

}  // namespace detail

/// Starts a server, linked to this process, and waits until its `init` is over.
///
///     const result<ref<counter>> made = co_await start_link<counter>(me, 41);
///
/// Errors: `ignored`, `start_failed` (with the failure of its constructor or `init`), or the error that its `init`
/// returned. This process is linked to the server from the beginning: if the server fails, this process ends too,
/// unless it traps exits; if `init` returns `ignore` or `fail`, the server ends normally and this process is not
/// affected. When the error is returned, the server has ended, its name is free and no `exited` of it will come.
template <class T, class... Args>
[[nodiscard]] task<result<ref<T>>> start_link(self& me, Args... args) {
  return detail::start_server<T, Args...>(me, {.link = true}, forever, std::move(args)...);
}
/// With a name, a label, or without the link. A server whose start takes longer than `within` is killed: `timeout`.
/// `name_taken`: nothing was started.
template <class T, class... Args>
[[nodiscard]] task<result<ref<T>>> start_with(self& me, spawn_options options, std::chrono::nanoseconds within,
                                              Args... args) {
  return detail::start_server<T, Args...>(me, std::move(options), within, std::move(args)...);
}

/// Stops a server and waits until it has ended: its `terminate` runs. Errors: `noproc`; `exited` if it ended with
/// another reason; `timeout`: it is still stopping. A process that is not a server does not understand it: send it a
/// message of its own.
[[nodiscard]] task<result<void>> stop(self& me, pid who, exit_reason reason = {},
                                      std::chrono::nanoseconds timeout = forever);
template <class T>
[[nodiscard]] task<result<void>> stop(self& me, ref<T> who, exit_reason reason = {},
                                      std::chrono::nanoseconds timeout = forever) {
  return stop(me, who.id(), std::move(reason), timeout);
}

/// From a plain thread: starts a server that has no parent, and waits until its `init` is over.
template <class T, class... Args>
[[nodiscard]] result<ref<T>> start(runtime& rt, Args... args) {
  return rt.await(detail::start_from_outside<T, Args...>, spawn_options{}, std::move(args)...);
}
template <class T, class... Args>
[[nodiscard]] result<ref<T>> start_named(runtime& rt, std::string name, Args... args) {
  return rt.await(detail::start_from_outside<T, Args...>, spawn_options{.name = std::move(name)}, std::move(args)...);
}
/// From a plain thread, as above.
[[nodiscard]] result<void> stop(runtime& rt, pid who, exit_reason reason = {},
                                std::chrono::nanoseconds timeout = forever);
template <class T>
[[nodiscard]] result<void> stop(runtime& rt, ref<T> who, exit_reason reason = {},
                                std::chrono::nanoseconds timeout = forever) {
  return stop(rt, who.id(), std::move(reason), timeout);
}

}  // namespace coppice
