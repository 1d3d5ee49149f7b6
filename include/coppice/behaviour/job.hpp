#pragma once
/// A job: one computation in a process of its own, whose result is awaited.
///
///     auto total = async_job(me, sum_of, numbers);   // starts at once: int sum_of(std::vector<int>)
///     auto page = async_job(me, fetch, url);         // or a coroutine: task<std::string> fetch(self&, std::string)
///
///     const result<int> sum = co_await total.await();
///     const result<std::string> text = co_await page.await(30s);
///
/// `async_job` links the job to its owner: when the job fails, the owner ends too, unless it traps exits; when the
/// owner fails, the job ends too. When the owner ends normally, its jobs go on. With `async_nolink` a failure of the
/// job is only its result.
///
/// A job never sends messages to its owner. If the owner traps exits and has learned of the end of a job by `await` or
/// a similar function, it does not receive `exited` for that job as well.
///
/// A job under a `job_supervisor` is not restarted, unless its `restart` setting says so. A function under another
/// supervisor is a permanent child by default; this one is temporary:
/// `child(body).with({.id = "job", .restart = restart::temporary})`.
#include <coppice/behaviour/detail/job_state.hpp>

namespace coppice {

template <class T>
class job;

namespace detail {

template <class F, class... Args>
concept waiting_job = body_function<F, Args...>;
template <class F, class... Args>
concept plain_job = !waiting_job<F, Args...> && std::is_invocable_v<F, std::decay_t<Args>...> &&
                    !is_task<std::invoke_result_t<F, std::decay_t<Args>...>>;
/// A function that can be a job: `task<T> f(self&, args...)` or `T f(args...)`, called with copies of the arguments.
template <class F, class... Args>
concept job_function = waiting_job<F, Args...> || plain_job<F, Args...>;

}  // namespace detail

/// The type of the result of a job, `value`, and checks of its function.
template <class F, class... Args>
struct job_traits;
template <class F, class... Args>
  requires detail::waiting_job<F, Args...>
struct job_traits<F, Args...> {
  static_assert(!std::is_class_v<F> || std::is_empty_v<F>,
                "a job that waits must not capture anything: pass it as an argument, by value");
  static_assert(detail::signature<F>::takes_values,
                "a job that waits must take its arguments by value: a reference would dangle at its first co_await");
  static_assert(!detail::signature<F>::takes_views,
                "a job that waits must own its arguments: a std::string_view or std::span would dangle when the data "
                "of its owner is gone, so take a std::string or a std::vector");
  using value = typename std::invoke_result_t<F, self&, std::decay_t<Args>...>::value_type;
};
template <class F, class... Args>
  requires detail::plain_job<F, Args...>
struct job_traits<F, Args...> {
  using value = std::decay_t<std::invoke_result_t<F, std::decay_t<Args>...>>;
};
/// The type of the result of a job with this function and these arguments.
template <class F, class... Args>
using job_value = typename job_traits<F, Args...>::value;

namespace detail {

/// Fails a job whose process has ended before it began.
void fail_unstarted(job_base& job);

/// The argument that carries the state of a job to its process. If it is destroyed with the state still in it, because
/// the process ended before it began, the job fails.
template <class T>
class unstarted_job {
 public:
  unstarted_job(std::shared_ptr<job_state<T>> state) noexcept  // NOLINT(google-explicit-constructor): an argument
      : state_{std::move(state)} {}
  unstarted_job(unstarted_job&&) noexcept = default;
  unstarted_job& operator=(unstarted_job&&) = delete;
  ~unstarted_job() {
    if (state_) fail_unstarted(*state_);
  }
  [[nodiscard]] std::shared_ptr<job_state<T>> start() noexcept { return std::move(state_); }

 private:
  std::shared_ptr<job_state<T>> state_;
};

/// The process of a job.
template <class T, class F, class... Args>
task<> run_job(self& me, unstarted_job<T> job, F f, Args... args) {
  const std::shared_ptr<job_state<T>> state = job.start();
  if (const kernel_section mine{me.process(), me.id().serial()}) me.host().defer(me.process(), state);
  if constexpr (waiting_job<F, Args...>) {
    task<T> work = f(me, std::move(args)...);
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
      state->succeed(me.host());
    } else {
      T value = co_await std::move(work);
      state->succeed(me.host(), std::move(value));
    }
  } else if constexpr (std::is_void_v<T>) {
    std::invoke(std::move(f), std::move(args)...);
    state->succeed(me.host());
  } else {
    state->succeed(me.host(), std::invoke(std::move(f), std::move(args)...));
  }
  co_return;
}

enum class bond : bool { none, link };

template <class F, class... Args>
[[nodiscard]] auto start_job(self& me, bond how, F f, Args&&... args) {
  using T = job_value<F, Args...>;
  auto state = std::make_shared<job_state<T>>();
  state->caller = me.id();
  state->linked = how == bond::link;
  constexpr auto body = &run_job<T, F, std::decay_t<Args>...>;
  state->who = how == bond::link ? me.spawn_link(body, state, std::move(f), std::forward<Args>(args)...)
                                 : me.spawn(body, state, std::move(f), std::forward<Args>(args)...);
  return state;
}

template <class T>
task<std::optional<result<T>>> yield_job(std::shared_ptr<job_state<T>> state, std::chrono::nanoseconds timeout) {
  state->must_be_mine();
  if (!state->taken) co_await until_done(state, timeout);
  co_return state->take();
}
template <class T>
task<result<T>> await_job(std::shared_ptr<job_state<T>> state, std::chrono::nanoseconds timeout) {
  std::optional<result<T>> got = co_await yield_job(state, timeout);
  if (!got) co_return fail(errc::timeout, "the job " + to_string(state->who) + " is not done yet");
  co_return std::move(*got);
}
template <class T>
task<std::optional<result<T>>> shut_down_job(std::shared_ptr<job_state<T>> state, exit_reason how,
                                             std::chrono::nanoseconds timeout) {
  state->must_be_mine();
  bool as_told = false;
  if (!state->taken && !state->is_done()) as_told = co_await end_job(state, std::move(how), timeout);
  std::optional<result<T>> got = state->take();
  if (as_told) got.reset();
  co_return got;
}

}  // namespace detail

/// The handle of a job. Only its owner, the process that started the job, may use it; in other processes all functions
/// but `id` throw `std::logic_error`. Destroying the handle drops the result; the job goes on, and its link stays.
template <class T>
class [[nodiscard]] job {
 public:
  /// For the library.
  explicit job(std::shared_ptr<detail::job_state<T>> state) noexcept : state_{std::move(state)} {}

  /// The process of the job; nobody for a job made by `completed`.
  [[nodiscard]] pid id() const noexcept { return state_->who; }

  /// `const result<T> r = co_await j.await(1s);` Returns the result. Errors: `exited` with the reason when the job
  /// ended without a result; `timeout` when it is not done in time; `noproc` when the result was taken before. After a
  /// timeout the job goes on, and may be awaited again or shut down.
  [[nodiscard]] task<result<T>> await(std::chrono::nanoseconds timeout = default_call_timeout) {
    return detail::await_job<T>(state_, timeout);
  }
  /// Like `await`, but returns nothing instead of the error `timeout` when the job is not done in time.
  [[nodiscard]] task<std::optional<result<T>>> yield(std::chrono::nanoseconds timeout = default_call_timeout) {
    return detail::yield_job<T>(state_, timeout);
  }
  /// Unlinks the job, asks it to end with `shutdown`, kills it if it does not end in time, and waits until it is done.
  /// Returns its result if there is one; nothing if the job ended as it was asked to; otherwise the error `exited` with
  /// its reason: `killed` if the time was over, `abandoned` if it did not end after the kill either.
  [[nodiscard]] task<std::optional<result<T>>> shutdown(std::chrono::nanoseconds timeout = default_call_timeout) {
    return detail::shut_down_job<T>(state_, exit_reason::shutdown(), timeout);
  }
  /// Like `shutdown`, but kills the job at once. Returns nothing if the kill has ended it.
  [[nodiscard]] task<std::optional<result<T>>> kill() {
    return detail::shut_down_job<T>(state_, exit_reason::kill(), detail::no_time_at_all);
  }
  /// Returns the result if the job is done. Otherwise returns nothing, and the job goes on without a link; its result
  /// is dropped.
  std::optional<result<T>> ignore() {
    state_->must_be_mine();
    auto got = state_->take();
    state_->taken = true;
    (void)state_->claim();  // nobody holds the result from here on, so a failure is logged
    state_->cut_link();
    return got;
  }

  /// For the library.
  [[nodiscard]] const std::shared_ptr<detail::job_state<T>>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<detail::job_state<T>> state_;
};

/// Starts `task<T> f(self&, args...)` or `T f(args...)` in a new process linked to `me`. Arguments are copied.
/// Throws `std::bad_alloc`, `spawn_failed`.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
job<job_value<F, Args...>> async_job(self& me, F f, Args&&... args) {
  using handle = job<job_value<F, Args...>>;
  return handle{detail::start_job(me, detail::bond::link, std::move(f), std::forward<Args>(args)...)};
}
/// The same without a link: neither the job nor its owner ends because the other one fails.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
job<job_value<F, Args...>> async_nolink(self& me, F f, Args&&... args) {
  using handle = job<job_value<F, Args...>>;
  return handle{detail::start_job(me, detail::bond::none, std::move(f), std::forward<Args>(args)...)};
}
/// A job that is done already and has no process, for lists of jobs where some results are known in advance.
template <class T>
job<std::decay_t<T>> completed(self& me, T&& value) {
  auto state = std::make_shared<detail::job_state<std::decay_t<T>>>();
  state->caller = me.id();
  state->outcome.emplace(std::in_place, std::forward<T>(value));
  state->finished_at_once();
  return job<std::decay_t<T>>{std::move(state)};
}

}  // namespace coppice
