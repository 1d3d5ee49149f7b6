#pragma once
/// Signals that a process handles before the mail in its queue, if it has a fast lane.
#include "exits.hpp"

namespace coppice::detail {

/// Thread safety: `send` from any thread, the others for the owner of the slot.
class fast_lane {
 public:
  fast_lane(kernel& k, links& l, exits& x) noexcept : kernel_{k}, table_{k.table()}, links_{l}, exits_{x} {}

  void send(pid to, envelope* e);
  /// Moves the signals that go before mail to the head of the queue, in their order. Their old envelopes stay in the
  /// queue, empty. In a long queue it marks how far it has searched, and the next search begins there.
  void bring_forward(slot& p, envelope* from);
  /// Removes the mark: the marked envelope gets back the signal that it had before.
  static void unmark(slot& p);

 private:
  [[nodiscard]] bool goes_first(const slot& p, const envelope& e) const noexcept;
  void mark(slot& p, envelope& e);

  kernel& kernel_;
  process_table& table_;
  links& links_;
  exits& exits_;
};

}  // namespace coppice::detail
