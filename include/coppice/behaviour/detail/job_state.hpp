#pragma once
/// What a job and its owner share.
///
/// The result of a job does not travel as a message: it is put here, and the owner, if it waits, is woken by a signal
/// that nobody else takes and that vanishes when nobody waits. So a result that comes late is never mail.
#include <coppice/runtime/runtime.hpp>

namespace coppice::detail {

/// How long a killed job may take to end before it is given up as stuck.
inline constexpr std::chrono::seconds job_stuck_after{5};
inline constexpr std::chrono::nanoseconds no_time_at_all{0};

/// The kernel answers `pending_reply` with the reason when the job's process ends in whatever way; so the
/// owner is notified without a monitor.
struct job_base : pending_reply, std::enable_shared_from_this<job_base> {
  job_base() = default;
  job_base(const job_base&) = delete;
  job_base& operator=(const job_base&) = delete;
  virtual ~job_base() = default;

  // -- by the job
  /// True: nobody has told the outcome before, and the caller does so now.
  [[nodiscard]] bool claim() noexcept { return !answered.exchange(true); }
  /// The outcome is in its place.
  void finish(kernel& k);
  virtual void fail_with(const exit_reason& why) = 0;

  // -- by the owner only
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Throws `std::logic_error` in any other process.
  void must_be_mine() const;
  /// Its end is not our end any more, and no news either.
  void cut_link();
  void kill() const;
  void finished_at_once() noexcept { done_.store(true, std::memory_order_relaxed); }

  pid who{};  // nobody: it never had a process
  bool linked = false;
  bool links_itself = false;              // when it begins: the owner may not know of the link yet. Never changes
  bool taken = false;                     // the result is gone
  std::uint32_t times = 1;                // it stands in the list of those that are awaited together
  const void* awaited_by = nullptr;       // the wait to notify when it is done
  std::uint64_t position = 0;             // in a stream
  std::optional<exit_reason> ended_with;  // without a result

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
    if (!claim()) return;  // given up meanwhile
    try {
      outcome.emplace(std::in_place, std::forward<V>(value)...);
    } catch (...) {
      fail_with(reason_of_failure(*turn_here()));
      finish(k);
      throw;
    }
    finish(k);
  }
  /// The result, once; nothing when there is none yet.
  [[nodiscard]] std::optional<result<T>> take() {
    if (taken) return std::unexpected{error{errc::noproc, "the result of this job was taken before"}};
    if (!is_done()) return std::nullopt;
    taken = true;
    cut_link();
    return std::move(outcome);
  }
};

/// The signal to an owner.
struct job_done {
  std::shared_ptr<job_base> which;
};

/// Until one of the jobs that are `awaited_by` the mark is done, which it gives; null when the time is over first.
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
  static constexpr wait_type how{.take = &take_done, .expire = [](waiter&) {}};
  const void* mark_;
  std::shared_ptr<job_base> got_;
};
[[nodiscard]] inline waiting_for_done any_done(const void* mark, std::chrono::nanoseconds timeout) {
  return waiting_for_done{mark, timeout};
}

/// A point in time that several waits have in common.
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

/// Until it is done or the time is over.
[[nodiscard]] task<> until_done(std::shared_ptr<job_base> job, std::chrono::nanoseconds timeout);
/// Ends it, first with `how`, then by a kill, and waits until it has ended. True: it ended as it was told to.
[[nodiscard]] task<bool> end_job(std::shared_ptr<job_base> job, exit_reason how, std::chrono::nanoseconds timeout);

}  // namespace coppice::detail
