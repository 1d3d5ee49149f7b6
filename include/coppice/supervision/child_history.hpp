#pragma once
/// What a supervisor counts, records and reports about its children.
#include <coppice/spec/child_info.hpp>

namespace coppice {

struct child_counts {
  std::size_t specs = 0;
  std::size_t active = 0;  ///< running children
  std::size_t supervisors = 0;
  std::size_t workers = 0;
  friend bool operator==(const child_counts&, const child_counts&) = default;
};

/// What a supervisor did about the end of a child.
enum class exit_action : std::uint8_t {
  restarted,  ///< at once
  delayed,    ///< restarted after its backoff
  kept,       ///< left down
  forgotten,  ///< removed, because it was temporary
  gave_up,    ///< the limit was reached, and the supervisor ended
  stopped,    ///< stopped by the supervisor
  retried,    ///< could not be started; another attempt follows
};
[[nodiscard]] std::string_view to_string(exit_action action) noexcept;

/// One end of a child, or one failed start.
struct exit_record {
  wall_time at;
  std::chrono::nanoseconds uptime{0};
  pid who;
  exit_reason reason;
  exit_action action = exit_action::kept;
  std::string because;  ///< why the supervisor did `action`; may be empty
};
/// The record as one line.
[[nodiscard]] std::string to_string(const exit_record& r);

/// Published on the event stream for everything a supervisor does.
struct supervisor_event {
  enum class kind : std::uint8_t {
    started,       ///< a child was started for the first time
    start_failed,  ///< a child could not be started
    exited,        ///< a child ended by itself
    stopped,       ///< the supervisor stopped a child
    restarted,     ///< a child was started again, by the supervisor or by a call
    delayed,       ///< the restart of a child waits for its backoff
    abandoned,     ///< a child did not end after a kill and was abandoned
    gave_up,       ///< the supervisor ends after more restarts than its limit allows
    shut_down,     ///< the supervisor ends because its significant children have ended
  };
  kind what = kind::started;
  pid supervisor;
  std::string child;  ///< its id
  pid who;
  exit_reason reason{};
  std::string text;  ///< the line in the log
};
[[nodiscard]] std::string_view to_string(supervisor_event::kind what) noexcept;

/// Published when a supervisor ends by itself, for subscribers that do not want an event for every child. The exit
/// reason of the supervisor is `shutdown` in both cases.
struct supervisor_ended {
  enum class cause : std::uint8_t {
    gave_up,  ///< more restarts than its limit allows
    done,     ///< its significant children have ended
  };
  pid who;
  cause why = cause::gave_up;
  std::string child;     ///< the id of the child whose end or failed start was the cause
  exit_reason reason{};  ///< the exit reason of that child, or the error of its start
  std::string text;      ///< the line in the log
};

}  // namespace coppice
