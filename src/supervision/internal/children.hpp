#pragma once
/// What all kinds of supervisors do with their children: start them, restart those that end, stop them.
///
/// restart.cpp has the way from the exit of a child to the start of its successor; children.cpp has the rest.
#include <coppice/spec/next_restart.hpp>

#include "child_list.hpp"
#include "child_process.hpp"
#include "pending_restarts.hpp"
#include "report.hpp"
#include "running_children.hpp"

namespace coppice::detail {

class restart_counters;

/// How many children are stopped, or asked to end, before other processes may run.
inline constexpr std::size_t stops_per_turn = 64;

/// The settings in which the kinds of supervisors differ.
struct child_rules {
  coppice::strategy strategy = coppice::strategy::one_for_one;
  coppice::auto_shutdown auto_shutdown = coppice::auto_shutdown::never;
  restart_limit limit{};
  std::optional<std::chrono::nanoseconds> abandon_after{};
  /// Children of a dynamic supervisor are identified by pid, and removed when they end and are not restarted. Children
  /// of other supervisors are identified by id, and only temporary ones are removed.
  bool dynamic = false;
};

/// The reply to a request for a start that is refused.
[[nodiscard]] task<result<pid>> refused_start(error why);

class children {
 public:
  children(child_rules rules, std::vector<child_spec> specs) : rules_{rules}, list_{std::move(specs)} {}

  // -- the exit of a child, and its restart

  [[nodiscard]] task<void> handle_exit(self& me, exited x);
  [[nodiscard]] task<void> handle_backoff_over(self& me, timer_ref wait);
  [[nodiscard]] task<void> handle_retry(self& me, std::uint64_t number);
  /// Restarts a child that is down, and by the strategy its group. The error names the first child that could not be
  /// started; another attempt for that child follows.
  [[nodiscard]] task<result<void>> restart(self& me, supervised& c);

  // -- starting and stopping

  /// Starts all children in order. One that fails is retried if its spec says so; otherwise those before it are stopped
  /// again, and the error names it.
  [[nodiscard]] task<result<void>> start_all(self& me);
  /// Stops all children, the last one first.
  [[nodiscard]] task<void> stop_in_order(self& me);
  /// Stops all children at the same time.
  [[nodiscard]] task<void> stop_together(self& me);
  /// Starts the process of a child. The caller must then call `note_start`; they are two functions so that a start
  /// needs only one coroutine frame.
  [[nodiscard]] task<start_result> launch(self& me, const supervised& c) {
    return start_process(me, c.spec, running_, rules_.abandon_after);
  }
  /// Records the outcome of a start. Returns the process, or nobody if there was nothing to start: the child then stays
  /// down, or is removed if it is not kept while it is down. An error leaves the child as it was.
  [[nodiscard]] result<pid> note_start(self& me, supervised& c, start_result started, time_point now);
  /// Adds a child and starts it. A child that could not be started is removed again, and the error names it.
  [[nodiscard]] task<result<pid>> start_new(self& me, child_spec spec);
  /// Stops one child for `terminate_child`, or cancels its pending restart. Removes it if it is not kept while it is
  /// down. Then starts the children that waited for it.
  [[nodiscard]] task<void> terminate_one(self& me, supervised& c);
  /// Cancels the wait for the backoff of a child; the caller must restart the child.
  void cancel_wait(self& me, supervised& c) { pending_.cancel(me, c); }

  // -- the list

  [[nodiscard]] child_list& list() noexcept { return list_; }
  [[nodiscard]] child_rules& rules() noexcept { return rules_; }
  supervised& add(child_spec spec);
  void remove(self& me, supervised& c);
  /// Finds a child of a dynamic supervisor by its pid, or by its last one while it waits for its restart. Null:
  /// unknown.
  [[nodiscard]] supervised* find(pid who) noexcept;
  [[nodiscard]] child_counts count(self& me) const;
  [[nodiscard]] std::vector<child_info> infos(self& me) const;

 private:
  // -- restart.cpp
  void stays_down(self& me, supervised& c, const exited& x);
  void shut_down_if_done(self& me, const std::string& id, const exit_reason& why);
  void record_exit(self& me, supervised& c, const exited& x, time_point now);
  void give_up(self& me, supervised& c);
  void delay(self& me, supervised& c, std::chrono::nanoseconds wait);
  [[nodiscard]] next_restart ask_for_restart(self& me, supervised& c, time_point now,
                                             std::optional<std::chrono::nanoseconds> uptime, const backoff* wait);
  [[nodiscard]] restart_range group_of(const supervised& c) const {
    return range_to_restart(rules_.strategy, c.place, list_.places());
  }
  [[nodiscard]] task<void> stop_group(self& me, restart_range group, supervised& c);
  [[nodiscard]] const restart_counters& counters(self& me);
  [[nodiscard]] result<void> note_restart(self& me, supervised& c, start_result started, time_point now);
  [[nodiscard]] task<result<void>> restart_alone(self& me, supervised& c);
  [[nodiscard]] task<result<void>> restart_group(self& me, restart_range group, supervised& c);
  [[nodiscard]] task<void> stop_range(self& me, restart_range range, supervised* on_behalf_of);
  [[nodiscard]] std::vector<supervised*> take_due(self& me, restart_range group, const supervised& c);
  [[nodiscard]] task<result<void>> start_due(self& me, std::vector<supervised*> due);
  void start_failed(self& me, supervised& c, const error& why);

  // -- children.cpp
  [[nodiscard]] std::optional<std::chrono::nanoseconds> wait_for_first_start(self& me, supervised& c, const error& why);
  [[nodiscard]] pid mark_down(self& me, supervised& c);
  [[nodiscard]] std::optional<stopped_process> stop_if_idle(self& me, pid who, const supervised& c);
  void note_stop(self& me, supervised& c, pid who, stopped_process how, time_point now,
                 const std::optional<exit_decision>& why);
  void report_stop(self& me, const supervised& c, pid who, const stopped_process& s);
  [[nodiscard]] bool kept_while_down(const supervised& c) const noexcept { return !rules_.dynamic && !c.temporary(); }

  child_rules rules_;
  child_list list_;
  running_children running_;
  pending_restarts pending_;
  restart_window window_;
  const restart_counters* counters_ = nullptr;        // of the runtime; found at the first restart
  flat_map<pid, supervised*, pid_hash> by_last_pid_;  // children of a dynamic supervisor that wait for their restart
};

/// The time for records of uptimes, without reading the exact clock for each of a thousand children that are started or
/// stopped in a row. The result lags behind the exact clock by less than a tick of the coarse clock, a few
/// milliseconds. `before`: the previous result; `time_point::min()` for the first call.
[[nodiscard]] inline time_point about_now(self& me, time_point before) {
  clock& c = me.host().env().clock();
  return before == time_point::min() || c.coarse_now() > before ? c.now() : before;
}

}  // namespace coppice::detail
