#pragma once
/// Processes that must not run for a while.
///
/// The freezer owns a parked process: its mailbox is not idle, so no sender schedules it. `freeze` sets the bit
/// `is_frozen` and pushes an empty envelope. If the process was idle, it is parked at once; otherwise its owner finds
/// the bit before the next signal, at the latest that envelope, and parks the process. A kill unparks a process so that
/// it can end.
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "side_block.hpp"

namespace coppice::detail {

/// Sent to the process that asked for a freeze: when all frozen processes are parked and none of them has blocking work
/// in flight, or when the freeze is undone before that.
struct freeze_done {
  std::uint64_t number = 0;
  bool undone = false;  // the target was thawed before the freeze was complete
};

/// Thread safety: any thread; `join_freezes` and `park` for the owner of the slot.
class freezer {
 public:
  explicit freezer(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  using target = kernel::freeze_target;
  [[nodiscard]] result<std::uint64_t> freeze(target who, pid informs);
  /// Ends the wait: `freeze_done` is not sent any more. Returns the frozen processes that are still in their code or
  /// have blocking work in flight. Error: the freeze is not in force any more.
  [[nodiscard]] result<std::vector<pid>> stop_waiting(target who, std::uint64_t number);
  bool thaw(target who);

  /// Whether any freeze is in force. Cheap: one load.
  [[nodiscard]] bool any() const noexcept { return freezes_in_force_.load(std::memory_order_relaxed) != 0; }
  /// Adds a new process to the freezes of the subtrees that `parent` belongs to. `parent` is nobody if the process was
  /// not spawned linked. True: the process is frozen, by these freezes or by one of its own, and must not begin.
  [[nodiscard]] bool join_freezes(slot& p, pid parent);
  enum class parking : std::uint8_t { parked, thawed, exit_pending };
  /// `parked`: the freezer owns the process now. `exit_pending`: its owner has to look for a kill first.
  [[nodiscard]] parking park(slot& p);
  /// Schedules a parked process again, because there may be a kill in its queue.
  void unpark(pid who);
  /// Called when a process has ended. `side` has its links; null: it has none.
  void ended(pid who, const side_block* side);
  /// Calls `look(slot&)` as the owner of a frozen process; false: it is not parked here.
  template <class Look>
  bool inspect(pid who, Look&& look) {
    const std::scoped_lock lock{mutex_};
    const auto found = frozen_.find(who);
    if (found == frozen_.end() || !found->second.parked) return false;
    look(table_[who.index()]);
    return true;
  }

  /// Blocking work of a process has begun or is over.
  void blocking_began(pid who);
  void blocking_over(pid who);

 private:
  struct frozen {
    unsigned count = 0;  // freezes in force
    bool parked = false;
  };
  struct freeze_order {
    std::uint64_t number = 0;
    target who;
    pid informs;
    bool informed = false;
    std::unordered_set<pid> members{};
    std::unordered_set<pid> past{};     // members that have ended
    std::unordered_set<pid> unborn{};   // linked to a past member, but not joined yet: perhaps its children
    std::unordered_set<pid> pending{};  // members that are not parked yet
  };
  using to_inform = std::vector<std::pair<pid, freeze_done>>;

  void add(freeze_order& o, pid who);
  void add_descendants(freeze_order& o);
  void note_unborn(freeze_order& o, pid ended, const side_block& side);
  void drop_orders_without_processes();
  [[nodiscard]] std::vector<freeze_order>::reverse_iterator find_to_thaw(target who);
  [[nodiscard]] bool is_below(pid who, pid root) const;
  [[nodiscard]] bool is_done(const freeze_order& o) const;
  [[nodiscard]] to_inform newly_done();
  void inform(const to_inform& all);

  kernel& kernel_;
  process_table& table_;
  std::atomic<std::uint32_t> freezes_in_force_{0};
  std::mutex mutex_;
  std::uint64_t numbers_ = 0;
  std::unordered_map<pid, frozen> frozen_;
  std::vector<freeze_order> orders_;
  std::unordered_map<pid, unsigned> blocking_;  // how many jobs a process has under way
};

}  // namespace coppice::detail
