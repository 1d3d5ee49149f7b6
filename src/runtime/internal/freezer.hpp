#pragma once
/// Processes that must not run for a while.
///
/// A frozen process is one whose mailbox is never idle and that nobody schedules: the freezer owns it. It comes to be
/// so when its owner, before the next signal, finds the bit `is_frozen` and parks it here; an envelope without meaning
/// in its queue makes sure that there is a next signal. A kill takes it out for as long as it needs to end the process.
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "side_block.hpp"

namespace coppice::detail {

/// Sent to the process that asked for a freeze, once no turn of the frozen processes is running.
struct freeze_done {
  std::uint64_t number;
};

/// Thread safety: any thread; `holds_back` and `park` for the owner of the slot.
class freezer {
 public:
  explicit freezer(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  using target = kernel::freeze_target;
  [[nodiscard]] result<std::uint64_t> freeze(target who, pid informs);
  [[nodiscard]] std::vector<pid> still_inside(std::uint64_t number);
  bool thaw(target who);

  /// Whether any process is frozen: cheap.
  [[nodiscard]] bool any() const noexcept { return freezes_in_force_.load(std::memory_order_relaxed) != 0; }
  /// Whether a new process must not begin yet: it was frozen before, or `parent`, which has spawned it linked, belongs
  /// to a frozen subtree.
  [[nodiscard]] bool holds_back(slot& p, pid parent);
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
  using to_inform = std::vector<std::pair<pid, std::uint64_t>>;

  void add(freeze_order& o, pid who);
  void add_descendants(freeze_order& o);
  void note_unborn(freeze_order& o, pid ended, const side_block& side);
  void drop_orders_without_processes();
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
