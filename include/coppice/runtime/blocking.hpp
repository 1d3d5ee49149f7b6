#pragma once
/// Blocking work, such as files, name look-ups and C libraries, on a thread of the runtime's pool or in a lane:
///
///     const std::string text = co_await me.blocking(read_file, path);
///     const result<std::string> in_time = co_await me.blocking(read_file, path).within(2s);
///     const result<int> rows = co_await in_lane(database, insert_row, row).within(2s);
///
/// If the process ends first, everybody is notified at once. Its frames are destroyed when the work is over, so the
/// work may use them. Work that has not begun by then is dropped.
#include <exception>
#include <stdexcept>
#include <tuple>

#include <coppice/env/lanes.hpp>
#include <coppice/runtime/detail/blocking_token.hpp>
#include <coppice/runtime/detail/operation.hpp>

namespace coppice {

/// Thrown to a process whose blocking work was dropped before it began.
class work_dropped : public std::runtime_error {
 public:
  work_dropped() : std::runtime_error{"the blocking work was dropped before it began"} {}
};

namespace detail {

template <class F, class... Args>
class blocking_job final : public operation {
 public:
  using gives = std::invoke_result_t<F, Args...>;
  static constexpr bool gives_value = !std::is_void_v<gives>;

  explicit blocking_job(F f, Args... args) : operation{{}}, work_{std::in_place, std::move(f), std::move(args)...} {}

  void run() noexcept {
    if (!begin()) return;
    try {
      if constexpr (gives_value)
        value_.emplace(std::apply(std::move(work_->f), std::move(work_->args)));
      else
        std::apply(std::move(work_->f), std::move(work_->args));
    } catch (...) {
      failure_ = std::current_exception();
    }
    ran_ = true;
  }
  /// Called once, whether the job was run or not.
  void finish() {
    work_.reset();  // first: what the function owns may refer to the frame
    over();
  }
  [[nodiscard]] bool ran() const noexcept { return ran_; }
  /// The value of the function; throws what it has thrown.
  [[nodiscard]] gives take() {
    if (!ran_) throw work_dropped{};
    if (failure_) std::rethrow_exception(std::move(failure_));
    if constexpr (gives_value) return std::move(*value_);
  }

 private:
  struct work {
    F f;
    std::tuple<Args...> args;
    explicit work(F function, Args... given) : f(std::move(function)), args(std::move(given)...) {}
  };
  std::optional<work> work_;
  std::conditional_t<gives_value, std::optional<std::conditional_t<gives_value, gives, int>>, int> value_{};
  std::exception_ptr failure_;
  bool ran_ = false;
};

/// A job on its way: when it is destroyed, whether it was run or not, the operation is over.
template <class Job>
class submitted {
 public:
  explicit submitted(std::shared_ptr<Job> job) noexcept : job_{std::move(job)} {}
  submitted(submitted&& other) noexcept = default;
  submitted& operator=(submitted&&) = delete;
  ~submitted() {
    if (job_) job_->finish();
  }
  void operator()() { job_->run(); }

 private:
  std::shared_ptr<Job> job_;
};

/// A job of a lane, shared by its two parts.
template <class Job>
struct lane_job {
  std::shared_ptr<blocking_token> token;
  submitted<Job> job;  // destroyed first: its end may send its result
};

/// Waits for blocking work.
template <class F, class... Args>
class blocking_base : public waiter {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    coroutine& me = process_of(h.promise());
    job_->belong_to(me);
    if (lane_ == nullptr)
      me.host().submit_blocking(submitted<job>{job_}, type_name<F>());
    else
      submit_to_lane(me.host());
    me.wait(h, *this, timeout_);  // last: if something above throws, no wait has begun
  }

 protected:
  using job = blocking_job<F, Args...>;
  blocking_base(const wait_type& how, std::shared_ptr<job> what, lane* where, std::chrono::nanoseconds timeout) noexcept
      : waiter{&how}, job_{std::move(what)}, lane_{where}, timeout_{timeout} {}
  static bool take(waiter& w, coroutine&, envelope& e) {
    return static_cast<blocking_base&>(w).job_->is_over_signal(e);
  }
  static bool keep_frames(waiter& w, coroutine& me) { return static_cast<blocking_base&>(w).job_->keep_frames(me); }
  static void describe(const waiter& w, wait_info& into) {
    const auto& mine = static_cast<const blocking_base&>(w);
    into.kind = mine.lane_ == nullptr ? wait_kind::blocking : wait_kind::lane;
    into.what = mine.lane_ == nullptr ? std::string{type_name<F>()} : mine.lane_name_;
  }
  std::shared_ptr<job> job_;
  lane* lane_;             // null: the pool of the runtime; may be destroyed while the job runs
  std::string lane_name_;  // for observers
  std::chrono::nanoseconds timeout_;

 private:
  void submit_to_lane(kernel& k) {
    lane_name_ = lane_->status().name;
    auto parts = std::make_shared<lane_job<job>>(k.track_blocking(type_name<F>()), submitted<job>{job_});
    auto work = [parts] {
      parts->token->begin();
      parts->job();
    };
    // A lane that is closed destroys the job at once; then it is over.
    (void)lane_->submit(std::move(work), [parts = std::move(parts)] {});
  }
};

}  // namespace detail

/// Blocking work in a lane, or with a time limit.
template <class F, class... Args>
class [[nodiscard]] pending_blocking_within : public detail::blocking_base<F, Args...> {
  using base = detail::blocking_base<F, Args...>;

 public:
  using result_type = result<typename base::job::gives>;
  pending_blocking_within(std::shared_ptr<typename base::job> work, lane* where,
                          std::chrono::nanoseconds timeout) noexcept
      : base{how, std::move(work), where, timeout} {}
  /// Waits at most that long, then the result is the error `timeout`. Work that has begun goes on without its process,
  /// and its result is dropped: so the function must own everything that it uses.
  [[nodiscard]] pending_blocking_within within(std::chrono::nanoseconds timeout) && {
    this->timeout_ = timeout;
    return std::move(*this);
  }
  result_type await_resume() {
    if (timed_out_) return fail(errc::timeout, "blocking work is not over");
    if (!this->job_->ran()) return fail(errc::stopped, "the work was dropped before it began");
    if constexpr (base::job::gives_value)
      return this->job_->take();
    else
      return this->job_->take(), result_type{};
  }

 private:
  static void give_up(detail::waiter& w) {
    auto& mine = static_cast<pending_blocking_within&>(w);
    mine.timed_out_ = mine.job_->go_on_alone();  // false: it has just ended
  }
  static constexpr detail::wait_type how{
      .take = &base::take, .expire = &give_up, .keep_frames = &base::keep_frames, .describe = &base::describe};
  bool timed_out_ = false;
};

/// Blocking work, to be awaited.
template <class F, class... Args>
class [[nodiscard]] pending_blocking : public detail::blocking_base<F, Args...> {
  using base = detail::blocking_base<F, Args...>;

 public:
  using result_type = typename base::job::gives;
  explicit pending_blocking(F f, Args... args)
      : base{how, std::make_shared<typename base::job>(std::move(f), std::move(args)...), nullptr, detail::no_timeout} {
  }
  result_type await_resume() { return this->job_->take(); }
  /// See `pending_blocking_within::within`.
  [[nodiscard]] pending_blocking_within<F, Args...> within(std::chrono::nanoseconds timeout) && {
    return pending_blocking_within<F, Args...>{std::move(this->job_), nullptr, timeout};
  }

 private:
  static constexpr detail::wait_type how{
      .take = &base::take, .keep_frames = &base::keep_frames, .describe = &base::describe};
};

/// Runs `f(args...)`, with copies of the arguments, as a job of the lane. The result is the error `stopped` if the lane
/// is closed before the job begins. An exception of `f` is thrown where it is awaited. The lane must exist when the
/// wait begins; it may be destroyed while the job runs.
template <class F, class... Args>
[[nodiscard]] pending_blocking_within<F, std::decay_t<Args>...> in_lane(lane& where, F f, Args&&... args) {
  using job = detail::blocking_job<F, std::decay_t<Args>...>;
  return {std::make_shared<job>(std::move(f), std::decay_t<Args>(std::forward<Args>(args))...), &where,
          detail::no_timeout};
}

template <class F, class... Args>
pending_blocking<F, std::decay_t<Args>...> self::blocking(F f, Args&&... args) {
  return pending_blocking<F, std::decay_t<Args>...>{std::move(f), std::forward<Args>(args)...};
}

}  // namespace coppice
