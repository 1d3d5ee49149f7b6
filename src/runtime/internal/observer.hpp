#pragma once
/// What can be seen of the processes from outside.
#include <map>
#include <mutex>

#include "side_block.hpp"

namespace coppice::detail {

/// Thread safety: any thread; `describe_itself` for the owner of the slot.
class observer {
 public:
  explicit observer(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  [[nodiscard]] std::vector<process_info> snapshot();
  [[nodiscard]] std::optional<process_info> info(pid who);
  [[nodiscard]] runtime_counters counters();
  /// Called by the owner of a busy process, because an observer waits for a description of it.
  void describe_itself(slot& p);
  void report_stall(slot& p, std::chrono::milliseconds lasting);
  void report_left_behind();

  void note_dead_letter(pid to, const envelope& e);
  void note_unhandled(pid to, const envelope& e);

 private:
  enum class view : std::uint8_t { from_outside, as_owner };
  [[nodiscard]] process_info describe(slot& p, view from);
  [[nodiscard]] bool look_at(slot& p, std::vector<process_info>& into);
  [[nodiscard]] std::vector<process_info> look_at_all(std::uint32_t first, std::uint32_t last);
  void count_waiting(slot& p, const envelope* from);
  void count_dead_letter(pid to, const envelope& e);

  kernel& kernel_;
  process_table& table_;
  std::atomic<std::uint32_t> observers_{0};
  std::mutex described_mutex_;
  std::map<pid, process_info> described_;  // by processes that were asked while they were busy
  std::atomic<std::uint64_t> dead_letters_{0};
};

}  // namespace coppice::detail
