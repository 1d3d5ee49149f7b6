#pragma once
/// The names of processes: a name belongs to at most one live process, and a process has at most one name. Labels are
/// stored here too, because they must be readable while their process is stuck.
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include <coppice/base/error.hpp>
#include <coppice/runtime/detail/process_table.hpp>

namespace coppice::detail {

/// Thread safety: any thread.
class name_table {
 public:
  struct entry {
    std::string name;
    std::string label;
  };
  explicit name_table(process_table& table) noexcept : table_{table} {}

  /// Gives `name_taken`, `noproc`, `invalid`.
  [[nodiscard]] result<void> add(std::string_view name, pid who);
  /// For a process that is about to be started: `begin` starts it in the same step, so that the name is never visible
  /// without its process. An error: `begin` was not called.
  [[nodiscard]] result<void> add_unborn(std::string_view name, pid who, const std::function<void()>& begin);
  bool remove(std::string_view name);
  [[nodiscard]] pid find(std::string_view name);
  [[nodiscard]] entry of(pid who);
  void set_label(pid who, std::string label);
  /// Called when the process has ended: frees its name, and returns its name and label.
  entry release(pid who);

 private:
  [[nodiscard]] result<void> enter(std::string_view name, pid who);

  process_table& table_;
  std::mutex mutex_;
  std::map<std::string, pid, std::less<>> by_name_;
  std::unordered_map<pid, entry> by_pid_;
};

}  // namespace coppice::detail
