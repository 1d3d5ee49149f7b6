#pragma once
/// A supervisor that starts without children and gets any number of them later, each with its own spec.
///
///     const auto workers = child_template<worker>(database).with({.restart = restart::temporary});
///     const result<pid> who = co_await start_child(pool, workers(42));
///
/// Calls identify children by pid; ids are for people and need not be unique. When the supervisor ends, it stops all
/// children at the same time. A child that ends and is not restarted is removed.
#include <concepts>

#include <coppice/supervision/supervisor.hpp>

namespace coppice {

class dynamic_supervisor;

struct dynamic_supervisor_spec {
  restart_limit limit{};
  /// The maximum number of children, including those that are being restarted. Default: without limit.
  std::optional<std::size_t> max_children{};
  /// As in `supervisor_spec`.
  std::optional<std::chrono::nanoseconds> abandon_after{};

  using supervised_by = dynamic_supervisor;
};
/// All faults; `path` leads to the supervisor.
[[nodiscard]] std::vector<spec_fault> find_faults(const dynamic_supervisor_spec& spec,
                                                  const std::vector<std::string>& path = {});
/// Error: `invalid`, which names the fields.
[[nodiscard]] result<void> check(const dynamic_supervisor_spec& spec);

namespace calls {
struct terminate_by_pid {
  using reply = void;
  pid who;
};
struct exit_history_of {
  using reply = std::vector<exit_record>;
  pid who;
};
struct upgrade_dynamic {
  using reply = void;
  dynamic_supervisor_spec spec;
};
}  // namespace calls

/// The server behind a `ref<dynamic_supervisor>`. Thread safety: its own process only; others call it.
class dynamic_supervisor {
 public:
  static constexpr child_defaults supervision{.type = child_type::supervisor};
  static constexpr std::string_view kind = "dynamic supervisor";
  static constexpr bool traps_exits = true;
  using protocol =
      coppice::protocol<calls::start_child, calls::terminate_by_pid, calls::which_children, calls::count_children,
                        calls::exit_history_of, calls::upgrade_dynamic, calls::retry_start>;

  explicit dynamic_supervisor(dynamic_supervisor_spec spec = {});
  /// `init` is called in the new process, as with `supervisor`.
  explicit dynamic_supervisor(std::function<std::optional<dynamic_supervisor_spec>()> init);
  ~dynamic_supervisor();
  dynamic_supervisor(const dynamic_supervisor&) = delete;
  dynamic_supervisor& operator=(const dynamic_supervisor&) = delete;

  init_result init();
  task<void> terminate(const exit_reason& why, self& me);

  task<void> handle(exited x, self& me);
  task<void> handle(timer_fired t, self& me);
  task<void> handle(calls::retry_start m, self& me);
  task<result<pid>> handle(calls::start_child m, self& me);
  task<result<void>> handle(calls::terminate_by_pid m, self& me);
  std::vector<child_info> handle(calls::which_children m, self& me);
  child_counts handle(calls::count_children m, self& me);
  result<std::vector<exit_record>> handle(calls::exit_history_of m, self& me);
  result<void> handle(calls::upgrade_dynamic m);

 private:
  std::function<std::optional<dynamic_supervisor_spec>()> init_;
  std::optional<std::size_t> max_children_;
  std::unique_ptr<detail::children> children_;
};

namespace detail {
// Compiled once, in compiled_once.cpp.
template <>
inline constexpr bool is_compiled_once<dynamic_supervisor> = true;
extern template const server_type& server_type_of<dynamic_supervisor>() noexcept;
extern template result<pid> spawn_object<dynamic_supervisor>(kernel&, birth&&);
extern template result<pid> spawn_object<dynamic_supervisor>(kernel&, birth&&, dynamic_supervisor_spec&&);
extern template result<pid> spawn_object<dynamic_supervisor>(kernel&, birth&&, const dynamic_supervisor_spec&);
}  // namespace detail

/// From a plain thread: starts a dynamic supervisor without a parent.
[[nodiscard]] result<ref<dynamic_supervisor>> start_dynamic_supervisor(runtime& rt, dynamic_supervisor_spec spec = {});
/// The same with a name. Error: `name_taken`.
[[nodiscard]] result<ref<dynamic_supervisor>> start_dynamic_supervisor(runtime& rt, const spawn_options& options,
                                                                       dynamic_supervisor_spec spec);

// Calls of dynamic supervisors: `start_child` (with `capacity` as another error), `which_children` and
// `count_children`, as for supervisors, and these:

/// Stops a child and removes it. A child that waits for its restart is found by its last pid. Error: `not_found`.
template <std::derived_from<dynamic_supervisor> S>
[[nodiscard]] pending_call<calls::terminate_by_pid> terminate_child(ref<S> sup, pid who) {
  return sup.template call<calls::terminate_by_pid>(who).within(forever);
}
/// The last 50 ends of a child, oldest first. Error: `not_found`.
template <std::derived_from<dynamic_supervisor> S>
[[nodiscard]] pending_call<calls::exit_history_of> exit_history(ref<S> sup, pid who) {
  return sup.template call<calls::exit_history_of>(who).within(forever);
}
/// Gives a running supervisor another spec; its children stay. Errors: those of `check`; nothing has changed then.
template <std::derived_from<dynamic_supervisor> S>
[[nodiscard]] pending_call<calls::upgrade_dynamic> upgrade(ref<S> sup, dynamic_supervisor_spec spec) {
  return sup.template call<calls::upgrade_dynamic>(spec).within(forever);
}

}  // namespace coppice
