#pragma once
/// Servers whose handlers wait: a coroutine that owns the object and hands it one message after the other.
#include <coppice/runtime/object.hpp>
#include <coppice/runtime/receive.hpp>

// The frames below hold servers and messages of the user's, which may well live in an anonymous namespace: g++ takes
// each frame for a class of this header and warns.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

namespace coppice::detail {

/// What such a server has to remember while a handler waits.
struct serving {
  explicit serving(coroutine& process) : process_{process} { process_.serve(this); }
  ~serving();
  serving(const serving&) = delete;
  serving& operator=(const serving&) = delete;

  /// Whether a handler has stopped it.
  [[nodiscard]] bool stopped() {
    if (turn* t = turn_here(); t != nullptr && t->ends) take_stop(*t);
    return why.has_value();
  }
  void take_stop(turn& t) {
    if (!why) why = std::move(t.ending);
    t.ends = false;
  }
  /// In a handler of exceptions.
  void fail() {
    turn* t = turn_here();
    t->ends = false;
    why = reason_of_failure(*t);
  }
  /// The process ends now: who waits for an answer gets it, or hears why there is none.
  void last_words(kernel& k, loss how);
  void stop_serving() { process_.serve(nullptr); }

  std::optional<exit_reason> why;  // it stops
  bool continues = false;
  std::vector<held_answer> answers;
  std::vector<open_call> unanswered;  // of handlers that failed

 private:
  coroutine& process_;
};

/// An envelope whose payload somebody takes out.
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

/// What the handler gives: a value, nothing, or a task to wait for.
template <class T, class M>
decltype(auto) start_handler(T& object, self& me, M& m) {
  if constexpr (requires { object.handle(std::move(m)); })
    return object.handle(std::move(m));
  else
    return object.handle(std::move(m), me);
}

template <class T, class M>
task<void> run_cast(void* object, self& me, serving&, envelope& e) {
  M message = take_body<M>(e);
  T& server = *static_cast<T*>(object);
  if constexpr (is_task<typename handler_gives<T, M>::type>) {
    auto waits_for = start_handler(server, me, message);
    co_await std::move(waits_for);
  } else {
    start_handler(server, me, message);
  }
}

/// A request in the hands of a handler that waits.
template <class M>
class open_request {
 public:
  open_request(self& callee, serving& s, envelope& e)
      : kernel_{callee.host()}, serving_{s}, callee_{callee.id()}, body_{take_body<request_body<M>>(e)} {}
  open_request(const open_request&) = delete;
  open_request& operator=(const open_request&) = delete;
  ~open_request() {
    if (answered_) return;
    const open_call lost{body_.caller, body_.call, &answer_error<reply_of<M>>};
    if (std::uncaught_exceptions() > 0 && turn_here() != nullptr)
      serving_.unanswered.push_back(lost);  // until it is known what the server ends with
    else
      answer_dropped(kernel_, callee_, lost);
  }
  [[nodiscard]] M& message() noexcept { return body_.message; }
  [[nodiscard]] reply_to<reply_of<M>> defer(slot& p) {
    auto state =
        std::make_shared<pending_reply_of<reply_of<M>>>(kernel_.weak_from_this(), callee_, body_.caller, body_.call);
    if (const kernel_section mine{p, callee_.serial()}) kernel_.defer(p, state);
    answered_ = true;
    return reply_to<reply_of<M>>{std::move(state)};
  }
  void answer(result<reply_of<M>> value) {
    using R = reply_of<M>;
    answered_ = true;
    if (serving_.stopped())
      serving_.answers.push_back(
          {body_.caller, make_letter<reply_body<R>>(plain<reply_body<R>>, body_.call, std::move(value))});
    else
      detail::answer<R>(kernel_, body_.caller, body_.call, std::move(value));
  }

 private:
  kernel& kernel_;
  serving& serving_;
  pid callee_;
  request_body<M> body_;
  bool answered_ = false;
};

template <class T, class M>
task<void> run_call(void* object, self& me, serving& s, envelope& e) {
  using R = reply_of<M>;
  using gives = typename handler_gives<T, M>::type;
  open_request<M> asked{me, s, e};
  T& server = *static_cast<T*>(object);
  if constexpr (defers_to<T, M>) {
    auto later = asked.defer(me.process());
    if constexpr (requires { server.handle(std::move(asked.message()), std::move(later)); })
      server.handle(std::move(asked.message()), std::move(later));
    else
      server.handle(std::move(asked.message()), std::move(later), me);
  } else if constexpr (is_task<gives>) {
    auto waits_for = start_handler(server, me, asked.message());
    if constexpr (std::is_same_v<gives, task<void>>) {
      co_await std::move(waits_for);
      asked.answer({});
    } else {
      auto value = co_await std::move(waits_for);
      asked.answer(as_answer<R>(std::move(value)));
    }
  } else if constexpr (std::is_void_v<gives>) {
    start_handler(server, me, asked.message());
    asked.answer({});
  } else {
    asked.answer(as_answer<R>(start_handler(server, me, asked.message())));
  }
  co_return;
}

using runner = task<void> (*)(void*, self&, serving&, envelope&);

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
  static_assert(((casts_to<T, Ms> || calls_to<T, Ms> || defers_to<T, Ms>) && ...),
                "the protocol lists a message that the class does not handle");
  (find_untyped<T, Ms>(type, found), ...);
}
/// Null: the class has no handler for it.
template <class T>
[[nodiscard]] runner find_runner(const envelope& e) {
  if (e.type->for_server == &server_mark<T>) return e.type->run;
  // Sent through a `ref` of another class, which may have a message in common with this one: a base, say.
  const message_type& type = e.type->untyped != nullptr ? *e.type->untyped : *e.type;
  runner found = nullptr;
  find_untyped<T, exited>(type, found);
  if (found != nullptr) return found;
  find_untyped<T, down>(type, found);
  find_untyped<T, timeout>(type, found);
  if constexpr (requires { typename T::protocol; })
    find_in_protocol<T>(type, found, static_cast<typename T::protocol*>(nullptr));
  return found;
}

template <class T, class... Args>
T make_server([[maybe_unused]] self& me, Args&... args) {
  if constexpr (says_it_traps<T>) me.trap_exits();
  if constexpr (std::is_constructible_v<T, Args...>)
    return T(std::move(args)...);
  else
    return T(me, std::move(args)...);
}

/// An order to end, which is not for handlers; true: it was one.
inline bool take_order_to_end(self& me, serving& s, any_message& m) {
  if (auto* order = m.get_if<stop_order>())
    s.why = std::move(order->reason);
  else if (auto* x = m.get_if<exited>(); x != nullptr && me.host().is_order(me.process(), *x))
    s.why = std::move(x->reason);
  else
    return false;
  return true;
}

template <class T>
task<init_result> init_server(T& object, self& me) {
  if constexpr (has_init<T>) {
    using gives = decltype(call_init(object, me));
    if constexpr (std::is_same_v<gives, task<init_result>>) {
      init_result how = co_await call_init(object, me);
      co_return how;
    } else if constexpr (std::is_same_v<gives, task<void>>) {
      co_await call_init(object, me);
    } else if constexpr (std::is_void_v<gives>) {
      call_init(object, me);
    } else {
      co_return call_init(object, me);
    }
  }
  co_return init_result::ok();
}

template <class T>
task<void> terminate_server(T& object, serving& s, self& me) {
  if constexpr (has_terminate<T>) {
    const exit_reason why = *s.why;
    if constexpr (is_task<decltype(call_terminate(object, why, me))>)
      co_await call_terminate(object, why, me);
    else
      call_terminate(object, why, me);
  }
  co_return;
}

template <class T>
task<void> continue_server(T& object, serving& s, self& me) {
  if constexpr (has_continue<T>) {
    s.continues = false;
    if constexpr (is_task<decltype(call_continue(object, me))>)
      co_await call_continue(object, me);
    else
      call_continue(object, me);
  }
  co_return;
}

template <class T>
task<void> run_idle(T& object, self& me) {
  idle nothing_came;
  if constexpr (is_task<typename handler_gives<T, idle>::type>) {
    auto waits_for = start_handler(object, me, nothing_came);
    co_await std::move(waits_for);
  } else {
    start_handler(object, me, nothing_came);
  }
  co_return;
}

/// One message after the other, until it stops. What a handler throws comes out of this.
template <class T>
task<void> serve_mail(T& object, serving& s, self& me) {
  while (!s.stopped()) {
    if (s.continues) {
      co_await continue_server(object, s, me);
      continue;
    }
    std::optional<any_message> mail;
    if constexpr (has_idle<T>) {
      const std::chrono::nanoseconds limit = object.idle_after();
      if (limit != no_timeout) {
        auto came = co_await me.receive<any_message>(limit);
        if (auto* m = std::get_if<any_message>(&came)) mail.emplace(std::move(*m));
        if (!mail) {
          co_await run_idle(object, me);
          continue;
        }
      }
    }
    if (!mail) {
      any_message m = co_await me.receive<any_message>();
      mail.emplace(std::move(m));
    }
    if (take_order_to_end(me, s, *mail)) continue;
    const runner run = find_runner<T>(mail->content());
    if (run == nullptr) {
      me.host().note_unhandled(me.id(), mail->content());
      continue;
    }
    const open_envelope e{mail->release()};
    co_await run(&object, me, s, e.get());
  }
}

/// The body of the process.
template <class T, class... Args>
task<void> serve(self& me, start_ack ack, Args... args) {
  serving s{static_cast<coroutine&>(me)};
  T object = make_server<T>(me, args...);
  init_result how = co_await init_server(object, me);
  const bool begun = how.what() == init_result::kind::ok;
  if (!begun) s.why = how.reason();
  ack.give(me.host(), std::move(how));
  if (begun) {
    try {
      co_await serve_mail(object, s, me);
    } catch (...) {
      s.fail();
    }
    try {
      co_await terminate_server(object, s, me);
    } catch (...) {
      s.fail();
    }
  }
  const exit_reason why = *s.why;
  s.last_words(me.host(), {loss::kind::ended, &why});
  s.stop_serving();
  co_await me.exit(why);
}

}  // namespace coppice::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
