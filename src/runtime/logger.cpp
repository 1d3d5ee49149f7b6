#include "internal/logger.hpp"

#include <array>
#include <cstdio>

namespace coppice::detail {

void logger::write(log_level level, std::string_view text, std::span<const log_field> fields) {
  sink_->write({.level = level, .at = clock_.wall(), .text = text, .fields = fields});
}

void logger::write_throttled(flood what, log_level level, std::string_view text, std::span<const log_field> fields) {
  throttle& mine = floods_.at(std::to_underlying(what));
  std::uint64_t left_out = 0;
  {
    const std::scoped_lock lock{mine.mutex};
    const time_point at = clock_.now();
    if (at - mine.since >= std::chrono::seconds{1}) {
      left_out = mine.reports > most_in_a_second ? mine.reports - most_in_a_second : 0;
      mine.since = at;
      mine.reports = 0;
    }
    if (++mine.reports > most_in_a_second) return;
  }
  if (left_out != 0) {
    const log_field more{"and_before", std::to_string(left_out) + " more that were not logged"};
    write(level, text, {&more, 1});
  }
  write(level, text, fields);
}

}  // namespace coppice::detail

namespace coppice {

std::string_view to_string(log_level level) noexcept {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    case log_level::off: return "off";
  }
  return "unknown";
}

namespace {

std::string timestamp(wall_time at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::milliseconds>(at - day)};
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int{date.year()},
                unsigned{date.month()}, unsigned{date.day()}, static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()),
                static_cast<int>(time.subseconds().count()));
  return text.data();
}

/// Escapes text so that a record stays one line and no value looks like another field.
void append_escaped(std::string& line, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line.append("\\x").append(1, digits[code >> 4U]).append(1, digits[code & 15U]);
    } else {
      if (c == '\\' || c == '"') line += '\\';
      line += c;
    }
  }
}
void append_value(std::string& line, std::string_view value) {
  const bool plain = value.find_first_of(" =\"\\") == std::string_view::npos;
  if (!plain) line += '"';
  append_escaped(line, value);
  if (!plain) line += '"';
}

class stderr_log final : public log_sink {
 public:
  void write(const log_record& record) override {
    std::string line = timestamp(record.at);
    line.append(" ").append(to_string(record.level)).append("  ");
    append_escaped(line, record.text);
    for (const log_field& f : record.fields) {
      if (f.value.empty()) continue;
      line.append("  ").append(f.key).append("=");
      append_value(line, f.value);
    }
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);  // one call, so that lines of different threads do not mix
  }
};

}  // namespace

std::shared_ptr<log_sink> stderr_sink() { return std::make_shared<stderr_log>(); }

}  // namespace coppice
