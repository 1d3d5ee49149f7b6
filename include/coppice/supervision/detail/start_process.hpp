#pragma once
#include <coppice/spec/child_spec.hpp>

namespace coppice::detail {

/// For a process that is not a supervisor: starts a child, linked to this process, and waits until it is initialised.
[[nodiscard]] task<start_result> start_process(self& me, child_spec spec);

}  // namespace coppice::detail
