#pragma once
/// Messages that the runtime itself sends, received like any other: `co_await me.receive<exited, down, timeout>()`.
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

/// To a process that traps exits: a linked process has ended, or somebody asked us to exit.
struct exited {
  pid from;
  exit_reason reason;
  bool linked = false;    ///< it came over a link; false: somebody called `exit`, or just sent this
  bool signalled = true;  ///< false: somebody just sent this, and it means nothing to the runtime
};
/// Nobody can forge what comes over a link, or an order of the parent.
inline void not_from_the_runtime(exited& x) noexcept { x.linked = x.signalled = false; }

/// To a process that monitors: `who` has ended, or can't be reached any more. Exactly one for every monitor.
struct down {
  monitor_ref ref;
  pid who;
  exit_reason reason;
};

/// A timer, as the process that started it knows it.
using timer_ref = id<struct timer_tag>;

/// To the process that started the timer with `start_timer`. Never received once `cancel` has returned.
struct timeout {
  timer_ref ref;
};

/// Stands in the result of a receive whose time was over.
struct timed_out {};

}  // namespace coppice
