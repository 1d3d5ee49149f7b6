#pragma once
/// Starting and stopping the process of one child, for all kinds of supervisors.
#include <coppice/runtime/detail/starting.hpp>
#include <coppice/spec/child_spec.hpp>

namespace coppice::detail {

/// Starts a child, linked to this process, and waits until it is initialised. `others` is shown the exits of other
/// processes that arrive meanwhile. The spec must live until the start is done.
[[nodiscard]] task<start_result> start_process(self& me, const child_spec& spec, death_watcher& others,
                                               std::optional<std::chrono::nanoseconds> abandon_after);

/// Shows `others` the exits that stayed in the mailbox while this process waited for something other than a child, for
/// example in a start function of the user.
void look_at_saved_exits(self& me, death_watcher& others);

struct stopped_process {
  exit_reason reason{};  // noproc: the process had ended before
  bool abandoned = false;
};

/// Stops a child here and now, without a message, if it is idle and the exit would end it. Otherwise does and returns
/// nothing.
[[nodiscard]] std::optional<stopped_process> stop_at_once(self& me, pid who, shutdown how);

/// Stops the process of a child by the steps of the stop ladder and waits for its end.
[[nodiscard]] task<stopped_process> stop_process(self& me, pid who, const child_spec& spec,
                                                 std::optional<std::chrono::nanoseconds> abandon_after,
                                                 death_watcher& others);

}  // namespace coppice::detail
