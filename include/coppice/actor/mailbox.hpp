#pragma once
/// Kinds of mailboxes.
#include <chrono>
#include <cstddef>

#include <coppice/actor/fwd.hpp>
#include <coppice/runtime/when_full.hpp>

namespace coppice::actor {

using coppice::when_full;

/// The default is unbounded, keeps the order of arrival, and is the fastest. With a limit or priorities, each message
/// takes locks.
struct mailbox {
  /// The most messages that can wait; 0: no limit. Signals and replies are not counted. Messages of timers, a poison
  /// and `terminated` are counted but always accepted.
  std::size_t capacity = 0;
  actor::when_full when_full = actor::when_full::drop_newest;
  /// The highest priority is received first; within one, the order of arrival counts. A message states it as `static
  /// constexpr int priority` or as `int priority() const`, from 0 to 7 (other values are clamped). The default is 4.
  bool by_priority = false;
  /// With `sender_waits`: after that time the message becomes a dead letter (a call gets `capacity`), and the sender
  /// continues.
  std::chrono::nanoseconds waits_at_most = std::chrono::seconds{10};
};
/// Throws `std::invalid_argument` for values that make no sense.
void check(const mailbox& box);

}  // namespace coppice::actor
