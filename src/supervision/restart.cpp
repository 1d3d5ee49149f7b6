// From the exit of a child to the start of its successor, from top to bottom. Apart from backoffs, the rules are those
// of OTP's supervisor; the scenarios in conformance/ compare the two.
#include <algorithm>

#include "internal/children.hpp"
#include "internal/restart_counters.hpp"

namespace coppice::detail {

// ---- 1. A child has ended. Its restart type decides whether it is restarted.

task<void> children::handle_exit(self& me, exited x) {
  supervised* ended = running_.take_ended(me, x);
  if (ended == nullptr) co_return;
  supervised& c = *ended;
  list_.clear_gaps();
  if (decide(c.spec.restart, x.reason) != after_exit::restart) {
    stays_down(me, c, x);
    co_return;
  }
  if (rules_.dynamic) by_last_pid_.insert(c.who, &c);
  const time_point now = me.now();
  record_exit(me, c, x, now);
  const next_restart next = ask_for_restart(me, c, now, now - c.since, c.spec.backoff.get());
  if (!next.allowed) co_return;
  if (!c.spec.backoff) {
    (void)co_await restart(me, c);
    co_return;
  }
  delay(me, c, next.wait);
  const restart_range group = group_of(c);
  if (group.size() > 1) co_await stop_group(me, group, c);
}

// ---- 2. The child is not restarted: it is temporary, or transient and its end was not abnormal.

void children::stays_down(self& me, supervised& c, const exited& x) {
  const time_point now = me.now();
  c.history.add({now, now - c.since, x.reason, c.temporary() ? exit_action::forgotten : exit_action::kept, x.from});
  report(me,
         {x.reason.abnormal() && !x.reported ? log_level::error : log_level::info, supervisor_event::kind::exited,
          c.id(), x.from, x.reason},
         [&] { return "child '" + c.id() + "' ended and is not restarted: " + x.reason.to_string(); });
  const bool significant = c.spec.significant;
  const std::string id = c.id();
  if (!kept_while_down(c)) remove(me, c);
  if (significant) shut_down_if_done(me, id, x.reason);
}

void children::shut_down_if_done(self& me, const std::string& id, const exit_reason& why) {
  if (rules_.auto_shutdown == auto_shutdown::never) return;
  const auto holds_up = [](const supervised& c) { return c.spec.significant && c.state != child_state::undefined; };
  if (rules_.auto_shutdown == auto_shutdown::all_significant && list_.any_of(holds_up)) return;
  const std::string text = "the supervisor ends because its significant child '" + id + "' has ended";
  report(me, {log_level::info, supervisor_event::kind::shut_down, id, {}, {}},
         [&]() -> const std::string& { return text; });
  me.publish(
      supervisor_ended{.who = me.id(), .why = supervisor_ended::cause::done, .child = id, .reason = why, .text = text});
  me.stop(exit_reason::shutdown());
}

// ---- 3. The child is to be restarted. After too many restarts the supervisor gives up instead.

void children::record_exit(self& me, supervised& c, const exited& x, time_point now) {
  c.history.add({now, now - c.since, x.reason, exit_action::restarted, x.from});
  report(me,
         {x.reported            ? log_level::info
          : x.reason.abnormal() ? log_level::error
                                : log_level::warning,
          supervisor_event::kind::exited, c.id(), x.from, x.reason},
         [&] { return "child '" + c.id() + "' ended: " + x.reason.to_string(); });
}

next_restart children::ask_for_restart(self& me, supervised& c, time_point now,
                                       std::optional<std::chrono::nanoseconds> uptime, const backoff* wait) {
  const next_restart next =
      limit_then_back_off({rules_.limit, wait}, window_, c.failures, now, uptime, me.host().env().random());
  if (next.allowed)
    ++c.restarts;
  else
    give_up(me, c);
  return next;
}

void children::give_up(self& me, supervised& c) {
  const std::string because = "more than " + std::to_string(rules_.limit.restarts) +
                              (rules_.limit.restarts == 1 ? " restart within " : " restarts within ") +
                              to_string(rules_.limit.within);
  c.state = child_state::undefined;
  c.history.newest().did = {exit_action::gave_up, because};
  const std::string text = "the supervisor gives up: " + because + "; the last was for child '" + c.id() + "'";
  report(me, {log_level::error, supervisor_event::kind::gave_up, c.id(), {}, c.last_reason()},
         [&]() -> const std::string& { return text; });
  counters(me).gave_up.add();
  me.publish(supervisor_ended{.who = me.id(),
                              .why = supervisor_ended::cause::gave_up,
                              .child = c.id(),
                              .reason = c.last_reason(),
                              .text = text});
  me.stop(exit_reason::shutdown());
}

// ---- 4. A child with a backoff waits before the restart. Its group does not run without it: the other children of the
// group are stopped now and wait for it. They are started together with it, even if an upgrade changes the strategy
// meanwhile.

void children::delay(self& me, supervised& c, std::chrono::nanoseconds wait) {
  pending_.add_timer(me, c, wait);
  c.history.newest().did = {exit_action::delayed, "backoff of " + to_string(wait)};
  report(me, {log_level::warning, supervisor_event::kind::delayed, c.id(), {}, c.last_reason()},
         [&] { return "child '" + c.id() + "' is restarted in " + to_string(wait); });
}

task<void> children::handle_backoff_over(self& me, timer_ref wait) {
  supervised* c = pending_.take_timer(wait);
  if (c != nullptr) (void)co_await restart(me, *c);
}

// ---- 5. The restart. The strategy decides which group is restarted: the child alone, all children, or the child and
// those behind it. The others are stopped in reverse order, then the whole group is started in order.

task<result<void>> children::restart(self& me, supervised& c) {
  ensure(!c.running(), "a running child was to be restarted");
  // From here on the child has no pending restart of its own: if a sibling before it fails to start, the next attempt
  // for that sibling starts this child, too.
  c.state = child_state::undefined;
  const restart_range group = group_of(c);
  ensure(group.contains(c.place), "the group to restart does not contain the child that ended");
  const bool alone = group.size() == 1 && pending_.followers() == 0;
  return alone ? restart_alone(me, c) : restart_group(me, group, c);
}

/// The common case, without a list of siblings.
task<result<void>> children::restart_alone(self& me, supervised& c) {
  start_result started = co_await launch(me, c);
  co_return note_restart(me, c, std::move(started), me.now());
}

task<result<void>> children::restart_group(self& me, restart_range group, supervised& c) {
  co_await stop_group(me, group, c);
  result<void> started = co_await start_due(me, take_due(me, group, c));
  co_return started;
}

/// Stops the other children of the group. Children that wait for one of the group wait for `c` from now on, also those
/// outside the group, which exist only after an upgrade to another strategy.
task<void> children::stop_group(self& me, restart_range group, supervised& c) {
  if (pending_.followers() > 0)
    list_.for_each([&](supervised& each) {
      if (each.waits_for != nullptr && group.contains(each.waits_for->place)) each.waits_for = &c;
    });
  return stop_range(me, group, &c);
}

/// Stops the children in the range, the last one first, except `on_behalf_of`, and removes temporary ones. If
/// `on_behalf_of` waits for its backoff, children that were running or had a pending restart wait for it. It is null
/// when the supervisor ends.
task<void> children::stop_range(self& me, restart_range range, supervised* on_behalf_of) {
  std::optional<exit_decision> why;
  if (on_behalf_of != nullptr)
    why = exit_decision{exit_action::stopped, "restarted together with '" + on_behalf_of->id() + "'"};
  time_point now = me.now();
  std::size_t stopped_at_once = 0;
  for (std::size_t i = range.last; i-- > range.first;) {
    if (list_.at(i) == nullptr || list_.at(i) == on_behalf_of) continue;
    supervised& c = *list_.at(i);
    const bool was_down = c.state == child_state::undefined;
    const pid who = mark_down(me, c);
    if (who) {
      std::optional<stopped_process> stopped = stop_if_idle(me, who, c);
      if (!stopped)
        stopped = co_await stop_process(me, who, c.spec, rules_.abandon_after, running_);
      else if (++stopped_at_once % stops_per_turn == 0)
        co_await me.yield();
      now = about_now(me, now);
      note_stop(me, c, who, std::move(*stopped), now, why);
    }
    if (c.temporary())
      remove(me, c);
    else if (!was_down && on_behalf_of != nullptr && on_behalf_of->wait)
      pending_.add_follower(c, *on_behalf_of);
  }
}

/// Returns, in order, the children of the group, all of which are down, and the children that wait for `c`. Cancels
/// their pending restarts: the caller starts them.
std::vector<supervised*> children::take_due(self& me, restart_range group, const supervised& c) {
  std::vector<supervised*> due;
  const restart_range all = pending_.followers() > 0 ? restart_range{0, list_.places()} : group;
  for (std::size_t i = all.first; i < all.last; ++i) {
    supervised* each = list_.at(i);
    if (each == nullptr || (!group.contains(i) && each->waits_for != &c)) continue;
    (void)mark_down(me, *each);
    due.push_back(each);
  }
  return due;
}

/// Starts these children up to the first one that fails. Another attempt for that one follows; the children behind it
/// stay down until then, and wait for it if it has a backoff. Returns the first failure.
task<result<void>> children::start_due(self& me, std::vector<supervised*> due) {
  result<void> outcome;
  time_point now = time_point::min();
  for (auto next = due.begin(); next != due.end(); ++next) {
    supervised& c = **next;
    start_result started = co_await launch(me, c);
    now = about_now(me, now);
    result<void> up = note_restart(me, c, std::move(started), now);
    if (up) continue;
    if (outcome) outcome = std::move(up);
    const bool gave_up = c.state != child_state::restarting;
    // With one_for_one the other children do not depend on this one. They are here because they waited for a sibling
    // before an upgrade to one_for_one.
    if (rules_.strategy == strategy::one_for_one && !gave_up) continue;
    if (c.wait) std::for_each(next + 1, due.end(), [&](supervised* each) { pending_.add_follower(*each, c); });
    break;
  }
  co_return outcome;
}

const restart_counters& children::counters(self& me) {
  if (counters_ == nullptr) counters_ = &metrics_of(me).of<restart_counters>();
  return *counters_;
}

result<void> children::note_restart(self& me, supervised& c, start_result started, time_point now) {
  const result<pid> up = note_start(me, c, std::move(started), now);
  if (up) {
    // Without a history it has never run, and is started together with a sibling.
    if (*up && !c.history.empty()) counters(me).restarts(rules_.strategy, c.last_reason().what()).add();
    return {};
  }
  start_failed(me, c, up.error());
  return std::unexpected{not_started(c.id(), up.error())};
}

// ---- 6. A start has failed. Another attempt, which counts as a restart, follows after the backoff, or, without one,
// after the mail that is in the mailbox now.

void children::start_failed(self& me, supervised& c, const error& why) {
  const time_point now = me.now();
  c.history.add({now, {}, exit_reason::error(why.to_string()), {exit_action::retried, "it could not be started"}, {}});
  report(me, {level_of_failed_start(c.spec, why), supervisor_event::kind::start_failed, c.id(), {}, c.last_reason()},
         [&] { return "child '" + c.id() + "' could not be started again: " + why.to_string(); });
  if (!c.spec.backoff) {
    pending_.add_retry(me, c);
    return;
  }
  const next_restart next = ask_for_restart(me, c, now, std::nullopt, c.spec.backoff.get());
  if (next.allowed) delay(me, c, next.wait);
}

task<void> children::handle_retry(self& me, std::uint64_t number) {
  supervised* c = pending_.take_retry(number);
  if (c == nullptr) co_return;
  const next_restart next = ask_for_restart(me, *c, me.now(), std::nullopt, nullptr);
  if (next.allowed) (void)co_await restart(me, *c);
}

}  // namespace coppice::detail
