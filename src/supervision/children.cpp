// Starting and stopping children. What happens when a child ends by itself is in restart.cpp.
#include "internal/children.hpp"

#include "internal/parallel_stop.hpp"

namespace coppice::detail {

task<result<pid>> refused_start(error why) { co_return std::unexpected{std::move(why)}; }

// ---- the list

supervised& children::add(child_spec spec) {
  list_.clear_gaps();
  return list_.add(std::move(spec));
}

void children::remove(self& me, supervised& c) {
  ensure(!c.running(), "a running child was to be removed");
  pending_.forget(me, c);
  if (rules_.dynamic) by_last_pid_.erase(c.who);
  list_.remove(c);
}

supervised* children::find(pid who) noexcept {
  if (supervised* running = running_.find(who)) return running;
  supervised** restarting = by_last_pid_.find(who);
  return restarting != nullptr ? *restarting : nullptr;
}

child_counts children::count(self& me) const {
  child_counts n;
  n.specs = list_.size();
  list_.for_each([&](const supervised& c) {
    if (c.running() && me.alive(c.who)) ++n.active;
    ++(c.spec.type == child_type::supervisor ? n.supervisors : n.workers);
  });
  return n;
}

std::vector<child_info> children::infos(self& me) const {
  std::vector<child_info> all;
  all.reserve(list_.size());
  list_.for_each([&](const supervised& c) { all.push_back(c.info(me)); });
  return all;
}

// ---- starting

task<result<void>> children::start_all(self& me) {
  time_point now = time_point::min();
  for (std::size_t i = 0; i < list_.places();) {
    supervised& c = *list_.at(i);
    start_result started = co_await launch(me, c);
    now = about_now(me, now);
    result<pid> up = note_start(me, c, std::move(started), now);
    if (up) {
      ++i;
      continue;
    }
    if (const auto wait = wait_for_first_start(me, c, up.error())) {
      co_await me.sleep(*wait);
      continue;
    }
    const log_level level = level_of_failed_start(c.spec, up.error());
    error whole = not_started(c.id(), std::move(up.error()));
    report(me, {level, supervisor_event::kind::start_failed, c.id(), {}, {}}, [&] { return whole.to_string(); });
    co_await stop_in_order(me);
    co_return std::unexpected{std::move(whole)};
  }
  co_return result<void>{};
}

/// How long to wait before the first start of a child is tried again; nothing if it is not retried: its spec does not
/// say so, or the limit of restarts is reached.
std::optional<std::chrono::nanoseconds> children::wait_for_first_start(self& me, supervised& c, const error& why) {
  if (!c.spec.retry_first_start) return std::nullopt;
  const time_point now = me.now();
  const next_restart next = limit_then_back_off({rules_.limit, c.spec.backoff.get()}, window_, c.failures, now,
                                                std::nullopt, me.host().env().random());
  if (!next.allowed) return std::nullopt;
  ++c.restarts;
  c.history.add({now, {}, exit_reason::error(why.to_string()), {exit_action::retried, "it could not be started"}, {}});
  const log_level level = level_of_failed_start(c.spec, why);
  report(me, {level, supervisor_event::kind::start_failed, c.id(), {}, c.last_reason()}, [&] {
    return "child '" + c.id() + "' could not be started and is tried again in " + to_string(next.wait) + ": " +
           why.to_string();
  });
  return next.wait;
}

task<result<pid>> children::start_new(self& me, child_spec spec) {
  supervised& c = add(std::move(spec));
  start_result started = co_await launch(me, c);
  result<pid> up = note_start(me, c, std::move(started), me.now());
  if (up) co_return *up;
  log_failed_start(me, c.spec, up.error());
  error whole = not_started(c.id(), std::move(up.error()));
  remove(me, c);
  co_return std::unexpected{std::move(whole)};
}

result<pid> children::note_start(self& me, supervised& c, start_result started, time_point now) {
  ensure(!c.running(), "a running child was started");
  if (error* why = std::get_if<error>(&started)) return std::unexpected{std::move(*why)};
  const pid* who = std::get_if<pid>(&started);
  if (who != nullptr && !running_.add(*who, c))
    return fail(errc::start_failed, "the start function returned " + to_string(*who) +
                                        ", which is the process of child '" + running_.find(*who)->id() + "'");
  if (rules_.dynamic) by_last_pid_.erase(c.who);
  if (who == nullptr) {
    c.state = child_state::undefined;
    if (!kept_while_down(c)) remove(me, c);
    return pid{};
  }
  const bool again = static_cast<bool>(c.who);  // the history may have nothing but starts that failed
  c.state = child_state::running;
  c.who = *who;
  c.since = now;
  if (c.temporary()) c.spec.start = {};
  const auto what = again ? supervisor_event::kind::restarted : supervisor_event::kind::started;
  report(me, {log_level::info, what, c.id(), c.who, {}},
         [&] { return "child '" + c.id() + "' started" + (again ? " again" : ""); });
  return c.who;
}

// ---- stopping

task<void> children::stop_in_order(self& me) { return stop_range(me, {0, list_.places()}, nullptr); }

task<void> children::stop_together(self& me) {
  parallel_stop all{me, rules_.abandon_after};
  std::vector<const supervised*> running;
  running.reserve(running_.size());
  running_.for_each([&](const supervised& c) { running.push_back(&c); });
  for (std::size_t i = 0; i < running.size(); ++i) {
    all.add(running[i]->who, running[i]->spec);
    if ((i + 1) % stops_per_turn == 0) co_await me.yield();
  }
  for (;;) {
    std::optional<parallel_stop::gone> gone = co_await all.next();
    if (!gone) co_return;
    supervised* c = running_.find(gone->who);
    ensure(c != nullptr, "a process was stopped that is not a child");
    (void)mark_down(me, *c);
    note_stop(me, *c, gone->who, std::move(gone->how), {}, {});
  }
}

task<void> children::terminate_one(self& me, supervised& c) {
  // The siblings that wait for the restart of the child are started without it.
  std::vector<supervised*> due = take_due(me, {}, c);
  const pid who = mark_down(me, c);
  if (who) {
    std::optional<stopped_process> stopped = stop_if_idle(me, who, c);
    if (!stopped) stopped = co_await stop_process(me, who, c.spec, rules_.abandon_after, running_);
    const exit_decision why{exit_action::stopped, "terminate_child was called"};
    note_stop(me, c, who, std::move(*stopped), me.now(), why);
  }
  if (!kept_while_down(c)) remove(me, c);
  if (!due.empty()) (void)co_await start_due(me, std::move(due));
}

/// Marks a child as down before it is stopped, and cancels its pending restart. Returns its process; nobody if it was
/// down already.
pid children::mark_down(self& me, supervised& c) {
  pending_.cancel(me, c);
  return std::exchange(c.state, child_state::undefined) == child_state::running ? c.who : pid{};
}

/// Stops an idle process at once. Nothing: it must be stopped by the steps of the ladder. With `abandon_after` that is
/// always so: at once, the destructors of the child would run in the turn of the supervisor, which could not abandon
/// the child if they do not return.
std::optional<stopped_process> children::stop_if_idle(self& me, pid who, const supervised& c) {
  if (rules_.abandon_after) return std::nullopt;
  return stop_at_once(me, who, *c.spec.shutdown);
}

/// Records and reports that a child was stopped. Without a decision nothing is added to its history, because the
/// supervisor ends.
void children::note_stop(self& me, supervised& c, pid who, stopped_process how, time_point now,
                         const std::optional<exit_decision>& why) {
  ensure(c.state == child_state::undefined, "a child was stopped that is not marked as down");
  const bool ended_before = how.reason.what() == exit_reason::kind::noproc;
  // The exit with its reason is in the mailbox, unless the child had unlinked itself.
  if (ended_before && !running_.ended_early(who)) look_at_saved_exits(me, running_);
  running_.remove(who);
  if (std::optional<exit_reason> early = running_.take_early(who); early && ended_before)
    how.reason = std::move(*early);
  report_stop(me, c, who, how);
  if (why) c.history.add({now, now - c.since, std::move(how.reason), *why, who});
}

/// Logs an error if the child did not end as it was asked to.
void children::report_stop(self& me, const supervised& c, pid who, const stopped_process& s) {
  using kind = exit_reason::kind;
  const bool permanent = c.spec.restart == restart::permanent;
  const bool brutal = c.spec.shutdown->is_brutal();
  bool expected = false;
  switch (s.reason.what()) {
    case kind::shutdown: expected = (s.reason.text().empty() && !brutal) || !permanent; break;
    case kind::normal: expected = !permanent; break;
    case kind::killed: expected = brutal; break;
    default: break;
  }
  if (s.abandoned) {
    report_abandoned(me, c.id(), who, s.reason);
    return;
  }
  report(
      me, {expected ? log_level::info : log_level::error, supervisor_event::kind::stopped, c.id(), who, s.reason}, [&] {
        return "child '" + c.id() + "' " + (expected ? "stopped: " : "did not stop as asked: ") + s.reason.to_string();
      });
}

}  // namespace coppice::detail
