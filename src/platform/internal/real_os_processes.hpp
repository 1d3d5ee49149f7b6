#pragma once
#include <coppice/env/os_processes.hpp>

namespace coppice {

/// The children of this program. One thread serves them all, so there is one instance.
[[nodiscard]] os_processes& children_of_this_program();

}  // namespace coppice
