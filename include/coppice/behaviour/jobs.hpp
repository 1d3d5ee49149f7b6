#pragma once
/// Waiting for several jobs at once.
///
///     std::vector<job<int>> parts;
///     for (const auto& text : texts) parts.push_back(async_job(me, count_words, text));
///     const result<std::vector<int>> counts = co_await await_many(parts);   // in the order of `parts`
#include <vector>

#include <coppice/behaviour/job.hpp>

namespace coppice {

/// What `yield_many` does with a job that is not done when its time is over.
enum class unfinished : std::uint8_t {
  leave,   ///< it goes on, and may be awaited again
  ignore,  ///< as `job::ignore`
  kill,    ///< as `job::kill`
};

struct yield_options {
  /// How long to wait for all jobs together. Default: five seconds.
  std::chrono::nanoseconds timeout = default_call_timeout;
  /// The wait ends when this many jobs are done; the others go on then. Default: all.
  std::size_t limit = static_cast<std::size_t>(-1);
  /// What happens to jobs that are not done when the time is over. Default: they go on.
  unfinished rest = unfinished::leave;
};

/// The combined result of several jobs: `void`, or their values in a vector.
template <class T>
using job_values = std::conditional_t<std::is_void_v<T>, void, std::vector<T>>;

namespace detail {

template <class T>
using job_states = std::vector<std::shared_ptr<job_state<T>>>;

template <class T>
[[nodiscard]] job_states<T> states_of(const std::vector<job<T>>& jobs) {
  job_states<T> all;
  all.reserve(jobs.size());
  for (const job<T>& j : jobs) all.push_back(j.state());
  return all;
}

/// Marks the jobs that are not done as awaited, and returns how many are done. A job that is done is not marked,
/// because its signal may still be in flight and must not count a second time.
template <class T>
[[nodiscard]] std::size_t mark_unfinished(const job_states<T>& jobs, const void* mark) {
  for (const auto& j : jobs) j->must_be_mine();
  std::size_t done = 0;
  for (const auto& j : jobs) {
    if (j->awaited_by == mark) {  // the same job again, which may be done by now: its signal counts for both
      ++j->times;
      continue;
    }
    const bool over = j->taken || j->is_done();
    j->times = 1;
    j->awaited_by = over ? nullptr : mark;
    done += over ? 1 : 0;
  }
  return done;
}
/// Removes the marks when the wait ends, for whatever reason.
template <class T>
class unmarking {
 public:
  explicit unmarking(const job_states<T>& jobs) noexcept : jobs_{jobs} {}
  ~unmarking() {
    for (const auto& j : jobs_) j->awaited_by = nullptr;
  }
  unmarking(const unmarking&) = delete;
  unmarking& operator=(const unmarking&) = delete;

 private:
  const job_states<T>& jobs_;
};

template <class T>
[[nodiscard]] result<job_values<T>> take_all(const job_states<T>& jobs) {
  if constexpr (std::is_void_v<T>) {
    for (const auto& j : jobs)
      if (auto got = j->take(); !*got) return std::unexpected{std::move(got->error())};
    return {};
  } else {
    std::vector<T> values;
    values.reserve(jobs.size());
    for (const auto& j : jobs) {
      auto got = j->take();
      if (!*got) return std::unexpected{std::move(got->error())};
      values.push_back(std::move(**got));
    }
    return values;
  }
}

/// Whether `take` would return an error: the job has failed, or its result was taken before.
template <class T>
[[nodiscard]] bool has_failed(const job_state<T>& j) {
  return j.taken || (j.is_done() && j.ended_with);
}

template <class T>
task<result<job_values<T>>> await_all(job_states<T> jobs, std::chrono::nanoseconds timeout) {
  const deadline until{kernel_here(), timeout};
  std::size_t done = mark_unfinished<T>(jobs, &jobs);
  const unmarking<T> afterwards{jobs};
  for (const auto& j : jobs)
    if (has_failed(*j)) co_return std::unexpected{std::move(j->take()->error())};
  while (done < jobs.size()) {
    const std::shared_ptr<job_base> one = co_await any_done(&jobs, until.left());
    if (!one)
      co_return fail(errc::timeout,
                     std::to_string(jobs.size() - done) + " of " + std::to_string(jobs.size()) + " jobs are not done");
    done += one->times;
    auto& j = static_cast<job_state<T>&>(*one);
    if (has_failed(j)) co_return std::unexpected{std::move(j.take()->error())};
  }
  co_return take_all<T>(jobs);
}

template <class T>
task<std::vector<std::optional<result<T>>>> yield_all(job_states<T> jobs, yield_options how) {
  const deadline until{kernel_here(), how.timeout};
  const std::size_t enough = std::min(how.limit, jobs.size());
  unfinished rest = unfinished::leave;
  {
    std::size_t done = mark_unfinished<T>(jobs, &jobs);
    const unmarking<T> afterwards{jobs};
    while (done < enough) {
      const std::shared_ptr<job_base> one = co_await any_done(&jobs, until.left());
      if (!one) {
        rest = how.rest;
        break;
      }
      done += one->times;
    }
  }
  std::vector<std::optional<result<T>>> got;
  got.reserve(jobs.size());
  std::size_t given = 0;
  for (const auto& j : jobs) {
    const bool ready = given < enough && (j->taken || j->is_done());
    if (ready) {
      got.push_back(j->take());
      ++given;
    } else if (rest == unfinished::kill) {
      std::optional<result<T>> last = co_await shut_down_job<T>(j, exit_reason::kill(), no_time_at_all);
      got.push_back(std::move(last));
    } else {
      got.emplace_back();
    }
    if (got.back().has_value() || rest != unfinished::ignore) continue;
    j->taken = true;
    j->cut_link();
  }
  co_return got;
}

}  // namespace detail

/// All results in the order of the jobs; or the first error, as soon as one job has failed, or `timeout`. The jobs that
/// are not done go on.
template <class T>
[[nodiscard]] task<result<job_values<T>>> await_many(const std::vector<job<T>>& jobs,
                                                     std::chrono::nanoseconds timeout = default_call_timeout) {
  return detail::await_all<T>(detail::states_of(jobs), timeout);
}
/// Waits until the time is over or `how.limit` jobs are done. Returns, in the order of the jobs, the results of the
/// first `how.limit` that are done, and nothing for the others.
template <class T>
[[nodiscard]] task<std::vector<std::optional<result<T>>>> yield_many(const std::vector<job<T>>& jobs,
                                                                     yield_options how = {}) {
  return detail::yield_all<T>(detail::states_of(jobs), how);
}

}  // namespace coppice
