#pragma once
/// How processes begin and end, and how a whole runtime ends.
#include <map>
#include <mutex>

#include <coppice/runtime/detail/late_use.hpp>

#include "name_table.hpp"
#include "side_block.hpp"

namespace coppice::detail {

/// The body of a process until its start letter has made the real one. That happens in the process itself, so that a
/// failure is an exit.
[[nodiscard]] body& unborn_body() noexcept;

/// While it exists, `who` is ending on this thread because of `why`: requests that are destroyed with the frames of
/// `who` are answered with that reason.
class ending_scope {
 public:
  ending_scope(pid who, const exit_reason& why) noexcept;
  ~ending_scope();
  ending_scope(const ending_scope&) = delete;
  ending_scope& operator=(const ending_scope&) = delete;

 private:
  pid who_before_;
  const exit_reason* why_before_;
};

class lifecycle {
 public:
  explicit lifecycle(kernel& k);

  // -- a process. Thread safety: `start` and `abandon` from any thread, the others for the owner of the slot.
  [[nodiscard]] result<pid> start(start_letter* first);
  /// Ends a process: destroys its body, answers the requests in its queue from `rest` on and those `unanswered`, and
  /// notifies the processes that are linked to it or monitor it. `to_destroy` is null for an abandoned process.
  void finish(slot& p, const exit_reason& why, body* to_destroy, envelope* rest,
              std::span<const open_call> unanswered = {});
  void free_slot(std::uint32_t index) noexcept;
  void defer(slot& me, const std::shared_ptr<pending_reply>& reply);
  bool abandon(pid who);
  /// Called when the thread that was stuck in an abandoned process has come back: frees the body and the slot, and also
  /// `e`, unless the body has `kept` it.
  void bury(slot& p, envelope* e, bool kept);

  // -- the runtime
  [[nodiscard]] bool stop();
  void crash();
  bool send_late(pid to, signal s, envelope* e);
  [[nodiscard]] bool begin_late_use() noexcept;
  void end_late_use() noexcept;
  [[nodiscard]] time_point started() const noexcept { return started_; }
  [[nodiscard]] std::uint64_t spawned_outside() const noexcept { return spawned_outside_.load(); }
  [[nodiscard]] std::uint64_t ended_outside() const noexcept { return ended_outside_.load(); }

  /// Logs a failure that was left to the parent, whose exit signal the parent will not handle.
  void log_unreported(const exited& x);

 private:
  [[nodiscard]] std::uint32_t take_slot();
  void push_start(slot& p, start_letter* first);
  void answer_requests(envelope* from, std::uint32_t serial, const exit_reason& why);
  void drop_mail_under_policy(pid me, const exit_reason& why);
  void fail_pending_replies(const side_block& side, const exit_reason& why);
  [[nodiscard]] static bool holds_failure(const side_block& side);
  void log_failure(pid me, const exit_reason& why, log_level level, const std::optional<name_table::entry>& texts);
  void publish_end(pid me, const exit_reason& why, name_table::entry texts);
  void drop_all_mail();
  void wait_for_late_users();
  void count_spawned() noexcept;
  void count_ended() noexcept;

  kernel& kernel_;
  process_table& table_;
  const time_point started_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> spawned_outside_{0};  // by threads that are not workers
  std::atomic<std::uint64_t> ended_outside_{0};
  static constexpr std::uint32_t ended = 1U << 31U;
  std::atomic<std::uint32_t> late_users_{0};  // the number of counted `late_use` objects, and the bit `ended`
  std::mutex stranded_mutex_;
  struct remains {
    body* process = nullptr;
    future_map futures;
  };
  std::map<slot*, remains> stranded_;  // of abandoned processes whose threads have not come back yet
};

}  // namespace coppice::detail
