#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include <coppice/base/duration_text.hpp>

namespace coppice {

std::string to_string(std::chrono::nanoseconds time) {
  struct unit {
    std::int64_t size;
    std::string_view name;
  };
  static constexpr std::array<unit, 6> units = {{{3'600'000'000'000, "h"},
                                                 {60'000'000'000, "min"},
                                                 {1'000'000'000, "s"},
                                                 {1'000'000, "ms"},
                                                 {1'000, "us"},
                                                 {1, "ns"}}};
  if (time == std::chrono::nanoseconds::max()) return "forever";
  const std::int64_t count = time.count();
  if (count == 0) return "0s";
  if (count < 0)
    return "-" + to_string(std::chrono::nanoseconds{-std::max(count, -std::numeric_limits<std::int64_t>::max() + 1)});
  for (const unit& u : units) {
    if (count < u.size) continue;
    std::string text = std::to_string(count / u.size);
    const std::int64_t tenths = count % u.size * 10 / u.size;
    if (tenths != 0) text += "." + std::to_string(tenths);
    return text + std::string{u.name};
  }
  return std::to_string(count) + "ns";
}

}  // namespace coppice
