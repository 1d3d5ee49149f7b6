#pragma once
/// Where the runtime's reports go. Implement `log_sink` to send them to your logger.
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <coppice/env/clock.hpp>

namespace coppice {

enum class log_level : unsigned char { debug, info, warning, error, off };
[[nodiscard]] std::string_view to_string(log_level level) noexcept;

/// The part of a program that a record comes from. `runtime_options::levels` gives a part its own level, by its name.
/// Make parts of your own: `constexpr log_part db{"db"};`, then `me.log(db, log_level::debug, "query", {...})`.
struct log_part {
  std::string_view name;  ///< must outlive the records
};
/// The parts of the library, and `program` for records of a program that name no part.
namespace log_parts {
inline constexpr log_part runtime{"runtime"};
inline constexpr log_part behaviour{"behaviour"};
inline constexpr log_part supervision{"supervision"};
inline constexpr log_part actor{"actor"};
inline constexpr log_part application{"application"};
inline constexpr log_part program{"program"};
}  // namespace log_parts

/// Longer texts and values, in bytes, are cut before they reach a sink, and their length is added.
inline constexpr std::size_t longest_log_text = 4096;

/// One named value of a log record, so that programs can search for it.
struct log_field {
  std::string_view key;
  std::string value;
};

/// Valid during the call of `log_sink::write` only. No field is empty.
struct log_record {
  log_level level = log_level::info;
  wall_time at{};
  std::string_view text;
  std::span<const log_field> fields;
  std::string_view part{};
};

/// Thread safety: `write` is called from any thread, and must not call back into the runtime.
class log_sink {
 public:
  virtual ~log_sink() = default;
  virtual void write(const log_record& record) = 0;
};

/// Writes each record as one line to standard error. Control characters are escaped, and values with blanks are quoted:
/// `2026-11-15T09:30:00.123Z error runtime  process ended  pid=<1.4.0>  reason="..."`
[[nodiscard]] std::shared_ptr<log_sink> stderr_sink();

/// The record as one JSON object without line breaks: `{"time":"2026-11-15T09:30:00.123Z","level":"error",
/// "part":"runtime","text":"process ended","fields":{"pid":"<1.4.0>","reason":"..."}}`. All values are strings. It is
/// valid JSON whatever bytes the record contains: those that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string to_json(const log_record& record);
/// Writes each record as a line of JSON, see `to_json`. The file stays open; it must outlive the runtime.
[[nodiscard]] std::shared_ptr<log_sink> json_sink(std::FILE* to = stderr);

}  // namespace coppice
