#pragma once
/// What can be seen of a running runtime from outside, without stopping it.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <coppice/runtime/exit_reason.hpp>
#include <coppice/runtime/pid.hpp>
#include <coppice/runtime/wait_info.hpp>

namespace coppice {

enum class process_state : std::uint8_t {
  waiting,   ///< for mail
  runnable,  ///< has mail and waits for a worker
  running,
  frozen,  ///< see freeze.hpp
};
[[nodiscard]] std::string_view to_string(process_state state) noexcept;

/// How many messages of one type wait in a mailbox.
struct mail_count {
  std::string_view type;
  std::uint32_t count = 0;
  bool operator==(const mail_count&) const = default;
};

/// The messages of one type that a process has handled while it was measured. The time of a handler that waits is the
/// sum of the pieces between its waits.
struct handler_time {
  std::string_view type;
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};
  std::chrono::nanoseconds longest{0};  ///< the longest piece without a wait
};

struct process_info {
  pid id;
  std::string name;  ///< registered; empty: none
  /// The class of a server or actor, or the function of another body. Empty: the program has no symbols.
  std::string type;
  std::string label;  ///< given for people; if none was given, the type
  process_state state = process_state::waiting;
  /// The time since it last handled a signal; of a process whose code runs, since that was first seen. Up to 0.01 s
  /// wrong.
  std::chrono::milliseconds lasting{0};
  wait_info waits;
  /// The type of the message that it handles or, of a function, has received last; `continuation`: an actor runs what
  /// waited for a future. Empty: none.
  std::string_view handling;
  std::vector<std::string> frames;  ///< the functions that wait, the innermost first; only while it waits
  /// False: the process could not be looked at; what is not known is empty or 0. While its code runs, messages that it
  /// has put aside are not in `mail`; those of an actor are not in `mailbox` either.
  bool complete = true;
  std::uint32_t mailbox = 0;     ///< messages waiting
  std::vector<mail_count> mail;  ///< the same by type, the most frequent first
  std::uint32_t handled = 0;     ///< signals and resumptions since it started, modulo 2^32
  /// The longest total first, see `runtime::measure`. Kept after measuring is turned off.
  std::vector<handler_time> handlers;
  std::size_t memory = 0;  ///< bytes of the process itself, without its queue and without what its objects own
  pid parent;              ///< who spawned it; nobody: it was spawned from outside
  std::vector<pid> links;
  std::uint32_t monitors = 0;   ///< monitors that it has on other processes
  std::uint32_t monitored = 0;  ///< monitors that other processes have on it
  bool traps_exits = false;
  std::chrono::milliseconds age{0};  ///< up to 0.1 s too high
};

/// Sums since the start of the runtime, each exact when nothing runs.
struct runtime_counters {
  std::uint64_t spawned = 0;
  std::uint64_t ended = 0;
  std::uint64_t handled = 0;           ///< signals handled by all processes
  std::uint64_t looked_ahead = 0;      ///< signals inspected before their turn, in search of those that overtake mail
  std::uint64_t turns = 0;             ///< times a worker looked for a process to run
  std::uint64_t stolen = 0;            ///< processes taken from another worker's queue
  std::uint64_t parked = 0;            ///< times a worker went to sleep
  std::uint64_t injected = 0;          ///< processes made runnable from outside the workers
  std::uint64_t stalls = 0;            ///< workers replaced because a process did not return
  std::uint64_t dead_letters = 0;      ///< messages nobody received
  std::uint64_t timers = 0;            ///< pending now
  std::uint64_t blocking_waiting = 0;  ///< blocking work that waits for a thread now
  std::uint64_t blocking_running = 0;  ///< blocking work that runs now
  std::uint64_t blocking_done = 0;
  // Of the memory pools, which all runtimes of the program share. 0 if pools are turned off.
  std::uint64_t pool_bytes = 0;           ///< memory that the pools hold now, in use or free
  std::uint64_t pool_bytes_returned = 0;  ///< memory that the pools have given back to the system, in total
};

namespace detail {
/// Counts one more message of that type.
void count_mail(std::vector<mail_count>& into, std::string_view type);
}  // namespace detail

// Events: subscribe with `runtime::subscribe<E>` or `self::subscribe<E>`; each then comes as a message.

/// A message was not received: its receiver did not exist, had ended, ended before it was handled, had no handler for
/// it or no room in its mailbox; or it is a reply of an actor that nobody waits for.
struct dead_letter {
  pid to;
  std::string_view message;  ///< its type
};
/// A process has ended.
struct process_ended {
  pid who;
  std::string name;
  std::string label;
  exit_reason reason;
};
/// A process has held its worker for too long. The other processes of that worker go on with a fresh thread.
struct process_stalled {
  pid who;
  std::string name;
  std::string label;
  std::chrono::milliseconds lasting{0};
  std::string_view handling;           ///< the type of the message that it handles; empty: none
  std::vector<std::string> backtrace;  ///< of its thread, the innermost function first; empty: not known
};
/// A node can't be reached any more.
struct node_down {
  node_id node;
};

}  // namespace coppice
