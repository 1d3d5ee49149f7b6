#include <coppice/actor/detail/watch_list.hpp>
#include <coppice/base/ensure.hpp>

namespace coppice::detail {

void watch_list::add(pid who, monitor_ref by) {
  const bool added = by_pid_.emplace(who, entry{.ref = by}).second;
  ensure(added, "a process was watched twice");
}

std::optional<monitor_ref> watch_list::remove(pid who) {
  const auto found = by_pid_.find(who);
  if (found == by_pid_.end()) return std::nullopt;
  const monitor_ref by = found->second.ref;
  by_pid_.erase(found);
  return by;
}

bool watch_list::note_ended(pid who, monitor_ref by) {
  const auto found = by_pid_.find(who);
  if (found == by_pid_.end() || found->second.ref != by) return false;
  ensure(!found->second.ended, "a watched process ended twice");
  found->second.ended = true;
  return true;
}

bool watch_list::take_ended(pid who) {
  const auto found = by_pid_.find(who);
  if (found == by_pid_.end() || !found->second.ended) return false;
  by_pid_.erase(found);
  return true;
}

}  // namespace coppice::detail
