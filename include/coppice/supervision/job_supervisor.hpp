#pragma once
/// Jobs under a supervisor, which shows them in the tree, counts and limits them, and stops them when it ends.
///
///     const result<job<int>> sum = co_await async_under(me, jobs, sum_of, numbers);
///     const result<int> total = co_await sum->await();
///
///     const auto sent = co_await start_job(jobs, send_mail, letter);          // its result is not awaited
///
///     auto pages = async_stream_under(me, jobs, urls, fetch, {.max_concurrency = 8});
///
/// A job under a supervisor is a child of the supervisor. It is also linked to its owner, the process that started it,
/// unless it is started by a function with `_nolink`. Arguments must be copyable. Jobs are temporary by default.
#include <atomic>

#include <coppice/base/ensure.hpp>
#include <coppice/behaviour/async_stream.hpp>
#include <coppice/supervision/dynamic_supervisor.hpp>

namespace coppice {

/// A dynamic supervisor for jobs: `child<job_supervisor>(dynamic_supervisor_spec{.max_children = 100})`.
class job_supervisor : public dynamic_supervisor {
 public:
  using dynamic_supervisor::dynamic_supervisor;
};

namespace detail {
// Compiled once, in compiled_once.cpp.
template <>
inline constexpr bool is_compiled_once<job_supervisor> = true;
extern template const server_type& server_type_of<job_supervisor>() noexcept;
extern template result<pid> spawn_object<job_supervisor>(kernel&, birth&&);
extern template result<pid> spawn_object<job_supervisor>(kernel&, birth&&, dynamic_supervisor_spec&&);
extern template result<pid> spawn_object<job_supervisor>(kernel&, birth&&, const dynamic_supervisor_spec&);
}  // namespace detail

/// From a plain thread: starts a job supervisor without a parent.
[[nodiscard]] result<ref<job_supervisor>> start_job_supervisor(runtime& rt, dynamic_supervisor_spec spec = {});
/// The same with a name. Error: `name_taken`.
[[nodiscard]] result<ref<job_supervisor>> start_job_supervisor(runtime& rt, const spawn_options& options,
                                                               dynamic_supervisor_spec spec);

namespace detail {

/// Settles the race between the start of a job and the end of its owner, or of the owner's wait for the start. Either
/// the job, when it begins, finds that the owner has given up, and ends; or the owner finds that the job has begun, and
/// kills it.
class handover {
 public:
  /// Called by the job. False: its owner has given up.
  [[nodiscard]] bool begin(pid me) {
    who_ = me;
    const phase before = phase_.exchange(phase::begun);
    ensure(before != phase::begun, "a job has begun twice");
    return before != phase::given_up;
  }
  /// Called by the owner. Returns the process of the job if it has begun, otherwise nobody.
  [[nodiscard]] pid give_up() { return phase_.exchange(phase::given_up) == phase::begun ? who_ : pid{}; }

 private:
  enum class phase : std::uint8_t { starting, begun, given_up };
  std::atomic<phase> phase_{phase::starting};
  pid who_;
};
/// Lives while the owner waits for the start. If it is destroyed before `over` is called, the owner gives up.
class awaited_start {
 public:
  awaited_start(std::shared_ptr<handover> what, std::shared_ptr<job_base> job) noexcept
      : what_{std::move(what)}, job_{std::move(job)} {}
  ~awaited_start() {
    if (over_) return;
    job_->who = what_->give_up();
    if (job_->who) job_->kill();
  }
  awaited_start(const awaited_start&) = delete;
  awaited_start& operator=(const awaited_start&) = delete;
  void over() noexcept { over_ = true; }

 private:
  std::shared_ptr<handover> what_;
  std::shared_ptr<job_base> job_;
  bool over_ = false;
};

/// The process of a job that its supervisor has started.
template <class T, class F, class... Args>
task<> run_supervised_job(self& me, std::shared_ptr<handover> start, unstarted_job<T> job, F f, Args... args) {
  std::shared_ptr<job_state<T>> state = job.start();
  bool owned = start->begin(me.id());
  if (owned && state->links_itself) {
    try {
      me.link(state->caller);
    } catch (const no_such_process&) {
      owned = false;
    }
  }
  if (!owned) co_await me.exit(exit_reason::shutdown("its owner has ended"));
  auto work = run_job<T, F, Args...>(me, std::move(state), std::move(f), std::move(args)...);
  co_await std::move(work);
}

/// The process of a job whose result is not awaited.
template <class F, class... Args>
task<> run_for_its_effect(self& me, F f, Args... args) {
  if constexpr (!waiting_job<F, Args...>) {
    (void)std::invoke(std::move(f), std::move(args)...);
  } else {
    auto work = f(me, std::move(args)...);
    if constexpr (std::is_void_v<job_value<F, Args...>>) {
      co_await std::move(work);
    } else {
      [[maybe_unused]] const auto result = co_await std::move(work);
    }
  }
  co_return;
}

inline constexpr child_defaults job_defaults{.id = "job", .restart = restart::temporary};
template <class F, class... Args>
[[nodiscard]] child_spec job_spec(F f, Args&&... args) {
  return with_defaults(child(&run_for_its_effect<F, std::decay_t<Args>...>, std::move(f), std::forward<Args>(args)...),
                       job_defaults);
}

template <class T, class F, class... Args>
task<result<std::shared_ptr<job_state<T>>>> start_supervised(self& me, ref<job_supervisor> jobs, bond how, F f,
                                                             Args... args) {
  auto state = std::make_shared<job_state<T>>();
  state->caller = me.id();
  state->linked = how == bond::link;
  state->links_itself = state->linked;
  const auto start = std::make_shared<handover>();
  auto spec = with_defaults(child(&run_supervised_job<T, F, Args...>, start, state, std::move(f), std::move(args)...),
                            job_defaults);
  awaited_start here{start, state};
  const result<pid> started = co_await start_child(jobs, std::move(spec));
  if (!started) co_return std::unexpected{started.error()};
  here.over();
  state->who = *started;
  co_return state;
}

template <class T, class F, class... Args>
task<result<job<T>>> start_job_under(self& me, ref<job_supervisor> jobs, bond how, F f, Args... args) {
  auto starting = start_supervised<T, F, Args...>(me, jobs, how, std::move(f), std::move(args)...);
  auto started = co_await std::move(starting);
  if (!started) co_return std::unexpected{started.error()};
  co_return job<T>{std::move(*started)};
}

/// Starts the jobs of a stream under a supervisor.
struct started_under {
  static constexpr bool waits = true;
  ref<job_supervisor> jobs;
  bond how = bond::link;
  template <class T, class F, class Element>
  [[nodiscard]] task<result<std::shared_ptr<job_state<T>>>> start(self& me, const F& f, Element&& element) const {
    return start_supervised<T, F, std::decay_t<Element>>(me, jobs, how, F(f), std::forward<Element>(element));
  }
};

}  // namespace detail

/// Starts `f(args...)` for its effect and returns the pid of its process; the result of `f` is dropped. Errors: those
/// of `start_child`, also `capacity`.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] pending_call<calls::start_child> start_job(ref<job_supervisor> jobs, F f, Args&&... args) {
  return start_child(jobs, detail::job_spec(std::move(f), std::forward<Args>(args)...));
}
/// The same with other settings: `{.restart = restart::transient, .shutdown = 1s}`.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] pending_call<calls::start_child> start_job(ref<job_supervisor> jobs, const child_options& how, F f,
                                                         Args&&... args) {
  return start_child(jobs, detail::job_spec(std::move(f), std::forward<Args>(args)...).with(how));
}

/// Starts `f(args...)` as a job: `const result<job<T>> j = co_await async_under(me, jobs, f, args...);`. Errors: those
/// of `start_child`, also `capacity`.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] task<result<job<job_value<F, Args...>>>> async_under(self& me, ref<job_supervisor> jobs, F f,
                                                                   Args... args) {
  return detail::start_job_under<job_value<F, Args...>, F, Args...>(me, jobs, detail::bond::link, std::move(f),
                                                                    std::move(args)...);
}
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] task<result<job<job_value<F, Args...>>>> async_under_nolink(self& me, ref<job_supervisor> jobs, F f,
                                                                          Args... args) {
  return detail::start_job_under<job_value<F, Args...>, F, Args...>(me, jobs, detail::bond::none, std::move(f),
                                                                    std::move(args)...);
}

/// As `async_stream`. When a job can't be started, for example because of `capacity`, that error is the last result of
/// the stream: the jobs that still run are killed, and results that were not taken yet are dropped. `max_concurrency`
/// should not exceed the `max_children` of the supervisor.
template <std::ranges::viewable_range R, class F>
  requires streamable<std::views::all_t<R>, F>
job_stream<std::views::all_t<R>, F, detail::started_under> async_stream_under(self& me, ref<job_supervisor> jobs,
                                                                              R&& range, F f,
                                                                              stream_options options = {}) {
  return {me, detail::started_under{jobs, detail::bond::link}, std::views::all(std::forward<R>(range)), std::move(f),
          options};
}
template <std::ranges::viewable_range R, class F>
  requires streamable<std::views::all_t<R>, F>
job_stream<std::views::all_t<R>, F, detail::started_under> async_stream_under_nolink(self& me, ref<job_supervisor> jobs,
                                                                                     R&& range, F f,
                                                                                     stream_options options = {}) {
  return {me, detail::started_under{jobs, detail::bond::none}, std::views::all(std::forward<R>(range)), std::move(f),
          options};
}

}  // namespace coppice
