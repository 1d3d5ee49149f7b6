#pragma once
/// What supervisors write to the log and publish.
#include <coppice/supervision/child_history.hpp>

namespace coppice::detail {

/// What has happened to which child, and the level of the log line.
struct child_report {
  log_level level = log_level::info;
  supervisor_event::kind what = supervisor_event::kind::started;
  const std::string& child;
  pid who{};
  const exit_reason& reason;
};

/// Writes a line to the log and publishes a `supervisor_event`. `text()` makes the line; it is called only if the line
/// is logged or the event has subscribers.
template <class Text>
void report(self& me, const child_report& r, Text&& text) {
  kernel& k = me.host();
  const bool logs = k.logs(r.level);
  const bool wanted = k.events().wanted(plain<supervisor_event>);
  if (!logs && !wanted) return;
  std::string line = text();
  if (logs)
    k.log(r.level, line,
          {{"supervisor", to_string(me.id())},
           {"child", r.child},
           {"pid", to_string(r.who)},
           {"event", std::string{to_string(r.what)}}});
  if (wanted)
    k.events().publish(supervisor_event{.what = r.what,
                                        .supervisor = me.id(),
                                        .child = r.child,
                                        .who = r.who,
                                        .reason = r.reason,
                                        .text = std::move(line)});
}

inline void report_abandoned(self& me, const std::string& child, pid who, const exit_reason& reason) {
  report(me, {log_level::error, supervisor_event::kind::abandoned, child, who, reason},
         [&] { return "child '" + child + "' was abandoned: its code does not return, even after a kill"; });
}

}  // namespace coppice::detail
