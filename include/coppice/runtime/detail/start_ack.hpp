#pragma once
/// How a new process tells the process that waits for its start how the start went.
#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/init_result.hpp>

namespace coppice::detail {

/// The private message that says how a start went.
struct start_news {
  std::uint64_t call = 0;
  init_result how;
};

/// The process that waits for a start; the number is 0 if nobody waits.
struct start_ack {
  pid to{};
  std::uint64_t call = 0;
  void give(kernel& k, init_result&& how) const;
};

}  // namespace coppice::detail
