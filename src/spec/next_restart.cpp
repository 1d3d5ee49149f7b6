#include <coppice/base/ensure.hpp>
#include <coppice/spec/next_restart.hpp>

namespace coppice {

next_restart limit_then_back_off(const restart_rules& rules, restart_window& window, std::uint32_t& failures_in_a_row,
                                 time_point now, std::optional<std::chrono::nanoseconds> uptime,
                                 random_source& random) {
  ensure(rules.limit.restarts >= 0, "the limit of restarts is negative");
  if (rules.limit.restarts != unlimited_restarts && !window.add(now, rules.limit)) return {.allowed = false};
  if (rules.backoff == nullptr) return {.allowed = true};
  const backoff& how = *rules.backoff;
  if (uptime && *uptime >= how.reset_after) failures_in_a_row = 0;
  if (failures_in_a_row != std::numeric_limits<std::uint32_t>::max()) ++failures_in_a_row;
  return {
      .allowed = true,
      .wait = how.jitter > 0 ? how.wait_after(failures_in_a_row, random.next()) : how.wait_after(failures_in_a_row)};
}

}  // namespace coppice
