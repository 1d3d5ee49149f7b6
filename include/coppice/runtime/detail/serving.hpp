#pragma once
/// Servers whose handlers wait: a coroutine owns the object and gives it one message after the other.
///
/// The loop is compiled once, in serving.cpp. What depends on the class of the server is a table of plain functions,
/// `server_type`. Each function calls one member of the object. If the member is a coroutine, the function stores its
/// frame in `serving`, and the loop waits for the frame.
#include <coppice/runtime/detail/object_body.hpp>
#include <coppice/runtime/receive.hpp>

// The frames below hold servers of the user's, which may well live in an anonymous namespace: g++ takes each frame for
// a class of this header and warns.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

namespace coppice::detail {

/// The state of a server whose handlers wait, apart from its object.
struct serving {
  explicit serving(coroutine& process) : process_{process} { process_.serve(this); }
  ~serving();
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;

  // -- the member that runs
  using finish_function = void (*)(serving&, std::coroutine_handle<>);
  /// Makes the loop wait for this task of a member; then `take_value` takes its value.
  template <class V>
  void wait_for(task<V> work, finish_function take_value = nullptr) {
    wait_for_frame(work.release(), take_value);
  }
  /// The running handler handles a request, whose call has to be answered.
  void ask(const open_call& call) noexcept { asked = call; }
  void reply(envelope* answer);
  template <class R>
  [[nodiscard]] reply_to<R> defer() {
    const open_call call = take_asked();
    return defer_reply<R>(process_.host(), process_.process(), process_.id(), call.caller, call.call);
  }
  /// The handler has not answered the request: the caller gets an error, now or when it is known how the server ends.
  void drop_asked();

  // -- the end of the server
  /// Whether the server stops: because of a handler, a stop order, or its parent.
  [[nodiscard]] bool stopped() {
    if (turn* t = turn_here(); t != nullptr && t->ends) take_stop(*t);
    return why.has_value();
  }
  void take_stop(turn& t) {
    if (!why) why = std::move(t.ending);
    t.ends = false;
  }
  /// Called in a catch block: the server ends with the exception as its reason.
  void fail();
  /// Sends the answers that were kept, and answers the calls of failed handlers with the error of `how`.
  void answer_all(kernel& k, loss how);
  void stop_serving() { process_.serve(nullptr); }

  const struct server_type* type = nullptr;  // null: the object is being made
  std::optional<exit_reason> why;            // set: the server stops
  exit_reason terminates_with;               // the argument of `terminate`
  init_result begun = init_result::ok();     // the answer of `init`
  bool continues = false;                    // `handle_continue` is requested
  open_call asked;                           // the call of the running handler; `fail` is null: none, or answered
  std::vector<held_answer> answers;          // of handlers that stopped the server; sent after `terminate`
  std::vector<open_call> unanswered;         // the calls of handlers that failed
  std::coroutine_handle<> started;           // the frame of the member that runs, until the loop takes it
  finish_function finish = nullptr;          // takes the value of that frame

 private:
  void wait_for_frame(std::coroutine_handle<> frame, finish_function take_value);
  [[nodiscard]] open_call take_asked();
  coroutine& process_;
};

/// Awaits the member that was just called, if it is a coroutine, and takes its value.
class [[nodiscard]] member_done {
 public:
  using is_awaitable = void;
  explicit member_done(serving& s) noexcept;
  ~member_done() {
    if (frame_) frame_.destroy();
  }
  member_done(const member_done&) = delete;
  member_done& operator=(const member_done&) = delete;
  [[nodiscard]] bool await_ready() const noexcept { return !frame_; }
  void await_suspend(std::coroutine_handle<task_promise<void>> parent) noexcept { link_.wait_in(parent.promise()); }
  void await_resume();

 private:
  serving& serving_;
  std::coroutine_handle<> frame_;
  frame_link link_;
  serving::finish_function finish_;
};

/// Frees an envelope at the end of its scope. Its payload must have been taken out by then.
class open_envelope {
 public:
  explicit open_envelope(envelope* e) noexcept : envelope_{e} {}
  ~open_envelope() { detail::release(envelope_); }
  open_envelope(const open_envelope&) = delete;
  open_envelope& operator=(const open_envelope&) = delete;
  [[nodiscard]] envelope& get() const noexcept { return *envelope_; }

 private:
  envelope* envelope_;
};

/// Starts the handler of a message. The message stays in its envelope until the handler is done.
using runner = void (*)(void* object, self& me, serving& s, envelope& e);
/// Calls another member. Null: the class does not have it.
using member = void (*)(void* object, self& me, serving& s);

/// A class of server, as the loop sees it.
struct server_type {
  std::string_view name;
  const char* mark;  // identifies the class: see `server_mark`
  /// Finds the handler of a message that does not carry its handler; null: there is none.
  runner (*find)(const message_type& type);
  member init = nullptr;
  member terminate = nullptr;
  member handle_continue = nullptr;
  member handle_idle = nullptr;
  std::chrono::nanoseconds (*idle_after)(const void* object) = nullptr;
};

/// Its address identifies the class of a server.
template <class T>
inline constexpr char server_mark = 0;

// ---- handlers

template <class T, class... Args>
decltype(auto) start_handler(void* object, self& me, Args&&... args) {
  return call_handle(*static_cast<T*>(object), [&]() -> self& { return me; }, std::forward<Args>(args)...);
}

template <class T, class M>
void run_cast(void* object, self& me, [[maybe_unused]] serving& s, envelope& e) {
  M& message = static_cast<letter<M>&>(e).body;
  if constexpr (is_task<typename handler_gives<T, M>::type>)
    s.wait_for(start_handler<T>(object, me, std::move(message)));
  else
    start_handler<T>(object, me, std::move(message));
}

/// Answers with the value of a handler that was a coroutine.
template <class R, class V>
void finish_call(serving& s, std::coroutine_handle<> done) {
  auto& from = std::coroutine_handle<task_promise<V>>::from_address(done.address()).promise();
  if constexpr (std::is_void_v<V>) {
    from.take();
    s.reply(make_reply<R>(s.asked.call, {}));
  } else {
    s.reply(make_reply<R>(s.asked.call, as_answer<R>(from.take())));
  }
}

template <class T, class M>
void run_call(void* object, self& me, serving& s, envelope& e) {
  using R = reply_of<M>;
  using gives = typename handler_gives<T, M>::type;
  auto& body = static_cast<letter<request_body<M>>&>(e).body;
  M& message = body.message;
  s.ask({body.caller, body.call, &answer_error<R>});
  if constexpr (defers_to<T, M>) {
    start_handler<T>(object, me, std::move(message), s.defer<R>());
  } else if constexpr (is_task<gives>) {
    s.wait_for(start_handler<T>(object, me, std::move(message)), &finish_call<R, task_value<gives>>);
  } else if constexpr (std::is_void_v<gives>) {
    start_handler<T>(object, me, std::move(message));
    s.reply(make_reply<R>(body.call, {}));
  } else {
    s.reply(make_reply<R>(body.call, as_answer<R>(start_handler<T>(object, me, std::move(message)))));
  }
}

template <class T, class M>
void find_untyped(const message_type& type, runner& found) {
  if constexpr (calls_to<T, M> || defers_to<T, M>) {
    if (&type == &plain_request<M>) found = &run_call<T, M>;
  }
  if constexpr (casts_to<T, M>) {
    if (&type == &plain<M>) found = &run_cast<T, M>;
  }
}
template <class T, class... Ms>
void find_in_protocol(const message_type& type, runner& found, protocol<Ms...>*) {
  must_handle_all<T, Ms...>();
  (find_untyped<T, Ms>(type, found), ...);
}
template <class T>
[[nodiscard]] runner find_runner(const message_type& type) {
  runner found = nullptr;
  find_untyped<T, exited>(type, found);
  if (found != nullptr) return found;
  find_untyped<T, down>(type, found);
  find_untyped<T, timer_fired>(type, found);
  if constexpr (requires { typename T::protocol; })
    find_in_protocol<T>(type, found, static_cast<typename T::protocol*>(nullptr));
  return found;
}

// ---- the other members

void finish_init(serving& s, std::coroutine_handle<> done);

template <class T>
void run_init(void* object, self& me, serving& s) {
  T& server = *static_cast<T*>(object);
  using gives = decltype(call_init(server, me));
  if constexpr (std::is_same_v<gives, task<init_result>>)
    s.wait_for(call_init(server, me), &finish_init);
  else if constexpr (is_task<gives>)
    s.wait_for(call_init(server, me));
  else if constexpr (std::is_void_v<gives>)
    call_init(server, me);
  else
    s.begun = call_init(server, me);
}
template <class T>
void run_terminate(void* object, self& me, serving& s) {
  T& server = *static_cast<T*>(object);
  if constexpr (is_task<decltype(call_terminate(server, s.terminates_with, me))>)
    s.wait_for(call_terminate(server, s.terminates_with, me));
  else
    call_terminate(server, s.terminates_with, me);
}
template <class T>
void run_continue(void* object, self& me, serving& s) {
  T& server = *static_cast<T*>(object);
  if constexpr (is_task<decltype(call_continue(server, me))>)
    s.wait_for(call_continue(server, me));
  else
    call_continue(server, me);
}
template <class T>
void run_idle(void* object, self& me, serving& s) {
  if constexpr (is_task<typename handler_gives<T, became_idle>::type>)
    s.wait_for(start_handler<T>(object, me, became_idle{}));
  else
    start_handler<T>(object, me, became_idle{});
}

template <class T>
consteval server_type make_server_type() {
  server_type type{.name = type_name<T>(), .mark = &server_mark<T>, .find = &find_runner<T>};
  if constexpr (has_init<T>) type.init = &run_init<T>;
  if constexpr (has_terminate<T>) type.terminate = &run_terminate<T>;
  if constexpr (has_continue<T>) type.handle_continue = &run_continue<T>;
  if constexpr (has_idle<T>) {
    type.handle_idle = &run_idle<T>;
    type.idle_after = [](const void* object) -> std::chrono::nanoseconds {
      return static_cast<const T*>(object)->idle_after();
    };
  }
  return type;
}
/// A function, so that a library can compile it once for its own servers (`extern template`).
template <class T>
[[nodiscard]] const server_type& server_type_of() noexcept {
  static constexpr server_type type = make_server_type<T>();
  return type;
}

// ---- the process

/// Runs the server once its object was made: `init`, the mail, `terminate`, the exit.
[[nodiscard]] task<void> serve_object(void* object, const server_type& type, serving& s, self& me, start_ack ack);

template <class T, class... Args>
T make_server([[maybe_unused]] self& me, Args&... args) {
  if constexpr (says_it_traps<T>) me.trap_exits();
  if constexpr (std::is_constructible_v<T, Args...>)
    return T(std::move(args)...);
  else
    return T(me, std::move(args)...);
}

/// The body of the process.
template <class T, class... Args>
task<void> serve(self& me, start_ack ack, Args... args) {
  serving s{static_cast<coroutine&>(me)};
  T object = make_server<T>(me, args...);
  auto served = serve_object(&object, server_type_of<T>(), s, me, ack);
  co_await std::move(served);
}

}  // namespace coppice::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
