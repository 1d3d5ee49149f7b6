#pragma once
/// Messages that the runtime itself sends, received like any other: `co_await me.receive<exited, down, timer_fired>()`.
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

/// To a process that traps exits: a linked process has ended, or somebody has asked this process to exit.
struct exited {
  pid from;
  exit_reason reason;
  bool linked = false;    ///< it came over a link; false: from a call of `exit`, or sent as an ordinary message
  bool signalled = true;  ///< false: sent as an ordinary message, without effect on the runtime
  bool reported = false;  ///< the end needs no report: it is in the log, or it is the result of a job that is awaited
};
/// Clears the marks that only the runtime may set, so that no process can forge an exit signal.
inline void not_from_the_runtime(exited& x) noexcept { x.linked = x.signalled = false; }

/// To a process that monitors: `who` has ended, or can't be reached any more. Exactly one for every monitor.
struct down {
  monitor_ref ref;
  pid who;
  exit_reason reason;
};

/// Identifies a timer, for `cancel` and `remaining`.
using timer_ref = id<struct timer_tag>;

/// To the process that started the timer with `start_timer`. Never received once `cancel` has returned.
struct timer_fired {
  timer_ref ref;
};

/// The result of a receive that timed out.
struct timed_out {};

}  // namespace coppice
