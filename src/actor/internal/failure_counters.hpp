#pragma once
/// What all actors of a runtime count together.
#include <array>

#include <coppice/actor/strategy.hpp>
#include <coppice/runtime/metrics.hpp>

namespace coppice::detail {

class failure_counters {
 public:
  explicit failure_counters(metrics& m)
      : by_{made(m, directive::resume), made(m, directive::restart), made(m, directive::stop),
            made(m, directive::escalate)} {}
  [[nodiscard]] const metric_counter& of(directive d) const { return by_.at(static_cast<std::size_t>(d)); }

 private:
  static metric_counter made(metrics& m, directive d) {
    return library_counter(m, {.name = "coppice_actor_failures",
                               .help = "Failures of actors, by what was decided.",
                               .labels = {{"directive", std::string{to_string(d)}}}});
  }
  std::array<metric_counter, 4> by_;
};

}  // namespace coppice::detail
