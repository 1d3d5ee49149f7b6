// The calls of a supervisor, by the id of the child.
#include <coppice/supervision/supervisor.hpp>

#include "internal/children.hpp"

namespace coppice {

using detail::supervised;

task<result<pid>> supervisor::handle(calls::start_child m, self& me) {
  detail::children& all = *children_;
  if (auto sensible = detail::check_own(m.spec, all.rules().auto_shutdown); !sensible)
    co_return std::unexpected{sensible.error()};
  if (const auto known = all.list().find(m.spec.id)) {
    if ((*known)->running())
      co_return fail(errc::already_started, "child '" + m.spec.id + "' runs as " + to_string((*known)->who));
    co_return fail(errc::already_present, "child '" + m.spec.id + "' exists and is down; start it with restart_child");
  }
  supervised& c = all.add(std::move(m.spec));
  start_result started = co_await all.launch(me, c);
  result<pid> up = all.note_start(me, c, std::move(started), me.now());
  if (up) co_return *up;
  error whole = detail::not_started(c.id(), std::move(up.error()));
  all.remove(me, c);
  co_return std::unexpected{std::move(whole)};
}

task<result<void>> supervisor::handle(calls::terminate_child m, self& me) {
  const auto known = children_->list().find(m.id);
  if (!known) co_return std::unexpected{known.error()};
  const detail::exit_decision asked{exit_action::stopped, "terminate_child was called"};
  co_await children_->stop_one(me, **known, asked);
  co_return result<void>{};
}

namespace {
/// For calls that need a child that is down.
result<supervised*> must_be_down(result<supervised*> known) {
  if (!known) return known;
  const supervised& c = **known;
  switch (c.state) {
    case child_state::running: return fail(errc::running, "child '" + c.id() + "' runs as " + to_string(c.who));
    case child_state::restarting: return fail(errc::restarting, "child '" + c.id() + "' is being restarted");
    case child_state::undefined: break;
  }
  return known;
}
}  // namespace

task<result<pid>> supervisor::handle(calls::restart_child m, self& me) {
  const auto known = must_be_down(children_->list().find(m.id));
  if (!known) co_return std::unexpected{known.error()};
  supervised& c = **known;
  start_result started = co_await children_->launch(me, c);
  result<pid> up = children_->note_start(me, c, std::move(started), me.now());
  if (!up) co_return std::unexpected{detail::not_started(m.id, std::move(up.error()))};
  co_return *up;
}

result<void> supervisor::handle(const calls::delete_child& m, self& me) {
  const auto known = must_be_down(children_->list().find(m.id));
  if (!known) return std::unexpected{known.error()};
  children_->remove(me, **known);
  return {};
}

task<result<void>> supervisor::handle(calls::retry_now m, self& me) {
  const auto known = children_->list().find(m.id);
  if (!known) co_return std::unexpected{known.error()};
  supervised& c = **known;
  if (!c.wait) co_return fail(errc::invalid, "child '" + m.id + "' does not wait for a restart");
  children_->cancel_wait(me, c);
  co_await children_->restart(me, c);
  co_return result<void>{};
}

std::vector<child_info> supervisor::handle(calls::which_children, self& me) { return children_->infos(me); }

result<child_info> supervisor::handle(const calls::which_child& m, self& me) {
  const auto known = children_->list().find(m.id);
  if (!known) return std::unexpected{known.error()};
  return (*known)->info(me);
}

child_counts supervisor::handle(calls::count_children, self& me) { return children_->count(me); }

result<child_spec> supervisor::handle(const calls::get_childspec& m) {
  const auto known = children_->list().find(m.id);
  if (!known) return std::unexpected{known.error()};
  return (*known)->spec;
}

result<std::vector<exit_record>> supervisor::handle(const calls::exit_history& m, self& me) {
  const auto known = children_->list().find(m.id);
  if (!known) return std::unexpected{known.error()};
  return (*known)->exits(me);
}

// ---- for callers

pending_call<calls::terminate_child> terminate_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::terminate_child>(std::move(id)).within(forever);
}
pending_call<calls::restart_child> restart_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::restart_child>(std::move(id)).within(forever);
}
pending_call<calls::delete_child> delete_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::delete_child>(std::move(id)).within(forever);
}
pending_call<calls::retry_now> retry_now(ref<supervisor> sup, std::string id) {
  return sup.call<calls::retry_now>(std::move(id)).within(forever);
}
pending_call<calls::which_child> which_child(ref<supervisor> sup, std::string id) {
  return sup.call<calls::which_child>(std::move(id)).within(forever);
}
pending_call<calls::get_childspec> get_childspec(ref<supervisor> sup, std::string id) {
  return sup.call<calls::get_childspec>(std::move(id)).within(forever);
}
pending_call<calls::exit_history> exit_history(ref<supervisor> sup, std::string id) {
  return sup.call<calls::exit_history>(std::move(id)).within(forever);
}
pending_call<calls::upgrade> upgrade(ref<supervisor> sup, supervisor_spec spec) {
  return sup.call<calls::upgrade>(std::move(spec)).within(forever);
}

}  // namespace coppice
