#pragma once
/// How many messages may wait for a process, and in which order it receives them.
#include <chrono>
#include <cstddef>

#include <coppice/base/error.hpp>
#include <coppice/runtime/when_full.hpp>

namespace coppice {

/// The mailbox of a process, server or actor. The default is unbounded, keeps the order of arrival, and is the fastest.
/// With a limit or priorities, each message takes locks.
struct mailbox {
  /// The most messages that can wait; 0: no limit. Messages that a process has put aside, because it waits for others,
  /// take room too; there may be one more than the limit if a message arrives while the process looks at another and
  /// puts it aside. Exits, downs, fired timers, replies and all other signals are always accepted, and take no room
  /// before they are put aside. Of an actor, the messages of its timers, a poison and `terminated` take room, but are
  /// always accepted; its stash takes no room.
  std::size_t capacity = 0;
  coppice::when_full when_full = coppice::when_full::drop_newest;
  /// The highest priority is received first; within one, the order of arrival counts. A message states it as `static
  /// constexpr int priority` or as `int priority() const`, from 0 to 7 (other values are clamped). The default is 4.
  /// The function is called under a lock: it must not use the runtime.
  bool by_priority = false;
  /// With `sender_waits`: after that time the message becomes a dead letter (a call gets `capacity`), and the sender
  /// continues.
  std::chrono::nanoseconds waits_at_most = std::chrono::seconds{10};

  /// Error: `invalid`, if the values make no sense together.
  [[nodiscard]] result<void> check() const;
  bool operator==(const mailbox&) const = default;
};

}  // namespace coppice
