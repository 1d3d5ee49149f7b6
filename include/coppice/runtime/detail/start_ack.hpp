#pragma once
/// How a new process reports the result of its start to the process that waits for it.
#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/init_result.hpp>

namespace coppice::detail {

/// The signal with the result of a start.
struct start_news {
  std::uint64_t call = 0;
  init_result how;
};

/// The process that waits for a start, and the number of its wait; 0: no process waits.
struct start_ack {
  pid to{};
  std::uint64_t call = 0;
  void give(kernel& k, init_result&& how) const;
};

}  // namespace coppice::detail
