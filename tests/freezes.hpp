#pragma once
/// Random freezes in a simulated program, and the promise that nothing of a frozen process runs.
#include <algorithm>
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
    look(rt);
    const detail::kernel::freeze_target target{.root = who, .subtree = whole_subtree};
    const auto number = rt.host().freeze(target, {});
    sim::require(number.has_value(), "a live process can't be frozen");
    targets_.push_back(target);
    look(rt);
  }
  /// Thaws the oldest one.
  void thaw_one(runtime& rt) {
    if (targets_.empty()) return;
    look(rt);
    held_ += frozen_.size();
    (void)rt.host().thaw(targets_.front());
    targets_.erase(targets_.begin());
    look(rt);
    sim::require(!targets_.empty() || frozen_.empty(), "a process is frozen although all were thawed");
  }
  void thaw_all(runtime& rt) {
    while (!targets_.empty()) thaw_one(rt);
  }
  /// Nothing of the frozen processes has run so far. To be called from time to time: a child that is spawned into a
  /// frozen subtree and killed there between two looks goes unnoticed.
  void check(runtime& rt) {
    if (!targets_.empty()) look(rt);
  }
  /// How often a frozen process was found to have done nothing.
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  [[nodiscard]] bool were_made() const noexcept { return !spans_.empty() || !frozen_.empty(); }
  /// For how much of that time the process was frozen. A child that was spawned into a frozen subtree counts from the
  /// last look before its spawn.
  [[nodiscard]] std::chrono::nanoseconds time_frozen(pid who, time_point from, time_point to) const {
    std::chrono::nanoseconds sum{0};
    const auto add = [&](const span& s) {
      sum += std::max(std::min(s.to, to) - std::max(s.from, from), std::chrono::nanoseconds{0});
    };
    if (const auto found = spans_.find(who); found != spans_.end()) std::ranges::for_each(found->second, add);
    if (const auto found = frozen_.find(who); found != frozen_.end())
      add({.from = found->second.since, .to = time_point::max()});
    return sum;
  }

 private:
  struct span {
    time_point from;
    time_point to;
  };
  struct stand {
    time_point since;
    std::uint32_t handled;
  };

  /// Compares frozen processes with what they were at the last look. A busy process does not run any more from the
  /// freeze on, but a snapshot shows it as frozen only later; so this reads the mark that the freeze leaves.
  void look(runtime& rt) {
    const time_point now = rt.host().now();
    const time_point last = std::exchange(looked_, now);
    std::set<pid> still;
    const auto is_frozen = [&](pid who) { return (rt.host().table()[who.index()].urgent & detail::is_frozen) != 0; };
    for (const process_info& one : rt.snapshot()) {
      if (!is_frozen(one.id)) continue;
      still.insert(one.id);
      const auto [found, is_new] = frozen_.try_emplace(one.id, stand{.since = last, .handled = one.handled});
      sim::require(is_new || one.handled == found->second.handled,
                   to_string(one.id) + " has run although it was frozen");
    }
    for (const detail::kernel::freeze_target& t : targets_)  // one that has not begun is not in the snapshot
      if (rt.alive(t.root) && is_frozen(t.root) && still.insert(t.root).second)
        frozen_.try_emplace(t.root, stand{.since = last, .handled = 0});
    for (const auto& [who, then] : frozen_)
      if (!still.contains(who)) spans_[who].push_back({.from = then.since, .to = now});
    std::erase_if(frozen_, [&](const auto& one) { return !still.contains(one.first); });
  }

  std::vector<detail::kernel::freeze_target> targets_;
  std::map<pid, stand> frozen_;
  std::map<pid, std::vector<span>> spans_;
  std::uint64_t held_ = 0;
  time_point looked_{};
};

}  // namespace coppice
