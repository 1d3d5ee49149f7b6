#pragma once
#include <cstdint>

namespace coppice {

/// What happens to a message that finds a mailbox full.
enum class when_full : std::uint8_t {
  drop_newest,  ///< the message becomes a dead letter
  drop_oldest,  ///< the oldest message of the lowest priority becomes a dead letter
  /// The sender reads no mail until there is room, if it is a process that can wait for that: an actor. A message from
  /// any other sender, or from the receiver itself, becomes a dead letter.
  sender_waits,
};

}  // namespace coppice
