#pragma once
/// The children of one supervisor, in the order of their start, and all that is done with them.
#include <deque>
#include <unordered_map>

#include <coppice/supervision/supervisor.hpp>

#include "child_process.hpp"

namespace coppice::detail {

/// The rarely used settings of a child.
struct rare_settings {
  std::string name;
  std::optional<coppice::backoff> backoff;
  std::chrono::nanoseconds start_within = forever;
};

/// One child. A hundred thousand of them should be cheap.
struct supervised {
  std::uint64_t number = 0;  // never used again
  std::string id;
  child_start start;  // empty for a temporary one that was started: it is never started again
  std::unique_ptr<rare_settings> rare;
  std::optional<coppice::shutdown> shutdown;
  coppice::restart restart = coppice::restart::permanent;
  child_type type = child_type::worker;
  bool significant = false;
  child_state state = child_state::undefined;
  bool ended_before = false;   // last_reason says how
  std::uint32_t failures = 0;  // in a row, for the backoff
  pid who;
  std::size_t place = 0;
  time_point since{};
  std::uint64_t restarts = 0;
  timer_ref wait{};
  exit_reason last_reason;
  std::unique_ptr<std::deque<exit_record>> history;

  supervised(std::uint64_t n, child_spec spec) : number{n} { become(std::move(spec)); }
  void become(child_spec spec);
  [[nodiscard]] child_spec spec() const;
  [[nodiscard]] const coppice::backoff* backoff() const noexcept {
    return rare && rare->backoff ? &*rare->backoff : nullptr;
  }
  [[nodiscard]] start_order order() const noexcept;
  [[nodiscard]] child_info info(self& me) const;
  [[nodiscard]] coppice::shutdown shutdown_or_default() const noexcept;

  static void* operator new(std::size_t n) { return allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }
};

class supervised_children final : public death_watcher {
 public:
  explicit supervised_children(supervisor_spec spec);

  /// In order; when one fails, those before it are stopped again, and the error names it.
  [[nodiscard]] task<result<void>> start_all(self& me);
  [[nodiscard]] task<void> stop_all(self& me);

  [[nodiscard]] task<void> child_exited(self& me, exited x);
  [[nodiscard]] task<void> retry(self& me, std::uint64_t child);
  [[nodiscard]] task<void> wait_is_over(self& me, timer_ref wait);

  [[nodiscard]] task<result<pid>> start_child(self& me, child_spec spec);
  [[nodiscard]] task<result<void>> terminate_child(self& me, std::string id);
  [[nodiscard]] task<result<pid>> restart_child(self& me, std::string id);
  [[nodiscard]] task<result<void>> retry_now(self& me, std::string id);
  [[nodiscard]] result<void> delete_child(const std::string& id);
  [[nodiscard]] result<void> upgrade(supervisor_spec spec);
  [[nodiscard]] child_counts count(self& me) const;
  [[nodiscard]] std::vector<child_info> list(self& me) const;
  /// Error: `not_found`.
  [[nodiscard]] result<supervised*> find(std::string_view id);

  void saw(const exited& x) override;

 private:
  struct cause {
    exit_action action;
    std::string because;
  };
  supervised& add(child_spec spec);
  void forget(supervised& c);
  void clear_gaps();
  [[nodiscard]] task<std::optional<error>> start_one(self& me, supervised& c);
  /// Leaves it down; its place is kept.
  [[nodiscard]] task<void> stop_one(self& me, supervised& c, std::string because);
  void judge_stop(self& me, supervised& c, pid who, const stopped_process& s);
  void cancel_wait(self& me, supervised& c);
  [[nodiscard]] task<void> stop_range(self& me, std::size_t first, const supervised& on_behalf_of);
  [[nodiscard]] task<void> start_range(self& me, std::size_t first);
  [[nodiscard]] task<void> try_restart(self& me, supervised& c, bool after_failed_start);
  [[nodiscard]] task<void> restart_now(self& me, supervised& c);
  void start_has_failed(self& me, supervised& c, const error& why);
  void delay_restart(self& me, supervised& c);
  /// False: the limit is reached, and the supervisor ends.
  [[nodiscard]] bool may_restart(self& me, supervised& c);
  void stays_down(self& me, supervised& c, const exit_reason& why, std::chrono::nanoseconds uptime);
  void shut_down_if_done(self& me, const std::string& id);
  void record(self& me, supervised& c, pid who, const exit_reason& why, std::chrono::nanoseconds uptime, cause did);
  [[nodiscard]] std::size_t first_to_restart(const supervised& c) const noexcept;
  template <class Text>
  void tell(self& me, log_level level, supervisor_event::kind what, const std::string& child, pid who,
            const exit_reason& why, Text&& text);

  supervisor_spec flags_;  // without children, once they are here
  restart_window window_;
  std::vector<std::unique_ptr<supervised>> order_;  // with gaps where children were forgotten
  std::size_t gaps_ = 0;
  std::uint64_t numbers_ = 0;
  flat_map<pid, supervised*, pid_hash> by_pid_;
  struct number_hash {
    std::uint64_t operator()(std::uint64_t n) const noexcept { return mix(n); }
  };
  flat_map<std::uint64_t, supervised*, number_hash> waiting_;   // by the timer of their backoff
  flat_map<std::uint64_t, supervised*, number_hash> retrying_;  // by their number: a retry is on its way
  flat_map<pid, exit_reason, pid_hash> early_;  // children known to have ended, whose turn has not come yet
  // Made when somebody first asks for a child by its id, for supervisors with many.
  std::unordered_map<std::string_view, supervised*> by_id_;
  bool indexed_ = false;
};

}  // namespace coppice::detail
