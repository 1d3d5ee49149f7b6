#pragma once
/// Stopping many children at the same time.
#include "child_process.hpp"

namespace coppice::detail {

/// Tells all of them to end and collects their ends.
class parallel_stop {
 public:
  parallel_stop(self& me, std::optional<std::chrono::nanoseconds> abandon_after)
      : me_{me}, abandon_after_{abandon_after} {}

  /// Tells it to end.
  void add(pid who, shutdown how);
  struct gone {
    pid who;
    stopped_process how;
  };
  /// The next one that has ended; nothing when all have.
  [[nodiscard]] task<std::optional<gone>> next();

 private:
  enum class stage : std::uint8_t { asked, killed };
  struct leaving {
    time_point deadline = time_point::max();
    monitor_ref watched;
    stage at = stage::asked;
    bool abandoned = false;
  };
  void hurry();

  self& me_;
  std::optional<std::chrono::nanoseconds> abandon_after_;
  flat_map<pid, leaving, pid_hash> leaving_;
  time_point next_deadline_ = time_point::max();
};

}  // namespace coppice::detail
