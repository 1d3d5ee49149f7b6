#pragma once
/// Who has which name: at most one live process a name, at most one name a process. Labels are kept here too, because
/// they are wanted of processes that are stuck and can't be asked.
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
  /// The process has ended: its name is free. Returns what it was called.
  entry release(pid who);

 private:
  [[nodiscard]] result<void> enter(std::string_view name, pid who);

  process_table& table_;
  std::mutex mutex_;
  std::map<std::string, pid, std::less<>> by_name_;
  std::unordered_map<pid, entry> by_pid_;
};

}  // namespace coppice::detail
