#pragma once
/// What a simulated world sees of the processes of a runtime, for its trace. Real runtimes have no tracer.
#include <coppice/runtime/detail/slot.hpp>
#include <coppice/runtime/observe.hpp>

namespace coppice::detail {

class tracer {
 public:
  virtual ~tracer() = default;
  /// A process whose slot has the bit `in_world_trace` is about to handle this signal.
  virtual void handles(const slot& p, const envelope& e) = 0;
  virtual void saw(const process_ended& event) = 0;
  virtual void saw(const process_stalled& event) = 0;
  virtual void saw(const dead_letter& event) = 0;
};

}  // namespace coppice::detail
