// What a supervisor answers (reference facts 93-99).
#include "internal/supervised_children.hpp"

namespace coppice::detail {

task<result<pid>> supervised_children::start_child(self& me, child_spec spec) {
  if (auto sensible = check(spec, auto_shutdown_); !sensible) co_return std::unexpected{sensible.error()};
  if (const auto known = find(spec.id)) {
    if ((*known)->state == child_state::running)
      co_return fail(errc::already_started, "child '" + spec.id + "' runs as " + to_string((*known)->who));
    co_return fail(errc::already_present, "child '" + spec.id + "' is there, and down; restart_child starts it");
  }
  clear_gaps();
  supervised& c = add(std::move(spec));
  const std::uint64_t number = c.number;
  const std::size_t place = c.place;
  start_result started = co_await start_one(me, c);
  std::optional<error> failed = has_started(me, c, std::move(started), me.now());
  if (failed) {
    error whole = not_started(c.id, std::move(*failed));
    forget(c);
    co_return std::unexpected{std::move(whole)};
  }
  const auto& still = order_[place];  // unless it was temporary and had nothing to do
  co_return still && still->number == number ? still->who : pid{};
}

task<result<void>> supervised_children::terminate_child(self& me, std::string id) {
  const auto known = find(id);
  if (!known) co_return std::unexpected{known.error()};
  supervised& c = **known;
  const exit_decision asked{exit_action::stopped, "terminate_child was called"};
  co_await stop_one(me, c, asked);
  if (c.restart == restart::temporary) forget(c);
  co_return result<void>{};
}

namespace {
/// For what can only be done with a child that is down.
result<supervised*> must_be_down(result<supervised*> known) {
  if (!known) return known;
  const supervised& c = **known;
  if (c.state == child_state::running) return fail(errc::running, "child '" + c.id + "' runs as " + to_string(c.who));
  if (c.state == child_state::restarting) return fail(errc::restarting, "child '" + c.id + "' is being restarted");
  return known;
}
}  // namespace

task<result<pid>> supervised_children::restart_child(self& me, std::string id) {
  const auto known = must_be_down(find(id));
  if (!known) co_return std::unexpected{known.error()};
  supervised& c = **known;
  start_result started = co_await start_one(me, c);
  const pid* who = std::get_if<pid>(&started);
  const pid running = who != nullptr ? *who : pid{};
  std::optional<error> failed = has_started(me, c, std::move(started), me.now());
  if (failed) co_return std::unexpected{not_started(c.id, std::move(*failed))};
  co_return running;
}

result<void> supervised_children::delete_child(const std::string& id) {
  const auto known = must_be_down(find(id));
  if (!known) return std::unexpected{known.error()};
  forget(**known);
  return {};
}

task<result<void>> supervised_children::retry_now(self& me, std::string id) {
  const auto known = find(id);
  if (!known) co_return std::unexpected{known.error()};
  supervised& c = **known;
  if (!c.wait) co_return fail(errc::invalid, "child '" + id + "' does not wait for a restart");
  cancel_wait(me, c);
  co_await restart_now(me, c);
  co_return result<void>{};
}

/// Fact 99: what runs stays, and nothing is started.
result<void> supervised_children::upgrade(supervisor_spec spec) {
  if (auto sensible = check(spec); !sensible) return sensible;
  for (child_spec& changed : std::exchange(spec.children, {})) {
    const auto known = find(changed.id);
    if (!known) {
      add(std::move(changed));
      continue;
    }
    supervised& c = **known;
    by_id_.erase(c.id);  // its key lies in the child
    c.become(std::move(changed));
    by_id_.emplace(c.id, &c);
  }
  strategy_ = spec.strategy;
  auto_shutdown_ = spec.auto_shutdown;
  limit_ = spec.limit;
  abandon_after_ = spec.abandon_after;
  return {};
}

child_counts supervised_children::count(self& me) const {
  child_counts n;
  for (const auto& c : order_) {
    if (!c) continue;
    ++n.specs;
    if (c->state == child_state::running && me.alive(c->who)) ++n.active;
    ++(c->type == child_type::supervisor ? n.supervisors : n.workers);
  }
  return n;
}

std::vector<child_info> supervised_children::list(self& me) const {
  std::vector<child_info> all;
  all.reserve(order_.size() - gaps_);
  for (const auto& c : order_)
    if (c) all.push_back(c->info(me));
  return all;
}

}  // namespace coppice::detail
