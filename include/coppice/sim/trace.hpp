#pragma once
/// The trace of a simulated world: what happened in it, in words. A world makes it only if somebody wants it; its hash
/// (`world::trace_hash`) does not depend on it.
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <coppice/env/clock.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice::sim {

/// One event of a trace. The texts are for people: those of types depend on the compiler.
struct trace_event {
  time_point at;       ///< in the time of the world
  std::string node;    ///< the name of the node; empty: the event is not about one node
  pid process;         ///< nobody: the event is not about a process of the library
  std::string called;  ///< the name of the process, or else its label, or else its class; empty: it has none (yet)
  std::string what;
};

/// One line: the time in seconds, the node, the process, and what happened.
///
///     1.000000300 store writer <1.2.0>: message put
[[nodiscard]] std::string to_string(const trace_event& event);

/// Collects events, for one who gets each as a line, and for those who ask later.
class trace {
 public:
  void on_line(std::function<void(std::string_view)> sink) { sink_ = std::move(sink); }
  /// From now on at most so many, the last ones; 0: none.
  void keep(std::size_t events);
  [[nodiscard]] bool wanted() const noexcept { return sink_ != nullptr || most_ != 0; }
  void add(trace_event event);
  [[nodiscard]] const std::deque<trace_event>& kept() const noexcept { return kept_; }

 private:
  std::function<void(std::string_view)> sink_;
  std::size_t most_ = 0;
  std::deque<trace_event> kept_;
};

/// Of these events the last `n` that concern `who`: what the trace calls a process (its name, or else its label, or
/// else its class), its pid as `to_string` writes it, or the name of a node. All processes that had the name at any
/// time of the trace count, with all their events.
[[nodiscard]] std::vector<trace_event> last_of(const std::deque<trace_event>& events, std::string_view who,
                                               std::size_t n);

}  // namespace coppice::sim
