// Children that come and go (reference facts 100-107, 131-141).
#include <coppice/supervision/dynamic_supervisor.hpp>

#include "internal/dynamic_children.hpp"
#include "internal/parallel_stop.hpp"

namespace coppice {

namespace detail {

task<result<pid>> dynamic_children::start_child(self& me, child_spec spec) {
  if (spec.id.empty()) spec.id = "child";
  if (auto sensible = check(spec); !sensible) co_return std::unexpected{sensible.error()};
  if (max_children_ && all_.size() >= *max_children_)
    co_return fail(errc::capacity,
                   "there are " + std::to_string(all_.size()) + " children already, the most there may be");
  const std::uint64_t number = ++numbers_;
  all_.insert(number, std::make_unique<supervised>(number, std::move(spec)));
  supervised& c = **all_.find(number);
  start_result started = co_await start_one(me, c);
  std::optional<error> failed = has_started(me, c, std::move(started), me.now());
  if (failed) {
    error whole = not_started(c.id, std::move(*failed));
    forget(c);
    co_return std::unexpected{std::move(whole)};
  }
  const pid who = c.who;
  if (c.state != child_state::running) forget(c);
  co_return who;
}

void dynamic_children::forget(supervised& c) {
  drop(c);
  by_last_pid_.erase(c.who);
  all_.erase(c.number);
}

supervised* dynamic_children::find(pid who) {
  if (supervised** running = by_pid_.find(who)) return *running;
  supervised** restarting = by_last_pid_.find(who);
  return restarting != nullptr ? *restarting : nullptr;
}

task<result<void>> dynamic_children::terminate_child(self& me, pid who) {
  supervised* c = find(who);
  if (c == nullptr) co_return fail(errc::not_found, to_string(who) + " is no child");
  by_last_pid_.erase(who);
  const exit_decision asked{exit_action::stopped, "terminate_child was called"};
  co_await stop_one(me, *c, asked);
  forget(*c);
  co_return result<void>{};
}

task<void> dynamic_children::child_exited(self& me, exited x) {
  supervised* dead = take_dead(me, x);
  if (dead == nullptr) co_return;
  supervised& c = *dead;
  if (decide(c.restart, x.reason) != after_exit::restart) {
    stays_down(me, c, x);
    forget(c);
    co_return;
  }
  c.who = x.from;
  by_last_pid_.insert(c.who, &c);
  if (!dies_and_may_restart(me, c, x)) co_return;
  if (c.backoff() != nullptr)
    delay_restart(me, c);
  else
    co_await restart_now(me, c);
}

task<void> dynamic_children::restart_now(self& me, supervised& c) {
  const pid before = c.who;
  start_result started = co_await start_one(me, c);
  const std::optional<error> failed = has_started(me, c, std::move(started), me.now());
  if (failed) {
    start_has_failed(me, c, *failed);
    co_return;
  }
  by_last_pid_.erase(before);
  if (c.state != child_state::running) forget(c);
}

task<void> dynamic_children::retry(self& me, std::uint64_t child) {
  supervised* c = to_retry(child);
  if (c == nullptr || !may_restart(me, *c, me.now())) co_return;
  co_await restart_now(me, *c);
}

task<void> dynamic_children::wait_is_over(self& me, timer_ref wait) {
  supervised* c = take_waiting(wait);
  if (c != nullptr) co_await restart_now(me, *c);
}

task<void> dynamic_children::stop_all(self& me) {
  parallel_stop all{me, abandon_after_};
  by_pid_.for_each([&](pid who, supervised* c) { all.add(who, c->shutdown); });
  for (;;) {
    const std::optional<parallel_stop::gone> gone = co_await all.next();
    if (!gone) co_return;
    supervised& c = **by_pid_.find(gone->who);
    has_stopped(me, c, gone->who, gone->how, {}, {});
  }
}

result<std::vector<exit_record>> dynamic_children::exits_of(self& me, pid who) {
  const supervised* c = find(who);
  if (c == nullptr) return fail(errc::not_found, to_string(who) + " is no child");
  return c->exits(me);
}

child_counts dynamic_children::count() const {
  child_counts n;
  n.specs = all_.size();
  n.active = by_pid_.size();
  all_.for_each([&](std::uint64_t, const std::unique_ptr<supervised>& c) {
    ++(c->type == child_type::supervisor ? n.supervisors : n.workers);
  });
  return n;
}

std::vector<child_info> dynamic_children::list(self& me) const {
  std::vector<child_info> infos;
  infos.reserve(all_.size());
  all_.for_each([&](std::uint64_t, const std::unique_ptr<supervised>& c) { infos.push_back(c->info(me)); });
  return infos;
}

void dynamic_children::upgrade(const dynamic_supervisor_spec& spec) {
  limit_ = spec.limit;
  abandon_after_ = spec.abandon_after;
  max_children_ = spec.max_children;
}

}  // namespace detail

result<void> check(const dynamic_supervisor_spec& spec) {
  return check(supervisor_spec{.limit = spec.limit, .abandon_after = spec.abandon_after});
}

dynamic_supervisor::dynamic_supervisor(dynamic_supervisor_spec spec) : init_{[spec] { return spec; }} {}
dynamic_supervisor::dynamic_supervisor(std::function<std::optional<dynamic_supervisor_spec>()> init)
    : init_{std::move(init)} {}
dynamic_supervisor::~dynamic_supervisor() = default;

init_result dynamic_supervisor::init() {
  const std::optional<dynamic_supervisor_spec> spec = init_();
  init_ = nullptr;
  if (!spec) return init_result::ignore();
  if (auto sensible = check(*spec); !sensible)
    return init_result::stop(exit_reason::error(sensible.error().to_string()), sensible.error());
  children_ = std::make_unique<detail::dynamic_children>(*spec);
  return init_result::ok();
}

task<void> dynamic_supervisor::terminate(const exit_reason&, self& me) { return children_->stop_all(me); }
task<void> dynamic_supervisor::handle(exited x, self& me) { return children_->child_exited(me, std::move(x)); }
task<void> dynamic_supervisor::handle(timeout t, self& me) { return children_->wait_is_over(me, t.ref); }
task<void> dynamic_supervisor::handle(detail::retry_start m, self& me) { return children_->retry(me, m.child); }
task<result<pid>> dynamic_supervisor::handle(calls::start_child m, self& me) {
  return children_->start_child(me, std::move(m.spec));
}
task<result<void>> dynamic_supervisor::handle(calls::terminate_by_pid m, self& me) {
  return children_->terminate_child(me, m.who);
}
std::vector<child_info> dynamic_supervisor::handle(calls::which_children, self& me) { return children_->list(me); }
child_counts dynamic_supervisor::handle(calls::count_children, self&) { return children_->count(); }
result<std::vector<exit_record>> dynamic_supervisor::handle(calls::exit_history_of m, self& me) {
  return children_->exits_of(me, m.who);
}
result<void> dynamic_supervisor::handle(calls::upgrade_dynamic m) {
  if (auto sensible = check(m.spec); !sensible) return sensible;
  children_->upgrade(m.spec);
  return {};
}

result<ref<dynamic_supervisor>> start_dynamic_supervisor(runtime& rt, dynamic_supervisor_spec spec) {
  return start<dynamic_supervisor>(rt, spec);
}

}  // namespace coppice
