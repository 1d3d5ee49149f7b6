#pragma once
#include <chrono>
#include <string>

namespace coppice {

/// A duration as people write it: `1.5s`, `20ms`, `2min`.
[[nodiscard]] std::string to_string(std::chrono::nanoseconds time);

}  // namespace coppice
