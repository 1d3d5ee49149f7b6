#pragma once
/// What all supervisors of a runtime count together.
#include <array>
#include <optional>

#include <coppice/runtime/metrics.hpp>
#include <coppice/runtime/self.hpp>
#include <coppice/supervision/supervisor_spec.hpp>

namespace coppice::detail {

class restart_counters {
 public:
  explicit restart_counters(metrics& m)
      : gave_up{
            library_counter(m, {.name = "coppice_supervisors_gave_up",
                                .help = "Supervisors that ended because of too many restarts of their children."})} {
    for (std::size_t s = 0; s < by_.size(); ++s)
      for (std::size_t r = 0; r < by_[s].size(); ++r) by_[s][r].emplace(library_counter(m, restarts_of(s, r)));
  }
  [[nodiscard]] const metric_counter& restarts(strategy s, exit_reason::kind why) const {
    return *by_[static_cast<std::size_t>(s)][static_cast<std::size_t>(why)];
  }
  const metric_counter gave_up;

 private:
  static metric_options restarts_of(std::size_t s, std::size_t r) {
    const std::string_view how = to_string(static_cast<strategy>(s));
    const std::string_view why = to_string(static_cast<exit_reason::kind>(r));
    return {.name = "coppice_restarts",
            .help = "Children that supervisors have started again.",
            .labels = {{"strategy", std::string{how}}, {"reason", std::string{why}}}};
  }
  static constexpr std::size_t strategies = static_cast<std::size_t>(strategy::rest_for_one) + 1;
  static constexpr std::size_t reasons = static_cast<std::size_t>(exit_reason::kind::error) + 1;
  std::array<std::array<std::optional<metric_counter>, reasons>, strategies> by_;
};

}  // namespace coppice::detail
