#include "internal/child_keeper.hpp"

#include <coppice/supervision/supervisor.hpp>

namespace coppice::detail {

// ---- a child

void supervised::become(child_spec spec) {
  id = std::move(spec.id);
  start = std::move(spec.start);
  restart = spec.restart;
  type = spec.type;
  shutdown = spec.shutdown ? *spec.shutdown : default_shutdown(type);
  significant = spec.significant;
  rare.reset();
  if (!spec.name.empty() || spec.backoff || spec.start_within != forever)
    rare = std::make_unique<rare_settings>(
        rare_settings{.name = std::move(spec.name), .backoff = spec.backoff, .start_within = spec.start_within});
}

child_spec supervised::spec() const {
  child_spec full{
      .id = id, .start = start, .restart = restart, .shutdown = shutdown, .type = type, .significant = significant};
  if (rare) {
    full.name = rare->name;
    full.backoff = rare->backoff;
    full.start_within = rare->start_within;
  }
  return full;
}

start_order supervised::order() const noexcept {
  static const std::string no_name;
  return {start, rare ? rare->name : no_name, rare ? rare->start_within : forever};
}

child_info supervised::info(self& me) const {
  child_info i{.id = id,
               .who = state == child_state::running ? who : pid{},
               .state = state,
               .type = type,
               .restart = restart,
               .significant = significant,
               .restarts = restarts};
  if (ended_before()) i.last_reason = last_reason();
  if (state == child_state::running) i.uptime = me.now() - since;
  if (wait) i.waits = me.remaining(wait).value_or(std::chrono::nanoseconds{0});
  return i;
}

std::vector<exit_record> supervised::exits(self& me) const {
  std::vector<exit_record> all;
  if (history.empty()) return all;
  const wall_time wall = me.host().env().clock().wall();
  const time_point now = me.now();
  history.for_each([&](const exit_ring::end& e) {
    all.push_back({.at = wall - (now - e.at),
                   .uptime = e.uptime,
                   .who = e.who,
                   .reason = e.reason,
                   .action = e.did.action,
                   .because = e.did.because ? *e.did.because : std::string{}});
  });
  return all;
}

error not_started(const std::string& id, error why) {
  return error{errc::start_failed, "child '" + id + "' could not be started", std::move(why)};
}

// ---- what is remembered of it

/// What is done about its end was not known yet when that was written down.
void child_keeper::amend_record(supervised& c, exit_decision did) {
  if (!c.history.empty()) c.history.newest().did = std::move(did);
}

// ---- starting and stopping

std::optional<error> child_keeper::has_started(self& me, supervised& c, start_result started, time_point now) {
  if (error* why = std::get_if<error>(&started)) return std::move(*why);
  const pid* who = std::get_if<pid>(&started);
  c.state = who != nullptr ? child_state::running : child_state::undefined;
  c.who = who != nullptr ? *who : pid{};
  if (who == nullptr) return std::nullopt;
  c.since = now;
  by_pid_.insert(c.who, &c);
  if (c.restart == restart::temporary) c.start = {};
  tell(me, log_level::info, c.ended_before() ? supervisor_event::kind::restarted : supervisor_event::kind::started,
       c.id, c.who, {}, [&] { return "child '" + c.id + "' started" + (c.ended_before() ? " again" : ""); });
  return std::nullopt;
}

pid child_keeper::leaves(self& me, supervised& c) {
  cancel_wait(me, c);
  const pid who = std::exchange(c.who, pid{});
  return std::exchange(c.state, child_state::undefined) == child_state::running ? who : pid{};
}

task<void> child_keeper::stop_one(self& me, supervised& c, exit_decision why) {
  const pid who = leaves(me, c);
  if (!who) co_return;
  std::optional<stopped_process> stopped = stop_at_once(me, who, c.shutdown);
  if (!stopped) stopped = co_await stop_process(me, c, who);
  has_stopped(me, c, who, std::move(*stopped), me.now(), why);
}

void child_keeper::has_stopped(self& me, supervised& c, pid who, stopped_process how, time_point now,
                               const std::optional<exit_decision>& why) {
  // It had ended before. How it did lies somewhere in the mail, unless it had unlinked itself.
  if (how.reason.what() == exit_reason::kind::noproc && early_.find(who) == nullptr)
    look_at_deaths_put_aside(me, *this);
  by_pid_.erase(who);
  if (const auto early = early_.take(who); early && how.reason.what() == exit_reason::kind::noproc) how.reason = *early;
  judge_stop(me, c, who, how);
  if (why) c.history.add({now, now - c.since, std::move(how.reason), *why, who});
}

/// What is worth a line: a child that did not end as it was told to (fact 86).
void child_keeper::judge_stop(self& me, const supervised& c, pid who, const stopped_process& s) {
  using kind = exit_reason::kind;
  const bool permanent = c.restart == restart::permanent;
  const bool brutal = c.shutdown.is_brutal();
  bool expected = false;
  switch (s.reason.what()) {
    case kind::shutdown: expected = (s.reason.text().empty() && !brutal) || !permanent; break;
    case kind::normal: expected = !permanent; break;
    case kind::killed: expected = brutal; break;
    default: break;
  }
  if (s.abandoned) {
    tell(me, log_level::error, supervisor_event::kind::abandoned, c.id, who, s.reason, [&] {
      return "child '" + c.id + "' is stuck in code that does not come back, even when killed: it was abandoned";
    });
    return;
  }
  tell(me, expected ? log_level::info : log_level::error, supervisor_event::kind::stopped, c.id, who, s.reason, [&] {
    return "child '" + c.id + "' " + (expected ? "stopped: " : "did not stop as told: ") + s.reason.to_string();
  });
}

// ---- its end

void child_keeper::saw(const exited& x) {
  if (x.linked && by_pid_.find(x.from) != nullptr) early_.insert(x.from, x.reason);
}

supervised* child_keeper::take_dead(self& me, const exited& x) {
  supervised** known = x.linked ? by_pid_.find(x.from) : nullptr;
  if (known == nullptr || me.alive(x.from)) return nullptr;  // nobody of ours, or somebody only says so
  supervised* c = *known;
  by_pid_.erase(x.from);
  early_.erase(x.from);
  c->who = {};
  c->state = child_state::undefined;
  return c;
}

bool child_keeper::dies_and_may_restart(self& me, supervised& c, const exited& x) {
  const time_point now = me.now();
  const std::chrono::nanoseconds uptime = now - c.since;
  if (c.backoff() != nullptr && uptime >= c.backoff()->reset_after) c.failures = 0;
  c.history.add({now, uptime, x.reason, exit_action::restarted, x.from});
  tell(me, x.reason.abnormal() ? log_level::error : log_level::warning, supervisor_event::kind::exited, c.id, x.from,
       x.reason, [&] { return "child '" + c.id + "' ended: " + x.reason.to_string(); });
  return may_restart(me, c, now);
}

void child_keeper::stays_down(self& me, supervised& c, const exited& x) {
  const bool temporary = c.restart == restart::temporary;
  const time_point now = me.now();
  c.history.add({now, now - c.since, x.reason, temporary ? exit_action::forgotten : exit_action::kept, x.from});
  tell(me, x.reason.abnormal() ? log_level::error : log_level::info, supervisor_event::kind::exited, c.id, x.from,
       x.reason, [&] { return "child '" + c.id + "' ended and is not restarted: " + x.reason.to_string(); });
}

bool child_keeper::may_restart(self& me, supervised& c, time_point now) {
  if (window_.add(now, limit_)) {
    ++c.restarts;
    return true;
  }
  const std::string because = "more than " + std::to_string(limit_.restarts) +
                              (limit_.restarts == 1 ? " restart within " : " restarts within ") +
                              to_string(limit_.within);
  c.state = child_state::undefined;
  amend_record(c, {exit_action::gave_up, because});
  const std::string text = "the supervisor gives up: " + because + "; the last was for child '" + c.id + "'";
  tell(me, log_level::error, supervisor_event::kind::gave_up, c.id, {}, c.last_reason(),
       [&]() -> const std::string& { return text; });
  me.publish(supervisor_ended{
      .who = me.id(), .why = supervisor_ended::cause::gave_up, .child = c.id, .reason = c.last_reason(), .text = text});
  me.stop(exit_reason::shutdown());
  return false;
}

void child_keeper::start_has_failed(self& me, supervised& c, const error& why) {
  c.state = child_state::restarting;
  const time_point now = me.now();
  c.history.add({now, {}, exit_reason::error(why.to_string()), {exit_action::retried, "it could not be started"}, {}});
  tell(me, log_level::error, supervisor_event::kind::start_failed, c.id, {}, c.last_reason(),
       [&] { return "child '" + c.id + "' could not be started again: " + why.to_string(); });
  if (c.backoff() != nullptr) {
    if (may_restart(me, c, now)) delay_restart(me, c);
    return;
  }
  // Behind what waits already, so that calls and an order to stop are heard between two attempts.
  retrying_.insert(c.number, &c);
  me.send(me.id(), retry_start{c.number});
}

// ---- waiting for a restart

void child_keeper::delay_restart(self& me, supervised& c) {
  const coppice::backoff& how = *c.backoff();
  ++c.failures;
  const std::chrono::nanoseconds wait =
      how.jitter > 0 ? how.wait_after(c.failures, me.random()) : how.wait_after(c.failures);
  c.state = child_state::restarting;
  c.wait = me.start_timer(wait);
  waiting_.insert(c.wait.value(), &c);
  amend_record(c, {exit_action::delayed, "backoff of " + to_string(wait)});
  tell(me, log_level::warning, supervisor_event::kind::delayed, c.id, {}, c.last_reason(),
       [&] { return "child '" + c.id + "' is restarted in " + to_string(wait); });
}

void child_keeper::cancel_wait(self& me, supervised& c) {
  if (!c.wait) return;
  me.cancel(c.wait);
  waiting_.erase(c.wait.value());
  c.wait = {};
}

supervised* child_keeper::take_waiting(timer_ref wait) {
  supervised** known = waiting_.find(wait.value());
  if (known == nullptr) return nullptr;
  supervised* c = *known;
  waiting_.erase(wait.value());
  c->wait = {};
  return c;
}

supervised* child_keeper::to_retry(std::uint64_t number) {
  supervised** known = retrying_.find(number);
  return known != nullptr && (*known)->state == child_state::restarting && !(*known)->wait ? *known : nullptr;
}

void child_keeper::drop(supervised& c) { retrying_.erase(c.number); }

}  // namespace coppice::detail
