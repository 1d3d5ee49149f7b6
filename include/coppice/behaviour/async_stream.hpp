#pragma once
/// A job for each element of a range, a few at a time, and their results one after the other.
///
///     auto pages = async_stream(me, urls, fetch, {.max_concurrency = 8, .timeout = 30s});
///     for (;;) {
///       const std::optional<result<std::string>> page = co_await pages.next();
///       if (!page) break;
///       ...
///     }
///
/// Jobs are started while `next` is awaited, never more than `max_concurrency` at a time, and elements are taken from
/// the range only then: it may be endless. Leaving early is fine: when the stream is destroyed, the jobs that still run
/// are killed, and nothing of them is left in the mailbox.
#include <algorithm>
#include <deque>
#include <map>
#include <ranges>

#include <coppice/behaviour/job.hpp>
#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>

namespace coppice {

/// What a stream does about a job that takes longer than it may.
enum class on_timeout : std::uint8_t {
  exit,  ///< the process that awaits the stream ends with an error
  kill,  ///< the job is killed, and its result is the error `timeout`
};

struct stream_options {
  /// Jobs that run at the same time. Default: as many as the runtime has workers.
  std::size_t max_concurrency = 0;
  /// Results come in the order of the range. Otherwise as they are done. Default: in order.
  bool ordered = true;
  /// For each job, from its start; `forever` without end. It is looked at while `next` is awaited: a job that is late,
  /// but done by then, counts as done. Default: five seconds.
  std::chrono::nanoseconds timeout = default_call_timeout;
  /// Default: the process ends.
  coppice::on_timeout on_timeout = coppice::on_timeout::exit;
  /// Results that may wait for an earlier one or for the next `next`; then no more jobs are started. Default: 1024.
  std::size_t buffer = 1024;
};

namespace detail {

/// Throws `std::invalid_argument`.
void check_stream(const stream_options& how);

/// Where the jobs of a stream are started: by the stream's own process.
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

  /// The next result; nothing when there is none left. A job that failed gives the error `exited`, with its reason: the
  /// owner of a linked stream sees that only when it traps exits. Throws `std::logic_error` in another process, and
  /// what the range or starting a job throws.
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
          settle_missed();  // it may have been done before the supervisor said that it runs
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

 private:
  using outcome = result<value>;
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
      throw std::logic_error{"a stream of jobs belongs to " + to_string(me_.id()) + ", which made it"};
  }
  [[nodiscard]] bool used_up() {
    if (!at_) at_.emplace(std::ranges::begin(range_));
    return *at_ == std::ranges::end(range_);
  }
  /// One that was killed counts until it has ended.
  [[nodiscard]] bool has_room() const {
    return running_.size() + dying_.size() < options_.max_concurrency && finished_.size() < options_.buffer;
  }
  void begin(const std::shared_ptr<detail::job_state<value>>& state) {
    state->position = started_++;
    state->awaited_by = this;
    running_.emplace(state->position, running{state, due_after(options_.timeout)});
    ++*at_;
  }
  /// A job that is done takes room under its supervisor until its process has ended. Nobody: that is not why.
  [[nodiscard]] pid who_takes_room(const error& why) {
    forget_gone();
    return why.code() == errc::capacity && !leaving_.empty() ? leaving_.back() : pid{};
  }
  /// Not when they are no longer alive: then their destructors run, and their supervisor does not know yet.
  void forget_gone() {
    std::erase_if(leaving_, [this](pid who) { return me_.host().gone(who); });
  }
  /// There is nowhere to start the next job: this is the last result.
  [[nodiscard]] std::optional<outcome> close(error why) {
    closed_ = true;
    for (const auto& [position, r] : running_) let_go(*r.state);
    running_.clear();
    finished_.clear();
    return outcome{std::unexpected{std::move(why)}};
  }
  [[nodiscard]] std::optional<outcome> take_ready() {
    std::optional<outcome> ready;
    const auto first = finished_.begin();
    if (first == finished_.end() || (options_.ordered && first->first != given_)) return ready;
    ready.emplace(std::move(first->second));
    finished_.erase(first);
    ++given_;
    return ready;
  }
  /// Signals that came while `next` was not awaited are gone.
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
  /// In order by position; otherwise by when they were done.
  void keep(std::uint64_t position, outcome what) {
    finished_.emplace(options_.ordered ? position : done_++, std::move(what));
  }

  // -- those that take too long
  [[nodiscard]] time_point due_after(std::chrono::nanoseconds time) const {
    return time == forever ? time_point::max() : me_.host().time_after(time);
  }
  [[nodiscard]] std::chrono::nanoseconds until_somebody_is_late() const {
    time_point first = running_.empty() ? time_point::max() : running_.begin()->second.due;  // all have the same time
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
      const std::string what = "a job of a stream, " + to_string(state->who) + ", was not done in time";
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
  std::map<std::uint64_t, running> running_;  // by when they were started
  std::map<std::uint64_t, dying> dying_;
  std::map<std::uint64_t, outcome> finished_;
  std::vector<pid> leaving_;  // done, and perhaps not gone yet
  std::uint64_t started_ = 0;
  std::uint64_t given_ = 0;
  std::uint64_t done_ = 0;
  bool closed_ = false;
};

/// What can be streamed over a range: `task<T> f(self&, element)` or `T f(element)`.
template <class Range, class F>
concept streamable = std::ranges::input_range<Range> && std::copy_constructible<F> &&
                     detail::job_function<F, std::ranges::range_value_t<Range>>;

/// A stream of linked jobs: one that fails takes `me` with it, unless it traps exits. An lvalue range is referred to,
/// an rvalue is kept. Throws `std::invalid_argument` for options that make no sense.
template <std::ranges::viewable_range R, class F>
  requires streamable<std::views::all_t<R>, F>
job_stream<std::views::all_t<R>, F> async_stream(self& me, R&& range, F f, stream_options options = {}) {
  return {me, detail::started_here{detail::bond::link}, std::views::all(std::forward<R>(range)), std::move(f), options};
}
/// The same without links: a failure is just a result.
template <std::ranges::viewable_range R, class F>
  requires streamable<std::views::all_t<R>, F>
job_stream<std::views::all_t<R>, F> async_stream_nolink(self& me, R&& range, F f, stream_options options = {}) {
  return {me, detail::started_here{detail::bond::none}, std::views::all(std::forward<R>(range)), std::move(f), options};
}

}  // namespace coppice
