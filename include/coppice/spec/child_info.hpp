#pragma once
/// What a supervisor or an actor reports about its children.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <coppice/env/clock.hpp>
#include <coppice/spec/child_spec.hpp>

namespace coppice {

enum class child_state : std::uint8_t {
  running,
  undefined,   ///< down, and no start is pending; a restart of its group starts it
  restarting,  ///< a start is pending; until then the child is down, or suspended if it is an actor
};
[[nodiscard]] std::string_view to_string(child_state state) noexcept;

struct child_info {
  std::string id;
  pid who;  ///< nobody while the child is down; an actor that waits for its restart keeps its pid
  child_state state = child_state::undefined;
  child_type type = child_type::worker;
  coppice::restart restart = coppice::restart::permanent;
  bool significant = false;
  /// The number of restarts because of its own ends since the child was added. New attempts after a start that failed
  /// count as well, as they do for the limit. Restarts together with a sibling do not count.
  std::uint64_t restarts = 0;
  std::optional<exit_reason> last_reason{};  ///< of its last end; nothing before the first
  std::chrono::nanoseconds uptime{0};        ///< of the running process
  std::chrono::nanoseconds waits{0};         ///< time left until a restart with backoff
  /// How the child is started. Empty for the children of actors, and for a temporary child that was started: it is
  /// never started again.
  child_start start{};
};
/// What the child is, for people.
[[nodiscard]] inline description describe(const child_info& c) { return c.start.describe(); }

/// Calls that both supervisors and actors answer.
namespace calls {
struct which_children {
  static constexpr bool bypasses_policy = true;
  using reply = std::vector<child_info>;
};
}  // namespace calls

}  // namespace coppice
