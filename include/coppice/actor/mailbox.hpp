#pragma once
/// Kinds of mailboxes.
#include <chrono>

#include <coppice/runtime/detail/gate.hpp>

namespace coppice {

/// What becomes of a message for which there is no room.
///     drop_newest   that message is a dead letter
///     drop_oldest   the one that has waited longest is (of the lowest priority)
///     sender_waits  an actor that sent it takes no mail until there is room; who is no actor, or sent it to itself, is
///                   turned away
using when_full = detail::gate::when_full;

/// The default is unbounded, in the order of arrival, and the fastest. A limit or priorities cost a lock a message.
struct mailbox {
  /// How many messages wait at most; 0: no limit. What the runtime itself says is not counted.
  std::size_t capacity = 0;
  coppice::when_full when_full = coppice::when_full::drop_newest;
  /// The highest comes first, in the order of arrival within one. A message says it as `static constexpr int priority`
  /// or as `int priority() const`, from 0 to 7 (what is beyond is taken for the nearest); otherwise it has 4.
  bool by_priority = false;
  /// With `sender_waits`: after that time its message is a dead letter, and it goes on.
  std::chrono::nanoseconds waits_at_most = std::chrono::seconds{10};
};

}  // namespace coppice
