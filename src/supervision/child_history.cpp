#include <coppice/supervision/child_history.hpp>

namespace coppice {

std::string_view to_string(exit_action action) noexcept {
  switch (action) {
    case exit_action::restarted: return "restarted";
    case exit_action::delayed: return "delayed";
    case exit_action::kept: return "kept";
    case exit_action::forgotten: return "forgotten";
    case exit_action::gave_up: return "gave_up";
    case exit_action::stopped: return "stopped";
    case exit_action::retried: return "retried";
  }
  return "unknown";
}

std::string_view to_string(supervisor_event::kind what) noexcept {
  using kind = supervisor_event::kind;
  switch (what) {
    case kind::started: return "started";
    case kind::start_failed: return "start_failed";
    case kind::exited: return "exited";
    case kind::stopped: return "stopped";
    case kind::restarted: return "restarted";
    case kind::delayed: return "delayed";
    case kind::abandoned: return "abandoned";
    case kind::gave_up: return "gave_up";
    case kind::shut_down: return "shut_down";
  }
  return "unknown";
}

std::string to_string(const exit_record& r) {
  std::string text = to_string(r.who) + " after " + to_string(r.uptime) + ": " + r.reason.to_string() + "; " +
                     std::string{to_string(r.action)};
  if (!r.because.empty()) text += " (" + r.because + ")";
  return text;
}

}  // namespace coppice
