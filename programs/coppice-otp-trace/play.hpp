#pragma once
#include <cstdint>

#include "scenario.hpp"

namespace otp_trace {

/// Plays a scenario on Coppice's supervisors in a simulated world and returns the trace. The seed decides the schedule,
/// which must not change the trace. Throws `std::runtime_error` when the scenario does not end.
[[nodiscard]] std::string play(const scenario& s, std::uint64_t seed);

}  // namespace otp_trace
