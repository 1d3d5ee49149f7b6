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
