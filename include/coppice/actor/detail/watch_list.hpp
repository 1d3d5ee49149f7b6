#pragma once
/// The processes that an actor watches.
#include <unordered_map>

#include <coppice/runtime/object.hpp>

namespace coppice::detail {

class watch_list {
 public:
  [[nodiscard]] bool watches(pid who) const { return by_pid_.contains(who); }
  void add(pid who, monitor_ref by);
  /// A `terminated` of `who` was stashed and counts as not received: `unwatch` can still prevent its delivery.
  void add_ended(pid who) { by_pid_.try_emplace(who, entry{.ref = {}, .ended = true}); }
  /// Returns the monitor that has to be cancelled; nothing: `who` was not watched.
  [[nodiscard]] std::optional<monitor_ref> remove(pid who);
  /// A `down` has arrived. True: it belongs to a current watch, and a `terminated` has to be delivered.
  [[nodiscard]] bool note_ended(pid who, monitor_ref by);
  /// A `terminated` is about to be handled. False: it is no longer wanted, or forged.
  [[nodiscard]] bool take_ended(pid who);

 private:
  struct entry {
    monitor_ref ref;
    bool ended = false;  // its `terminated` waits to be received
  };
  std::unordered_map<pid, entry> by_pid_;
};

}  // namespace coppice::detail
