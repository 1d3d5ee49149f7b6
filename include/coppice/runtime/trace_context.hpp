#pragma once
/// Trace ids, as in the W3C recommendation "Trace Context": which request a message belongs to, through all processes
/// that it passes. They are off by default; `runtime_options::trace_ids` turns them on.
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coppice {

/// One step of a trace: the handling of one message, or what a process does between its start and its first message.
struct trace_context {
  std::uint64_t id_high = 0;  ///< the trace, together with `id_low`
  std::uint64_t id_low = 0;
  std::uint64_t span = 0;    ///< this step
  std::uint64_t parent = 0;  ///< the step that caused it; 0: not known
  bool sampled = true;       ///< the flag of the same name; Coppice only passes it on

  /// False: there is no trace.
  explicit operator bool() const noexcept { return (id_high | id_low) != 0; }
  /// The trace as 32 hexadecimal digits.
  [[nodiscard]] std::string id() const;
  /// This step as 16 hexadecimal digits.
  [[nodiscard]] std::string span_id() const;
  /// The header `traceparent` for requests to other programs: `00-<id>-<span>-01`.
  [[nodiscard]] std::string traceparent() const;
  /// Reads such a header. Nothing: it is not valid.
  [[nodiscard]] static std::optional<trace_context> from(std::string_view traceparent);

  friend bool operator==(const trace_context&, const trace_context&) = default;
};

/// For threads that run no processes: until the end of the scope, everything that this thread sends, spawns or logs
/// belongs to that trace. It has no effect in a process: use `self::begin_trace` there. Scopes may be nested.
class trace_scope {
 public:
  explicit trace_scope(const trace_context& as) noexcept;
  ~trace_scope();
  trace_scope(const trace_scope&) = delete;
  trace_scope& operator=(const trace_scope&) = delete;

 private:
  trace_context before_;
};

}  // namespace coppice
