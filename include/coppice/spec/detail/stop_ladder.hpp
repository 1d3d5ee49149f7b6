#pragma once
/// Stopping a process: ask it, wait, kill it, wait, abandon it. Supervisors, jobs, actors and applications all stop
/// processes by these steps.
///
/// `stop_ladder` decides which step comes next and how long to wait after it. It has no side effects. `process_stop`
/// carries the steps out and logs each one. Neither of them waits: a coroutine awaits the end of the process for the
/// time that `advance` returns, an actor sets a timer for it.
///
///     process_stop stop{{.by = me.id(), .who = child, .what = "child", .name = id}, how, abandon_after};
///     std::optional<process_end> end;
///     while (!end) {
///       const std::chrono::nanoseconds wait = stop.advance(me.host());
///       end = co_await until_ended(child, watched, wait);
///     }
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <coppice/base/ensure.hpp>
#include <coppice/env/clock.hpp>
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>
#include <coppice/spec/shutdown.hpp>

namespace coppice::detail {

class kernel;

enum class stop_step : std::uint8_t {
  ask,      ///< send an exit signal that the process may handle
  kill,     ///< send a kill, which ends the process as soon as its code returns
  abandon,  ///< end the process although its code has not returned
};
[[nodiscard]] std::string_view name_of(stop_step step) noexcept;

/// How long to wait for a process after each step.
struct stop_limits {
  shutdown how = std::chrono::seconds{5};
  /// How long to wait after a kill before the process is abandoned. Default: without limit.
  std::optional<std::chrono::nanoseconds> abandon_after{};
};

/// A step to carry out now, and how long to wait for the end of the process before the next step.
struct stop_rung {
  stop_step what;
  std::chrono::nanoseconds wait;  ///< `max()`: no step follows
  friend constexpr bool operator==(const stop_rung&, const stop_rung&) = default;
};

/// The time at which a wait that starts now is over; `time_point::max()` for a wait without limit.
[[nodiscard]] constexpr time_point deadline_after(time_point now, std::chrono::nanoseconds wait) noexcept {
  return wait < time_point::max() - now ? now + wait : time_point::max();
}

/// The progress of the stop of one process. It takes one byte, because a supervisor may stop many children at a time.
///
/// | taken so far | brutal_kill | a time or infinity     |
/// |--------------|-------------|------------------------|
/// | nothing      | kill        | ask, wait for the time |
/// | ask          | -           | kill                   |
/// | kill         | abandon     | abandon                |
/// | abandon      | abandon     | abandon                |
///
/// After a kill and after an attempt to abandon, the wait is `abandon_after`. An attempt to abandon is repeated,
/// because it has no effect on a process that has just returned from its code and is about to end by the kill.
class stop_ladder {
 public:
  /// The next step. To be called at the start, and when the wait of the last step is over.
  [[nodiscard]] constexpr stop_rung next(const stop_limits& limits) {
    const std::chrono::nanoseconds after_kill = limits.abandon_after.value_or(std::chrono::nanoseconds::max());
    switch (at_) {
      case state::begun:
        if (limits.how.is_brutal()) break;
        at_ = state::asked;
        return {stop_step::ask, limits.how.time()};
      case state::asked:
        if (limits.how.is_infinite()) ensure(false, "a process was to be killed although its shutdown is infinite");
        break;
      case state::killed:
      case state::abandoned:
        if (!limits.abandon_after) ensure(false, "a process was to be abandoned although `abandon_after` is not set");
        at_ = state::abandoned;
        return {stop_step::abandon, after_kill};
    }
    at_ = state::killed;
    return {stop_step::kill, after_kill};
  }
  /// The last step taken; nothing before the first.
  [[nodiscard]] constexpr std::optional<stop_step> taken() const noexcept {
    switch (at_) {
      case state::begun: break;
      case state::asked: return stop_step::ask;
      case state::killed: return stop_step::kill;
      case state::abandoned: return stop_step::abandon;
    }
    return std::nullopt;
  }
  /// How long the process was given to end after the last step; nothing before the first.
  [[nodiscard]] constexpr std::optional<std::chrono::nanoseconds> waited(const stop_limits& limits) const noexcept {
    switch (at_) {
      case state::begun: break;
      case state::asked: return limits.how.time();
      case state::killed:
      case state::abandoned: return limits.abandon_after;
    }
    return std::nullopt;
  }

 private:
  enum class state : std::uint8_t { begun, asked, killed, abandoned };
  state at_ = state::begun;
};

/// Which process is stopped, by which process, and how log lines name it.
struct stop_target {
  pid by;
  pid who;
  std::string_view what = "process";  ///< for example "child" or "job"
  std::string_view name{};            ///< for example the id of the child
};

/// Carries out one step of a stop and logs it. `waited`: how long the process was given after the previous step;
/// nothing for the first step. Returns whether this step has abandoned the process.
bool carry_out(kernel& k, stop_step step, const stop_target& target, std::optional<std::chrono::nanoseconds> waited,
               const exit_reason& ask_with = exit_reason::shutdown());
struct taken_step {
  std::chrono::nanoseconds wait;  ///< before the next step; `max()`: no step follows
  bool abandoned;                 ///< this step has abandoned the process
};
/// Takes the next step of the ladder: carries it out and logs it. Also logs the first attempt to abandon that has no
/// effect.
taken_step take_step(kernel& k, stop_ladder& ladder, const stop_limits& limits, const stop_target& target,
                     const exit_reason& ask_with = exit_reason::shutdown());
/// Logs a step, for callers that ask the process to stop in their own way. `carry_out` logs its steps itself.
void log_step(kernel& k, stop_step step, const stop_target& target, std::optional<std::chrono::nanoseconds> waited);

/// The stop of one process from the first step to the last. The texts of `target` must outlive this object.
class process_stop {
 public:
  process_stop(stop_target target, shutdown how, std::optional<std::chrono::nanoseconds> abandon_after) noexcept
      : target_{target}, limits_{how, abandon_after} {}

  /// Carries out the next step. Returns how long to wait for the end of the process before the next call; `max()` if no
  /// step follows.
  std::chrono::nanoseconds advance(kernel& k, const exit_reason& ask_with = exit_reason::shutdown());
  [[nodiscard]] bool abandoned() const noexcept { return abandoned_; }
  [[nodiscard]] std::optional<stop_step> taken() const noexcept { return ladder_.taken(); }

 private:
  stop_target target_;
  stop_limits limits_;
  stop_ladder ladder_;
  bool abandoned_ = false;
};

}  // namespace coppice::detail
