#include "internal/child_stopping.hpp"

#include <algorithm>

#include "internal/child_processes.hpp"
#include "internal/fault_handling.hpp"
#include "internal/life_cycle.hpp"

namespace coppice::detail {

namespace {
/// The sum, at most `no_timeout`, which means that there is no limit.
std::chrono::nanoseconds sum_of(std::chrono::nanoseconds a, std::chrono::nanoseconds b) {
  return a < no_timeout - b ? a + b : no_timeout;
}

/// Added to the time that is reported to the parent. One report then covers all children that begin to wait within this
/// time of each other, so that a thousand of them do not send a thousand reports up the tree.
constexpr std::chrono::milliseconds notice_spacing{10};
}  // namespace

// ---- the steps of a stop

void child_stopping::stop(child_record& c, const exit_reason& reason) {
  const bool was_stopping = std::exchange(c.stopping, true);
  c.start_again = false;
  if (c.spec) {
    if (was_stopping) return;
    if (c.failure_is_open) return remove(c.who);  // a process that has failed has ended
    return begin(c, reason);
  }
  if (c.stop_steps.taken())  // it was asked before, and only reports again how long its own children may take
    return signal_to(c.who, signals::stop{reason});
  begin(c, reason);
}

void child_stopping::drain(child_record& c, const exit_reason& reason) {
  // A child that would not take a poison pill is stopped instead.
  if (c.spec || c.failure_is_open || c.suspended_for || c.stopping) return stop(c, reason);
  c.stopping = true;
  host().send(c.who, signal::message, make_letter<poison_pill>(plain<poison_pill>));
}

void child_stopping::begin(child_record& c, const exit_reason& reason) {
  const stop_rung step = c.stop_steps.next(limits_of(c));
  if (step.what == stop_step::ask && !c.spec) {
    log_step(host(), step.what, target(c), std::nullopt);
    signal_to(c.who, signals::stop{reason});
  } else {
    carry_out(host(), step.what, target(c), std::nullopt);
  }
  wait(c, step.wait);
}

void child_stopping::on(const signals::child_stop_overdue& s) {
  child_record* c = me_.find_child(s.child);
  if (c == nullptr || c->stop_wait != s.wait) return;  // it has ended, or its limit was changed meanwhile
  const stop_rung step = c->stop_steps.next(limits_of(*c));
  carry_out(host(), step.what, target(*c), c->stop_limit);
  wait(*c, step.wait);
}

void child_stopping::wait(child_record& c, std::chrono::nanoseconds limit) {
  host().disarm(c.stop_timer);
  c.stop_wait = 0;
  c.stop_limit = limit;
  if (limit == no_timeout) return;
  c.stop_wait = me_.next_number();
  c.stop_timer =
      arm_signal(host(), me_.id(), limit, {signals::child_stop_overdue{.child = c.who, .wait = c.stop_wait}});
}

void child_stopping::on(const signals::child_waits_for_children& s) {
  child_record* c = me_.find_child(s.child);
  if (c == nullptr || c->stop_steps.taken() != stop_step::ask) return;
  wait(*c, sum_of(limits_of(*c).how.time(), s.at_most));
  const std::chrono::nanoseconds longest = longest_end(*c);
  const std::optional<time_point>& told = me_.parts().children_end_by;
  if (!told || *told < host().time_after(longest)) tell_parent(longest);
}

std::chrono::nanoseconds child_stopping::longest_end(const child_record& c) const {
  return sum_of(c.stop_limit, me_.settings->abandon_after);
}

void child_stopping::tell_parent() {
  std::chrono::nanoseconds longest{0};
  for (const auto& [who, c] : me_.parts().children) longest = std::max(longest, longest_end(c));
  tell_parent(longest);
}

void child_stopping::tell_parent(std::chrono::nanoseconds longest) {
  if (me_.state() != life::stopping || me_.failures != decided_by::parent) return;
  const std::chrono::nanoseconds at_most = sum_of(longest, notice_spacing);
  me_.parts().children_end_by = host().time_after(at_most);
  signal_to(me_.parent, signals::child_waits_for_children{.child = me_.id(), .at_most = at_most});
}

void child_stopping::on(const signals::child_is_ending& s) {
  child_record* c = me_.find_child(s.child);
  if (c != nullptr && c->stop_steps.taken() == stop_step::ask) wait(*c, limits_of(*c).how.time());
}

stop_limits child_stopping::limits_of(const child_record& c) const {
  return {.how = c.shutdown, .abandon_after = me_.settings->abandon_after};
}

stop_target child_stopping::target(const child_record& c) const {
  return {.by = me_.id(), .who = c.who, .what = "child", .name = c.name};
}

// ---- which children

void child_stopping::stop_all(const exit_reason& reason, bool drain_first) {
  if (!me_.rare) return;
  auto all = me_.rare->children.in_order();
  std::ranges::reverse(all);
  std::vector<pid> who;
  for (const child_record* c : all) who.push_back(c->who);
  for (const pid each : who) {
    child_record* c = me_.find_child(each);
    if (c == nullptr) continue;  // a process that waited for its restart is removed at once
    if (drain_first)
      drain(*c, reason);
    else
      stop(*c, reason);
  }
}

void child_stopping::on(const signals::stop_child_process& s) {
  if (child_record* c = me_.parts().children.find_place(s.place)) stop(*c, s.reason);
}

// ---- the end of a child

void child_stopping::child_ended(const exited& end) {
  const pid who = end.from;
  child_record* c = me_.find_child(who);
  if (c == nullptr) return;
  host().disarm(c->stop_timer);
  if (c->spec) host().disarm(c->restart_timer);
  if (c->start_again && me_.is_active()) return child_processes{me_, t_}.start_again(*c);
  if (c->spec && !c->stopping && is_failure(*c->spec, end.reason) && me_.is_active())
    return fault_handling{me_, t_}.on(signals::child_failed{
        .child = who, .instance = c->instance, .has_instance = false, .reason = end.reason, .logged = end.reported});
  remove(who);
}

void child_stopping::remove(pid who) {
  me_.parts().children.remove(who);
  if (me_.escalated_child == who) me_.escalated_child = {};
  if (!me_.has_children()) life_cycle{me_, t_}.children_done();
}

}  // namespace coppice::detail
