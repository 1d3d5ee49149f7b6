#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Watches other processes, and receives their ends: `down` of a monitor, `exited` of a link.
class ends_of_others : public duty {
 public:
  using duty::duty;
  void watch(pid who);
  void unwatch(pid who);
  void receive_down(envelope& e);
  void receive_terminated(envelope& e);
  /// False: the message has to wait, and its payload is untouched.
  [[nodiscard]] bool receive_exited(envelope& e);
};

}  // namespace coppice::detail
