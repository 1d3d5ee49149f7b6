#pragma once
/// Processes that are plain objects with handlers: no frame, the smallest and fastest kind.
///
///     struct counter {
///       struct bump { using reply = int; int by = 1; };   // a call names its reply
///       struct reset {};                                  // a cast has none
///       int handle(bump m) { return value += m.by; }      // or result<int>: the caller gets the error as its own
///       void handle(reset, coppice::self& me) { ... }     // handlers that need it also take `self&`
///       void handle(slow, coppice::reply_to<int> later);  // answers later, from anywhere
///       int value = 0;
///     };
///     const ref<counter> counters = rt.spawn<counter>();
///
/// The object is made by its process (its constructor may take `self&` first), handles one message at a time, and is
/// destroyed when the process ends. A message that the class does not handle is refused where it is sent, at compile
/// time. `using protocol = coppice::protocol<bump, reset>;` lets untyped sends to its pid reach the handlers, too; so
/// do `exited`, `down` and `timeout` when there is a handler for them.
///
/// Such a class is a server, and may have more members that the library knows, all optional, each with or without a
/// `self&` as its last parameter:
///
///     init_result init(self& me);                 // or void: after the constructor; whoever starts it waits for this
///     void terminate(const exit_reason& why);     // when it stops or fails, or its parent tells it to (if it traps
///                                                 // exits); never when it is killed: there destructors must do
///     void handle_continue(self& me);             // asked for by `continue_next(me)`, before any mail that waits
///     std::chrono::nanoseconds idle_after() const;  // looked at after each handler: when nothing has come for so
///     void handle(idle);                            // long, this
///     static constexpr bool traps_exits = true;   // as if by `me.trap_exits()` before the constructor
///
/// An exit signal from its parent ends it with that reason, also when it traps exits: it is not offered to a handler. A
/// handler stops it with `me.stop(reason)`; the answer to a call goes out after `terminate`.
///
/// Handlers, `init`, `terminate` and `handle_continue` may be coroutines (`task<int> handle(bump m, self& me)`), which
/// wait while the other mail waits for them; a class with such handlers lists its messages in `protocol`.
#include <coppice/runtime/detail/hooks.hpp>

namespace coppice {

// Of the actor library.
class context;
struct started;
struct restarting;
struct stopping;
struct stopped;
struct terminated;

namespace detail {

/// Tells a process to stop, as `stop` does: no message for its handlers.
struct stop_order {
  exit_reason reason;
};

/// A `self` on the stack of a handler.
class handler_self final : public self {
 public:
  explicit handler_self(turn& t) noexcept : self{*t.k} { become(*t.p); }
  /// Made later than the turn began: its process may have been abandoned meanwhile, and another have its slot.
  handler_self(turn& t, pid who) noexcept : self{*t.k} {
    slot_ = t.p;
    serial_ = who.serial();
  }
};

template <class T, class M>
concept casts_to =
    requires(T& t, M m) { t.handle(std::move(m)); } || requires(T& t, M m, self& me) { t.handle(std::move(m), me); };
template <class T, class M>
concept calls_to = callable_message<M> && casts_to<T, M> &&
                   (std::convertible_to<typename handler_gives<T, M>::type, reply_of<M>> ||
                    std::is_same_v<typename handler_gives<T, M>::type, result<reply_of<M>>> ||
                    is_task<typename handler_gives<T, M>::type>);
template <class T, class M>
concept defers_to = callable_message<M> && (requires(T& t, M m, reply_to<reply_of<M>> to) {
                      t.handle(std::move(m), std::move(to));
                    } || requires(T& t, M m, reply_to<reply_of<M>> to, self& me) {
                      t.handle(std::move(m), std::move(to), me);
                    });

/// When an object was busy last, for those that want to know when they are idle.
struct idle_watch {
  time_point last{};
  time_point due{};  // of the check on its way
  std::uint32_t handled = 0;
  std::uint32_t checks = 0;  // the newest of them counts
  bool armed = false;
};
struct idle_check {
  std::uint32_t handled;
  std::uint32_t number;
};
struct no_watch {};

template <class T, class M>
concept handles_as_actor = !requires(T& t) { t.handle(std::declval<M>(), std::declval<self&>()); } &&
                           requires(T& t) { t.handle(std::declval<M>(), std::declval<context&>()); };
/// A class with handlers for what only actors hear, or that take what only actors have.
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
struct object_body : body {
  static_assert(!is_actor<T>(),
                "this class has handlers of an actor, which a server would not call: spawn_actor(rt, props<T>()), "
                "context::spawn and child<actor>(props<T>()) make actors");
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
                                       .terminate = has_terminate<T> ? &terminate_object<T> : nullptr};

template <class T>
template <class... Args>
object_body<T>::object_body(Args&&... args) : body{&object_type<T>}, object(std::forward<Args>(args)...) {}

template <class Result>
constexpr void check_handler() {
  static_assert(!is_task<Result>,
                "a class with a handler that is a coroutine must list its messages: using protocol = "
                "coppice::protocol<...>, with this one in it");
}

template <class T, class M>
decltype(auto) handle_one(T& object, turn& t, M& m) {
  if constexpr (requires { object.handle(std::move(m)); }) {
    check_handler<decltype(object.handle(std::move(m)))>();
    return object.handle(std::move(m));
  } else {
    handler_self me{t};
    check_handler<decltype(object.handle(std::move(m), me))>();
    return object.handle(std::move(m), me);
  }
}

void watch_for_idleness(turn& t, idle_watch& w, std::chrono::nanoseconds limit);

/// After each handler of an object: what it has asked for.
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
    if (t.ends) return;
    ++mine.watch.handled;
    mine.watch.last = t.k->now();
    const std::chrono::nanoseconds limit = mine.object.idle_after();
    if (!mine.watch.armed || (limit != no_timeout && mine.watch.last + limit < mine.watch.due))
      watch_for_idleness(t, mine.watch, limit);
  }
}

template <class T, class M>
void deliver_cast(body& b, turn& t, envelope& e) {
  struct cleaning {
    M& message;
    ~cleaning() { std::destroy_at(&message); }
  } content{static_cast<letter<M>&>(e).body};
  handle_one(static_cast<object_body<T>&>(b).object, t, content.message);
  after_handler<T>(b, t);
}

template <class T, class M>
void deliver_deferred(T& object, turn& t, envelope& e) {
  using R = reply_of<M>;
  auto& body = static_cast<letter<request_body<M>>&>(e).body;
  auto state = std::make_shared<pending_reply_of<R>>(t.k->weak_from_this(), t.k->pid_of(*t.p), body.caller, body.call);
  M message(std::move(body.message));
  std::destroy_at(&body);
  if (const kernel_section mine{*t.p, t.p->serial()}) t.k->defer(*t.p, state);
  reply_to<R> later{std::move(state)};
  if constexpr (requires { object.handle(std::move(message), std::move(later)); }) {
    object.handle(std::move(message), std::move(later));
  } else {
    handler_self me{t};
    object.handle(std::move(message), std::move(later), me);
  }
}

/// A handler may answer with the reply itself, or with a `result` of it: then an error is the caller's error.
template <class R, class V>
result<R> as_answer(V&& value) {
  if constexpr (std::is_same_v<std::decay_t<V>, result<R>>)
    return std::forward<V>(value);
  else if constexpr (std::is_void_v<R>)
    return {};
  else
    return result<R>{std::in_place, std::forward<V>(value)};
}

/// At once, or, by a server that has stopped and cleans up first, after that.
template <class T, class R>
void answer_in_turn(turn& t, pid caller, std::uint64_t call, result<R> value) {
  if constexpr (has_terminate<T>) {
    if (t.ends) {
      t.held.push_back({caller, make_letter<reply_body<R>>(plain<reply_body<R>>, call, std::move(value))});
      return;
    }
  }
  answer<R>(*t.k, caller, call, std::move(value));
}

template <class T, class M>
void deliver_call(body& b, turn& t, envelope& e) {
  using R = reply_of<M>;
  T& object = static_cast<object_body<T>&>(b).object;
  if constexpr (defers_to<T, M>) {
    deliver_deferred<T, M>(object, t, e);
    after_handler<T>(b, t);
  } else {
    struct answering {
      request_body<M>& body;
      turn& t;
      bool answered = false;
      ~answering() {
        if (!answered) answer_dropped(*t.k, t.k->pid_of(*t.p), {body.caller, body.call, &answer_error<R>});
        std::destroy_at(&body);
      }
    } guard{static_cast<letter<request_body<M>>&>(e).body, t};
    auto& [caller, call, message] = guard.body;
    if constexpr (std::is_void_v<typename handler_gives<T, M>::type>) {
      handle_one(object, t, message);
      guard.answered = true;
      answer_in_turn<T, R>(t, caller, call, {});
    } else {
      result<R> value = as_answer<R>(handle_one(object, t, message));
      guard.answered = true;
      answer_in_turn<T, R>(t, caller, call, std::move(value));
    }
    after_handler<T>(b, t);
  }
}

// Of servers that wait: serving.hpp.
template <class T, class M>
task<void> run_cast(void* object, self& me, serving& s, envelope& e);
template <class T, class M>
task<void> run_call(void* object, self& me, serving& s, envelope& e);

/// Its address tells one class from another.
template <class T>
inline constexpr char server_mark = 0;

template <class T, class M>
consteval message_type handled_type() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<M>), .drop = &drop_body<M>};
  type.relocate = &relocate_body<M>;
  if constexpr (waits<T>) {
    type.run = &run_cast<T, M>;
    type.for_server = &server_mark<T>;
    type.untyped = &plain<M>;
  } else {
    type.deliver = &deliver_cast<T, M>;
    type.for_body = &object_type<T>;
  }
  return type;
}
template <class T, class M>
consteval message_type handled_request_type() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<request_body<M>>), .drop = &drop_request<M>};
  type.is_request = true;
  type.fail = &fail_request<M>;
  type.relocate = &relocate_body<request_body<M>>;
  if constexpr (waits<T>) {
    type.run = &run_call<T, M>;
    type.for_server = &server_mark<T>;
    type.untyped = &plain_request<M>;
  } else {
    type.deliver = &deliver_call<T, M>;
    type.for_body = &object_type<T>;
  }
  return type;
}
/// The types of messages sent through a `ref<T>`: they carry their handler.
template <class T, class M>
inline constexpr message_type handled = handled_type<T, M>();
template <class T, class M>
inline constexpr message_type handled_request = handled_request_type<T, M>();

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
  static_assert(((casts_to<T, Ms> || calls_to<T, Ms> || defers_to<T, Ms>) && ...),
                "the protocol lists a message that the class does not handle");
  return (try_untyped<T, Ms>(b, t, e) || ...);
}
/// Orders to end are not for handlers.
inline bool take_order_to_end(turn& t, envelope& e) {
  if (e.type == &plain<stop_order>) {
    t.ending = take_body<stop_order>(e).reason;
  } else if (e.type == &plain<exited> && t.k->is_order(*t.p, static_cast<letter<exited>&>(e).body)) {
    t.ending = take_body<exited>(e).reason;
  } else {
    return false;
  }
  t.ends = true;
  return true;
}
template <class T>
bool take_idle_check(body& b, turn& t, envelope& e) {
  if constexpr (has_idle<T>) {
    if (e.type != &plain<idle_check>) return false;
    auto& mine = static_cast<object_body<T>&>(b);
    const auto [handled, number] = take_body<idle_check>(e);
    if (number != mine.watch.checks) return true;  // a shorter one is on its way, or has been
    mine.watch.armed = false;
    const std::chrono::nanoseconds limit = mine.object.idle_after();
    if (handled == mine.watch.handled || (limit.count() > 0 && t.k->now() - mine.watch.last >= limit)) {
      idle nothing_came;
      handle_one(mine.object, t, nothing_came);
      after_handler<T>(b, t);
    } else {
      watch_for_idleness(t, mine.watch, limit);
    }
    return true;
  }
  return false;
}

template <class T>
bool offer_untyped(body& b, turn& t, envelope& e) {
  if (take_order_to_end(t, e) || take_idle_check<T>(b, t, e)) return true;
  if (try_untyped<T, exited>(b, t, e) || try_untyped<T, down>(b, t, e) || try_untyped<T, timeout>(b, t, e)) return true;
  if constexpr (requires { typename T::protocol; })
    return try_protocol<T>(b, t, e, static_cast<typename T::protocol*>(nullptr));
  return false;
}

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

/// The object is there. What fails here before whoever waits was told that all is well, is a failed start.
template <class T>
void begin_object(body& b, turn& t, start_letter& first) {
  init_result how = init_object(static_cast<object_body<T>&>(b).object, t);
  if (how.what() != init_result::kind::ok) {
    t.ending = how.reason();
    t.ends = true;
  }
  const bool begun = how.what() == init_result::kind::ok;
  start_ack{first.with.parent, first.with.ack}.give(*t.k, std::move(how));
  if (!begun) return;
  try {
    after_handler<T>(b, t);
    if (!t.ends) return;
  } catch (...) {
    t.ending = reason_of_failure(t);
    t.ends = true;
  }
  t.ending = terminate_object<T>(b, t, std::move(t.ending));
}

/// What did not come through a `ref<T>`: that goes straight to its handler.
template <class T>
verdict offer_to_object(body& b, turn& t, envelope& e) {
  if (e.what() == signal::message) {
    if (!offer_untyped<T>(b, t, e)) {
      t.k->note_unhandled(t.k->pid_of(*t.p), e);
      e.type->drop(*t.k, e, {});
      after_handler<T>(b, t);  // something came, all the same
    }
  } else if (e.what() == signal::start) {
    begin_object<T>(b, t, static_cast<start_letter&>(e));
  } else {
    e.type->drop(*t.k, e, {});
  }
  return t.ends ? verdict::ended : verdict::alive;
}

}  // namespace detail

/// In `init` or a handler: `handle_continue` runs right after it, before any mail that waits.
void continue_next(self& me);

/// A message that `T` handles without an answer (its answer, if it has one, is dropped).
template <class T, class M>
concept handles_cast = detail::casts_to<T, M>;
/// A message that `T` answers.
template <class T, class M>
concept handles_call = detail::calls_to<T, M> || detail::defers_to<T, M>;

/// The address of an object process, with its type. A value, as a pid is.
template <class T>
class ref {
 public:
  constexpr ref() noexcept = default;
  /// When the process is an object of another type, what is sent through it ends as a dead letter, unless its handlers
  /// wait and the message is one of its own as well; a coroutine keeps it in its mailbox, and a call gets no answer in
  /// time.
  constexpr explicit ref(pid who) noexcept : pid_{who} {}
  [[nodiscard]] constexpr pid id() const noexcept { return pid_; }
  constexpr explicit operator bool() const noexcept { return static_cast<bool>(pid_); }
  friend constexpr auto operator<=>(const ref&, const ref&) noexcept = default;

  /// From inside a process. Never fails and never waits.
  template <class M, class... Args>
    requires handles_cast<T, M>
  void cast(Args&&... args) const {
    detail::kernel& k = detail::kernel_here();
    k.send(pid_, detail::signal::message, detail::make_mail<M>(detail::handled<T, M>, std::forward<Args>(args)...));
  }
  /// From inside a process: `const auto n = co_await counters.call<counter::bump>(3);`
  template <class M, class... Args>
    requires handles_call<T, M>
  [[nodiscard]] detail::calling<M> call(Args&&... args) const {
    return detail::calling<M>{std::in_place, detail::handled_request<T, M>, pid_, std::forward<Args>(args)...};
  }

 private:
  pid pid_;
};

}  // namespace coppice
