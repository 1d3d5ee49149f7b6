#pragma once
#include <cstdint>

namespace coppice {

/// What happens to a message that finds a mailbox full. A request never becomes a dead letter: its caller gets the
/// error `capacity`.
enum class when_full : std::uint8_t {
  drop_newest,  ///< the message becomes a dead letter
  drop_oldest,  ///< the oldest message of the lowest priority, the new one included, becomes a dead letter
  /// A sender that is an actor handles no mail until there is room or its wait times out. Messages from other senders,
  /// messages of the receiver to itself, and published events become dead letters.
  sender_waits,
};

}  // namespace coppice
