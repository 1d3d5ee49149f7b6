#include <array>

#include <coppice/supervision/supervisor.hpp>

#include "internal/supervised_children.hpp"

namespace coppice {

// ---- words

std::string_view to_string(strategy s) noexcept {
  static constexpr std::array<std::string_view, 3> names = {"one_for_one", "one_for_all", "rest_for_one"};
  return names.at(std::to_underlying(s));
}
std::string_view to_string(exit_action action) noexcept {
  static constexpr std::array<std::string_view, 7> names = {"restarted", "delayed", "kept",   "forgotten",
                                                            "gave_up",   "stopped", "retried"};
  return names.at(std::to_underlying(action));
}
std::string_view to_string(supervisor_event::kind what) noexcept {
  static constexpr std::array<std::string_view, 9> names = {
      "started", "start_failed", "exited", "stopped", "restarted", "delayed", "abandoned", "gave_up", "shut_down"};
  return names.at(std::to_underlying(what));
}
std::string to_string(const exit_record& r) {
  std::string text = to_string(r.who) + " after " + to_string(r.uptime) + ": " + r.reason.to_string() + "; " +
                     std::string{to_string(r.action)};
  if (!r.because.empty()) text += " (" + r.because + ")";
  return text;
}

result<void> check(const supervisor_spec& spec) {
  if (spec.strategy > strategy::rest_for_one) return fail(errc::invalid, "strategy is none of the strategies");
  if (spec.limit.restarts < 0)
    return fail(errc::invalid,
                "limit.restarts is " + std::to_string(spec.limit.restarts) + "; it must not be negative");
  if (spec.limit.within.count() <= 0)
    return fail(errc::invalid, "limit.within is " + to_string(spec.limit.within) + "; it must be more than 0");
  if (spec.auto_shutdown > auto_shutdown::all_significant)
    return fail(errc::invalid, "auto_shutdown is none of never, any_significant and all_significant");
  if (spec.abandon_after && spec.abandon_after->count() <= 0)
    return fail(errc::invalid, "abandon_after is " + to_string(*spec.abandon_after) + "; it must be more than 0");
  return check(spec.children, spec.auto_shutdown);
}

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
  children_ = std::make_unique<detail::supervised_children>(std::move(*spec));
  const result<void> started = co_await children_->start_all(me);
  if (!started) co_return init_result::stop(exit_reason::shutdown(started.error().to_string()), started.error());
  co_return init_result::ok();
}

task<void> supervisor::terminate(const exit_reason&, self& me) { return children_->stop_all(me); }

task<void> supervisor::handle(exited x, self& me) { return children_->child_exited(me, std::move(x)); }
task<void> supervisor::handle(timeout t, self& me) { return children_->wait_is_over(me, t.ref); }
task<void> supervisor::handle(detail::retry_start m, self& me) { return children_->retry(me, m.child); }
task<result<pid>> supervisor::handle(calls::start_child m, self& me) {
  return children_->start_child(me, std::move(m.spec));
}
task<result<void>> supervisor::handle(calls::terminate_child m, self& me) {
  return children_->terminate_child(me, std::move(m.id));
}
task<result<pid>> supervisor::handle(calls::restart_child m, self& me) {
  return children_->restart_child(me, std::move(m.id));
}
result<void> supervisor::handle(const calls::delete_child& m) { return children_->delete_child(m.id); }
task<result<void>> supervisor::handle(calls::retry_now m, self& me) {
  return children_->retry_now(me, std::move(m.id));
}
std::vector<child_info> supervisor::handle(calls::which_children, self& me) { return children_->list(me); }
result<child_info> supervisor::handle(const calls::which_child& m, self& me) {
  const auto known = children_->find(m.id);
  if (!known) return std::unexpected{known.error()};
  return (*known)->info(me);
}
child_counts supervisor::handle(calls::count_children, self& me) { return children_->count(me); }
result<child_spec> supervisor::handle(const calls::get_childspec& m) {
  const auto known = children_->find(m.id);
  if (!known) return std::unexpected{known.error()};
  return (*known)->spec();
}
result<std::vector<exit_record>> supervisor::handle(const calls::exit_history& m, self& me) {
  const auto known = children_->find(m.id);
  if (!known) return std::unexpected{known.error()};
  return (*known)->exits(me);
}
result<void> supervisor::handle(calls::upgrade m) { return children_->upgrade(std::move(m.spec)); }

// ---- from outside

result<ref<supervisor>> start_supervisor(runtime& rt, supervisor_spec spec) {
  return start<supervisor>(rt, std::move(spec));
}
result<ref<supervisor>> start_supervisor(runtime& rt, std::string name, supervisor_spec spec) {
  return start_named<supervisor>(rt, std::move(name), std::move(spec));
}
detail::calling<calls::terminate_child> terminate_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::terminate_child>(std::move(id)).within(forever);
}
detail::calling<calls::restart_child> restart_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::restart_child>(std::move(id)).within(forever);
}
detail::calling<calls::delete_child> delete_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::delete_child>(std::move(id)).within(forever);
}
detail::calling<calls::retry_now> retry_now(ref<supervisor> sup, std::string id) {
  return sup.call<calls::retry_now>(std::move(id)).within(forever);
}
detail::calling<calls::which_child> which_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::which_child>(std::move(id)).within(forever);
}
detail::calling<calls::get_childspec> get_childspec(ref<supervisor> sup, std::string id) {
  return sup.call<calls::get_childspec>(std::move(id)).within(forever);
}
detail::calling<calls::exit_history> exit_history(ref<supervisor> sup, std::string id) {
  return sup.call<calls::exit_history>(std::move(id)).within(forever);
}
detail::calling<calls::upgrade> upgrade(ref<supervisor> sup, supervisor_spec spec) {
  return sup.call<calls::upgrade>(std::move(spec)).within(forever);
}

}  // namespace coppice
