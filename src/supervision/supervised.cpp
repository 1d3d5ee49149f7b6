#include "internal/supervised.hpp"

namespace coppice::detail {

void supervised::become(child_spec s) {
  spec = std::move(s);
  if (!spec.shutdown) spec.shutdown = default_shutdown(spec.type);
}

child_info supervised::info(self& me) const {
  child_info i{.id = spec.id,
               .who = running() ? who : pid{},
               .state = state,
               .type = spec.type,
               .restart = spec.restart,
               .significant = spec.significant,
               .restarts = restarts,
               .start = spec.start};
  if (ended_before()) i.last_reason = last_reason();
  if (running()) i.uptime = me.now() - since;
  if (const timer_ref due = waits_for != nullptr ? waits_for->wait : wait)
    i.waits = me.remaining(due).value_or(std::chrono::nanoseconds{0});
  return i;
}

std::vector<exit_record> supervised::exits(self& me) const {
  std::vector<exit_record> all;
  if (history.empty()) return all;
  const wall_time wall = me.host().env().clock().wall();
  const time_point now = me.now();
  history.for_each([&](const exit_ring::end& e) {
    all.push_back({.at = wall - (now - e.at),
                   .uptime = e.uptime,
                   .who = e.who,
                   .reason = e.reason,
                   .action = e.did.action,
                   .because = e.did.because ? *e.did.because : std::string{}});
  });
  return all;
}

}  // namespace coppice::detail
