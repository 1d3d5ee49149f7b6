#pragma once
/// A supervisor: starts its children in order, restarts those that fail, stops them in reverse order.
///
///     const result<ref<supervisor>> tree = start_supervisor(rt, {.children = {child<database>(url), child<cache>()}});
///
/// or as a child of another one: `child<supervisor>(spec).with({.id = "storage"})`, or as a type of its own:
///
///     struct storage {                 // or std::optional<supervisor_spec>: nothing, and it is ignored
///       static supervisor_spec init(std::string url) { return {.children = {child<database>(url), child<cache>()}}; }
///     };
///     supervisor_spec tree{.children = {child<storage>(url), child<web_server>(8080)}};
#include <memory>

#include <coppice/behaviour/server.hpp>
#include <coppice/supervision/child_history.hpp>
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
}  // namespace calls

namespace detail {
struct retry_start {
  std::uint64_t child;
};
class supervised_children;
}  // namespace detail

/// The server behind a `ref<supervisor>`. Thread safety: its own process only; others call it.
class supervisor {
 public:
  static constexpr child_options supervision{.type = child_type::supervisor};
  static constexpr bool traps_exits = true;
  using protocol =
      coppice::protocol<calls::start_child, calls::terminate_child, calls::restart_child, calls::delete_child,
                        calls::retry_now, calls::which_children, calls::which_child, calls::count_children,
                        calls::get_childspec, calls::exit_history, calls::upgrade, detail::retry_start>;

  explicit supervisor(supervisor_spec spec);
  /// With an init of its own, called in the new process; without a spec there is nothing to supervise, and it is
  /// ignored.
  explicit supervisor(std::function<std::optional<supervisor_spec>()> init);
  ~supervisor();
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  task<init_result> init(self& me);
  task<void> terminate(const exit_reason& why, self& me);

  task<void> handle(exited x, self& me);
  task<void> handle(timeout t, self& me);
  task<void> handle(detail::retry_start m, self& me);
  task<result<pid>> handle(calls::start_child m, self& me);
  task<result<void>> handle(calls::terminate_child m, self& me);
  task<result<pid>> handle(calls::restart_child m, self& me);
  result<void> handle(const calls::delete_child& m);
  task<result<void>> handle(calls::retry_now m, self& me);
  std::vector<child_info> handle(calls::which_children m, self& me);
  result<child_info> handle(const calls::which_child& m, self& me);
  child_counts handle(calls::count_children m, self& me);
  result<child_spec> handle(const calls::get_childspec& m);
  result<std::vector<exit_record>> handle(const calls::exit_history& m, self& me);
  result<void> handle(calls::upgrade m);

 private:
  std::function<std::optional<supervisor_spec>()> init_;
  std::unique_ptr<detail::supervised_children> children_;
};

namespace detail {
// Compiled once, in compiled_once.cpp: otherwise each source file that starts or asks a supervisor would compile all
// its handlers.
template <>
inline constexpr bool is_compiled_once<supervisor> = true;
extern template const server_type& server_type_of<supervisor>() noexcept;
extern template result<pid> spawn_object<supervisor>(kernel&, birth&&, supervisor_spec&&);
extern template result<pid> spawn_object<supervisor>(kernel&, birth&&, const supervisor_spec&);
extern template task<result<ref<supervisor>>> start_server<supervisor>(self&, spawn_options, std::chrono::nanoseconds,
                                                                       supervisor_spec);
}  // namespace detail

/// From a plain thread: a supervisor without a parent. Its children are up when this returns. Errors: those of `check`,
/// `start_failed` when a child could not be started; then those before it were stopped again.
[[nodiscard]] result<ref<supervisor>> start_supervisor(runtime& rt, supervisor_spec spec);
/// With a name: also `name_taken`.
[[nodiscard]] result<ref<supervisor>> start_supervisor(runtime& rt, std::string name, supervisor_spec spec);

// What supervisors are asked. Each is awaited inside a process (`const result<pid> who = co_await start_child(tree,
// child<worker>(7));`), or run from a plain thread (`rt.call(start_child(tree, ...))`). They wait as long as it takes:
// a supervisor that is starting or stopping a child does so one at a time. All fail with `noproc` when there is no such
// supervisor, and with `exited` when it ends meanwhile.

/// Adds a child behind the others and starts it; nobody as the answer when it had nothing to do. Errors: those of
/// `check`, `already_started`, `already_present`, `start_failed`: then it was not added.
template <class S>
  requires handles_call<S, calls::start_child>
[[nodiscard]] detail::calling<calls::start_child> start_child(ref<S> sup, child_spec spec) {
  return sup.template call<calls::start_child>(std::move(spec)).within(forever);
}
/// Stops a child and leaves it down; one that is temporary is forgotten. Whether it ran or not. Error: `not_found`.
[[nodiscard]] detail::calling<calls::terminate_child> terminate_child(ref<supervisor> sup, std::string id);
/// Starts a child that is down. Errors: `not_found`, `running`, `restarting`, `start_failed`: then it stays down.
[[nodiscard]] detail::calling<calls::restart_child> restart_child(ref<supervisor> sup, std::string id);
/// Forgets a child that is down. Errors: `not_found`, `running`, `restarting`.
[[nodiscard]] detail::calling<calls::delete_child> delete_child(ref<supervisor> sup, std::string id);
/// Starts a child now that waits for its backoff to pass. Errors: `not_found`; `invalid` when it does not wait.
[[nodiscard]] detail::calling<calls::retry_now> retry_now(ref<supervisor> sup, std::string id);
/// All children, in the order of their start.
template <class S>
  requires handles_call<S, calls::which_children>
[[nodiscard]] detail::calling<calls::which_children> which_children(ref<S> sup) {
  return sup.template call<calls::which_children>().within(forever);
}
/// Error: `not_found`.
[[nodiscard]] detail::calling<calls::which_child> which_child(ref<supervisor> sup, std::string id);
template <class S>
  requires handles_call<S, calls::count_children>
[[nodiscard]] detail::calling<calls::count_children> count_children(ref<S> sup) {
  return sup.template call<calls::count_children>().within(forever);
}
/// Error: `not_found`.
[[nodiscard]] detail::calling<calls::get_childspec> get_childspec(ref<supervisor> sup, std::string id);
/// The last 50 ends of a child, oldest first. Error: `not_found`.
[[nodiscard]] detail::calling<calls::exit_history> exit_history(ref<supervisor> sup, std::string id);
/// Another spec for a running supervisor. What runs stays: children of the same id are started by the new spec from
/// their next start on, while its restart type, its way to stop them and their significance count at once; new ones are
/// added and not started; those that are missing stay. Errors: those of `check`: then nothing has changed.
[[nodiscard]] detail::calling<calls::upgrade> upgrade(ref<supervisor> sup, supervisor_spec spec);

}  // namespace coppice
