#pragma once
/// Jobs under a supervisor: seen in the tree, counted, limited, and stopped in order with it.
///
///     const result<job<int>> sum = co_await async_under(me, jobs, sum_of, numbers);
///     const result<int> total = co_await sum->await();
///
///     const auto sent = co_await start_job(jobs, send_mail, letter);          // nobody waits for this one
///
///     auto pages = async_stream_under(me, jobs, urls, fetch, {.max_concurrency = 8});
///
/// A job under a supervisor is its child, and linked to its owner besides (unless `..._nolink`). Arguments are copied,
/// so they must be copyable. Jobs are temporary unless you say otherwise.
#include <atomic>

#include <coppice/behaviour/async_stream.hpp>
#include <coppice/supervision/dynamic_supervisor.hpp>

namespace coppice {

/// A dynamic supervisor that is meant for jobs; `child<job_supervisor>(dynamic_supervisor_spec{.max_children = 100})`.
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

/// From a plain thread: one without a parent.
[[nodiscard]] result<ref<job_supervisor>> start_job_supervisor(runtime& rt, dynamic_supervisor_spec spec = {});

namespace detail {

/// An owner may end while the supervisor starts its job: then either the job finds that out when it begins, or the
/// owner finds that it has begun, and kills it.
class handover {
 public:
  /// By the job. False: its owner has ended.
  [[nodiscard]] bool begin(pid me) {
    who_ = me;
    return phase_.exchange(phase::begun) != phase::given_up;
  }
  /// By the owner. The job, if it has begun.
  [[nodiscard]] pid give_up() { return phase_.exchange(phase::given_up) == phase::begun ? who_ : pid{}; }

 private:
  enum class phase : std::uint8_t { starting, begun, given_up };
  std::atomic<phase> phase_{phase::starting};
  pid who_;
};
/// The owner's side, as long as it waits for the start.
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

/// The process of a job that somebody else than its owner has started.
template <class T, class F, class... Args>
task<> run_supervised_job(self& me, std::shared_ptr<handover> start, std::shared_ptr<job_state<T>> state, F f,
                          Args... args) {
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

/// The process of a job whose result nobody wants.
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

inline constexpr child_options job_options{.id = "job", .restart = restart::temporary};

template <class T, class F, class... Args>
task<result<std::shared_ptr<job_state<T>>>> start_supervised(self& me, ref<job_supervisor> jobs, bond how, F f,
                                                             Args... args) {
  auto state = std::make_shared<job_state<T>>();
  state->caller = me.id();
  state->linked = how == bond::link;
  state->links_itself = state->linked;
  const auto start = std::make_shared<handover>();
  auto spec =
      child(&run_supervised_job<T, F, Args...>, start, state, std::move(f), std::move(args)...).with(job_options);
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

/// Where the jobs of a stream are started: by a supervisor.
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

/// Starts `f(args...)` for its effect; nobody waits for it. The answer is its pid. Errors: `capacity`, and those of all
/// calls.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] detail::calling<calls::start_child> start_job(ref<job_supervisor> jobs, F f, Args&&... args) {
  return start_child(
      jobs, child(&detail::run_for_its_effect<F, std::decay_t<Args>...>, std::move(f), std::forward<Args>(args)...)
                .with(detail::job_options));
}
/// The same with other settings: `{.restart = restart::transient, .shutdown = 1s}`.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] detail::calling<calls::start_child> start_job_with(ref<job_supervisor> jobs, child_options how, F f,
                                                                 Args&&... args) {
  return start_child(
      jobs, child(&detail::run_for_its_effect<F, std::decay_t<Args>...>, std::move(f), std::forward<Args>(args)...)
                .with(detail::job_options)
                .with(how));
}

/// `const result<job<T>> j = co_await async_under(me, jobs, f, args...);` Errors: `capacity`, and those of all calls.
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] task<result<job<detail::job_value<F, Args...>>>> async_under(self& me, ref<job_supervisor> jobs, F f,
                                                                           Args... args) {
  return detail::start_job_under<detail::job_value<F, Args...>, F, Args...>(me, jobs, detail::bond::link, std::move(f),
                                                                            std::move(args)...);
}
template <class F, class... Args>
  requires detail::job_function<F, Args...>
[[nodiscard]] task<result<job<detail::job_value<F, Args...>>>> async_under_nolink(self& me, ref<job_supervisor> jobs,
                                                                                  F f, Args... args) {
  return detail::start_job_under<detail::job_value<F, Args...>, F, Args...>(me, jobs, detail::bond::none, std::move(f),
                                                                            std::move(args)...);
}

/// As `async_stream`. When the supervisor takes no more jobs, that error is the last result of the stream: the jobs
/// that still run are killed. Give it a `max_concurrency` that the supervisor has room for.
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
