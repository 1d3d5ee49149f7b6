#pragma once
/// Values that arrive later: a `promise` is the writing end, for any thread; a `future` is the reading end, for the
/// process that made both. This is the bridge to callbacks, other event loops and other threads:
///
///     auto [answer, value] = make_promise<int>(me);
///     library.ask([done = std::move(answer)](int n) mutable { done.complete(n); });  // called by its own thread
///     const result<int> n = co_await value.within(5s);
///
/// In an actor, use `context::reenter_after` instead of `co_await`.
#include <coppice/runtime/call.hpp>
#include <coppice/runtime/detail/future_state.hpp>

namespace coppice {

namespace detail {
/// Where a promise puts its value.
template <class R>
class promise_state {
 public:
  promise_state() = default;
  promise_state(const promise_state&) = delete;
  promise_state& operator=(const promise_state&) = delete;
  virtual ~promise_state() = default;
  /// False: it was completed before, or nobody can receive the value any more. If there is no memory, this throws, and
  /// the promise can still be completed.
  bool give(result<R> value) {
    if (completed_.exchange(true)) return false;
    try {
      return deliver(std::move(value));
    } catch (...) {
      completed_ = false;
      throw;
    }
  }

 protected:
  /// For the destructor of a derived class: nobody has completed the promise.
  void give_up() {
    if (!completed_.exchange(true))
      deliver(std::unexpected{error{errc::no_reply, "the promise was destroyed without a value"}});
  }

 private:
  virtual bool deliver(result<R> value) = 0;
  std::atomic<bool> completed_{false};
};

/// The value becomes the answer to a future.
template <class R>
class promise_of_future final : public promise_state<R> {
 public:
  promise_of_future(std::weak_ptr<kernel> runs_in, pid owner, std::uint64_t number) noexcept
      : runs_in_{std::move(runs_in)}, owner_{owner}, number_{number} {}
  ~promise_of_future() override { this->give_up(); }

 private:
  bool deliver(result<R> value) override {
    const auto k = runs_in_.lock();
    return k && k->send_late(owner_, signal::reply, make_reply<R>(number_, std::move(value)));
  }
  std::weak_ptr<kernel> runs_in_;
  pid owner_;
  std::uint64_t number_;
};
}  // namespace detail

/// The writing end. Copies share one promise, and the first completion counts. When the last copy is destroyed before
/// that, the future gets the error `no_reply`. May outlive its process and its runtime.
/// Thread safety: any thread, each on its own copy.
template <class R>
class promise {
 public:
  /// For the library.
  explicit promise(std::shared_ptr<detail::promise_state<R>> state) noexcept : state_{std::move(state)} {}
  /// Gives the future its value, made from the arguments. False: it was completed before, or the runtime has ended.
  /// Throws `std::bad_alloc`; the promise can still be completed then.
  template <class... V>
  bool complete(V&&... value) {
    return state_->give(result<R>{std::in_place, std::forward<V>(value)...});
  }
  /// Gives the future an error. Otherwise as `complete`.
  bool fail(error why) { return state_->give(std::unexpected{std::move(why)}); }

 private:
  std::shared_ptr<detail::promise_state<R>> state_;
};

template <class R>
class future;

/// A wait for a future, to be awaited.
template <class R>
class [[nodiscard]] pending_future : public detail::waiter {
  using base = detail::waiter;

 public:
  pending_future(std::shared_ptr<detail::future_state<R>> state, std::chrono::nanoseconds timeout) noexcept
      : base{&how}, state_{std::move(state)}, timeout_{timeout} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    detail::coroutine& me = detail::process_of(h.promise());
    detail::must_be_owner(*state_, me.id());
    if (state_->done && !state_->value) detail::throw_future_awaited_before();
    if (state_->done) return me.out_of_turn(h);
    me.wait(h, *this, timeout_);
    return true;
  }
  result<R> await_resume() {
    if (!state_->done) return fail(errc::timeout, "the promise was not completed in time");
    result<R> got = std::move(*state_->value);
    state_->value.reset();
    return got;
  }

 private:
  static bool take(detail::waiter& w, detail::coroutine& me, detail::envelope& e) {
    detail::future_base& mine = *static_cast<pending_future&>(w).state_;
    using answer = detail::reply_body<R>;
    if (e.what() != detail::signal::reply || e.type != &detail::plain<answer>) return false;
    if (static_cast<detail::letter<answer>&>(e).body.call != mine.number) return false;
    result<R> got = detail::take_body<answer>(e).answer;
    detail::remove_future(me, mine.number);
    mine.complete(me.host(), &got);
    return true;
  }
  static void describe(const detail::waiter& w, wait_info& into) {
    const detail::future_base& mine = *static_cast<const pending_future&>(w).state_;
    into.kind = mine.target ? wait_kind::answer : wait_kind::promise;
    into.whom = mine.target;
    into.call = mine.number;
    if (!mine.target) into.types = {type_name<R>()};
  }
  static constexpr detail::wait_type how{.take = &take, .expire = [](detail::waiter&) {}, .describe = &describe};

  std::shared_ptr<detail::future_state<R>> state_;
  std::chrono::nanoseconds timeout_;
};

/// The reading end. Belongs to the process that made it or asked for it; only that process may use it. Copies share one
/// state. It is completed once: by the first answer, or by an error (`no_reply` if the promise was destroyed; of calls
/// also `noproc`, `exited`, `noconnection`, `timeout`). Later answers are dropped.
template <class R>
class future {
 public:
  using is_awaitable = void;
  explicit future(std::shared_ptr<detail::future_state<R>> state) noexcept : state_{std::move(state)} {}
  /// Null until the future is done, and after it was awaited.
  [[nodiscard]] const result<R>* get() const noexcept { return state_->value ? &*state_->value : nullptr; }

  /// `co_await f` waits without a limit and moves the value out. Throws `std::logic_error` in another process than the
  /// owner, and when the value was awaited before.
  [[nodiscard]] pending_future<R> make_awaiter() const noexcept { return within(forever); }
  /// Waits at most that long, then the result is the error `timeout`. The future stays pending and can be awaited
  /// again.
  [[nodiscard]] pending_future<R> within(std::chrono::nanoseconds timeout) const noexcept {
    return pending_future<R>{state_, timeout};
  }

  /// Sends the value, or the `error` in its place, to `to` as soon as the future is done, even if the actor is
  /// restarted before that. If its process ends first, `to` receives the error `exited`. Throws `std::logic_error` if
  /// the value was awaited before.
  void pipe_to(pid to) const
    requires(!std::is_void_v<R>)
  {
    if (state_->done && !state_->value) detail::throw_future_awaited_before();
    if (state_->done)
      detail::send_result(detail::kernel_here(), to, *state_->value);
    else
      state_->pipes.push_back([to, trace = detail::trace_here()](detail::kernel& k, const result<R>& value) {
        const detail::in_trace as{trace};
        detail::send_result(k, to, value);
      });
  }
  template <class To>
    requires requires(const To& to) {
      { to.id() } -> std::same_as<pid>;
    }
  void pipe_to(const To& to) const {
    pipe_to(to.id());
  }

  /// For the library.
  [[nodiscard]] const std::shared_ptr<detail::future_state<R>>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<detail::future_state<R>> state_;
};

namespace detail {
template <class R>
[[nodiscard]] promise<R> promise_for(std::weak_ptr<kernel> runs_in, const future_base& f) {
  using state = promise_of_future<R>;
  return promise<R>{std::allocate_shared<state>(pool_allocator<state>{}, std::move(runs_in), f.owner, f.number)};
}
}  // namespace detail

/// Both ends of a value that arrives later: `auto [answer, value] = make_promise<int>(me);`
template <class R>
struct promised {
  coppice::promise<R> promise;
  coppice::future<R> future;
};

/// Makes a promise whose future belongs to this process. For a process that is a coroutine, or a server; of an object
/// whose handlers do not wait, the future can be used with `pipe_to` and `get`. Throws `std::logic_error` outside of
/// the process, and `std::bad_alloc`.
template <class R>
[[nodiscard]] promised<R> make_promise(self& me) {
  using state_type = detail::future_state<R>;
  auto state = std::allocate_shared<state_type>(detail::pool_allocator<state_type>{});
  state->reply = &detail::plain<detail::reply_body<R>>;
  state->owner = me.id();
  detail::add_future(me, state);
  return {detail::promise_for<R>(me.host().weak_from_this(), *state), future<R>{std::move(state)}};
}

}  // namespace coppice
