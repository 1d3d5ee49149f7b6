#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Children that are not actors: processes described by a `child_spec`, for example supervisors.
class child_processes : public duty {
 public:
  using duty::duty;
  [[nodiscard]] result<pid> start(const child_spec& spec);
  /// Starts another process in the place of one that has ended.
  void start_again(child_record& ended);

 private:
  [[nodiscard]] result<pid> spawn(const child_spec& spec);
  void note_failed_start(child_record& c, const error& why);
};

/// Whether the end of a child that is not an actor is a failure, about which the strategy decides.
[[nodiscard]] bool is_failure(const child_spec& spec, const exit_reason& reason);
/// Throws `spawn_failed` unless the actor may spawn children now.
void ensure_may_spawn(const actor_core& me);
/// Adds a new child, which is linked already, to the table.
void add_child(actor_core& me, turn& t, child_record c);
/// Answers the call `which_children`, with which supervision trees are listed.
void answer_which_children(actor_core& me, turn& t, envelope& request);

}  // namespace coppice::detail
