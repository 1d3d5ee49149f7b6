#pragma once
/// What a supervisor counts, remembers and reports of its children.
#include <coppice/spec/child_info.hpp>

namespace coppice {

struct child_counts {
  std::size_t specs = 0;
  std::size_t active = 0;  ///< that run, as far as the supervisor has heard
  std::size_t supervisors = 0;
  std::size_t workers = 0;
  friend bool operator==(const child_counts&, const child_counts&) = default;
};

/// What a supervisor did about the end of a child.
enum class exit_action : std::uint8_t {
  restarted,  ///< at once
  delayed,    ///< it is restarted after its backoff
  kept,       ///< it is left down
  forgotten,  ///< it was temporary
  gave_up,    ///< the limit was reached: the supervisor ended
  stopped,    ///< the supervisor had stopped it
  retried,    ///< it failed to start, and is tried again
};
[[nodiscard]] std::string_view to_string(exit_action action) noexcept;

/// One end of a child, or one start that failed.
struct exit_record {
  wall_time at;
  std::chrono::nanoseconds uptime{0};
  pid who;
  exit_reason reason;
  exit_action action = exit_action::kept;
  std::string because;  ///< why that was done, in a few words
};
/// On one line.
[[nodiscard]] std::string to_string(const exit_record& r);

/// Published on the event stream for everything a supervisor does.
struct supervisor_event {
  enum class kind : std::uint8_t {
    started,       ///< a child
    start_failed,  ///< of a child
    exited,        ///< a child, by itself
    stopped,       ///< a child, by the supervisor
    restarted,     ///< a child: it was started again, by the supervisor or by a call
    delayed,       ///< the restart of a child
    abandoned,     ///< a child that did not end even when it was killed
    gave_up,       ///< the supervisor: more restarts than its limit allows
    shut_down,     ///< the supervisor: its significant children are done
  };
  kind what = kind::started;
  pid supervisor;
  std::string child;  ///< its id
  pid who;
  exit_reason reason{};
  std::string text;  ///< the line of the log
};
[[nodiscard]] std::string_view to_string(supervisor_event::kind what) noexcept;

/// Published when a supervisor ends by itself, for those who do not want to hear of every child. Its exit reason is
/// `shutdown` in both cases.
struct supervisor_ended {
  enum class cause : std::uint8_t {
    gave_up,  ///< more restarts than its limit allows
    done,     ///< its significant children are done
  };
  pid who;
  cause why = cause::gave_up;
  std::string child;     ///< the id of the last one that ended
  exit_reason reason{};  ///< and what it ended with
  std::string text;      ///< the line of the log
};

}  // namespace coppice
