#pragma once
/// What all kinds of supervisors do with a child: start it, stop it, count its restarts, remember how it ended, tell.
#include <coppice/spec/restart_window.hpp>
#include <coppice/supervision/child_info.hpp>

#include "child_process.hpp"

namespace coppice::detail {

/// The rarely used settings of a child.
struct rare_settings {
  std::string name;
  std::optional<coppice::backoff> backoff;
  std::chrono::nanoseconds start_within = forever;
};

/// The last ends of a child.
class exit_ring {
 public:
  void add(exit_record r) {
    if (records_.size() < most) {
      records_.push_back(std::move(r));
      return;
    }
    records_[oldest_] = std::move(r);
    oldest_ = (oldest_ + 1) % most;
  }
  [[nodiscard]] exit_record& newest() noexcept { return records_[(oldest_ + records_.size() - 1) % records_.size()]; }
  /// Oldest first.
  [[nodiscard]] std::vector<exit_record> all() const {
    std::vector<exit_record> in_order;
    in_order.reserve(records_.size());
    for (std::size_t i = 0; i < records_.size(); ++i) in_order.push_back(records_[(oldest_ + i) % records_.size()]);
    return in_order;
  }

 private:
  static constexpr std::size_t most = 50;
  std::vector<exit_record> records_;
  std::size_t oldest_ = 0;
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
  pid who;                     // while it runs; of a dynamic child that is restarting, who it was
  std::size_t place = 0;       // in the order of start
  time_point since{};
  std::uint64_t restarts = 0;
  timer_ref wait{};
  exit_reason last_reason;
  std::unique_ptr<exit_ring> history;  // once it has ended

  supervised(std::uint64_t n, child_spec spec) : number{n} { become(std::move(spec)); }
  void become(child_spec spec);
  [[nodiscard]] child_spec spec() const;
  [[nodiscard]] const coppice::backoff* backoff() const noexcept {
    return rare && rare->backoff ? &*rare->backoff : nullptr;
  }
  [[nodiscard]] start_order order() const noexcept;
  [[nodiscard]] child_info info(self& me) const;
  [[nodiscard]] coppice::shutdown shutdown_or_default() const noexcept {
    return shutdown ? *shutdown : default_shutdown(type);
  }
  [[nodiscard]] std::vector<exit_record> exits() const;

  static void* operator new(std::size_t n) { return allocate(n); }
  static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }
};

/// For whoever asked for the start. What the child said stays the cause: its `bad_combination`, say, is no fault of the
/// spec it was started by (fact 94).
[[nodiscard]] error not_started(const std::string& id, error why);

class child_keeper : public death_watcher {
 public:
  child_keeper(restart_limit limit, std::optional<std::chrono::nanoseconds> abandon_after)
      : limit_{limit}, abandon_after_{abandon_after} {}
  child_keeper(const child_keeper&) = delete;
  child_keeper& operator=(const child_keeper&) = delete;

  void saw(const exited& x) final;

 protected:
  struct cause {
    exit_action action;
    std::string because;
  };
  ~child_keeper() = default;

  /// Runs, or is ignored and stays down. An error leaves it as it was.
  [[nodiscard]] task<std::optional<error>> start_one(self& me, supervised& c);
  /// Leaves it down. Without a reason why nothing is written down: nobody will be there to ask.
  [[nodiscard]] task<void> stop_one(self& me, supervised& c, std::string because);
  /// The one that has ended, if it is one of ours and really has; it does not run any more.
  [[nodiscard]] supervised* take_dead(self& me, const exited& x);
  /// It has ended and shall be restarted: written down, and whether there may be one more restart.
  [[nodiscard]] bool dies_and_may_restart(self& me, supervised& c, const exited& x);
  /// It has ended and stays down.
  void stays_down(self& me, supervised& c, const exited& x);
  void start_has_failed(self& me, supervised& c, const error& why);
  /// False: the limit is reached, and the supervisor ends.
  [[nodiscard]] bool may_restart(self& me, supervised& c);
  void delay_restart(self& me, supervised& c);
  void cancel_wait(self& me, supervised& c);
  /// The child whose wait is over; null: it does not wait any more.
  [[nodiscard]] supervised* take_waiting(timer_ref wait);
  /// The child to be tried again; null: that is over.
  [[nodiscard]] supervised* to_retry(std::uint64_t number);
  /// It is destroyed next.
  void drop(supervised& c);
  void has_stopped(self& me, supervised& c, pid who, stopped_process how, std::string because);
  template <class Text>
  void tell(self& me, log_level level, supervisor_event::kind what, const std::string& child, pid who,
            const exit_reason& why, Text&& text);

  struct number_hash {
    std::uint64_t operator()(std::uint64_t n) const noexcept { return mix(n); }
  };
  restart_limit limit_;
  std::optional<std::chrono::nanoseconds> abandon_after_;
  flat_map<pid, supervised*, pid_hash> by_pid_;

 private:
  void judge_stop(self& me, const supervised& c, pid who, const stopped_process& s);
  static void record(self& me, supervised& c, pid who, const exit_reason& why, std::chrono::nanoseconds uptime,
                     cause did);
  static void amend_record(supervised& c, cause did);

  restart_window window_;
  flat_map<std::uint64_t, supervised*, number_hash> waiting_;   // by the timer of their backoff
  flat_map<std::uint64_t, supervised*, number_hash> retrying_;  // by their number: a retry is on its way, or was
  flat_map<pid, exit_reason, pid_hash> early_;  // children known to have ended, whose turn has not come yet
};

template <class Text>
void child_keeper::tell(self& me, log_level level, supervisor_event::kind what, const std::string& child, pid who,
                        const exit_reason& why, Text&& text) {
  kernel& k = me.host();
  const bool logs = k.logs(level);
  const bool wanted = k.events().wanted(plain<supervisor_event>);
  if (!logs && !wanted) return;
  std::string line = text();
  if (logs)
    k.log(level, line,
          {{"supervisor", to_string(me.id())},
           {"child", child},
           {"pid", to_string(who)},
           {"event", std::string{to_string(what)}}});
  if (wanted)
    k.events().publish(supervisor_event{
        .what = what, .supervisor = me.id(), .child = child, .who = who, .reason = why, .text = std::move(line)});
}

}  // namespace coppice::detail
