#pragma once
/// A supervisor starts its children in order, restarts those that fail, and stops them in reverse order.
///
///     const result<ref<supervisor>> tree = start_supervisor(rt, {.children = {child<database>(url), child<cache>()}});
///
/// A supervisor may also be a child of another one, `child<supervisor>(spec).with({.id = "storage"})`, or a type of its
/// own:
///
///     struct storage {       // `init` may also return std::optional<supervisor_spec>: if empty, nothing is started
///       static supervisor_spec init(std::string url) { return {.children = {child<database>(url), child<cache>()}}; }
///     };
///     supervisor_spec tree{.children = {child<storage>(url), child<web_server>(8080)}};
#include <memory>

#include <coppice/behaviour/server.hpp>
#include <coppice/supervision/child_history.hpp>
#include <coppice/supervision/supervision_errc.hpp>
#include <coppice/supervision/supervisor_spec.hpp>

namespace coppice {

/// The messages that supervisors answer. The functions below send them.
namespace calls {
struct start_child {
  using reply = pid;
  child_spec spec;
};
struct terminate_child {
  using reply = void;
  std::string id;
};
struct restart_child {
  using reply = pid;
  std::string id;
};
struct delete_child {
  using reply = void;
  std::string id;
};
struct retry_now {
  using reply = void;
  std::string id;
};
struct which_child {
  using reply = child_info;
  std::string id;
};
struct count_children {
  using reply = child_counts;
};
struct get_childspec {
  using reply = child_spec;
  std::string id;
};
struct exit_history {
  using reply = std::vector<exit_record>;
  std::string id;
};
struct upgrade {
  using reply = void;
  supervisor_spec spec;
};
/// From a supervisor to itself: repeat a start that has failed.
struct retry_start {
  static constexpr bool bypasses_policy = true;
  std::uint64_t number;
};
}  // namespace calls

namespace detail {
class children;
}  // namespace detail

/// The server behind a `ref<supervisor>`. Thread safety: its own process only; others call it.
class supervisor {
 public:
  static constexpr child_defaults supervision{.type = child_type::supervisor};
  static constexpr std::string_view kind = "supervisor";
  static constexpr bool traps_exits = true;
  using protocol =
      coppice::protocol<calls::start_child, calls::terminate_child, calls::restart_child, calls::delete_child,
                        calls::retry_now, calls::which_children, calls::which_child, calls::count_children,
                        calls::get_childspec, calls::exit_history, calls::upgrade, calls::retry_start>;

  explicit supervisor(supervisor_spec spec);
  /// `init` is called in the new process. If it returns nothing, the process ends, and its start counts as `ignored`.
  explicit supervisor(std::function<std::optional<supervisor_spec>()> init);
  ~supervisor();
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  task<init_result> init(self& me);
  task<void> terminate(const exit_reason& why, self& me);

  task<void> handle(exited x, self& me);
  task<void> handle(timer_fired t, self& me);
  task<void> handle(calls::retry_start m, self& me);
  task<result<pid>> handle(calls::start_child m, self& me);
  task<result<void>> handle(calls::terminate_child m, self& me);
  task<result<pid>> handle(calls::restart_child m, self& me);
  result<void> handle(const calls::delete_child& m, self& me);
  task<result<void>> handle(calls::retry_now m, self& me);
  std::vector<child_info> handle(calls::which_children m, self& me);
  result<child_info> handle(const calls::which_child& m, self& me);
  child_counts handle(calls::count_children m, self& me);
  result<child_spec> handle(const calls::get_childspec& m);
  result<std::vector<exit_record>> handle(const calls::exit_history& m, self& me);
  result<void> handle(calls::upgrade m);

 private:
  std::function<std::optional<supervisor_spec>()> init_;
  std::unique_ptr<detail::children> children_;
};

namespace detail {
// Compiled once, in compiled_once.cpp: otherwise each source file that starts or asks a supervisor would compile all
// its handlers.
template <>
inline constexpr bool is_compiled_once<supervisor> = true;
extern template const server_type& server_type_of<supervisor>() noexcept;
extern template result<pid> spawn_object<supervisor>(kernel&, birth&&, supervisor_spec&&);
extern template result<pid> spawn_object<supervisor>(kernel&, birth&&, const supervisor_spec&);
extern template task<result<ref<supervisor>>> start_server<supervisor>(self&, spawn_options, supervisor_spec);
}  // namespace detail

/// From a plain thread: starts a supervisor without a parent, and returns when its children are up. Errors: those of
/// `check`; `start_failed` when a child could not be started: the children before it have been stopped again.
[[nodiscard]] result<ref<supervisor>> start_supervisor(runtime& rt, supervisor_spec spec);
/// The same with a name, or with a time limit. Errors: also `name_taken` and `timeout`.
[[nodiscard]] result<ref<supervisor>> start_supervisor(runtime& rt, const spawn_options& options, supervisor_spec spec);

// Calls of supervisors. A process awaits them (`const result<pid> who = co_await start_child(tree,
// child<worker>(7));`), a plain thread runs them (`rt.call(start_child(tree, ...))`). They wait without limit, because
// a supervisor starts and stops one child at a time. Errors of all calls: `noproc` when there is no such supervisor,
// and `exited` when it ends before it answers.

/// Adds a child behind the others and starts it. Returns nobody if there was nothing to start. Errors: those of
/// `check`, `already_started`, `already_present`, `start_failed`; the child was not added then.
template <class S>
  requires handles_call<S, calls::start_child>
[[nodiscard]] pending_call<calls::start_child> start_child(ref<S> sup, child_spec spec) {
  return sup.template call<calls::start_child>(std::move(spec)).within(forever);
}
/// Stops a child, or cancels its pending restart, and leaves it down. A temporary child is removed. Siblings that wait
/// for the backoff of the child are started without it. Error: `not_found`.
[[nodiscard]] pending_call<calls::terminate_child> terminate_child(ref<supervisor> sup, std::string id);
/// Starts a child that is down. Errors: `not_found`, `running`, `restarting`; `start_failed`: the child stays down.
[[nodiscard]] pending_call<calls::restart_child> restart_child(ref<supervisor> sup, std::string id);
/// Removes a child that is down. Errors: `not_found`, `running`, `restarting`.
[[nodiscard]] pending_call<calls::delete_child> delete_child(ref<supervisor> sup, std::string id);
/// Restarts a child that waits for its backoff, without waiting any longer. Errors: `not_found`; `invalid` when the
/// child does not wait, or waits for the backoff of a sibling; `start_failed`: another attempt for the child, or for
/// the sibling that could not be started with it, follows later.
[[nodiscard]] pending_call<calls::retry_now> retry_now(ref<supervisor> sup, std::string id);
/// All children, in the order of their start.
template <class S>
  requires handles_call<S, calls::which_children>
[[nodiscard]] pending_call<calls::which_children> which_children(ref<S> sup) {
  return sup.template call<calls::which_children>().within(forever);
}
/// One child. Error: `not_found`.
[[nodiscard]] pending_call<calls::which_child> which_child(ref<supervisor> sup, std::string id);
template <class S>
  requires handles_call<S, calls::count_children>
[[nodiscard]] pending_call<calls::count_children> count_children(ref<S> sup) {
  return sup.template call<calls::count_children>().within(forever);
}
/// The spec of a child. `start` is empty for a temporary child that was started. Error: `not_found`.
[[nodiscard]] pending_call<calls::get_childspec> get_childspec(ref<supervisor> sup, std::string id);
/// The last 50 ends of a child, oldest first. Error: `not_found`.
[[nodiscard]] pending_call<calls::exit_history> exit_history(ref<supervisor> sup, std::string id);
/// Gives a running supervisor another spec. Running children stay. A child with an id of the new spec uses its new
/// start from its next start on, and its new restart type, shutdown and significance at once. New children are added
/// and not started; children that are not in the new spec stay. The order is that of the new spec, then the children
/// that it does not name: it applies at once to the order of stops, to restarts and to `which_children`. Errors: those
/// of `check`; nothing has changed then.
[[nodiscard]] pending_call<calls::upgrade> upgrade(ref<supervisor> sup, supervisor_spec spec);

}  // namespace coppice
