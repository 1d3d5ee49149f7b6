#pragma once
/// How a runtime is set up. The defaults suit a service that has the machine for itself.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <coppice/runtime/log.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

struct runtime_options {
  /// The number of threads that run processes; 0: one per core. More than that only add thread switches.
  unsigned workers = 0;
  /// Each worker stays on its core. Steadier times on a machine of your own, bad on a shared one. Default: no.
  bool pin_workers = false;
  /// Messages a process may handle before others have their turn. Fewer: fairer; more: less switching.
  int budget = 64;
  /// A process that holds its worker for longer is reported, and the other processes of that worker go on with a fresh
  /// thread. Zero: stalls are not detected. Default: half a second.
  std::chrono::milliseconds stall_after{500};
  /// How long the destructor waits for killed processes, for blocking work and for operations before it gives up on
  /// those that do not come back. Default: 5 s.
  std::chrono::milliseconds stop_within{5000};
  /// The largest number of threads for blocking work at a time; further work waits.
  unsigned blocking_threads = 256;
  /// The largest number of processes at a time. For each, 64 bytes of address space are reserved; they take up memory
  /// only after a process has used them.
  std::uint32_t processes = 1U << 24U;
  /// Log records below this level are not written. Default: warning.
  log_level level = log_level::warning;
  /// Other levels for some parts: `{{"supervision", log_level::info}, {"db", log_level::debug}}`, see `log_part`.
  std::map<std::string, log_level, std::less<>> levels{};
  /// Where log records go. Default: standard error.
  std::shared_ptr<log_sink> log{};
  /// Messages, spawned processes and log records carry the trace that they belong to; see trace_context.hpp. Each
  /// message takes locks then. Default: no.
  bool trace_ids = false;
  /// Counts the messages of every process by type and measures how long their handlers take; see `process_info`.
  /// `runtime::measure` does it for one process. Default: no.
  bool measure_handlers = false;
  /// This runtime's number among the nodes that talk to each other. Default: one that is new in this program.
  node_id node{};

  /// Not inline: in the inline one g++ 12 takes `log` for uninitialized, and warns in the user's code.
  ~runtime_options();
};

}  // namespace coppice
