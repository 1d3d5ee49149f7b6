#pragma once
/// Starting and stopping one child, for all kinds of supervisors.
#include <coppice/runtime/detail/starting.hpp>
#include <coppice/spec/child_spec.hpp>

namespace coppice::detail {

/// What a start needs of a spec. Refers to it.
struct start_order {
  const child_start& start;
  const std::string& name;
  std::chrono::nanoseconds within;
};
/// Starts a child, linked to this process, and waits until it has begun.
[[nodiscard]] task<start_result> start_process(self& me, start_order order, death_watcher& deaths,
                                               std::optional<std::chrono::nanoseconds> abandon_after);

/// Deaths that came while this process waited for something else than a child, in a start function of the user's or for
/// its turn, and were put aside.
void look_at_deaths_put_aside(self& me, death_watcher& deaths);

struct stopped_process {
  exit_reason reason{};  // noproc: it had ended before
  bool abandoned = false;
};

/// Before a child is told to end: a monitor where its end would not be heard otherwise, as of one that was started by
/// somebody else, or has ended before.
[[nodiscard]] monitor_ref watch_leaving(self& me, pid who);

/// Stops a child that is idle and does not trap exits: at once, and in no other case.
[[nodiscard]] std::optional<stopped_process> stop_at_once(self& me, pid who, shutdown how);

/// Stops a child: asks, waits, kills; and, when it is told when, gives up on it.
[[nodiscard]] task<stopped_process> stop_process(self& me, pid who, shutdown how,
                                                 std::optional<std::chrono::nanoseconds> abandon_after,
                                                 death_watcher& deaths);

}  // namespace coppice::detail
