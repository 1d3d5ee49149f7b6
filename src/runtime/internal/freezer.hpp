#pragma once
/// Processes that must not run for a while.
///
/// The freezer owns a frozen process: its mailbox is never idle, and nobody schedules it. The owner finds the bit
/// `is_frozen` before the next signal and parks the process here; an empty envelope in its queue makes sure that there
/// is a next signal. A kill takes it out for as long as it needs to end the process.
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "side_block.hpp"

namespace coppice::detail {

/// Sent to the process that asked for a freeze, once no turn of the frozen processes is running.
struct freeze_done {
  std::uint64_t number = 0;
  bool undone = false;  // another process has thawed it before: nothing is frozen by it
};

/// Thread safety: any thread; `join_freezes` and `park` for the owner of the slot.
class freezer {
 public:
  explicit freezer(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  using target = kernel::freeze_target;
  [[nodiscard]] result<std::uint64_t> freeze(target who, pid informs);
  /// The processes that are still inside their code; `freeze_done` is not sent any more. Error: the freeze is not in
  /// force any more.
  [[nodiscard]] result<std::vector<pid>> stop_waiting(target who, std::uint64_t number);
  bool thaw(target who);

  /// Whether any process is frozen: cheap.
  [[nodiscard]] bool any() const noexcept { return freezes_in_force_.load(std::memory_order_relaxed) != 0; }
  /// A new process that `parent` has spawned linked joins the freezes of the subtrees that `parent` belongs to. True:
  /// it must not begin, because of these or because it was frozen itself.
  [[nodiscard]] bool join_freezes(slot& p, pid parent);
  enum class parking : std::uint8_t { parked, thawed, exit_pending };
  /// `parked`: the freezer owns the process now. `exit_pending`: its owner has to look for a kill first.
  [[nodiscard]] parking park(slot& p);
  /// There may be a kill in its queue.
  void unpark(pid who);
  /// A process has ended; `side` has its links, if it has any.
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
    std::unordered_set<pid> unborn{};   // linked to those, and not begun when they ended: perhaps their children
    std::unordered_set<pid> pending{};  // not parked yet
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
