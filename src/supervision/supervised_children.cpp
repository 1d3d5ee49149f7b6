// What a supervisor does when a child ends (reference facts 44-92, 108-111).
#include "internal/supervised_children.hpp"

#include <coppice/runtime/detail/event_stream.hpp>

namespace coppice::detail {

// ---- telling

template <class Text>
void supervised_children::tell(self& me, log_level level, supervisor_event::kind what, const std::string& child,
                               pid who, const exit_reason& why, Text&& text) {
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

void supervised_children::record(self& me, supervised& c, pid who, const exit_reason& why,
                                 std::chrono::nanoseconds uptime, cause did) {
  constexpr std::size_t most = 50;
  c.last_reason = why;
  c.ended_before = true;
  if (!c.history) c.history = std::make_unique<std::deque<exit_record>>();
  if (c.history->size() == most) c.history->pop_front();
  c.history->push_back({.at = me.host().env().clock().wall(),
                        .uptime = uptime,
                        .who = who,
                        .reason = why,
                        .action = did.action,
                        .because = std::move(did.because)});
}

// ---- the list

supervised_children::supervised_children(supervisor_spec spec) : flags_{std::move(spec)} {
  order_.reserve(flags_.children.size());
  for (child_spec& c : std::exchange(flags_.children, {})) add(std::move(c));
}

supervised& supervised_children::add(child_spec spec) {
  auto made = std::make_unique<supervised>(++numbers_, std::move(spec));
  supervised& c = *made;
  c.place = order_.size();
  order_.push_back(std::move(made));
  if (indexed_) by_id_.emplace(c.id, &c);
  return c;
}

void supervised_children::forget(supervised& c) {
  if (indexed_) by_id_.erase(c.id);
  retrying_.erase(c.number);
  ++gaps_;
  order_[c.place].reset();
}

/// Between two orders only: whoever walks through the list relies on the places.
void supervised_children::clear_gaps() {
  if (gaps_ * 2 <= order_.size()) return;
  std::erase(order_, nullptr);
  gaps_ = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i]->place = i;
}

result<supervised*> supervised_children::find(std::string_view id) {
  if (!indexed_) {
    by_id_.reserve(order_.size());
    for (const auto& c : order_)
      if (c) by_id_.emplace(c->id, c.get());
    indexed_ = true;
  }
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return fail(errc::not_found, "there is no child '" + std::string{id} + "'");
  return found->second;
}

void supervised_children::saw(const exited& x) {
  if (x.linked && by_pid_.find(x.from) != nullptr) early_.insert(x.from, x.reason);
}

// ---- starting and stopping one

task<std::optional<error>> supervised_children::start_one(self& me, supervised& c) {
  start_result started = co_await start_process(me, c.order(), *this);
  if (error* why = std::get_if<error>(&started)) co_return std::move(*why);
  if (const pid* who = std::get_if<pid>(&started)) {
    c.state = child_state::running;
    c.who = *who;
    c.since = me.now();
    by_pid_.insert(c.who, &c);
    if (c.restart == restart::temporary) c.start = {};
    tell(me, log_level::info, supervisor_event::kind::started, c.id, c.who, {},
         [&] { return "child '" + c.id + "' started"; });
    co_return std::nullopt;
  }
  c.state = child_state::undefined;
  c.who = {};
  if (c.restart == restart::temporary) forget(c);
  co_return std::nullopt;
}

void supervised_children::cancel_wait(self& me, supervised& c) {
  if (!c.wait) return;
  me.cancel(c.wait);
  waiting_.erase(c.wait.value());
  c.wait = {};
}

task<void> supervised_children::stop_one(self& me, supervised& c, std::string because) {
  cancel_wait(me, c);
  const child_state was = std::exchange(c.state, child_state::undefined);
  if (was != child_state::running) co_return;
  const pid who = std::exchange(c.who, pid{});
  stopped_process stopped = co_await stop_process(me, who, c.shutdown_or_default(), flags_.abandon_after, *this);
  by_pid_.erase(who);
  if (const exit_reason* early = early_.find(who)) {
    if (stopped.reason.what() == exit_reason::kind::noproc) stopped.reason = *early;
    early_.erase(who);
  }
  judge_stop(me, c, who, stopped);
  record(me, c, who, stopped.reason, me.now() - c.since, {exit_action::stopped, std::move(because)});
}

/// What is worth a line: a child that did not end as it was told to (fact 86).
void supervised_children::judge_stop(self& me, supervised& c, pid who, const stopped_process& s) {
  using kind = exit_reason::kind;
  const bool permanent = c.restart == restart::permanent;
  const bool brutal = c.shutdown_or_default().is_brutal();
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

// ---- all of them

task<result<void>> supervised_children::start_all(self& me) {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    supervised& c = *order_[i];
    std::optional<error> failed = co_await start_one(me, c);
    if (!failed) continue;
    const std::string what = "child '" + c.id + "' could not be started";
    tell(me, log_level::error, supervisor_event::kind::start_failed, c.id, {}, {},
         [&] { return what + ": " + failed->to_string(); });
    co_await stop_all(me);
    co_return std::unexpected{error{errc::start_failed, what, std::move(*failed)}};
  }
  co_return result<void>{};
}

task<void> supervised_children::stop_all(self& me) {
  for (std::size_t i = order_.size(); i-- > 0;)
    if (order_[i]) co_await stop_one(me, *order_[i], "the supervisor ends");
}

/// In reverse order; the temporary ones among them are forgotten (fact 56).
task<void> supervised_children::stop_range(self& me, std::size_t first, const supervised& on_behalf_of) {
  for (std::size_t i = order_.size(); i-- > first;) {
    if (!order_[i] || order_[i].get() == &on_behalf_of) continue;
    supervised& c = *order_[i];
    co_await stop_one(me, c, "restarted together with '" + on_behalf_of.id + "'");
    if (c.restart == restart::temporary) forget(c);
  }
}

/// Up to the first that fails: that one is tried again, and what comes after it stays down until then (facts 76, 77).
task<void> supervised_children::start_range(self& me, std::size_t first) {
  for (std::size_t i = first; i < order_.size(); ++i) {
    if (!order_[i]) continue;
    supervised& c = *order_[i];
    const std::optional<error> failed = co_await start_one(me, c);
    if (!failed) continue;
    start_has_failed(me, c, *failed);
    co_return;
  }
}

// ---- a child has ended

task<void> supervised_children::child_exited(self& me, exited x) {
  supervised** known = x.linked ? by_pid_.find(x.from) : nullptr;
  if (known == nullptr || me.alive(x.from)) co_return;  // nobody of ours, or somebody only says so
  supervised& c = **known;
  by_pid_.erase(x.from);
  early_.erase(x.from);
  c.who = {};
  c.state = child_state::undefined;
  clear_gaps();
  const std::chrono::nanoseconds uptime = me.now() - c.since;
  if (decide(c.restart, x.reason) != after_exit::restart) {
    stays_down(me, c, x.reason, uptime);
    co_return;
  }
  if (c.backoff() != nullptr && uptime >= c.backoff()->reset_after) c.failures = 0;
  record(me, c, x.from, x.reason, uptime, {exit_action::restarted, {}});
  tell(me, x.reason.abnormal() ? log_level::error : log_level::warning, supervisor_event::kind::exited, c.id, x.from,
       x.reason, [&] { return "child '" + c.id + "' ended: " + x.reason.to_string(); });
  co_await try_restart(me, c, false);
}

void supervised_children::stays_down(self& me, supervised& c, const exit_reason& why, std::chrono::nanoseconds uptime) {
  const bool temporary = c.restart == restart::temporary;
  record(me, c, {}, why, uptime, {temporary ? exit_action::forgotten : exit_action::kept, {}});
  tell(me, why.abnormal() ? log_level::error : log_level::info, supervisor_event::kind::exited, c.id, {}, why,
       [&] { return "child '" + c.id + "' ended and is not restarted: " + why.to_string(); });
  const bool significant = c.significant;
  const std::string id = c.id;
  if (temporary) forget(c);
  if (significant) shut_down_if_done(me, id);
}

void supervised_children::shut_down_if_done(self& me, const std::string& id) {
  if (flags_.auto_shutdown == auto_shutdown::never) return;
  if (flags_.auto_shutdown == auto_shutdown::all_significant)
    for (const auto& c : order_)
      if (c && c->significant && c->state != child_state::undefined) return;
  tell(me, log_level::info, supervisor_event::kind::shut_down, id, {}, {},
       [&] { return "the supervisor ends, because its significant child '" + id + "' has"; });
  me.stop(exit_reason::shutdown());
}

bool supervised_children::may_restart(self& me, supervised& c) {
  if (window_.add(me.now(), flags_.limit)) {
    ++c.restarts;
    return true;
  }
  const std::string because =
      "more than " + std::to_string(flags_.limit.restarts) + " restarts within " + to_string(flags_.limit.within);
  c.state = child_state::undefined;
  if (c.history && !c.history->empty()) {
    c.history->back().action = exit_action::gave_up;
    c.history->back().because = because;
  }
  tell(me, log_level::error, supervisor_event::kind::gave_up, c.id, {}, c.last_reason,
       [&] { return "the supervisor gives up: " + because + "; the last was for child '" + c.id + "'"; });
  me.stop(exit_reason::shutdown());
  return false;
}

std::size_t supervised_children::first_to_restart(const supervised& c) const noexcept {
  return flags_.strategy == strategy::one_for_all ? 0 : c.place;
}

task<void> supervised_children::try_restart(self& me, supervised& c, bool after_failed_start) {
  if (!may_restart(me, c)) co_return;
  if (c.backoff() == nullptr || after_failed_start) {
    co_await restart_now(me, c);
    co_return;
  }
  // Those that depend on it do not wait for it to come back: they stop now and are started with it.
  delay_restart(me, c);
  if (flags_.strategy != strategy::one_for_one) co_await stop_range(me, first_to_restart(c), c);
}

void supervised_children::delay_restart(self& me, supervised& c) {
  const coppice::backoff& how = *c.backoff();
  const std::chrono::nanoseconds wait = how.wait_after(++c.failures, how.jitter > 0 ? me.random() : 1ULL << 63U);
  c.state = child_state::restarting;
  c.wait = me.start_timer(wait);
  waiting_.insert(c.wait.value(), &c);
  if (c.history && !c.history->empty()) {
    c.history->back().action = exit_action::delayed;
    c.history->back().because = "backoff of " + to_string(wait);
  }
  tell(me, log_level::warning, supervisor_event::kind::delayed, c.id, {}, c.last_reason,
       [&] { return "child '" + c.id + "' is restarted in " + to_string(wait); });
}

task<void> supervised_children::restart_now(self& me, supervised& c) {
  if (flags_.strategy == strategy::one_for_one) {
    const std::optional<error> failed = co_await start_one(me, c);
    if (failed) {
      start_has_failed(me, c, *failed);
      co_return;
    }
    if (c.state != child_state::running) co_return;
    tell(me, log_level::info, supervisor_event::kind::restarted, c.id, c.who, {},
         [&] { return "child '" + c.id + "' was restarted"; });
    co_return;
  }
  const std::size_t first = first_to_restart(c);
  co_await stop_range(me, first, c);
  co_await start_range(me, first);
}

void supervised_children::start_has_failed(self& me, supervised& c, const error& why) {
  c.state = child_state::restarting;
  c.who = {};
  record(me, c, {}, exit_reason::error(why.to_string()), {}, {exit_action::retried, "it could not be started"});
  tell(me, log_level::error, supervisor_event::kind::start_failed, c.id, {}, c.last_reason,
       [&] { return "child '" + c.id + "' could not be started again: " + why.to_string(); });
  if (c.backoff() != nullptr) {
    if (may_restart(me, c)) delay_restart(me, c);
    return;
  }
  // Behind what waits already, so that calls and an order to stop are heard between two attempts.
  retrying_.insert(c.number, &c);
  me.send(me.id(), retry_start{c.number});
}

task<void> supervised_children::retry(self& me, std::uint64_t child) {
  supervised** known = retrying_.find(child);
  if (known == nullptr || (*known)->state != child_state::restarting || (*known)->wait) co_return;
  co_await try_restart(me, **known, true);
}

task<void> supervised_children::wait_is_over(self& me, timer_ref wait) {
  supervised** known = waiting_.find(wait.value());
  if (known == nullptr) co_return;
  supervised& c = **known;
  waiting_.erase(wait.value());
  c.wait = {};
  co_await restart_now(me, c);
}

}  // namespace coppice::detail
