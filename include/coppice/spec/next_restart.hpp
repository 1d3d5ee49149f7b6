#pragma once
/// Limit, then back off: whether a failed child may be restarted once more, and after which wait. Supervisors and
/// actors use the same function.
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include <coppice/env/environment.hpp>
#include <coppice/spec/backoff.hpp>
#include <coppice/spec/restart_window.hpp>

namespace coppice {

/// No limit: restarts are not counted.
inline constexpr int unlimited_restarts = std::numeric_limits<int>::max();

/// The settings that decide about a restart.
struct restart_rules {
  restart_limit limit;
  const coppice::backoff* backoff = nullptr;  ///< null: no wait
};

struct next_restart {
  bool allowed = false;              ///< false: the limit is reached
  std::chrono::nanoseconds wait{0};  ///< before the restart; zero: at once
  friend bool operator==(const next_restart&, const next_restart&) = default;
};

/// Decides about a child that ended at `now` after it had run for `uptime` (nothing: it could not be started). Counts
/// one restart in `window`, unless restarts are unlimited. If the limit allows the restart and there is a backoff, adds
/// one to `failures_in_a_row`, which starts from zero again if the child had run for `backoff::reset_after`, and
/// returns the wait for that number of failures.
[[nodiscard]] next_restart limit_then_back_off(const restart_rules& rules, restart_window& window,
                                               std::uint32_t& failures_in_a_row, time_point now,
                                               std::optional<std::chrono::nanoseconds> uptime, random_source& random);

}  // namespace coppice
