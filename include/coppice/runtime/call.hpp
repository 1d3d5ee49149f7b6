#pragma once
/// Requests and their answers.
///
/// A message that names its reply can be called: `struct bump { using reply = int; int by; };`. The caller waits for
/// the answer, for an error, or for its timeout, whichever comes first; an answer that arrives later is dropped. The
/// caller gets an error at once if the callee has ended, ends, or drops the request. The library makes the message from
/// the arguments:
///
///     const result<int> n = co_await counters.call<counter::bump>(3);
///     const result<int> m = co_await counters.call<counter::bump>(3).within(100ms);
#include <coppice/runtime/detail/handlers.hpp>
#include <coppice/runtime/message.hpp>

namespace coppice {

/// How long a call waits for its answer if `within` is not used.
inline constexpr std::chrono::seconds default_call_timeout{5};
static_assert(forever == detail::no_timeout);

namespace detail {

/// The data of a request apart from its message.
struct request_head {
  pid caller;  // nobody: nobody waits for an answer (any more)
  std::uint64_t call = 0;
};

template <class M>
struct request_body : request_head {
  M message;
  template <class... Args>
  explicit request_body(Args&&... args) : message(std::forward<Args>(args)...) {}
  template <class... Args>
    requires(!std::is_constructible_v<M, Args...>)
  explicit request_body(Args&&... args) : message{std::forward<Args>(args)...} {}
};

template <class R>
struct reply_body {
  std::uint64_t call;
  result<R> answer;
};

template <class R>
void* open_reply(envelope& e, mail_origin& origin) {
  auto& body = static_cast<letter<reply_body<R>>&>(e).body;
  origin.call = body.call;
  return std::addressof(body.answer);
}
template <class R>
inline constexpr message_type plain<reply_body<R>>{.name = "reply",
                                                   .size = sizeof(letter<reply_body<R>>),
                                                   .drop = &drop_body<reply_body<R>>,
                                                   .relocate = &relocate_body<reply_body<R>>,
                                                   .mail = {.open = &open_reply<R>}};

template <class R>
[[nodiscard, gnu::always_inline]] inline envelope* make_reply(std::uint64_t call, result<R> value) {
  return make_letter<reply_body<R>>(plain<reply_body<R>>, call, std::move(value));
}
template <class R>
void answer(kernel& k, pid caller, std::uint64_t call, result<R> value) {
  k.send(caller, signal::reply, make_reply<R>(call, std::move(value)));
}
template <class R>
void answer_error(kernel& k, pid caller, std::uint64_t call, error why) {
  answer<R>(k, caller, call, std::unexpected{std::move(why)});
}

template <class M>
void drop_request(kernel& k, envelope& e, loss how) {
  auto& body = static_cast<letter<request_body<M>>&>(e).body;
  if (body.caller && how.what == loss::kind::dropped)
    answer_dropped(k, process_here(), {body.caller, body.call, &answer_error<reply_of<M>>});
  else if (body.caller && how.what != loss::kind::vanished)
    answer_error<reply_of<M>>(k, body.caller, body.call, error_of(how));
  std::destroy_at(&body);
}

/// Answers the caller and leaves the request as it is, because another thread may be using the message.
template <class M>
void fail_request(kernel& k, envelope& e, error why) {
  const auto& body = static_cast<letter<request_body<M>>&>(e).body;
  if (body.caller) answer_error<reply_of<M>>(k, body.caller, body.call, std::move(why));
}

template <class M>
void* open_request_body(envelope& e, mail_origin& origin) {
  auto& body = static_cast<letter<request_body<M>>&>(e).body;
  origin.sender = body.caller;
  origin.call = body.caller ? body.call : 0;
  origin.called = true;
  origin.reply = &plain<reply_body<reply_of<M>>>;
  origin.fail = &answer_error<reply_of<M>>;
  return std::addressof(body.message);
}
template <class M>
void close_request_body(envelope& e, mail_origin& origin) {
  auto& body = static_cast<letter<request_body<M>>&>(e).body;
  body.caller = std::exchange(origin.call, 0) != 0 ? origin.sender : pid{};
}
template <class M>
const M& in_request(const request_body<M>& r) {
  return r.message;
}

template <class M>
consteval message_type plain_request_type() {
  message_type type{.name = type_name<M>(), .size = sizeof(letter<request_body<M>>), .drop = &drop_request<M>};
  type.fail = &fail_request<M>;
  type.relocate = &relocate_body<request_body<M>>;
  type.mail.open = &open_request_body<M>;
  type.mail.close = &close_request_body<M>;
  type.mail.content = &plain<M>;
  traits_of<M, request_body<M>, in_request<M>>::add_to(type);
  return type;
}
/// The type of a request that does not carry its handler: its receiver selects by type, as `receive<request<M>>` does.
template <class M>
inline constexpr message_type plain_request = plain_request_type<M>();

template <class R>
struct pending_reply_of : pending_reply {
  std::weak_ptr<kernel> k;
  pending_reply_of(std::weak_ptr<kernel> where, pid from, pid who, std::uint64_t number) : k{std::move(where)} {
    callee = from;
    caller = who;
    call = number;
    fail = [](kernel& where_now, pending_reply& p, const exit_reason& why) {
      answer_error<R>(where_now, p.caller, p.call, error_of({loss::kind::ended, &why}));
    };
  }
  pending_reply_of(const pending_reply_of&) = delete;
  pending_reply_of& operator=(const pending_reply_of&) = delete;
  ~pending_reply_of() {
    if (!answered.exchange(true))
      if (const auto alive = k.lock()) answer_dropped(*alive, callee, {caller, call, &answer_error<R>});
  }
};

}  // namespace detail

/// An answer to be given later, from any process or thread. Copies share one answer; the first one given counts. If all
/// copies are destroyed without an answer, or the process that received the request ends first, the caller gets an
/// error.
/// Thread safety: any thread, each on its own copy.
template <class R>
class reply_to {
 public:
  explicit reply_to(std::shared_ptr<detail::pending_reply_of<R>> state) noexcept : state_{std::move(state)} {}
  /// Answers the call. False: it was answered before, or the callee or the runtime has ended.
  template <class... V>
  bool reply(V&&... value) {
    return give(result<R>{std::in_place, std::forward<V>(value)...});
  }
  bool fail(error why) { return give(std::unexpected{std::move(why)}); }
  [[nodiscard]] pid caller() const noexcept { return state_->caller; }

 private:
  bool give(result<R> value) {
    const auto kernel = state_->k.lock();
    if (!kernel || state_->answered.exchange(true)) return false;
    // The answer is sent from the node of the process that gives it, over the network if need be.
    if (const detail::turn* t = detail::turn_here()) {
      detail::answer<R>(*t->k, state_->caller, state_->call, std::move(value));
      return true;
    }
    return kernel->send_late(state_->caller, detail::signal::reply,
                             detail::make_reply<R>(state_->call, std::move(value)));
  }
  std::shared_ptr<detail::pending_reply_of<R>> state_;
};

namespace detail {
/// Makes a `reply_to` responsible for the answer to a call. `callee`, whose slot is `p`, must be the running process.
template <class R>
[[nodiscard]] reply_to<R> defer_reply(kernel& k, slot& p, pid callee, pid caller, std::uint64_t call) {
  auto state = std::make_shared<pending_reply_of<R>>(k.weak_from_this(), callee, caller, call);
  if (const kernel_section mine{p, callee.serial()}) k.defer(p, state);
  return reply_to<R>{std::move(state)};
}
}  // namespace detail

/// A request received by a process: `auto ask = co_await me.receive<request<bump>>();`. Answer it with `reply`. If it
/// is destroyed unanswered, its caller gets an error. To answer from another process or thread, `defer` it.
template <class M>
class request {
 public:
  using reply_type = reply_of<M>;
  request(self& callee, pid caller, std::uint64_t call, M content)
      : message(std::move(content)),
        kernel_{&callee.host()},
        slot_{&callee.process()},
        callee_{callee.id()},
        caller_{caller},
        call_{call} {}
  request(request&& other) noexcept
      : message(std::move(other.message)),
        kernel_{std::exchange(other.kernel_, nullptr)},
        slot_{other.slot_},
        callee_{other.callee_},
        caller_{other.caller_},
        call_{other.call_} {}
  request& operator=(request&& other) noexcept {
    std::swap(message, other.message);
    std::swap(kernel_, other.kernel_);
    std::swap(slot_, other.slot_);
    std::swap(callee_, other.callee_);
    std::swap(caller_, other.caller_);
    std::swap(call_, other.call_);
    return *this;
  }
  ~request() {
    if (kernel_ != nullptr)
      detail::answer_dropped(*kernel_, callee_, {caller_, call_, &detail::answer_error<reply_type>});
  }

  template <class... V>
  void reply(V&&... value) {
    if (detail::kernel* k = std::exchange(kernel_, nullptr))
      detail::answer<reply_type>(*k, caller_, call_, result<reply_type>{std::in_place, std::forward<V>(value)...});
  }
  void fail(error why) {
    if (detail::kernel* k = std::exchange(kernel_, nullptr))
      detail::answer_error<reply_type>(*k, caller_, call_, std::move(why));
  }
  /// From here on the returned object answers the call.
  /// Throws `std::logic_error` if the request was answered or deferred before.
  [[nodiscard]] reply_to<reply_type> defer() {
    detail::kernel* k = std::exchange(kernel_, nullptr);
    if (k == nullptr) throw std::logic_error{"this request was answered, deferred or moved away before"};
    return detail::defer_reply<reply_type>(*k, *slot_, callee_, caller_, call_);
  }
  [[nodiscard]] pid caller() const noexcept { return caller_; }

  M message;

 private:
  detail::kernel* kernel_;  // null: answered, deferred or moved from
  detail::slot* slot_;
  pid callee_;
  pid caller_;
  std::uint64_t call_;
};

namespace detail {

template <class M>
struct received<request<M>> {
  [[nodiscard]] static bool matches(const envelope& e) noexcept { return is_a(e, plain_request<M>); }
  [[nodiscard]] static request<M> take(coroutine& me, envelope& e) {
    const auto& body = static_cast<letter<request_body<M>>&>(e).body;
    const open_call waiting{body.caller, body.call, &answer_error<reply_of<M>>};
    try {
      return request<M>{me, waiting.caller, waiting.call, take_body<request_body<M>>(e).message};
    } catch (...) {  // moving the message threw: its caller gets an error once it is known whether this process ends
      current_turn->unanswered.push_back(waiting);
      throw;
    }
  }
};

/// The part of a call that does not depend on its types.
class call_base : public waiter {
 protected:
  call_base(const wait_type& how, pid to, envelope* letter, request_head* asked) noexcept
      : waiter{&how}, to_{to}, letter_{letter}, asked_{asked} {}
  call_base(call_base&& other) noexcept
      : waiter{other},
        to_{other.to_},
        letter_{std::exchange(other.letter_, nullptr)},
        asked_{other.asked_},
        timeout_{other.timeout_} {}
  ~call_base() {
    if (remote_) [[unlikely]]
      forget_remote();
  }

  static void describe(const waiter& w, wait_info& into);
  using fail_function = void (*)(kernel&, pid, std::uint64_t, error);
  /// Sends the request and suspends the process. False: the process has called itself, and nothing was sent.
  [[nodiscard]] bool send(std::coroutine_handle<> h, coroutine& me, fail_function fail);
  /// The process no longer waits for an answer from another node.
  void forget_remote();
  [[nodiscard]] error timed_out_error() const;
  [[nodiscard]] error calling_self_error() const;

  pid to_;
  envelope* letter_;  // null: sent
  union {
    request_head* asked_;       // in the letter, until it is sent
    const message_type* sent_;  // the type of the request, afterwards
  };
  coroutine* me_ = nullptr;
  std::uint64_t call_ = 0;
  std::chrono::nanoseconds timeout_ = default_call_timeout;
  bool remote_ = false;
};

/// A call that is answered with an `R`.
template <class R>
class call_for : public call_base {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    if (send(h, process_of(h.promise()), &answer_error<R>)) return true;
    got_ = std::unexpected{calling_self_error()};
    return false;
  }
  result<R> await_resume() {
    if (remote_) [[unlikely]]
      forget_remote();
    return std::move(got_);
  }

 protected:
  call_for(pid to, envelope* letter, request_head* asked) noexcept : call_base{how, to, letter, asked} {}
  call_for(call_for&&) noexcept = default;
  ~call_for() = default;

 private:
  static bool take_reply(waiter& w, coroutine&, envelope& e) {
    auto& mine = static_cast<call_for&>(w);
    if (e.what() != signal::reply || e.type != &plain<reply_body<R>>) return false;
    if (static_cast<letter<reply_body<R>>&>(e).body.call != mine.call_) return false;
    mine.got_ = take_body<reply_body<R>>(e).answer;
    return true;
  }
  static void give_up(waiter& w) {
    auto& mine = static_cast<call_for&>(w);
    mine.got_ = std::unexpected{mine.timed_out_error()};
  }
  static constexpr wait_type how{.take = &take_reply, .expire = &give_up, .describe = &call_base::describe};
  result<R> got_{std::unexpected{error{errc::no_reply}}};
};

}  // namespace detail

/// A call that is sent when it is awaited, or when a plain thread runs it: `rt.call(counters.call<bump>(3))`.
template <class M>
class [[nodiscard]] pending_call : public detail::call_for<reply_of<M>> {
  using base = detail::call_for<reply_of<M>>;

 public:
  using reply_type = reply_of<M>;
  /// For the library.
  template <class... Args>
  pending_call(std::in_place_t, const detail::message_type& type, pid to, Args&&... args)
      : pending_call{to, detail::make_letter<detail::request_body<M>>(type, std::forward<Args>(args)...)} {}
  pending_call(pending_call&&) noexcept = default;
  ~pending_call() {
    if (this->letter_ != nullptr) [[unlikely]]
      destroy_unsent();
  }

  /// Waits for the answer at most that long; `forever`: without a limit.
  [[nodiscard]] pending_call within(std::chrono::nanoseconds timeout) && {
    this->timeout_ = timeout;
    return std::move(*this);
  }

  // For the library, to send the call without awaiting it.
  [[nodiscard]] pid to() const noexcept { return this->to_; }
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return this->timeout_; }
  [[nodiscard]] const detail::message_type& type() const noexcept { return *this->letter_->type; }
  [[nodiscard]] M& message() noexcept {
    return static_cast<detail::letter<detail::request_body<M>>*>(this->letter_)->body.message;
  }
  /// Returns the request, for `caller` to send as its call number `call`. Afterwards this object must not be used.
  [[nodiscard]] detail::envelope* release(pid caller, std::uint64_t call) noexcept {
    this->asked_->caller = caller;
    this->asked_->call = call;
    return std::exchange(this->letter_, nullptr);
  }

 private:
  pending_call(pid to, detail::letter<detail::request_body<M>>* made) noexcept
      : base{to, made, std::addressof(made->body)} {}
  [[gnu::noinline]] void destroy_unsent() noexcept {
    std::destroy_at(std::addressof(static_cast<detail::letter<detail::request_body<M>>*>(this->letter_)->body));
    detail::release(this->letter_);
  }
};

/// Calls a process by its pid. The process receives `request<M>`, or it is an actor, or a server with `M` in its
/// `protocol`; other servers are called through their `ref`.
/// `const auto n = co_await call<bump>(counter, 3);`, from a plain thread `rt.call(call<bump>(counter, 3))`.
template <callable_message M, class... Args>
[[nodiscard]] pending_call<M> call(pid to, Args&&... args) {
  return pending_call<M>{std::in_place, detail::plain_request<M>, to, std::forward<Args>(args)...};
}

}  // namespace coppice
