#pragma once
#include <coppice/env/os_signals.hpp>

namespace coppice {

/// The signals of this program. There is one set of handlers per program, so there is one instance.
[[nodiscard]] os_signals& program_signals();

}  // namespace coppice
