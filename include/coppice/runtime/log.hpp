#pragma once
/// Where the runtime's reports go. Implement `log_sink` to send them to your logger.
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <coppice/env/clock.hpp>

namespace coppice {

enum class log_level : unsigned char { debug, info, warning, error, off };
[[nodiscard]] std::string_view to_string(log_level level) noexcept;

/// One named value of a log record, so that programs can search for it.
struct log_field {
  std::string_view key;
  std::string value;
};

/// Valid during the call of `log_sink::write` only.
struct log_record {
  log_level level = log_level::info;
  wall_time at{};
  std::string_view text;
  std::span<const log_field> fields;
};

/// Thread safety: `write` is called from any thread, and must not call back into the runtime.
class log_sink {
 public:
  virtual ~log_sink() = default;
  virtual void write(const log_record& record) = 0;
};

/// Writes each record as one line to standard error. Control characters are escaped, values with blanks are quoted, and
/// empty values are left out:
/// `2026-11-15T09:30:00.123Z error  process ended  pid=<1.4.0>  reason="..."`
[[nodiscard]] std::shared_ptr<log_sink> stderr_sink();

}  // namespace coppice
