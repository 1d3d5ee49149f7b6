#pragma once
/// What supervisors write to the log and publish.
#include <array>
#include <span>

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

/// In a crash loop these come without end: they are limited for each child.
[[nodiscard]] inline bool comes_in_floods(const child_report& r) noexcept {
  using kind = supervisor_event::kind;
  if (r.what == kind::exited) return r.reason.abnormal();
  return r.what == kind::restarted || r.what == kind::delayed || r.what == kind::start_failed;
}
inline void write(self& me, const child_report& r, std::string_view line) {
  const std::string event{to_string(r.what)};
  const std::array<log_field, 4> all{
      {{"supervisor", to_string(me.id())}, {"child", r.child}, {"event", event}, {"pid", to_string(r.who)}}};
  const auto fields = std::span<const log_field>{all}.first(r.who ? 4 : 3);
  kernel& k = me.host();
  if (!comes_in_floods(r)) return k.log(log_parts::supervision, r.level, line, fields);
  const std::string subject = "child '" + r.child + "': " + event;
  k.log_throttled({subject, std::hash<pid>{}(me.id())}, log_parts::supervision, r.level, line, fields);
}

/// Writes a line to the log and publishes a `supervisor_event`. `text()` makes the line; it is called only if the line
/// is logged or the event has subscribers.
template <class Text>
void report(self& me, const child_report& r, Text&& text) {
  kernel& k = me.host();
  const bool logs = k.logs(r.level, log_parts::supervision);
  const bool wanted = k.events().wanted(plain<supervisor_event>);
  if (!logs && !wanted) return;
  std::string line = text();
  if (logs) write(me, r, line);
  if (wanted)
    k.events().publish(supervisor_event{.what = r.what,
                                        .supervisor = me.id(),
                                        .child = r.child,
                                        .who = r.who,
                                        .reason = r.reason,
                                        .text = std::move(line)});
}

/// The error for the caller of a start that failed. The error of the child becomes its cause, and not its code: the
/// caller would take a `bad_combination`, for example, for a fault in the spec it has passed.
[[nodiscard]] inline error not_started(const std::string& id, error why) {
  return error{errc::start_failed, "child '" + id + "' could not be started", std::move(why)};
}

/// Whether the child is a supervisor whose own child could not be started: then it has reported that itself, and the
/// error that it made with `not_started` has a cause.
[[nodiscard]] inline bool reported_below(const child_spec& spec, const error& why) noexcept {
  return spec.type == child_type::supervisor && why.code() == errc::start_failed && why.cause() != nullptr;
}
[[nodiscard]] inline log_level level_of_failed_start(const child_spec& spec, const error& why) noexcept {
  return reported_below(spec, why) ? log_level::info : log_level::error;
}

/// For a start whose error the caller of the supervisor receives. A child that failed is in the log as an error all the
/// same; one that declined to start, or that could not be spawned, is for the caller to judge.
inline void log_failed_start(self& me, const child_spec& spec, const error& why) {
  const std::string& child = spec.id;
  const log_level level = why.code() == errc::start_failed ? level_of_failed_start(spec, why) : log_level::info;
  if (!me.host().logs(level, log_parts::supervision)) return;
  const std::string subject = "child '" + child + "' could not be started";
  const std::array<log_field, 2> fields{{{"supervisor", to_string(me.id())}, {"child", child}}};
  me.host().log_throttled({subject, std::hash<pid>{}(me.id())}, log_parts::supervision, level,
                          subject + ": " + why.to_string(), fields);
}

inline void report_abandoned(self& me, const std::string& child, pid who, const exit_reason& reason) {
  report(me, {log_level::error, supervisor_event::kind::abandoned, child, who, reason},
         [&] { return "child '" + child + "' was abandoned: its code does not return, even after a kill"; });
}

}  // namespace coppice::detail
