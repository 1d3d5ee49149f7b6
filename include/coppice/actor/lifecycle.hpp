#pragma once
/// What an actor hears of its own life and of others', as messages: `void handle(started, context& me)`. Each handler
/// is optional.
#include <chrono>
#include <cstdint>
#include <string_view>

#include <coppice/actor/detail/no_server.hpp>
#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

/// The first message of every instance, before any mail.
struct started {};
/// To the old instance, before a new one takes its place; its children are still there. It hears neither `stopping` nor
/// `stopped`. What it throws is logged, and the restart goes on.
struct restarting {
  exit_reason cause;
};
/// It is about to stop; its children are still there. What it throws is logged, and the stop goes on.
struct stopping {
  exit_reason reason;
};
/// Its children are gone, and this is the last it hears. What it throws is logged.
struct stopped {
  exit_reason reason;
};

/// Somebody it watches has ended. Comes behind all mail that one sent to it, once, and never after `unwatch`.
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

/// Nothing has come for as long as `context::set_receive_timeout` says. It comes again after the same time, until it is
/// cancelled. A message whose type has `static constexpr bool keeps_receive_timeout = true;` does not count as one.
struct receive_timeout {
  std::chrono::nanoseconds after{0};
};

}  // namespace coppice
