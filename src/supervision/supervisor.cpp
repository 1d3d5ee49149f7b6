// The server behind a supervisor: its spec, its start, its stop and its upgrade. Its calls are in supervisor_calls.cpp,
// the restarts of its children in restart.cpp.
#include <coppice/supervision/supervisor.hpp>

#include "internal/children.hpp"

namespace coppice {

// ---- the spec

std::string_view to_string(strategy s) noexcept {
  switch (s) {
    case strategy::one_for_one: return "one_for_one";
    case strategy::one_for_all: return "one_for_all";
    case strategy::rest_for_one: return "rest_for_one";
  }
  return "unknown";
}

namespace detail {
namespace {

/// The faults of the supervisor itself, without its children.
std::vector<spec_fault> own_faults(const supervisor_spec& spec, const std::vector<std::string>& path) {
  std::vector<spec_fault> faults;
  const auto refuse = [&](std::string text) { faults.push_back({path, errc::invalid, std::move(text)}); };
  if (spec.strategy > strategy::rest_for_one) refuse("strategy is none of one_for_one, one_for_all and rest_for_one");
  if (spec.limit.restarts < 0)
    refuse("limit.restarts is " + std::to_string(spec.limit.restarts) + "; it must not be negative");
  if (spec.limit.within.count() <= 0)
    refuse("limit.within is " + to_string(spec.limit.within) + "; it must be more than 0");
  if (spec.auto_shutdown > auto_shutdown::all_significant)
    refuse("auto_shutdown is none of never, any_significant and all_significant");
  if (spec.abandon_after && spec.abandon_after->count() <= 0)
    refuse("abandon_after is " + to_string(*spec.abandon_after) + "; it must be more than 0");
  return faults;
}

child_rules rules_of(const supervisor_spec& spec) {
  return {.strategy = spec.strategy,
          .auto_shutdown = spec.auto_shutdown,
          .limit = spec.limit,
          .abandon_after = spec.abandon_after};
}

}  // namespace
}  // namespace detail

std::vector<spec_fault> find_faults(const supervisor_spec& spec, const std::vector<std::string>& path) {
  std::vector<spec_fault> faults = detail::own_faults(spec, path);
  for (spec_fault& f : find_faults(spec.children, spec.auto_shutdown, path)) faults.push_back(std::move(f));
  return faults;
}
result<void> check(const supervisor_spec& spec) { return to_result(find_faults(spec)); }

// ---- the server

supervisor::supervisor(supervisor_spec spec) : init_{[s = std::move(spec)] { return s; }} {}
supervisor::supervisor(std::function<std::optional<supervisor_spec>()> init) : init_{std::move(init)} {}
supervisor::~supervisor() = default;

task<init_result> supervisor::init(self& me) {
  std::optional<supervisor_spec> spec = init_();
  init_ = nullptr;
  if (!spec) co_return init_result::ignore();
  if (auto sensible = check(*spec); !sensible)
    co_return init_result::stop(exit_reason::error(sensible.error().to_string()), sensible.error());
  children_ = std::make_unique<detail::children>(detail::rules_of(*spec), std::move(spec->children));
  const result<void> started = co_await children_->start_all(me);
  if (!started) co_return init_result::stop(exit_reason::shutdown(started.error().to_string()), started.error());
  co_return init_result::ok();
}

task<void> supervisor::terminate(const exit_reason&, self& me) { return children_->stop_in_order(me); }

task<void> supervisor::handle(exited x, self& me) { return children_->handle_exit(me, std::move(x)); }
task<void> supervisor::handle(timer_fired t, self& me) { return children_->handle_backoff_over(me, t.ref); }
task<void> supervisor::handle(calls::retry_start m, self& me) { return children_->handle_retry(me, m.number); }

/// Running children stay, and nothing is started.
result<void> supervisor::handle(calls::upgrade m) {
  if (auto sensible = check(m.spec); !sensible) return sensible;
  children_->rules() = detail::rules_of(m.spec);
  children_->list().upgrade(std::move(m.spec.children));
  return {};
}

// ---- from outside

result<ref<supervisor>> start_supervisor(runtime& rt, supervisor_spec spec) {
  return start<supervisor>(rt, std::move(spec));
}
result<ref<supervisor>> start_supervisor(runtime& rt, const spawn_options& options, supervisor_spec spec) {
  return start<supervisor>(rt, options, std::move(spec));
}

}  // namespace coppice
