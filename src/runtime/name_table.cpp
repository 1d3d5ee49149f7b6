#include "internal/name_table.hpp"

#include <coppice/base/ensure.hpp>

namespace coppice::detail {

result<void> name_table::enter(std::string_view name, pid who) {
  if (name.empty()) return coppice::fail(errc::invalid, "a process name must not be empty");
  if (!table_.alive(who))
    return coppice::fail(errc::noproc, "can't give the name '" + std::string{name} + "' to " + to_string(who) +
                                           ": it is not a live process of this node");
  if (const auto taken = by_name_.find(name); taken != by_name_.end())
    return coppice::fail(errc::name_taken, "'" + std::string{name} + "' is the name of " + to_string(taken->second));
  entry& known = by_pid_[who];
  if (!known.name.empty())
    return coppice::fail(errc::invalid, to_string(who) + " has the name '" + known.name + "' already");
  by_name_.emplace(name, who);
  known.name = name;
  table_[who.index()].named.store(1, std::memory_order_seq_cst);
  return {};
}

// One thread may name a process that is ending on another thread. The first sets the flag `named` and then looks
// whether the process is alive; the second first makes the process dead and then looks at the flag. So at least one of
// them sees the other.
result<void> name_table::add(std::string_view name, pid who) {
  const std::scoped_lock lock{mutex_};
  if (auto entered = enter(name, who); !entered) return entered;
  if (table_.alive(who)) return {};
  by_name_.erase(by_name_.find(name));
  by_pid_.erase(who);
  return coppice::fail(errc::noproc, to_string(who) + " has ended");
}

result<void> name_table::add_unborn(std::string_view name, pid who, const std::function<void()>& begin) {
  const std::scoped_lock lock{mutex_};
  if (auto entered = enter(name, who); !entered) return entered;
  begin();  // should the process end at once, it waits for the lock and then releases the name
  return {};
}

bool name_table::remove(std::string_view name) {
  const std::scoped_lock lock{mutex_};
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return false;
  const auto known = by_pid_.find(found->second);
  ensure(known != by_pid_.end() && known->second.name == name, "a name belongs to a process that does not have it");
  known->second.name.clear();
  by_name_.erase(found);
  return true;
}

pid name_table::find(std::string_view name) {
  const std::scoped_lock lock{mutex_};
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? pid{} : found->second;
}

name_table::entry name_table::of(pid who) {
  const std::scoped_lock lock{mutex_};
  const auto found = by_pid_.find(who);
  return found == by_pid_.end() ? entry{} : found->second;
}

void name_table::set_label(pid who, std::string label) {
  const std::scoped_lock lock{mutex_};
  by_pid_[who].label = std::move(label);
  table_[who.index()].named.store(1, std::memory_order_seq_cst);
}

name_table::entry name_table::release(pid who) {
  const std::scoped_lock lock{mutex_};
  const auto found = by_pid_.find(who);
  if (found == by_pid_.end()) return {};
  entry was = std::move(found->second);
  if (!was.name.empty()) by_name_.erase(was.name);
  by_pid_.erase(found);
  return was;
}

}  // namespace coppice::detail
