#pragma once
/// A stream of jobs: one job for each element of a range, a few at a time, and their results one after the other.
///
///     auto pages = async_stream(me, urls, fetch, {.max_concurrency = 8, .timeout = 30s});
///     for (;;) {
///       const std::optional<result<std::string>> page = co_await pages.next();
///       if (!page) break;
///       ...
///     }
///
/// Jobs are started while `next` is awaited, never more than `max_concurrency` at a time, and elements are taken from
/// the range only then: it may be endless. The loop may end early: when the stream is destroyed, the jobs that still
/// run are killed, and they leave nothing in the mailbox.
#include <algorithm>
#include <deque>
#include <map>
#include <ranges>

#include <coppice/behaviour/job.hpp>
#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>

namespace coppice {

/// What a stream does about a job that takes longer than its timeout.
enum class on_timeout : std::uint8_t {
  exit,  ///< the process that awaits the stream ends with an error
  kill,  ///< the job is killed, and its result is the error `timeout`
};

struct stream_options {
  /// The maximum number of jobs at the same time. Default: as many as the runtime has workers.
  std::size_t max_concurrency = 0;
  /// True: results come in the order of the range. False: in the order in which the jobs are done. Default: true.
  bool ordered = true;
  /// The timeout of each job, from its start; `forever`: no timeout. It is checked while `next` is awaited: a job that
  /// is late, but done at the time of the check, counts as done. Default: five seconds.
  std::chrono::nanoseconds timeout = default_call_timeout;
  /// What happens after a timeout. Default: the process that awaits the stream ends.
  coppice::on_timeout on_timeout = coppice::on_timeout::exit;
  /// How many results may wait for an earlier result or for a call of `next`; at that number no more jobs are started.
  /// Default: 1024.
  std::size_t buffer = 1024;
};

namespace detail {

/// Throws `std::invalid_argument`.
void check_stream(const stream_options& how);

/// Starts the jobs of a stream from the process of the stream.
struct started_here {
  static constexpr bool waits = false;
  bond how;
  template <class F, class Element>
  [[nodiscard]] auto start(self& me, const F& f, Element&& element) const {
    return start_job(me, how, F(f), std::forward<Element>(element));
  }
};

}  // namespace detail

/// Thread safety: for the process that made it only.
template <class Range, class F, class Starter = detail::started_here>
class [[nodiscard]] job_stream {
 public:
  using element = std::ranges::range_value_t<Range>;
  using value = job_value<F, element>;

  job_stream(self& me, Starter how, Range range, F f, stream_options options)
      : me_{me}, starter_{std::move(how)}, range_{std::move(range)}, f_{std::move(f)}, options_{options} {
    detail::check_stream(options_);
    if (options_.max_concurrency == 0) options_.max_concurrency = me.host().options().workers;
  }
  ~job_stream() {
    for (const auto& [position, r] : running_) let_go(*r.state);
    for (const auto& [position, d] : dying_) let_go(*d.state);
  }
  job_stream(const job_stream&) = delete;
  job_stream& operator=(const job_stream&) = delete;

  /// The next result; nothing when there is none left. The result of a job that failed is the error `exited` with its
  /// reason; if the jobs are linked, only an owner that traps exits survives to see it. Throws `std::logic_error` in
  /// another process, and what the range or the start of a job throws.
  [[nodiscard]] task<std::optional<result<value>>> next() {
    must_be_mine();
    settle_missed();
    for (;;) {
      while (!closed_ && has_room() && !used_up()) {
        if constexpr (Starter::waits) {
          auto started = co_await starter_.template start<value>(me_, f_, element(**at_));
          settle_missed();
          if (const pid leaving = started ? pid{} : who_takes_room(started.error())) {
            const monitor_ref watched = me_.monitor(leaving);
            const auto end = co_await detail::until_ended(watched, forever);
            settle_missed();
            continue;
          }
          if (!started) co_return close(std::move(started.error()));
          begin(*started);
          settle_missed();  // the job may have been done before the reply of the supervisor arrived
        } else {
          begin(starter_.start(me_, f_, element(**at_)));
        }
      }
      if (auto ready = take_ready()) co_return ready;
      if (running_.empty() && (closed_ || dying_.empty() || used_up())) co_return std::nullopt;
      const std::shared_ptr<detail::job_base> one = co_await detail::any_done(this, until_somebody_is_late());
      if (one)
        settle(*one);
      else
        look_for_late_ones();
    }
  }

  /// The place in the range, from 0, of the element that the last result of `next` belongs to: which element failed,
  /// or, if the stream is not ordered, whose result it is. If no more jobs could be started, that is the element whose
  /// job could not be started.
  [[nodiscard]] std::uint64_t index() const noexcept { return index_; }

 private:
  using outcome = result<value>;
  struct finished {
    std::uint64_t position = 0;
    outcome what;
  };
  struct running {
    std::shared_ptr<detail::job_state<value>> state;
    time_point due;
  };
  /// A job that was not done in time: it is killed, and abandoned if it is stuck in its code.
  struct dying {
    std::shared_ptr<detail::job_state<value>> state;
    detail::process_stop stop;
    time_point due;  // of its next step
  };

  void must_be_mine() const {
    if (detail::process_here() != me_.id())
      throw std::logic_error{"the stream of jobs belongs to " + to_string(me_.id()) + "; only it may await it"};
  }
  [[nodiscard]] bool used_up() {
    if (!at_) at_.emplace(std::ranges::begin(range_));
    return *at_ == std::ranges::end(range_);
  }
  /// A job that was killed counts until it has ended.
  [[nodiscard]] bool has_room() const {
    return running_.size() + dying_.size() < options_.max_concurrency && finished_.size() < options_.buffer;
  }
  void begin(const std::shared_ptr<detail::job_state<value>>& state) {
    state->position = started_++;
    state->awaited_by = this;
    running_.emplace(state->position, running{state, due_after(options_.timeout)});
    ++*at_;
  }
  /// A job that is done still counts for `max_children` of its supervisor until its process has ended. Returns such a
  /// process if the start failed with `capacity`; nobody if there is none, or for another error.
  [[nodiscard]] pid who_takes_room(const error& why) {
    forget_gone();
    return why.code() == errc::capacity && !leaving_.empty() ? leaving_.back() : pid{};
  }
  /// Keeps processes that are not alive but not gone either: their destructors still run, and their supervisor has not
  /// been notified of their end.
  void forget_gone() {
    std::erase_if(leaving_, [this](pid who) { return me_.host().gone(who); });
  }
  /// Called when no more jobs can be started: kills the jobs that run, drops all other results, and returns the error
  /// as the last result.
  [[nodiscard]] std::optional<outcome> close(error why) {
    closed_ = true;
    for (const auto& [position, r] : running_) let_go(*r.state);
    running_.clear();
    finished_.clear();
    index_ = started_;
    return outcome{std::unexpected{std::move(why)}};
  }
  [[nodiscard]] std::optional<outcome> take_ready() {
    std::optional<outcome> ready;
    const auto first = finished_.begin();
    if (first == finished_.end() || (options_.ordered && first->first != given_)) return ready;
    ready.emplace(std::move(first->second.what));
    index_ = first->second.position;
    finished_.erase(first);
    ++given_;
    return ready;
  }
  /// Handles the jobs whose signal was dropped because it arrived while `next` was not awaited.
  void settle_missed() {
    const auto settle_done = [this](auto& those) {
      for (auto at = those.begin(); at != those.end();)
        if (const auto one = (at++)->second.state; one->is_done()) settle(*one);
    };
    settle_done(running_);
    settle_done(dying_);
  }
  void settle(detail::job_base& one) {
    one.awaited_by = nullptr;  // its signal may still arrive and is dropped
    if constexpr (Starter::waits) {
      if (leaving_.size() >= options_.max_concurrency) forget_gone();
      leaving_.push_back(one.who);
    }
    if (dying_.erase(one.position) != 0) return;
    const auto found = running_.find(one.position);
    keep(one.position, std::move(*found->second.state->take()));
    running_.erase(found);
  }
  /// An ordered stream sorts results by position, others by the order in which the jobs were done.
  void keep(std::uint64_t position, outcome what) {
    finished_.emplace(options_.ordered ? position : done_++, finished{position, std::move(what)});
  }

  // -- jobs that take too long
  [[nodiscard]] time_point due_after(std::chrono::nanoseconds time) const {
    return time == forever ? time_point::max() : me_.host().time_after(time);
  }
  [[nodiscard]] std::chrono::nanoseconds until_somebody_is_late() const {
    time_point first = running_.empty() ? time_point::max() : running_.begin()->second.due;  // same timeout for all
    for (const auto& [position, d] : dying_) first = std::min(first, d.due);
    return first == time_point::max() ? forever : std::max(first - me_.now(), std::chrono::nanoseconds{0});
  }
  void look_for_late_ones() {
    const time_point now = me_.now();
    while (!running_.empty() && running_.begin()->second.due <= now) {
      const auto late = running_.begin();
      const std::shared_ptr<detail::job_state<value>> state = late->second.state;
      if (state->is_done()) {
        settle(*state);
        continue;
      }
      const std::string what = "the job of a stream for element " + std::to_string(late->first) + ", " +
                               to_string(state->who) + ", was not done in time";
      if (options_.on_timeout == on_timeout::exit) throw exit_with{exit_reason::error(what)};
      state->cut_link();
      keep(late->first, outcome{std::unexpected{error{errc::timeout, what}}});
      const detail::stop_target target{.by = me_.id(), .who = state->who, .what = "job of a stream"};
      dying_.emplace(late->first, dying{state, {target, shutdown::brutal_kill(), detail::job_stuck_after}, now});
      running_.erase(late);
    }
    for (auto& [position, d] : dying_)
      if (d.due <= now && !d.state->is_done()) d.due = due_after(d.stop.advance(me_.host()));
  }
  void let_go(detail::job_state<value>& state) {
    state.awaited_by = nullptr;
    state.cut_link();
    if (!state.is_done()) state.kill();
  }

  self& me_;
  Starter starter_;
  Range range_;
  F f_;
  stream_options options_;
  std::optional<std::ranges::iterator_t<Range>> at_;
  std::map<std::uint64_t, running> running_;  // by position, which is the order of their start
  std::map<std::uint64_t, dying> dying_;
  std::map<std::uint64_t, finished> finished_;
  std::vector<pid> leaving_;  // processes of jobs that are done, which may not have ended yet
  std::uint64_t started_ = 0;
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t index_ = 0;
  bool closed_ = false;
};

/// A function that can be the job of a stream over the range: `task<T> f(self&, element)` or `T f(element)`.
template <class Range, class F>
concept streamable = std::ranges::input_range<Range> && std::copy_constructible<F> &&
                     detail::job_function<F, std::ranges::range_value_t<Range>>;

/// A stream of linked jobs: a job that fails ends `me` too, unless `me` traps exits. A range that is an lvalue is
/// referenced and must outlive the stream; an rvalue is moved into the stream. Throws `std::invalid_argument` for
/// options that make no sense.
template <std::ranges::viewable_range R, class F>
  requires streamable<std::views::all_t<R>, F>
job_stream<std::views::all_t<R>, F> async_stream(self& me, R&& range, F f, stream_options options = {}) {
  return {me, detail::started_here{detail::bond::link}, std::views::all(std::forward<R>(range)), std::move(f), options};
}
/// The same without links: the failure of a job is only its result.
template <std::ranges::viewable_range R, class F>
  requires streamable<std::views::all_t<R>, F>
job_stream<std::views::all_t<R>, F> async_stream_nolink(self& me, R&& range, F f, stream_options options = {}) {
  return {me, detail::started_here{detail::bond::none}, std::views::all(std::forward<R>(range)), std::move(f), options};
}

}  // namespace coppice
