#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Stops the children of an actor, step by step (see stop_ladder.hpp), and notices their ends.
class child_stopping : public duty {
 public:
  using duty::duty;
  /// Asks the child to stop; it is killed and then abandoned if it does not.
  void stop(child_record& c, const exit_reason& reason);
  /// Asks the child to stop when it has handled its mail, without a limit. A child that takes no mail is stopped.
  void drain(child_record& c, const exit_reason& reason);
  /// Stops or drains all children, in the reverse order of their spawns.
  void stop_all(const exit_reason& reason, bool drain_first);
  /// Reports to the parent that this actor is stopping and how long its children may take, so that the limit that the
  /// parent has set for this actor does not include them.
  void tell_parent();
  void child_ended(const exited& end);
  void remove(pid who);

  void on(const signals::stop_child_process& s);
  void on(const signals::child_stop_overdue& s);
  void on(const signals::child_waits_for_children& s);
  void on(const signals::child_is_ending& s);

 private:
  void begin(child_record& c, const exit_reason& reason);
  /// How long a child may take at most, after the latest step, until it has ended or was abandoned.
  [[nodiscard]] std::chrono::nanoseconds longest_end(const child_record& c) const;
  void tell_parent(std::chrono::nanoseconds longest);
  void wait(child_record& c, std::chrono::nanoseconds limit);
  [[nodiscard]] stop_limits limits_of(const child_record& c) const;
  [[nodiscard]] stop_target target(const child_record& c) const;
};

}  // namespace coppice::detail
