#pragma once
#include <coppice/env/os_signals.hpp>

namespace coppice {

/// The signals of this program: there is one set of handlers, so there is one of these.
[[nodiscard]] os_signals& process_signals();

}  // namespace coppice
