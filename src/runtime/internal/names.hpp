#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include <coppice/runtime/pid.hpp>

namespace coppice::detail {

/// Who has which name: at most one live process a name, at most one name a process. Labels stand here too, because they
/// are wanted of processes that are stuck and can't be asked.
class names {
 public:
  struct entry {
    std::string name;
    std::string label;
  };
  std::mutex mutex;
  std::map<std::string, pid, std::less<>> by_name;
  std::unordered_map<pid, entry> by_pid;

  [[nodiscard]] entry of(pid who) {
    const std::scoped_lock lock{mutex};
    const auto found = by_pid.find(who);
    return found == by_pid.end() ? entry{} : found->second;
  }
  [[nodiscard]] std::pair<std::string, std::string> texts(pid who) {
    entry e = of(who);
    return {std::move(e.name), std::move(e.label)};
  }
  /// The process has ended; gives what it was called.
  entry release(pid who) {
    const std::scoped_lock lock{mutex};
    const auto found = by_pid.find(who);
    if (found == by_pid.end()) return {};
    entry was = std::move(found->second);
    if (!was.name.empty()) by_name.erase(was.name);
    by_pid.erase(found);
    return was;
  }
};

}  // namespace coppice::detail
