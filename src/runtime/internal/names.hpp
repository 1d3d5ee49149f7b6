#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include <coppice/runtime/pid.hpp>

namespace coppice::detail {

/// Who has which name: at most one live process a name, at most one name a process.
class names {
 public:
  std::mutex mutex;
  std::map<std::string, pid, std::less<>> by_name;
  std::unordered_map<pid, std::string> by_pid;

  [[nodiscard]] std::string of(pid who) {
    const std::scoped_lock lock{mutex};
    const auto found = by_pid.find(who);
    return found == by_pid.end() ? std::string{} : found->second;
  }
  void release(pid who) {
    const std::scoped_lock lock{mutex};
    const auto found = by_pid.find(who);
    if (found == by_pid.end()) return;
    by_name.erase(found->second);
    by_pid.erase(found);
  }
};

}  // namespace coppice::detail
