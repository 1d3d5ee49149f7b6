#pragma once
// A log that keeps what is written.
#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <coppice/runtime/log.hpp>

namespace coppice {

struct recorder final : log_sink {
  struct line {
    log_level level;
    std::string text;
    std::map<std::string, std::string> fields{};
    std::string part{};
  };
  void write(const log_record& record) override {
    const std::scoped_lock lock{mutex};
    line& added = lines.emplace_back(record.level, std::string{record.text});
    added.part = record.part;
    for (const log_field& f : record.fields) added.fields[std::string{f.key}] = f.value;
    timed &= record.at != wall_time{};
  }
  std::vector<line> all() {
    const std::scoped_lock lock{mutex};
    return lines;
  }
  bool has(std::string_view part) {
    return std::ranges::any_of(all(), [&](const line& l) { return l.text.find(part) != std::string::npos; });
  }
  std::mutex mutex;
  std::vector<line> lines;
  bool timed = true;
};

}  // namespace coppice
