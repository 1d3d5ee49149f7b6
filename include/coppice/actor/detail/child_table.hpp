#pragma once
/// The children of an actor, as their parent knows them.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <coppice/actor/detail/actor_settings.hpp>
#include <coppice/spec/child_info.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>
#include <coppice/spec/next_restart.hpp>

namespace coppice::detail {

struct child_record {
  pid who{};
  std::string name{};
  std::uint64_t place = 0;                   // position in the order of the spawns
  std::shared_ptr<const child_spec> spec{};  // null: the child is an actor

  // Failures and restarts.
  std::uint64_t instance = 0;    // failures reported by an older instance were already handled
  bool failure_is_open = false;  // not answered yet, or waiting for its restart
  bool has_instance = true;      // false: the failed constructor left nothing that could be resumed
  pid suspended_for{};           // the sibling whose failure started the all_for_one restart this child waits for
  restart_window window{};
  std::uint32_t failures_in_a_row = 0;
  time_point running_since{};
  std::uint64_t restarts = 0;
  std::optional<exit_reason> last_failure{};
  timer_ref restart_timer{};

  // Stopping.
  bool stopping = false;
  bool start_again = false;  // a process, not an actor: start it again when it has ended
  coppice::shutdown shutdown = default_actor_shutdown;
  stop_ladder stop_steps{};
  std::uint64_t stop_wait = 0;            // the number of the wait after the latest step; 0: the wait has no limit
  std::chrono::nanoseconds stop_limit{};  // of that wait
  timer_ref stop_timer{};
};

class child_table {
 public:
  /// Null: `who` is not a child.
  [[nodiscard]] child_record* find(pid who) noexcept;
  [[nodiscard]] child_record* find_place(std::uint64_t place) noexcept;
  /// In the order of their spawns.
  [[nodiscard]] std::vector<child_record*> in_order();
  [[nodiscard]] std::uint64_t next_place() noexcept { return ++places_; }
  void add(child_record c);
  /// Removes a child and returns its record.
  child_record remove(pid who);
  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }
  [[nodiscard]] auto begin() const noexcept { return records_.begin(); }
  [[nodiscard]] auto end() const noexcept { return records_.end(); }

 private:
  std::map<pid, child_record> records_;
  std::uint64_t places_ = 0;
};

}  // namespace coppice::detail
