#pragma once
/// Starting and stopping servers, which are plain classes with handlers; runtime/object.hpp lists the members that they
/// may have.
#include <coppice/runtime/detail/starting.hpp>
#include <coppice/runtime/runtime.hpp>

namespace coppice {
namespace detail {

template <class T, class... Args>
task<result<ref<T>>> start_server(self& me, spawn_options options, Args... args) {
  const std::uint64_t number = new_start_number(me);
  monitor_ref watched{};
  if (const kernel_section mine{me.process(), me.id().serial()}) watched = me.host().monitor_unborn(me.process());
  birth with = birth_with(options, me.id());
  const bool linked = with.linked;
  with.watched_as = watched;
  with.ack = number;
  const result<pid> spawned = spawn_object<T>(me.host(), std::move(with), std::move(args)...);
  if (!spawned) co_return std::unexpected{spawned.error()};
  const pid child = *spawned;
  me.host().adopt(me.process(), me.id(), child, linked, watched);
  const start_outcome out = co_await await_start(me, child, number, options.within, watched);
  me.demonitor(watched, self::flush::yes);
  if (out.what != start_outcome::kind::ready) co_return std::unexpected{out.to_error(child)};
  co_return ref<T>{child};
}

template <class T, class... Args>
task<result<ref<T>>> start_from_outside(self& me, spawn_options options, Args... args) {
  options.link = false;  // `me` only waits on behalf of the thread: it is not the parent
  return start_server<T, Args...>(me, std::move(options), std::move(args)...);
}

}  // namespace detail

/// Starts a server and waits until its `init` is over.
///
///     const spawn_options options{.name = "visits", .link = true, .within = 5s};
///     const result<ref<counter>> made = co_await start<counter>(me, options, 41);
///
/// Errors: `ignored`; `start_failed`, with the failure of its constructor or `init`; the error that `init` returned;
/// `name_taken`: nothing was started; `timeout`: the start took longer than `within`, and the server was killed. With
/// `link` this process is linked to the server from the beginning: if the server fails, this process ends too, unless
/// it traps exits; if `init` returns `ignore` or `fail`, the server ends normally and this process is not affected.
/// When the error is returned, the server has ended, its name is free, and no `exited` of it will be received.
template <class T, class... Args>
[[nodiscard]] task<result<ref<T>>> start(self& me, const spawn_options& options, Args... args) {
  return detail::start_server<T, Args...>(me, options, std::move(args)...);
}
/// The same without options: no name and no link.
template <class T, class... Args>
  requires(!detail::options_first<Args...>)
[[nodiscard]] task<result<ref<T>>> start(self& me, Args... args) {
  return detail::start_server<T, Args...>(me, {}, std::move(args)...);
}

/// Stops a server and waits until it has ended: its `terminate` runs. Errors: `noproc`; `exited` if it ended with
/// another reason; `timeout`: it has not stopped yet; `calling_self` if `who` is `me`. Only servers handle the request:
/// to stop another kind of process, send it a message that it handles.
[[nodiscard]] task<result<void>> stop(self& me, pid who, exit_reason reason = {},
                                      std::chrono::nanoseconds timeout = forever);
template <class T>
[[nodiscard]] task<result<void>> stop(self& me, ref<T> who, exit_reason reason = {},
                                      std::chrono::nanoseconds timeout = forever) {
  return stop(me, who.id(), std::move(reason), timeout);
}

/// From a plain thread: starts a server that has no parent, and waits until its `init` is over.
template <class T, class... Args>
[[nodiscard]] result<ref<T>> start(runtime& rt, const spawn_options& options, Args... args) {
  return rt.await(detail::start_from_outside<T, Args...>, options, std::move(args)...);
}
template <class T, class... Args>
  requires(!detail::options_first<Args...>)
[[nodiscard]] result<ref<T>> start(runtime& rt, Args... args) {
  return rt.await(detail::start_from_outside<T, Args...>, spawn_options{}, std::move(args)...);
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
