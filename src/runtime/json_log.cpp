#include <coppice/runtime/log.hpp>

#include "internal/log_text.hpp"

namespace coppice {

namespace {

/// The length of the UTF-8 character that `text` begins with; 0 if it does not begin with one.
std::size_t character_at(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool too_large = first == 0xF4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

void append_ascii(std::string& line, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(c);
  switch (c) {
    case '"':
    case '\\': line.append(1, '\\').append(1, c); return;
    case '\n': line += "\\n"; return;
    case '\r': line += "\\r"; return;
    case '\t': line += "\\t"; return;
    default: break;
  }
  if (code < 0x20 || code == 0x7f)
    line.append("\\u00").append(1, digits[code >> 4U]).append(1, digits[code & 15U]);
  else
    line += c;
}

void append_string(std::string& line, std::string_view text) {
  line += '"';
  while (!text.empty()) {
    const std::size_t length = character_at(text);
    if (length == 0)
      line += "\\ufffd";
    else if (length == 1)
      append_ascii(line, text[0]);
    else
      line += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  line += '"';
}

void append_member(std::string& line, std::string_view key, std::string_view value) {
  if (line.back() != '{') line += ',';
  append_string(line, key);
  line += ':';
  append_string(line, value);
}

class json_log final : public log_sink {
 public:
  explicit json_log(std::FILE* to) noexcept : to_{to} {}
  void write(const log_record& record) override {
    const std::string line = to_json(record) + '\n';
    std::fwrite(line.data(), 1, line.size(), to_);  // one call, so that lines of different threads do not mix
    std::fflush(to_);                               // the last lines before a crash matter most
  }

 private:
  std::FILE* to_;
};

}  // namespace

std::string to_json(const log_record& record) {
  std::string line = "{";
  append_member(line, "time", detail::timestamp(record.at));
  append_member(line, "level", to_string(record.level));
  append_member(line, "part", record.part);
  append_member(line, "text", record.text);
  line += ",\"fields\":{";
  for (const log_field& f : record.fields) append_member(line, f.key, f.value);
  line += "}}";
  return line;
}

std::shared_ptr<log_sink> json_sink(std::FILE* to) { return std::make_shared<json_log>(to); }

}  // namespace coppice
