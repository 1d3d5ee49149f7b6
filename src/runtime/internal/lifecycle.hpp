#pragma once
/// How processes begin and end, and how a whole runtime ends.
#include <map>
#include <mutex>

#include "side_block.hpp"

namespace coppice::detail {

/// Stands for the body until the start letter has made one, in the process itself, so that its failure is an exit.
[[nodiscard]] body& unborn_body() noexcept;

/// Why the process that is ending on this thread ends, for the requests that are destroyed with its frames.
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
  /// notifies everybody who is linked to it or monitors it. `to_destroy` is null for an abandoned process.
  void finish(slot& p, const exit_reason& why, body* to_destroy, envelope* rest,
              std::span<const open_call> unanswered = {});
  void free_slot(std::uint32_t index) noexcept;
  void defer(slot& me, const std::shared_ptr<pending_reply>& reply);
  bool abandon(pid who);
  /// The thread that was stuck in an abandoned process has come back.
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

 private:
  [[nodiscard]] std::uint32_t take_slot();
  void push_start(slot& p, start_letter* first);
  void answer_requests(envelope* from, std::uint32_t serial, const exit_reason& why);
  void fail_pending_replies(const side_block& side, const exit_reason& why);
  void report_end(pid me, const exit_reason& why, std::string name, std::string label);
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
  std::atomic<std::uint32_t> late_users_{0};  // their number, and `ended`
  std::mutex stranded_mutex_;
  std::map<slot*, body*> stranded_;  // bodies of abandoned processes, whose code has not come back yet
};

/// A kernel in use by a thread that may outlive the runtime: the runtime's end waits for it. False: the runtime has
/// ended, and the caller must not send. Costs nothing in the turn of a process, for which the end waits anyway.
class late_use {
 public:
  explicit late_use(kernel& k) noexcept;
  ~late_use();
  late_use(const late_use&) = delete;
  late_use& operator=(const late_use&) = delete;
  explicit operator bool() const noexcept { return allowed_; }

 private:
  lifecycle* counted_by_{nullptr};
  bool allowed_{true};
};

}  // namespace coppice::detail
