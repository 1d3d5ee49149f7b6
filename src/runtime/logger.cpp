#include "internal/logger.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "internal/log_text.hpp"

namespace coppice::detail {

namespace {

/// The first part of a long text, and its length.
std::string cut(std::string_view text) {
  if (text.size() <= longest_log_text) return std::string{text};
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  std::size_t end = longest_log_text;
  for (int i = 0; i < 3 && continues(text[end]); ++i) --end;  // not inside of a UTF-8 character
  return std::string{text.substr(0, end)} + "... (cut, it has " + std::to_string(text.size()) + " bytes)";
}

}  // namespace

void logger::write(log_part part, log_level level, std::string_view text, std::span<const log_field> fields) {
  log_record record{.level = level, .at = clock_.wall(), .text = text, .fields = fields, .part = part.name};
  const auto as_it_is = [](const log_field& f) { return !f.value.empty() && f.value.size() <= longest_log_text; };
  if (text.size() <= longest_log_text && std::ranges::all_of(fields, as_it_is)) return sink_->write(record);
  const std::string shorter = cut(text);
  std::vector<log_field> kept;
  for (const log_field& f : fields)
    if (!f.value.empty()) kept.push_back({f.key, cut(f.value)});
  record.text = shorter;
  record.fields = kept;
  sink_->write(record);
}

void logger::write_throttled(const flood& about, log_part part, log_level level, std::string_view text,
                             std::span<const log_field> fields) {
  std::uint64_t hash =
      mix(std::hash<std::string_view>{}(about.subject) + mix(about.key) + static_cast<std::uint64_t>(level));
  summary before;
  {
    const std::scoped_lock lock{mutex_};
    const time_point at = clock_.now();
    throttle& mine = throttle_for(hash, at);
    if (mine.flood != hash || at - mine.since >= window) {
      before = take_summary(mine);
      mine.flood = hash;
      mine.since = at;
    }
    if (++mine.reports > most_in_a_second) return;
    mine.last = {.subject = std::string{about.subject}, .part = part, .level = level};
  }
  write(before);
  write(part, level, text, fields);
}

/// The throttle of that flood. If it has none, one whose last second is over; if all places for it are taken, it shares
/// the first one.
logger::throttle& logger::throttle_for(std::uint64_t& flood, time_point at) {
  const auto place = [&](std::uint64_t i) -> throttle& { return floods_.at((flood + i) % floods_.size()); };
  for (std::uint64_t i = 0; i < places; ++i)
    if (place(i).flood == flood) return place(i);
  for (std::uint64_t i = 0; i < places; ++i)
    if (at - place(i).since >= window) return place(i);
  throttle& shared = place(0);
  flood = shared.flood;
  return shared;
}

logger::summary logger::take_summary(throttle& t) {
  summary taken = std::exchange(t.last, {});
  const std::uint64_t reports = std::exchange(t.reports, 0);
  taken.left_out = reports > most_in_a_second ? reports - most_in_a_second : 0;
  return taken;
}

void logger::write(const summary& s) {
  if (s.left_out == 0) return;
  const log_field more{"not_logged", std::to_string(s.left_out)};
  write(s.part, s.level, s.subject, {&more, 1});
}

logger::~logger() {
  try {
    for (throttle& t : floods_) write(take_summary(t));
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory, so the summary is lost
  }
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

std::string detail::timestamp(wall_time at) {
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

namespace {

/// Escapes text so that a record stays one line and, in quotes, no value looks like another field.
void append_escaped(std::string& line, std::string_view text, bool in_quotes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line.append("\\x").append(1, digits[code >> 4U]).append(1, digits[code & 15U]);
    } else {
      if (c == '\\' || (c == '"' && in_quotes)) line += '\\';
      line += c;
    }
  }
}
void append_value(std::string& line, std::string_view value) {
  const bool plain = value.find_first_of(" =\"\\") == std::string_view::npos;
  if (!plain) line += '"';
  append_escaped(line, value, !plain);
  if (!plain) line += '"';
}

class stderr_log final : public log_sink {
 public:
  void write(const log_record& record) override {
    std::string line = detail::timestamp(record.at);
    line.append(" ").append(to_string(record.level));
    if (!record.part.empty()) line.append(" ").append(record.part);
    line += "  ";
    append_escaped(line, record.text, false);
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
