#pragma once
#include <cstdint>
#include <string>

namespace otp_trace {

/// A random scenario, the same for the same seed. It leaves out what has no one outcome on OTP: what depends on the
/// wall clock, what lets several processes print at a time, and what never ends.
[[nodiscard]] std::string generate(std::uint64_t seed);

}  // namespace otp_trace
