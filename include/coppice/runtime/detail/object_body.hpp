#pragma once
/// How a plain object of class `T` receives its messages; see object.hpp for the members that the class may have.
#include <coppice/runtime/call.hpp>
#include <coppice/runtime/detail/future_state.hpp>
#include <coppice/runtime/detail/handlers.hpp>
#include <coppice/runtime/detail/start_ack.hpp>

namespace coppice {

template <class... Ms>
struct protocol {};

/// Passed to the handler of a server that has received no message for `idle_after`.
struct became_idle {};

namespace detail {

/// The message of `stop`: the server stops with this reason. Handlers never see it.
struct stop_order {
  static constexpr bool bypasses_policy = true;
  exit_reason reason;
};

/// A `self` on the stack of a handler.
class handler_self final : public self {
 public:
  explicit handler_self(turn& t) noexcept : self{*t.k} { become(*t.p); }
  /// For a `self` made in the middle of a turn. The serial is that of `who`, because the slot has the next serial if
  /// the process was abandoned since the turn began.
  handler_self(turn& t, pid who) noexcept : self{*t.k} {
    slot_ = t.p;
    serial_ = who.serial();
  }
};

// ---- idleness

/// When an object last handled a message, for classes with `idle_after`.
struct idle_watch {
  time_point last{};
  time_point due{};  // when the pending check is due
  std::uint32_t handled = 0;
  std::uint32_t checks = 0;  // the number of the newest check; older ones are ignored
  bool armed = false;
};
struct idle_check {
  static constexpr bool bypasses_policy = true;
  std::uint32_t handled;
  std::uint32_t number;
};
struct no_watch {};

/// Notes that a message was handled, and arms a check if none is due early enough.
void note_handled(turn& t, idle_watch& w, std::chrono::nanoseconds limit);
/// Handles a check. True: the object has been idle for `limit`.
[[nodiscard]] bool is_idle_at_check(turn& t, idle_watch& w, idle_check check, std::chrono::nanoseconds limit);

// ---- the body

template <class T>
struct object_body : body {
  static_assert(server_check<T>::value);
  T object;
  [[no_unique_address]] std::conditional_t<has_idle<T>, idle_watch, no_watch> watch{};
  template <class... Args>
  explicit object_body(Args&&... args);
};

template <class T>
verdict offer_to_object(body& b, turn& t, envelope& e);
template <class T>
exit_reason terminate_object(body& b, turn& t, exit_reason why);

template <class T>
inline constexpr body_type object_type{.offer = &offer_to_object<T>,
                                       .destroy =
                                           [](body& b, kernel&) noexcept {
                                             auto& mine = static_cast<object_body<T>&>(b);
                                             std::destroy_at(&mine);
                                             release(&mine, sizeof(mine));
                                           },
                                       .held = [](const body&) noexcept { return 0U; },
                                       .terminate = has_terminate<T> ? &terminate_object<T> : nullptr,
                                       .name = type_name<T>()};

template <class T>
template <class... Args>
object_body<T>::object_body(Args&&... args) : body{&object_type<T>}, object(std::forward<Args>(args)...) {}

// ---- handlers

template <class T, class... Args>
decltype(auto) call_object(T& object, turn& t, Args&&... args) {
  using gives = decltype(call_handle(object, [&] { return handler_self{t}; }, std::forward<Args>(args)...));
  static_assert(!is_task<gives>,
                "a class with a handler that is a coroutine must list its messages: using protocol = "
                "coppice::protocol<...>, with this one in it");
  return call_handle(object, [&] { return handler_self{t}; }, std::forward<Args>(args)...);
}

/// After each handler: runs `handle_continue` if it was requested, and restarts the idle time.
template <class T>
void after_handler([[maybe_unused]] body& b, [[maybe_unused]] turn& t) {
  [[maybe_unused]] auto& mine = static_cast<object_body<T>&>(b);
  if constexpr (has_continue<T>) {
    while (t.continues && !t.ends) {
      t.continues = false;
      handler_self me{t};
      call_continue(mine.object, me);
    }
  }
  if constexpr (has_idle<T>) {
    if (!t.ends) note_handled(t, mine.watch, mine.object.idle_after());
  }
}

template <class T, class M>
void deliver_cast(body& b, turn& t, envelope& e) {
  const payload_guard<M> message{e};
  call_object(static_cast<object_body<T>&>(b).object, t, std::move(message.get()));
  after_handler<T>(b, t);
}

/// The request that a handler is handling. If the handler throws, the caller gets an error.
class unanswered_request {
 public:
  unanswered_request(turn& t, const open_call& call) noexcept : turn_{t}, call_{call} {}
  ~unanswered_request() {
    if (call_.fail != nullptr) drop();
  }
  unanswered_request(const unanswered_request&) = delete;
  unanswered_request& operator=(const unanswered_request&) = delete;
  /// Sends the answer. If the handler has stopped a server with a `terminate`, keeps the answer until that has run.
  void answer(envelope* reply, bool has_terminate) {
    call_.fail = nullptr;
    if (has_terminate && turn_.ends)
      turn_.held.push_back({call_.caller, reply});
    else
      turn_.k->send(call_.caller, signal::reply, reply);
  }
  /// The answer will be given by a `reply_to`.
  void hand_over() noexcept { call_.fail = nullptr; }

 private:
  void drop() noexcept;
  turn& turn_;
  open_call call_;  // `fail` is null: answered, or handed over
};

template <class T, class M>
void deliver_call(body& b, turn& t, envelope& e) {
  using R = reply_of<M>;
  T& object = static_cast<object_body<T>&>(b).object;
  const payload_guard<request_body<M>> content{e};
  const pid caller = content.get().caller;
  const std::uint64_t call = content.get().call;
  M& message = content.get().message;
  unanswered_request asked{t, {caller, call, &answer_error<R>}};
  if constexpr (defers_to<T, M>) {
    reply_to<R> later = defer_reply<R>(*t.k, *t.p, t.k->pid_of(*t.p), caller, call);
    asked.hand_over();
    call_object(object, t, std::move(message), std::move(later));
  } else if constexpr (std::is_void_v<typename handler_gives<T, M>::type>) {
    call_object(object, t, std::move(message));
    asked.answer(make_reply<R>(call, {}), has_terminate<T>);
  } else {
    asked.answer(make_reply<R>(call, as_answer<R>(call_object(object, t, std::move(message)))), has_terminate<T>);
  }
  after_handler<T>(b, t);
}

// ---- messages that were not sent through a `ref<T>`

template <class T, class M>
bool try_untyped(body& b, turn& t, envelope& e) {
  if constexpr (calls_to<T, M> || defers_to<T, M>) {
    if (is_a(e, plain_request<M>)) return deliver_call<T, M>(b, t, e), true;
  }
  if constexpr (casts_to<T, M>) {
    if (is_a(e, plain<M>)) return deliver_cast<T, M>(b, t, e), true;
  }
  return false;
}
template <class T, class... Ms>
bool try_protocol(body& b, turn& t, envelope& e, protocol<Ms...>*) {
  must_handle_all<T, Ms...>();
  return (try_untyped<T, Ms>(b, t, e) || ...);
}
/// Moves the reason out of a `stop_order` or an exit signal from the parent; the rest of the message stays in its
/// envelope. Nothing: the message is neither.
[[nodiscard]] std::optional<exit_reason> order_to_end(const kernel& k, const slot& p, envelope& e);
/// Takes a `stop_order` or an exit signal from the parent, and ends the process. False: the message is neither.
[[nodiscard]] bool take_order_to_end(turn& t, envelope& e);

template <class T>
bool take_idle_check(body& b, turn& t, envelope& e) {
  if constexpr (has_idle<T>) {
    if (e.type != &plain<idle_check>) return false;
    auto& mine = static_cast<object_body<T>&>(b);
    if (is_idle_at_check(t, mine.watch, take_body<idle_check>(e), mine.object.idle_after())) {
      call_object(mine.object, t, became_idle{});
      after_handler<T>(b, t);
    }
    return true;
  }
  return false;
}

template <class T>
bool offer_untyped(body& b, turn& t, envelope& e) {
  if (take_order_to_end(t, e) || take_idle_check<T>(b, t, e)) return true;
  if (try_untyped<T, exited>(b, t, e) || try_untyped<T, down>(b, t, e) || try_untyped<T, timer_fired>(b, t, e))
    return true;
  if constexpr (requires { typename T::protocol; })
    return try_protocol<T>(b, t, e, static_cast<typename T::protocol*>(nullptr));
  return false;
}

// ---- beginning and end

template <class T>
exit_reason terminate_object(body& b, turn& t, exit_reason why) {
  if constexpr (has_terminate<T>) {
    try {
      handler_self me{t};
      call_terminate(static_cast<object_body<T>&>(b).object, why, me);
    } catch (...) {
      return reason_of_failure(t);
    }
  }
  return why;
}

template <class T>
init_result init_object(T& object, turn& t) {
  if constexpr (has_init<T>) {
    handler_self me{t};
    if constexpr (std::is_void_v<decltype(call_init(object, me))>)
      call_init(object, me);
    else
      return call_init(object, me);
  }
  return init_result::ok();
}

/// Sends the starter the result of `init`. False: the process ends, with the reason in that result.
[[nodiscard]] bool acknowledge_start(turn& t, const start_letter& first, init_result&& how);

/// Called when the object was made. An exception before the starter is notified makes the start fail.
template <class T>
void begin_object(body& b, turn& t, start_letter& first) {
  // Without an `init` and without a starter that waits, there is nothing to acknowledge.
  if (has_init<T> || first.with.ack != 0)
    if (!acknowledge_start(t, first, init_object(static_cast<object_body<T>&>(b).object, t))) return;
  if constexpr (has_continue<T> || has_idle<T> || has_terminate<T>) {
    try {
      after_handler<T>(b, t);
      if (!t.ends) return;
    } catch (...) {
      t.ending = reason_of_failure(t);
      t.ends = true;
    }
    t.ending = terminate_object<T>(b, t, std::move(t.ending));
  }
}

/// Reports and drops a message without a handler.
void drop_unhandled(turn& t, envelope& e);

/// Handles every signal except messages sent through a `ref<T>`, which are delivered to their handlers directly.
template <class T>
verdict offer_to_object(body& b, turn& t, envelope& e) {
  if (e.what() == signal::message) {
    if (!offer_untyped<T>(b, t, e)) {
      drop_unhandled(t, e);
      after_handler<T>(b, t);  // a message without a handler restarts the idle time too
    }
  } else if (e.what() == signal::start) {
    begin_object<T>(b, t, static_cast<start_letter&>(e));
  } else if (!take_answer_of_future(t, e)) {
    e.type->drop(*t.k, e, {});
  }
  return t.ends ? verdict::ended : verdict::alive;
}

}  // namespace detail
}  // namespace coppice
