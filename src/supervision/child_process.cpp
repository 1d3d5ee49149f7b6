#include "internal/child_process.hpp"

#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>
#include <coppice/supervision/detail/start_process.hpp>

#include "internal/report.hpp"

namespace coppice::detail {

namespace {

/// Takes the steps of the stop until the process has ended.
task<process_end> run_to_end(self& me, process_stop& stop, pid who, monitor_ref watched, death_watcher& others) {
  std::optional<process_end> end;
  while (!end) {
    const std::chrono::nanoseconds wait = stop.advance(me.host());
    end = co_await until_ended(who, watched, wait, &others);
  }
  co_return std::move(*end);
}

}  // namespace

// ---- starting

namespace {

result<pid> spawn_by(self& me, const child_spec& spec, std::uint64_t number) {
  try {
    birth with{.parent = me.id(), .linked = true, .parent_reports = true, .ack = number};
    if (!spec.name.empty()) with.called = birth::by(spec.name, {});
    if (spec.mailbox) with.policy = make_policy_of_spec(*spec.mailbox);
    return spec.start.how().spawn(me.host(), std::move(with));
  } catch (...) {
    return fail(errc::start_failed, reason_of_failure(*turn_here()).to_string());
  }
}

// The rare paths are functions of their own, so that the coroutine frame of the common path is small.

/// Ends a process whose start took too long: kills it, and abandons it if it does not end after the kill. Returns the
/// error of the start.
task<error> end_late_start(self& me, pid who, const child_spec& spec,
                           std::optional<std::chrono::nanoseconds> abandon_after, death_watcher& others) {
  process_stop stop{
      {.by = me.id(), .who = who, .what = "child", .name = spec.id}, shutdown::brutal_kill(), abandon_after};
  const process_end end = co_await run_to_end(me, stop, who, {}, others);
  if (stop.abandoned()) report_abandoned(me, spec.id, who, end.reason);
  co_return error{errc::timeout, to_string(who) + " did not start within " + to_string(spec.start_within) +
                                     " (start_within) and was " + (stop.abandoned() ? "abandoned" : "killed")};
}

task<start_result> run_start_function(self& me, const recipe& how) {
  std::optional<error> failed;
  try {
    start_result started = co_await how.run(me);
    co_return started;
  } catch (...) {
    failed = error{errc::start_failed, reason_of_failure(*turn_here()).to_string()};
  }
  co_return start_result{*failed};
}

task<start_result> start_by_function(self& me, const recipe& how) {
  start_result started = co_await run_start_function(me, how);
  if (const pid* who = std::get_if<pid>(&started); who != nullptr && !*who)
    started = error{errc::start_failed,
                    "the start function returned a pid that is nobody; return ignored{} if there is nothing to start"};
  co_return started;
}

task<start_result> start_by_spawn(self& me, const child_spec& spec, death_watcher& others,
                                  std::optional<std::chrono::nanoseconds> abandon_after) {
  const bool waits = spec.start.kind() == recipe::kind::handshake;
  const std::uint64_t number = waits ? new_start_number(me) : 0;
  const result<pid> spawned = spawn_by(me, spec, number);
  if (!spawned) co_return start_result{spawned.error()};
  const pid who = *spawned;
  me.host().adopt(me.process(), me.id(), who, true, {});
  if (!waits) co_return start_result{who};
  start_outcome out = co_await starting(who, number, spec.start_within, {}, &others);
  if (out.what == start_outcome::kind::ready) co_return start_result{who};
  if (out.what == start_outcome::kind::timed_out) {
    error late = co_await end_late_start(me, who, spec, abandon_after, others);
    co_return start_result{std::move(late)};
  }
  if (out.what == start_outcome::kind::ignored) co_return start_result{ignored{}};
  co_return start_result{out.to_error(who)};
}

}  // namespace

task<start_result> start_process(self& me, const child_spec& spec, death_watcher& others,
                                 std::optional<std::chrono::nanoseconds> abandon_after) {
  ensure(static_cast<bool>(spec.start), "a child without a start was to be started");
  return spec.start.kind() == recipe::kind::function ? start_by_function(me, spec.start.how())
                                                     : start_by_spawn(me, spec, others, abandon_after);
}

task<start_result> start_process(self& me, child_spec spec) {
  struct no_others final : death_watcher {
    void saw(const exited&) override {}
  };
  no_others others;
  start_result started = co_await start_process(me, spec, others, std::nullopt);
  co_return started;
}

// ---- stopping

namespace {

/// Takes no message from the mailbox; shows `others` the exits in it.
struct exit_viewer : waiter {
  death_watcher& others;
  explicit exit_viewer(death_watcher& o) noexcept : waiter{&how}, others{o} {}
  static bool take(waiter& w, coroutine&, envelope& e) {
    if (e.type == &plain<exited>) static_cast<exit_viewer&>(w).others.saw(static_cast<letter<exited>&>(e).body);
    return false;
  }
  static constexpr wait_type how{.take = &take, .expire = nullptr};
};

/// A monitor if this process would not be notified of the end without one, because `who` was spawned by another process
/// or has already ended; otherwise none.
monitor_ref watch_if_needed(self& me, pid who) {
  return me.host().end_will_be_known(me.process(), who) ? monitor_ref{} : me.monitor(who);
}

}  // namespace

void look_at_saved_exits(self& me, death_watcher& others) {
  exit_viewer viewer{others};
  (void)static_cast<coroutine&>(me).take_saved(viewer);
}

std::optional<stopped_process> stop_at_once(self& me, pid who, shutdown how) {
  const bool brutal = how.is_brutal();
  if (!me.host().end_idle(me.process(), who, brutal ? exit_reason::kill() : exit_reason::shutdown()))
    return std::nullopt;
  return stopped_process{.reason = brutal ? exit_reason::killed() : exit_reason::shutdown()};
}

// The link stays: if this process ends during the stop, the child ends too.
task<stopped_process> stop_process(self& me, pid who, const child_spec& spec,
                                   std::optional<std::chrono::nanoseconds> abandon_after, death_watcher& others) {
  const monitor_ref watched = watch_if_needed(me, who);
  process_stop stop{{.by = me.id(), .who = who, .what = "child", .name = spec.id}, *spec.shutdown, abandon_after};
  process_end end = co_await run_to_end(me, stop, who, watched, others);
  if (watched) me.demonitor(watched);
  stopped_process out{.reason = std::move(end.reason), .abandoned = stop.abandoned()};
  co_return out;
}

}  // namespace coppice::detail
