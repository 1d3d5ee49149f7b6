#pragma once
/// A supervisor whose children come and go: none at its start, any number later, each with a spec of its own.
///
///     const auto workers = child_template<worker>(database).with({.restart = restart::temporary});
///     const result<pid> who = co_await start_child(pool, workers(42));
///
/// Children are known by their pid; ids are for people and need not be unique. They have no order: all are stopped at
/// the same time. One that is not restarted is forgotten.
#include <concepts>

#include <coppice/supervision/supervisor.hpp>

namespace coppice {

class dynamic_supervisor;

struct dynamic_supervisor_spec {
  restart_limit limit{};
  /// The most children at a time, those that are being restarted included. Default: any number.
  std::optional<std::size_t> max_children{};
  /// As in `supervisor_spec`.
  std::optional<std::chrono::nanoseconds> abandon_after{};

  using supervised_by = dynamic_supervisor;
};
/// `invalid` with the field named.
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

namespace detail {
class dynamic_children;
}

/// The server behind a `ref<dynamic_supervisor>`. Thread safety: its own process only; others call it.
class dynamic_supervisor {
 public:
  static constexpr child_options supervision{.type = child_type::supervisor};
  static constexpr bool traps_exits = true;
  using protocol =
      coppice::protocol<calls::start_child, calls::terminate_by_pid, calls::which_children, calls::count_children,
                        calls::exit_history_of, calls::upgrade_dynamic, detail::retry_start>;

  explicit dynamic_supervisor(dynamic_supervisor_spec spec = {});
  /// With an init of its own, as `supervisor` may have.
  explicit dynamic_supervisor(std::function<std::optional<dynamic_supervisor_spec>()> init);
  ~dynamic_supervisor();
  dynamic_supervisor(const dynamic_supervisor&) = delete;
  dynamic_supervisor& operator=(const dynamic_supervisor&) = delete;

  init_result init();
  task<void> terminate(const exit_reason& why, self& me);

  task<void> handle(exited x, self& me);
  task<void> handle(timeout t, self& me);
  task<void> handle(detail::retry_start m, self& me);
  task<result<pid>> handle(calls::start_child m, self& me);
  task<result<void>> handle(calls::terminate_by_pid m, self& me);
  std::vector<child_info> handle(calls::which_children m, self& me);
  child_counts handle(calls::count_children m, self& me);
  result<std::vector<exit_record>> handle(calls::exit_history_of m, self& me);
  result<void> handle(calls::upgrade_dynamic m);

 private:
  std::function<std::optional<dynamic_supervisor_spec>()> init_;
  std::unique_ptr<detail::dynamic_children> children_;
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

/// From a plain thread: one without a parent.
[[nodiscard]] result<ref<dynamic_supervisor>> start_dynamic_supervisor(runtime& rt, dynamic_supervisor_spec spec = {});

// Asked as a supervisor is: `start_child`, which also fails with `capacity`, `which_children`, `count_children`, and:

/// Stops a child and forgets it. One that is being restarted is known by its last pid. Error: `not_found`.
template <std::derived_from<dynamic_supervisor> S>
[[nodiscard]] detail::calling<calls::terminate_by_pid> terminate_child(ref<S> sup, pid who) {
  return sup.template call<calls::terminate_by_pid>(who).within(forever);
}
/// The last 50 ends of a child, oldest first. Error: `not_found`.
template <std::derived_from<dynamic_supervisor> S>
[[nodiscard]] detail::calling<calls::exit_history_of> exit_history(ref<S> sup, pid who) {
  return sup.template call<calls::exit_history_of>(who).within(forever);
}
/// Other limits for a running supervisor; its children stay. Errors: those of `check`: then nothing has changed.
template <std::derived_from<dynamic_supervisor> S>
[[nodiscard]] detail::calling<calls::upgrade_dynamic> upgrade(ref<S> sup, dynamic_supervisor_spec spec) {
  return sup.template call<calls::upgrade_dynamic>(spec).within(forever);
}

}  // namespace coppice
