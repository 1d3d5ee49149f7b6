#pragma once
/// What a supervisor or an actor tells of its children.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <coppice/env/clock.hpp>
#include <coppice/spec/child_spec.hpp>

namespace coppice {

enum class child_state : std::uint8_t {
  running,
  undefined,   ///< down, and not about to be started for its own sake: a restart of a group may start it
  restarting,  ///< down, and about to be started again
};
[[nodiscard]] std::string_view to_string(child_state state) noexcept;

struct child_info {
  std::string id;
  pid who;  ///< nobody unless it is running
  child_state state = child_state::undefined;
  child_type type = child_type::worker;
  coppice::restart restart = coppice::restart::permanent;
  bool significant = false;
  std::uint64_t restarts = 0;  ///< decided on for its own ends, since the child was added; not those with a group
  std::optional<exit_reason> last_reason{};  ///< of its last end; nothing: it has not ended yet
  std::chrono::nanoseconds uptime{0};        ///< of the running process
  std::chrono::nanoseconds waits{0};         ///< until it is started again, with a backoff
};

/// Asked of whoever has children and shows them: supervisors and actors.
namespace calls {
struct which_children {
  static constexpr bool passes_gates = true;
  using reply = std::vector<child_info>;
};
}  // namespace calls

}  // namespace coppice
