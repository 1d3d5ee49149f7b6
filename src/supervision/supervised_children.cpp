// What a supervisor does when a child ends (reference facts 44-92, 108-111).
#include "internal/supervised_children.hpp"

namespace coppice::detail {

// ---- the list

supervised_children::supervised_children(supervisor_spec spec)
    : child_keeper{spec.limit, spec.abandon_after}, strategy_{spec.strategy}, auto_shutdown_{spec.auto_shutdown} {
  order_.reserve(spec.children.size());
  for (child_spec& c : spec.children) add(std::move(c));
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
  drop(c);
  if (indexed_) by_id_.erase(c.id);
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

// ---- all of them

namespace {
constexpr std::size_t politeness = 64;  // children stopped at once before others have their turn

/// For uptimes: a thousand children that are started or stopped in a row need not read the exact clock a thousand
/// times. It is late by less than a tick of the coarse one, some milliseconds.
time_point about_now(self& me, time_point before) {
  clock& c = me.host().env().clock();
  return c.coarse_now() > before ? c.now() : before;
}
}  // namespace

std::optional<error> supervised_children::has_started(self& me, supervised& c, start_result started, time_point now) {
  std::optional<error> failed = child_keeper::has_started(me, c, std::move(started), now);
  if (!failed && c.state != child_state::running && c.restart == restart::temporary) forget(c);
  return failed;
}

task<result<void>> supervised_children::start_all(self& me) {
  time_point now = me.now();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    supervised& c = *order_[i];
    start_result started = co_await start_one(me, c);
    now = about_now(me, now);
    std::optional<error> failed = has_started(me, c, std::move(started), now);
    if (!failed) continue;
    error whole = not_started(c.id, std::move(*failed));
    tell(me, log_level::error, supervisor_event::kind::start_failed, c.id, {}, {}, [&] { return whole.to_string(); });
    co_await stop_all(me);
    co_return std::unexpected{std::move(whole)};
  }
  co_return result<void>{};
}

task<void> supervised_children::stop_all(self& me) { return stop_range(me, 0, nullptr); }

/// In reverse order; the temporary ones among them are forgotten (fact 56).
task<void> supervised_children::stop_range(self& me, std::size_t first, const supervised* on_behalf_of) {
  std::optional<exit_decision> why;
  if (on_behalf_of != nullptr)
    why = exit_decision{exit_action::stopped, "restarted together with '" + on_behalf_of->id + "'"};
  time_point now = me.now();
  std::size_t in_a_row = 0;
  for (std::size_t i = order_.size(); i-- > first;) {
    if (!order_[i] || order_[i].get() == on_behalf_of) continue;
    supervised& c = *order_[i];
    const pid who = leaves(me, c);
    if (who) {
      std::optional<stopped_process> stopped = stop_at_once(me, who, c.shutdown);
      if (!stopped)
        stopped = co_await stop_process(me, c, who);
      else if (++in_a_row % politeness == 0)
        co_await me.yield();
      now = about_now(me, now);
      has_stopped(me, c, who, std::move(*stopped), now, why);
    }
    if (c.restart == restart::temporary) forget(c);
  }
}

/// Up to the first that fails: that one is tried again, and what comes after it stays down until then (facts 76, 77).
task<void> supervised_children::start_range(self& me, std::size_t first) {
  time_point now = me.now();
  for (std::size_t i = first; i < order_.size(); ++i) {
    if (!order_[i]) continue;
    supervised& c = *order_[i];
    start_result started = co_await start_one(me, c);
    now = about_now(me, now);
    const std::optional<error> failed = has_started(me, c, std::move(started), now);
    if (!failed) continue;
    start_has_failed(me, c, *failed);
    co_return;
  }
}

// ---- a child has ended

task<void> supervised_children::child_exited(self& me, exited x) {
  supervised* dead = take_dead(me, x);
  if (dead == nullptr) co_return;
  supervised& c = *dead;
  clear_gaps();
  if (decide(c.restart, x.reason) != after_exit::restart) {
    stays_down(me, c, x);
    const bool significant = c.significant;
    const std::string id = c.id;
    if (c.restart == restart::temporary) forget(c);
    if (significant) shut_down_if_done(me, id, x.reason);
    co_return;
  }
  if (!dies_and_may_restart(me, c, x)) co_return;
  if (c.backoff() == nullptr) {
    co_await restart_now(me, c);
    co_return;
  }
  // Those that depend on it do not wait for it to come back: they stop now and are started with it.
  delay_restart(me, c);
  if (strategy_ != strategy::one_for_one) co_await stop_range(me, first_to_restart(c), &c);
}

void supervised_children::shut_down_if_done(self& me, const std::string& id, const exit_reason& why) {
  if (auto_shutdown_ == auto_shutdown::never) return;
  if (auto_shutdown_ == auto_shutdown::all_significant)
    for (const auto& c : order_)
      if (c && c->significant && c->state != child_state::undefined) return;
  const std::string text = "the supervisor ends, because its significant child '" + id + "' has";
  tell(me, log_level::info, supervisor_event::kind::shut_down, id, {}, {},
       [&]() -> const std::string& { return text; });
  me.publish(
      supervisor_ended{.who = me.id(), .why = supervisor_ended::cause::done, .child = id, .reason = why, .text = text});
  me.stop(exit_reason::shutdown());
}

std::size_t supervised_children::first_to_restart(const supervised& c) const noexcept {
  return strategy_ == strategy::one_for_all ? 0 : c.place;
}

task<void> supervised_children::restart_now(self& me, supervised& c) {
  if (strategy_ == strategy::one_for_one) {
    start_result started = co_await start_one(me, c);
    const std::optional<error> failed = has_started(me, c, std::move(started), me.now());
    if (failed) start_has_failed(me, c, *failed);
  } else {
    // It is down like the others: should one before it fail, the retry is that one's.
    c.state = child_state::undefined;
    const std::size_t first = first_to_restart(c);
    co_await stop_range(me, first, &c);
    co_await start_range(me, first);
  }
}

task<void> supervised_children::retry(self& me, std::uint64_t child) {
  supervised* c = to_retry(child);
  if (c == nullptr || !may_restart(me, *c, me.now())) co_return;
  co_await restart_now(me, *c);
}

task<void> supervised_children::wait_is_over(self& me, timer_ref wait) {
  supervised* c = take_waiting(wait);
  if (c != nullptr) co_await restart_now(me, *c);
}

}  // namespace coppice::detail
