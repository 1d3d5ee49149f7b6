#pragma once
#include <coppice/spec/child_spec.hpp>

namespace coppice::detail {

/// For a process that is no supervisor and has one child: starts it, linked to this process, and waits until it has
/// begun.
[[nodiscard]] task<start_result> start_process(self& me, child_spec spec);

}  // namespace coppice::detail
