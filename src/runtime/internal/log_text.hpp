#pragma once
/// Texts that the log sinks have in common.
#include <string>

#include <coppice/env/clock.hpp>

namespace coppice::detail {

/// For example `2026-11-15T09:30:00.123Z`.
[[nodiscard]] std::string timestamp(wall_time at);

}  // namespace coppice::detail
