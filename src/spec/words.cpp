// Enumerators, durations and descriptions as text.
#include <algorithm>
#include <array>
#include <limits>

#include <coppice/spec/child_info.hpp>

namespace coppice {

std::string_view to_string(restart r) noexcept {
  switch (r) {
    case restart::permanent: return "permanent";
    case restart::transient: return "transient";
    case restart::temporary: return "temporary";
  }
  return "unknown";
}

std::string_view to_string(child_type type) noexcept {
  switch (type) {
    case child_type::worker: return "worker";
    case child_type::supervisor: return "supervisor";
    case child_type::actor: return "actor";
  }
  return "unknown";
}

std::string_view to_string(child_state state) noexcept {
  switch (state) {
    case child_state::running: return "running";
    case child_state::undefined: return "undefined";
    case child_state::restarting: return "restarting";
  }
  return "unknown";
}

std::string_view to_string(auto_shutdown when) noexcept {
  switch (when) {
    case auto_shutdown::never: return "never";
    case auto_shutdown::any_significant: return "any_significant";
    case auto_shutdown::all_significant: return "all_significant";
  }
  return "unknown";
}

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

std::string to_string(const shutdown& s) {
  if (s.is_brutal()) return "brutal_kill";
  if (s.is_infinite()) return "infinity";
  return to_string(s.time());
}

std::string to_string(const description& d) {
  std::string facts;
  for (const fact& f : d.facts) facts += (facts.empty() ? "" : ", ") + f.name + ": " + f.value;
  return facts.empty() ? d.kind : d.kind + " (" + facts + ")";
}

}  // namespace coppice
