// A supervisor whose children are added and removed while it runs. Restarts are in restart.cpp, as for all supervisors.
#include <coppice/supervision/dynamic_supervisor.hpp>

#include "internal/children.hpp"

namespace coppice {

using detail::supervised;

// ---- the spec

std::vector<spec_fault> find_faults(const dynamic_supervisor_spec& spec, const std::vector<std::string>& path) {
  return find_faults(supervisor_spec{.limit = spec.limit, .abandon_after = spec.abandon_after}, path);
}
result<void> check(const dynamic_supervisor_spec& spec) { return to_result(find_faults(spec)); }

namespace {
detail::child_rules rules_of(const dynamic_supervisor_spec& spec) {
  return {.limit = spec.limit, .abandon_after = spec.abandon_after, .dynamic = true};
}
}  // namespace

// ---- the server

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
  max_children_ = spec->max_children;
  children_ = std::make_unique<detail::children>(rules_of(*spec), std::vector<child_spec>{});
  return init_result::ok();
}

task<void> dynamic_supervisor::terminate(const exit_reason&, self& me) { return children_->stop_together(me); }

task<void> dynamic_supervisor::handle(exited x, self& me) { return children_->handle_exit(me, std::move(x)); }
task<void> dynamic_supervisor::handle(timer_fired t, self& me) { return children_->handle_backoff_over(me, t.ref); }
task<void> dynamic_supervisor::handle(calls::retry_start m, self& me) { return children_->handle_retry(me, m.number); }

// ---- calls

task<result<pid>> dynamic_supervisor::handle(calls::start_child m, self& me) {
  if (m.spec.id.empty()) m.spec.id = "child";
  if (auto sensible = check(m.spec, auto_shutdown::never); !sensible) return detail::refused_start(sensible.error());
  if (const std::size_t n = children_->list().size(); max_children_ && n >= *max_children_)
    return detail::refused_start(
        error{errc::capacity, "there are " + std::to_string(n) + " children, and max_children allows no more"});
  return children_->start_new(me, std::move(m.spec));
}

namespace {
std::unexpected<error> not_a_child(pid who) { return fail(errc::not_found, to_string(who) + " is not a child"); }
}  // namespace

task<result<void>> dynamic_supervisor::handle(calls::terminate_by_pid m, self& me) {
  supervised* c = children_->find(m.who);
  if (c == nullptr) co_return not_a_child(m.who);
  co_await children_->terminate_one(me, *c);
  co_return result<void>{};
}

std::vector<child_info> dynamic_supervisor::handle(calls::which_children, self& me) { return children_->infos(me); }
child_counts dynamic_supervisor::handle(calls::count_children, self& me) { return children_->count(me); }

result<std::vector<exit_record>> dynamic_supervisor::handle(calls::exit_history_of m, self& me) {
  const supervised* c = children_->find(m.who);
  if (c == nullptr) return not_a_child(m.who);
  return c->exits(me);
}

result<void> dynamic_supervisor::handle(calls::upgrade_dynamic m) {
  if (auto sensible = check(m.spec); !sensible) return sensible;
  max_children_ = m.spec.max_children;
  children_->rules() = rules_of(m.spec);
  return {};
}

result<ref<dynamic_supervisor>> start_dynamic_supervisor(runtime& rt, dynamic_supervisor_spec spec) {
  return start<dynamic_supervisor>(rt, spec);
}
result<ref<dynamic_supervisor>> start_dynamic_supervisor(runtime& rt, const spawn_options& options,
                                                         dynamic_supervisor_spec spec) {
  return start<dynamic_supervisor>(rt, options, spec);
}

}  // namespace coppice
