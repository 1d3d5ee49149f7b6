#pragma once
/// What a supervisor tells of its children.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <coppice/env/clock.hpp>
#include <coppice/spec/child_spec.hpp>

namespace coppice {

enum class child_state : std::uint8_t {
  running,
  undefined,   ///< down, and not about to be started for its own sake: a restart of a group may start it
  restarting,  ///< down, and about to be started again
};
[[nodiscard]] std::string_view to_string(child_state state) noexcept;

struct child_info {
  std::string id;
  pid who;  ///< nobody unless it is running
  child_state state = child_state::undefined;
  child_type type = child_type::worker;
  coppice::restart restart = coppice::restart::permanent;
  bool significant = false;
  std::uint64_t restarts = 0;  ///< decided on for its own ends, since the child was added; not those with a group
  std::optional<exit_reason> last_reason{};  ///< of its last end; nothing: it has not ended yet
  std::chrono::nanoseconds uptime{0};        ///< of the running process
  std::chrono::nanoseconds waits{0};         ///< until it is started again, with a backoff
};

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
