#pragma once
/// Messages about the life of the actor itself and of others: `void handle(started, context& me)`. Each handler is
/// optional.
#include <chrono>
#include <cstdint>
#include <string_view>

#include <coppice/actor/detail/no_server.hpp>
#include <coppice/actor/fwd.hpp>
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice::actor {

/// The first message of every instance, before any mail.
struct started {};
/// The last message of an instance that is about to be replaced; its children still run. That instance gets neither
/// `stopping` nor `stopped`. An exception is logged and ignored.
struct restarting {
  exit_reason cause;
};
/// The actor is about to stop; its children still run. An exception is logged and ignored.
struct stopping {
  exit_reason reason;
};
/// The children have ended, and this is the last message. An exception is logged and ignored.
struct stopped {
  exit_reason reason;
};

/// A watched process has ended. `terminated` is received once, after all mail that the process had sent to this actor,
/// and never after `unwatch`.
struct terminated {
  enum class cause : std::uint8_t {
    stopped,    ///< it has ended; the reason says how
    not_found,  ///< there was no such process (any more) when the watch began
    node_gone,  ///< its node can't be reached
  };
  pid who;
  cause why = cause::stopped;
  exit_reason reason;
};
[[nodiscard]] std::string_view to_string(terminated::cause why) noexcept;

/// The actor has received no message for the time given to `context::set_receive_timeout`. Repeated until the timeout
/// is cancelled. Messages whose type has `static constexpr bool keeps_receive_timeout = true;` do not count.
struct receive_timeout {
  std::chrono::nanoseconds after{0};
};

}  // namespace coppice::actor
