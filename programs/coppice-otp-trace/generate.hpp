#pragma once
#include <cstdint>
#include <string>

namespace otp_trace {

/// A random scenario, the same for the same seed. It avoids everything that has more than one outcome on OTP: steps
/// that depend on the wall clock, let several processes print at the same time, or never end.
[[nodiscard]] std::string generate(std::uint64_t seed);

}  // namespace otp_trace
