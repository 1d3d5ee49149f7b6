#pragma once
/// Forward declarations of what `coppice/runtime` defines.

namespace coppice {

class any_message;
class exit_reason;
class exit_with;
class init_result;
class pid;
class runtime;
class runtime_handle;
class self;
class transport;
struct down;
struct exited;
struct became_idle;
struct mailbox;  // NOLINT(bugprone-forward-declaration-namespace): defined in mailbox.hpp; detail has another one
struct runtime_options;
struct spawn_options;
struct timed_out;
struct timer_fired;

template <class... Ms>
struct protocol;
template <class T>
class ref;
template <class M>
class pending_call;
template <class R>
class future;
template <class R>
class promise;
template <class R>
class reply_to;
template <class M>
class request;
template <class T = void>
class task;

namespace detail {
class coroutine;
class kernel;
struct body;
struct envelope;
struct message_type;
struct serving;
struct slot;
struct turn;
}  // namespace detail

}  // namespace coppice
