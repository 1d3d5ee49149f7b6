// The calls of a supervisor, which identify a child by its id.
#include <coppice/supervision/supervisor.hpp>

#include "internal/children.hpp"

namespace coppice {

using detail::supervised;

task<result<pid>> supervisor::handle(calls::start_child m, self& me) {
  detail::children& all = *children_;
  if (auto sensible = check(m.spec, all.rules().auto_shutdown); !sensible)
    return detail::refused_start(sensible.error());
  if (const auto known = all.list().find(m.spec.id)) {
    const std::string name = "child '" + m.spec.id + "'";
    return detail::refused_start(
        (*known)->running()
            ? error{supervision_errc::already_started, name + " runs as " + to_string((*known)->who)}
            : error{supervision_errc::already_present, name + " exists and is down; start it with restart_child"});
  }
  return all.start_new(me, std::move(m.spec));
}

task<result<void>> supervisor::handle(calls::terminate_child m, self& me) {
  const auto known = children_->list().find(m.id);
  if (!known) co_return std::unexpected{known.error()};
  co_await children_->terminate_one(me, **known);
  co_return result<void>{};
}

namespace {
/// For calls that need a child that is down.
result<supervised*> must_be_down(result<supervised*> known) {
  if (!known) return known;
  const supervised& c = **known;
  switch (c.state) {
    case child_state::running:
      return fail(supervision_errc::running, "child '" + c.id() + "' runs as " + to_string(c.who));
    case child_state::restarting:
      return fail(supervision_errc::restarting, "child '" + c.id() + "' is being restarted");
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
  if (up) co_return *up;
  detail::log_failed_start(me, c.spec, up.error());
  co_return std::unexpected{detail::not_started(m.id, std::move(up.error()))};
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
  if (c.waits_for != nullptr)
    co_return fail(errc::invalid, "child '" + m.id + "' is started together with '" + c.waits_for->id() +
                                      "'; call retry_now for that one");
  if (!c.wait) co_return fail(errc::invalid, "child '" + m.id + "' does not wait for a restart");
  children_->cancel_wait(me, c);
  result<void> restarted = co_await children_->restart(me, c);
  co_return restarted;
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
