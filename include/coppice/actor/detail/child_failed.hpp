#pragma once
/// The signal of a failed actor to its parent. The parent keeps it if it can't decide at once.
#include <exception>

#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice::detail::signals {

/// The child has failed and waits for a decision.
struct child_failed {
  pid child{};
  std::uint64_t instance = 0;  ///< as the parent counts; an older number means that the failure was already answered
  bool has_instance = false;   ///< false: the instance could not be made, so that there is nothing to resume
  exit_reason reason{};
  std::exception_ptr thrown{};  ///< null: it failed without an exception
  bool logged = false;          ///< it was a process, which has logged its end
};
}  // namespace coppice::detail::signals
