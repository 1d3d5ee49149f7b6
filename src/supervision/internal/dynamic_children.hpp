#pragma once
/// The children of a dynamic supervisor.
#include <coppice/supervision/dynamic_supervisor.hpp>

#include "child_keeper.hpp"

namespace coppice::detail {

class dynamic_children final : public child_keeper {
 public:
  explicit dynamic_children(const dynamic_supervisor_spec& spec)
      : child_keeper{spec.limit, spec.abandon_after}, max_children_{spec.max_children} {}

  /// All at the same time (fact 106).
  [[nodiscard]] task<void> stop_all(self& me);
  [[nodiscard]] task<void> child_exited(self& me, exited x);
  [[nodiscard]] task<void> retry(self& me, std::uint64_t child);
  [[nodiscard]] task<void> wait_is_over(self& me, timer_ref wait);
  [[nodiscard]] task<result<pid>> start_child(self& me, child_spec spec);
  [[nodiscard]] task<result<void>> terminate_child(self& me, pid who);
  [[nodiscard]] result<std::vector<exit_record>> exits_of(self& me, pid who);
  [[nodiscard]] child_counts count() const;
  [[nodiscard]] std::vector<child_info> list(self& me) const;
  void upgrade(const dynamic_supervisor_spec& spec);

 private:
  [[nodiscard]] supervised* find(pid who);
  [[nodiscard]] task<void> restart_now(self& me, supervised& c);
  void forget(supervised& c);

  std::optional<std::size_t> max_children_;
  std::uint64_t numbers_ = 0;
  flat_map<std::uint64_t, std::unique_ptr<supervised>, number_hash> all_;  // by number
  flat_map<pid, supervised*, pid_hash> by_last_pid_;                       // those being restarted
};

}  // namespace coppice::detail
