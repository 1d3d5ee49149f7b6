#pragma once
/// The state that a job and its owner share.
///
/// The result of a job is not a message. The job stores it here and sends its owner a signal, `job_done`, which wakes
/// the owner if it waits for this job and is dropped otherwise. So a late result is never left in the mailbox.
#include <coppice/runtime/runtime.hpp>

namespace coppice::detail {

/// How long to wait for the end of a job after a kill, before it is abandoned.
inline constexpr std::chrono::seconds job_stuck_after{5};
inline constexpr std::chrono::nanoseconds no_time_at_all{0};

/// When the process of the job ends without a result, for whatever reason, the kernel calls `pending_reply::fail`. So
/// the owner is notified without a monitor.
struct job_base : pending_reply, std::enable_shared_from_this<job_base> {
  job_base() { holds_failure = true; }
  job_base(const job_base&) = delete;
  job_base& operator=(const job_base&) = delete;
  virtual ~job_base() = default;

  // -- by the job
  /// True: the outcome has not been decided before, and the caller must set it.
  [[nodiscard]] bool claim() noexcept { return !answered.exchange(true); }
  /// Marks the job as done and signals its owner. The outcome must have been set.
  void finish(kernel& k);
  virtual void fail_with(const exit_reason& why) = 0;

  // -- by the owner only
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Throws `std::logic_error` if the current process is not the owner.
  void must_be_mine() const;
  /// Unlinks the job from its owner, and drops an `exited` of the job that is already in the owner's mailbox.
  void cut_link();
  void kill() const;
  void finished_at_once() noexcept { done_.store(true, std::memory_order_relaxed); }

  pid who{};  // the process of the job; nobody: it has none, or is not started yet
  bool linked = false;
  bool links_itself = false;              // when it begins: the owner may not know the link yet. Never changes
  bool taken = false;                     // the result was taken, or is ignored
  std::uint32_t times = 1;                // how often the job is in the list of jobs that are awaited together
  const void* awaited_by = nullptr;       // the mark of the wait to wake when it is done
  std::uint64_t position = 0;             // in a stream
  std::optional<exit_reason> ended_with;  // set if it ended without a result

 private:
  std::atomic<bool> done_{false};
};

template <class T>
struct job_state final : job_base {
  std::optional<result<T>> outcome;

  job_state() {
    fail = [](kernel& k, pending_reply& p, const exit_reason& why) {
      auto& mine = static_cast<job_state&>(p);
      mine.fail_with(why);
      mine.finish(k);
    };
  }
  void fail_with(const exit_reason& why) override {
    ended_with = why;
    outcome = std::unexpected{error{errc::exited, why.to_string()}};
  }
  template <class... V>
  void succeed(kernel& k, V&&... value) {
    if (!claim()) return;  // the job was abandoned meanwhile
    try {
      outcome.emplace(std::in_place, std::forward<V>(value)...);
    } catch (...) {
      fail_with(reason_of_failure(*turn_here()));
      finish(k);
      throw;
    }
    finish(k);
  }
  /// Takes the result; nothing if the job is not done yet. Error: `noproc` if the result was taken before.
  [[nodiscard]] std::optional<result<T>> take() {
    if (taken) return std::unexpected{error{errc::noproc, "the result of this job was taken before"}};
    if (!is_done()) return std::nullopt;
    taken = true;
    cut_link();
    return std::move(outcome);
  }
};

/// The signal that wakes an owner.
struct job_done {
  std::shared_ptr<job_base> which;
};

/// Waits until a job whose `awaited_by` is the mark is done, and returns that job; null after a timeout.
class [[nodiscard]] waiting_for_done : public timed_waiter {
 public:
  waiting_for_done(const void* mark, std::chrono::nanoseconds timeout) noexcept
      : timed_waiter{how, timeout}, mark_{mark} {}
  std::shared_ptr<job_base> await_resume() noexcept { return std::move(got_); }

 private:
  static bool take_done(waiter& w, coroutine&, envelope& e) {
    auto& mine = static_cast<waiting_for_done&>(w);
    if (e.type != &plain<job_done> || static_cast<letter<job_done>&>(e).body.which->awaited_by != mine.mark_)
      return false;
    mine.got_ = take_body<job_done>(e).which;
    mine.got_->awaited_by = nullptr;
    return true;
  }
  static constexpr wait_type how{.take = &take_done,
                                 .expire = [](waiter&) {},
                                 .describe = [](const waiter&, wait_info& into) { into.kind = wait_kind::job; }};
  const void* mark_;
  std::shared_ptr<job_base> got_;
};
[[nodiscard]] inline waiting_for_done any_done(const void* mark, std::chrono::nanoseconds timeout) {
  return waiting_for_done{mark, timeout};
}

/// The common deadline of several waits.
class deadline {
 public:
  deadline(kernel& k, std::chrono::nanoseconds timeout)
      : kernel_{&k}, at_{timeout == no_timeout ? no_deadline : k.time_after(timeout)} {}
  [[nodiscard]] std::chrono::nanoseconds left() const {
    if (at_ == no_deadline) return no_timeout;
    return std::max(at_ - kernel_->now(), std::chrono::nanoseconds{0});
  }
  [[nodiscard]] bool over() const { return at_ != no_deadline && kernel_->now() >= at_; }

 private:
  kernel* kernel_;
  time_point at_;
};

/// Waits until the job is done or the time is over.
[[nodiscard]] task<> until_done(std::shared_ptr<job_base> job, std::chrono::nanoseconds timeout);
/// Unlinks the job, asks it to end with `how`, after `timeout` kills it, then abandons it, and waits until it is done.
/// True: it ended without a result and as requested.
[[nodiscard]] task<bool> end_job(std::shared_ptr<job_base> job, exit_reason how, std::chrono::nanoseconds timeout);

}  // namespace coppice::detail
