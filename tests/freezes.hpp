#pragma once
/// Random freezes in a simulated program, and the promise that nothing of a frozen process runs.
#include <map>
#include <set>
#include <vector>

#include <coppice/sim/explore.hpp>
#include <coppice/sim/world.hpp>

namespace coppice {

class random_freezes {
 public:
  /// Freezes one process, or the subtree below it.
  void freeze(runtime& rt, pid who, bool whole_subtree) {
    if (!rt.alive(who)) return;
    const detail::kernel::freeze_target target{.root = who, .subtree = whole_subtree};
    std::set<pid> before;  // frozen by others, who may thaw them earlier
    for (const process_info& one : rt.snapshot())
      if (one.state == process_state::frozen) before.insert(one.id);
    const auto number = rt.host().freeze(target, {});
    sim::require(number.has_value(), "a live process can't be frozen");
    frozen_.push_back({target, {}});
    for (const process_info& one : rt.snapshot())
      if (one.state == process_state::frozen && !before.contains(one.id)) frozen_.back().handled[one.id] = one.handled;
  }
  /// Thaws the oldest one.
  void thaw_one(runtime& rt) {
    if (frozen_.empty()) return;
    const entry oldest = std::move(frozen_.front());
    frozen_.erase(frozen_.begin());
    for (const process_info& one : rt.snapshot())
      if (const auto before = oldest.handled.find(one.id); before != oldest.handled.end()) {
        sim::require(one.handled == before->second, to_string(one.id) + " has run although it was frozen");
        ++held_;
      }
    (void)rt.host().thaw(oldest.target);
  }
  void thaw_all(runtime& rt) {
    while (!frozen_.empty()) thaw_one(rt);
  }
  /// The node has crashed.
  void forget() { frozen_.clear(); }
  [[nodiscard]] bool any() const noexcept { return !frozen_.empty(); }
  /// How many processes were found as they had been.
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }

 private:
  struct entry {
    detail::kernel::freeze_target target;
    std::map<pid, std::uint32_t> handled;
  };
  std::vector<entry> frozen_;
  std::uint64_t held_ = 0;
};

}  // namespace coppice
