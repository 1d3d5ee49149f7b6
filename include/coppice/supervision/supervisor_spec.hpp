#pragma once
#include <functional>

#include <coppice/spec/child.hpp>
#include <coppice/spec/restart_window.hpp>

namespace coppice {

enum class strategy : std::uint8_t {
  one_for_one,   ///< the child that ended is restarted
  one_for_all,   ///< all are: the others are stopped first
  rest_for_one,  ///< it and those that were started after it are
};
[[nodiscard]] std::string_view to_string(strategy s) noexcept;

class supervisor;

/// A supervisor and its children, in the order in which they are started; they are stopped in the reverse order.
///
///     supervisor_spec tree{
///         .strategy = strategy::rest_for_one,
///         .limit = {.restarts = 3, .within = 5s},
///         .children = {child<database>(url), child<cache>(), child<web_server>(8080)},
///     };
struct supervisor_spec {
  coppice::strategy strategy = coppice::strategy::one_for_one;
  restart_limit limit{};
  coppice::auto_shutdown auto_shutdown = coppice::auto_shutdown::never;
  std::vector<child_spec> children{};
  /// A child that is still there so long after it was killed, stuck in code that does not come back, is abandoned, and
  /// the supervisor goes on. Default: it is waited for.
  std::optional<std::chrono::nanoseconds> abandon_after{};

  /// A type whose `static supervisor_spec init(args...)` gives one is a supervisor.
  using supervised_by = supervisor;
};

/// Whether a supervisor would start with this: the errors of `check` for children, and `invalid` for its own fields.
/// Nothing is started.
[[nodiscard]] result<void> check(const supervisor_spec& spec);

}  // namespace coppice
