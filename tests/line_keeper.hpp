#pragma once
// A log whose lines a test can read.
#include <string>
#include <utility>
#include <vector>

#include <coppice/runtime/log.hpp>

namespace coppice {

/// Keeps the lines that contain `part`, each as "<level> <text>".
class line_keeper final : public log_sink {
 public:
  explicit line_keeper(std::string part = {}) : part_{std::move(part)} {}
  void write(const log_record& r) override {
    if (r.text.find(part_) != std::string_view::npos)
      lines.push_back(std::string{to_string(r.level)} + " " + std::string{r.text});
  }
  std::vector<std::string> lines;

 private:
  std::string part_;
};

}  // namespace coppice
