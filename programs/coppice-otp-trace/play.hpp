#pragma once
#include <cstdint>

#include "scenario.hpp"

namespace otp_trace {

/// Plays it on Coppice's supervisors in a simulated world and gives the trace. The seed decides what the scenario
/// leaves open, which should be nothing that is seen. Throws `std::runtime_error` when the scenario comes to no end.
[[nodiscard]] std::string play(const scenario& s, std::uint64_t seed);

}  // namespace otp_trace
