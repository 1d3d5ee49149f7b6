#pragma once
/// Which trace a message or a process belongs to. Used only in a runtime with `runtime_options::trace_ids`: there each
/// slot has the bit `has_trace_ids`, and `kernel::send` takes its slow path.
#include <array>
#include <mutex>
#include <unordered_map>

#include "side_block.hpp"

namespace coppice::detail {

/// The traces of messages are kept beside the messages, by the address of the envelope. Only an envelope with a mark in
/// its tag is looked up, so an entry left by an envelope that was freed is never used. Thread safety: any thread,
/// except functions that take a slot: its owner.
class trace_ids {
 public:
  explicit trace_ids(kernel& k) noexcept : kernel_{k} {}

  /// The envelope gets the trace of the code that runs now, if there is one.
  void attach(envelope& e) { attach(e, trace_here()); }
  /// How many envelopes have a trace; for tests.
  [[nodiscard]] std::size_t in_flight();
  /// Removes and returns the trace of the envelope.
  [[nodiscard]] trace_context take(envelope& e) noexcept;

  /// The turn continues the trace of the process.
  static void resume(const slot& p, turn& t) noexcept;
  /// Before the process handles a signal: sets the trace of the turn.
  void begin(slot& p, envelope& e, turn& t);
  /// The process receives this message now: from here on it belongs to the trace of the message, or to none.
  void receive(slot& p, envelope& e, turn& t);
  /// The process does not receive it now after all: the message keeps its trace, and the process the one before.
  void put_aside(slot& p, envelope& e, turn& t);
  /// A message that the process has received, and keeps in a new envelope for later, keeps its trace.
  void keep(envelope& e, const turn& t);
  /// Begins a new trace, or a new step of `from`.
  [[nodiscard]] trace_context begin_trace(slot& p, const trace_context& from, turn& t);

 private:
  struct shard {
    std::mutex mutex;
    std::unordered_map<const envelope*, trace_context> in_flight;
  };
  [[nodiscard]] shard& shard_of(const envelope& e) noexcept {
    return shards_[(reinterpret_cast<std::uintptr_t>(&e) >> 5U) % shards_.size()];
  }
  void attach(envelope& e, const trace_context& as);
  void set(slot& p, const trace_context& now, turn& t);
  [[nodiscard]] trace_context next_step(const trace_context& from);

  kernel& kernel_;
  std::array<shard, 64> shards_;
};

}  // namespace coppice::detail
