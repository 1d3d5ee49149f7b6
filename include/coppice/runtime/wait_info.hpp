#pragma once
/// What a process waits for, as observers see it.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <coppice/runtime/pid.hpp>

namespace coppice {

enum class wait_kind : std::uint8_t {
  none,       ///< it does not wait: it runs, or waits for a worker
  mail,       ///< any message: a server or an actor between two messages
  message,    ///< a message of certain types: `receive<...>()`
  answer,     ///< the answer to a call
  time,       ///< `sleep`
  blocking,   ///< blocking work
  lane,       ///< work in a lane
  operation,  ///< an operation of another library: `perform`
  promise,    ///< a promise that somebody has to complete
  start,      ///< the start of another process
  end,        ///< the end of other processes
  job,        ///< the result of a job
  freeze,     ///< that other processes are frozen
  turn,       ///< its next turn, after it gave way to others
  room,       ///< room in a full mailbox
  decision,   ///< a failed or suspended actor: what its parent decides
  children,   ///< a stopping or restarting actor: the end of its children
};
[[nodiscard]] std::string_view to_string(wait_kind kind) noexcept;

struct wait_info {
  wait_kind kind = wait_kind::none;
  /// Of the messages that it can receive; of the request, if known; of the value of a promise.
  std::vector<std::string_view> types;
  std::uint64_t call = 0;  ///< the number of the call, which tells two waits for an answer apart
  pid whom;                ///< who has to answer, start, end or be frozen; nobody: none, or several
  std::string what;        ///< the name of the lane, or the type of the work or operation
  std::optional<std::chrono::milliseconds> left;  ///< until the wait ends by its limit; nothing: it has none
};
/// A phrase such as `an answer from <1.2.0> to cache::get`, without the limit.
[[nodiscard]] std::string to_string(const wait_info& wait);

}  // namespace coppice
