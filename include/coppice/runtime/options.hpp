#pragma once
/// How a runtime is set up. The defaults suit a service that has the machine for itself.
#include <chrono>
#include <cstdint>
#include <memory>

#include <coppice/runtime/log.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice {

struct runtime_options {
  /// Threads that run processes. More than the cores only cost switches. Default: one a core.
  unsigned workers = 0;
  /// Each worker stays on its core. Steadier times on a machine of your own, bad on a shared one. Default: no.
  bool pin_workers = false;
  /// Messages a process may handle before others have their turn. Fewer: fairer; more: less switching.
  int budget = 64;
  /// A process that holds its worker for longer is reported, and the other processes of that worker go on with a fresh
  /// thread. Zero: never look. Default: half a second.
  std::chrono::milliseconds stall_after{500};
  /// How long the destructor waits for killed processes before it gives up on those that are stuck. Default: 5 s.
  std::chrono::milliseconds stop_within{5000};
  /// The most processes at a time; each costs 64 bytes of address space, and memory only once it was used.
  std::uint32_t processes = 1U << 24U;
  /// Reports below this level are not made. Default: warning.
  log_level level = log_level::warning;
  /// Where reports go. Default: standard error.
  std::shared_ptr<log_sink> log{};
  /// This runtime's number among the nodes that talk to each other. Default: one that is new in this program.
  node_id node{};
};

}  // namespace coppice
