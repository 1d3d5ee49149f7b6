#pragma once
/// What can be seen of the processes from outside.
#include <map>
#include <mutex>

#include <coppice/runtime/metrics.hpp>

#include "side_block.hpp"

namespace coppice::detail {

/// Thread safety: any thread; `describe_itself` for the owner of the slot.
class observer {
 public:
  explicit observer(kernel& k) noexcept : kernel_{k}, table_{k.table()} {}

  [[nodiscard]] std::vector<process_info> snapshot();
  [[nodiscard]] std::optional<process_info> info(pid who);
  [[nodiscard]] runtime_counters counters();
  [[nodiscard]] std::string why(pid who);
  [[nodiscard]] std::vector<std::vector<pid>> call_cycles();
  /// The counters, and values that are computed from them.
  [[nodiscard]] std::vector<coppice::metrics::computed> metrics();
  /// Called by the owner of a busy process, because an observer waits for a description of it.
  void describe_itself(slot& p);
  void report_stall(slot& p, std::chrono::milliseconds lasting);
  void report_left_behind();

  void note_dead_letter(pid to, const envelope& e);
  void note_unhandled(pid to, const envelope& e);

 private:
  enum class view : std::uint8_t {
    from_outside,  // the process may change meanwhile
    in_its_code,   // its code runs, but can't reach the slot
    as_owner,      // nothing of the process runs
  };
  static constexpr std::chrono::milliseconds longest_wait{50};
  [[nodiscard]] process_info describe(slot& p, view from);
  void describe_body(slot& p, view from, process_info& into);
  static void describe_running(const slot& p, const body& b, process_info& into);
  void describe_waiting(const body& b, process_info& into);
  void count_queue(slot& p, view from, process_info& into);
  static void set_runnable(process_info& one);
  [[nodiscard]] bool is_circle(const std::vector<process_info>& members);
  void load_symbols();
  void collect(std::vector<pid>& busy, std::vector<process_info>& all);
  [[nodiscard]] bool look_at(slot& p, std::vector<process_info>& into);
  class observing;
  void forget_description(pid who);
  [[nodiscard]] std::vector<process_info> look_at_all(std::uint32_t first, std::uint32_t last);
  void count_dead_letter(pid to, const envelope& e);

  kernel& kernel_;
  process_table& table_;
  std::atomic<std::uint32_t> observers_{0};
  std::mutex described_mutex_;
  std::map<pid, process_info> described_;  // by processes that were asked while they were busy
  std::atomic<std::uint64_t> dead_letters_{0};
};

}  // namespace coppice::detail
