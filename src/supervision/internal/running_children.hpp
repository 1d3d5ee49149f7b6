#pragma once
/// Which process belongs to which child.
#include <coppice/runtime/detail/starting.hpp>

#include "supervised.hpp"

namespace coppice::detail {

/// The processes of running children. Also records the ends of children whose exit is still in the mailbox, because the
/// supervisor waits for something else.
class running_children final : public death_watcher {
 public:
  /// False: the process belongs to a child already.
  [[nodiscard]] bool add(pid who, supervised& c) { return by_pid_.insert(who, &c); }
  void remove(pid who) { by_pid_.erase(who); }
  [[nodiscard]] std::size_t size() const noexcept { return by_pid_.size(); }
  /// Null: not a running child.
  [[nodiscard]] supervised* find(pid who) noexcept {
    supervised** known = by_pid_.find(who);
    return known != nullptr ? *known : nullptr;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    by_pid_.for_each([&](pid, supervised* c) { visit(*c); });
  }

  /// Marks the child whose process has ended as down and returns it. Null if the exit is not from a running child, or
  /// is forged: the child is still alive.
  [[nodiscard]] supervised* take_ended(self& me, const exited& x) {
    supervised* c = x.linked ? find(x.from) : nullptr;
    if (c == nullptr || me.alive(x.from)) return nullptr;
    ensure(c->running() && c->who == x.from, "the process of a child that is down was known as running");
    by_pid_.erase(x.from);
    early_.erase(x.from);
    c->state = child_state::undefined;
    return c;
  }

  /// Records an exit that stays in the mailbox.
  void saw(const exited& x) override {
    if (x.linked && find(x.from) != nullptr) early_.insert(x.from, x.reason);
  }
  /// Takes the reason that `saw` has recorded. The exit itself is handled later and ignored, because the pid does not
  /// belong to a child any more.
  [[nodiscard]] std::optional<exit_reason> take_early(pid who) { return early_.take(who); }
  [[nodiscard]] bool ended_early(pid who) noexcept { return early_.find(who) != nullptr; }

 private:
  flat_map<pid, supervised*, pid_hash> by_pid_;
  flat_map<pid, exit_reason, pid_hash> early_;
};

}  // namespace coppice::detail
