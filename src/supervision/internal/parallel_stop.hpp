#pragma once
/// Stopping many children at the same time.
#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>

#include "child_process.hpp"

namespace coppice::detail {

/// Each child goes through the steps of the stop ladder with its own deadlines.
class parallel_stop final : awaited_processes {
 public:
  parallel_stop(self& me, std::optional<std::chrono::nanoseconds> abandon_after)
      : me_{me}, abandon_after_{abandon_after} {}

  /// Takes the first step for a child. The spec must live until the child has ended.
  void add(pid who, const child_spec& spec);
  struct gone {
    pid who;
    stopped_process how;
  };
  /// Waits for the next child that ends; nothing when all have ended.
  [[nodiscard]] task<std::optional<gone>> next();

 private:
  struct leaving {
    const child_spec* spec = nullptr;
    time_point deadline = time_point::max();
    monitor_ref watched;
    stop_ladder ladder{};
    bool abandoned = false;
  };
  [[nodiscard]] bool awaits(pid who) const override { return leaving_.find(who) != nullptr; }
  /// Takes the next step for a child and sets its deadline.
  void take_step(pid who, leaving& l, time_point now);
  /// Takes the next step for all children whose deadline has passed.
  void handle_deadlines();

  self& me_;
  std::optional<std::chrono::nanoseconds> abandon_after_;
  mutable flat_map<pid, leaving, pid_hash> leaving_;  // mutable, because the look-up of the map is not const
  time_point next_deadline_ = time_point::max();
};

}  // namespace coppice::detail
