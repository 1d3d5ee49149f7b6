#pragma once
/// The life of an actor as a table: in each state, what an event leads to.
///
/// `life_status::change` looks the pair up and changes the state; its caller carries out the action. A pair that is not
/// listed cannot happen in a correct program; `ensure` ends the actor if it does. An event listed with `ignore` can
/// arrive late and has no effect.
///
/// Suspension is not a state. It is counted apart, because several ancestors can suspend an actor at the same time.
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace coppice::detail {

enum class life : std::uint8_t {
  unborn,                    ///< spawned; its first turn has not begun
  creating,                  ///< an instance is being made, up to the end of its `started` handler
  running,                   ///< handles its mail, unless it is suspended
  failed,                    ///< has reported a failure and waits for the decision
  restarting,                ///< the old instance has received `restarting`; its children are stopping
  restarting_after_failure,  ///< the same, and a failure of its own is answered by this restart
  draining,                  ///< stopping; its children still handle the mail they have
  stopping,                  ///< waits for its children to end
  ended,                     ///< its process ends with this turn
};
inline constexpr std::size_t life_count = 9;

enum class life_event : std::uint8_t {
  begun,            ///< the process has its first turn
  started,          ///< the new instance has handled `started`
  failed,           ///< a handler failed, or a failure of a child was escalated
  failure_resumed,  ///< the failure was answered with `resume`
  restart_ordered,  ///< the parent, or the guardian, decided to restart it
  children_done,    ///< no child has to be waited for any more
  drain_ordered,    ///< a poison pill was taken from the mail: stop, but let the children handle their mail first
  stop_ordered,     ///< stop now
};
inline constexpr std::size_t life_event_count = 8;

/// What the actor does on a transition.
enum class life_action : std::uint8_t {
  forbidden,         ///< the event cannot happen in this state
  ignore,            ///< the event has no effect in this state
  create_instance,   ///< make the first instance
  take_mail,         ///< continue with mail
  report_failure,    ///< suspend the children and report to the parent or the guardian
  begin_restart,     ///< deliver `restarting` to the instance; stop its children unless `keep_children` is set
  replace_instance,  ///< destroy the old instance and make a new one
  begin_stop,        ///< deliver `stopping` to the instance and stop its children
  drop_and_stop,     ///< destroy the instance, which has received `restarting` (no `stopping`), and stop the children
  hurry_children,    ///< tell the children to stop without handling their mail
  report_waiting,    ///< asked to stop while already stopping: report to the parent how long the children may take
  end_process,       ///< deliver `stopped` to the instance and end the process
  none,              ///< only the state changes
};

struct life_rule {
  life from;
  life_event on;
  life next;
  life_action action;
};

// clang-format off
inline constexpr std::array life_rules = std::to_array<life_rule>({
    {life::unborn,   life_event::begun,           life::creating, life_action::create_instance},

    {life::creating, life_event::started,         life::running,  life_action::take_mail},
    {life::creating, life_event::failed,          life::failed,   life_action::report_failure},
    {life::creating, life_event::stop_ordered,    life::stopping, life_action::begin_stop},

    {life::running,  life_event::failed,          life::failed,     life_action::report_failure},
    {life::running,  life_event::failure_resumed, life::running,    life_action::ignore},
    {life::running,  life_event::restart_ordered, life::restarting, life_action::begin_restart},
    {life::running,  life_event::children_done,   life::running,    life_action::ignore},
    {life::running,  life_event::drain_ordered,   life::draining,   life_action::begin_stop},
    {life::running,  life_event::stop_ordered,    life::stopping,   life_action::begin_stop},

    {life::failed,   life_event::failed,          life::failed,                   life_action::ignore},
    {life::failed,   life_event::failure_resumed, life::running,                  life_action::take_mail},
    {life::failed,   life_event::restart_ordered, life::restarting_after_failure, life_action::begin_restart},
    {life::failed,   life_event::children_done,   life::failed,                   life_action::ignore},
    {life::failed,   life_event::stop_ordered,    life::stopping,                 life_action::begin_stop},

    {life::restarting, life_event::failed,          life::restarting, life_action::ignore},
    {life::restarting, life_event::failure_resumed, life::restarting, life_action::ignore},
    {life::restarting, life_event::restart_ordered, life::restarting, life_action::ignore},
    {life::restarting, life_event::children_done,   life::creating,   life_action::replace_instance},
    {life::restarting, life_event::stop_ordered,    life::stopping,   life_action::drop_and_stop},

    {life::restarting_after_failure, life_event::failed,          life::restarting_after_failure, life_action::ignore},
    {life::restarting_after_failure, life_event::failure_resumed, life::restarting, life_action::none},
    {life::restarting_after_failure, life_event::restart_ordered, life::restarting_after_failure, life_action::ignore},
    {life::restarting_after_failure, life_event::children_done,   life::creating,   life_action::replace_instance},
    {life::restarting_after_failure, life_event::stop_ordered,    life::stopping,   life_action::drop_and_stop},

    {life::draining, life_event::failed,          life::draining, life_action::ignore},
    {life::draining, life_event::failure_resumed, life::draining, life_action::ignore},
    {life::draining, life_event::restart_ordered, life::draining, life_action::ignore},
    {life::draining, life_event::children_done,   life::ended,    life_action::end_process},
    {life::draining, life_event::stop_ordered,    life::stopping, life_action::hurry_children},

    {life::stopping, life_event::failed,          life::stopping, life_action::ignore},
    {life::stopping, life_event::failure_resumed, life::stopping, life_action::ignore},
    {life::stopping, life_event::restart_ordered, life::stopping, life_action::ignore},
    {life::stopping, life_event::children_done,   life::ended,    life_action::end_process},
    {life::stopping, life_event::stop_ordered,    life::stopping, life_action::report_waiting},

    {life::ended,    life_event::failed,          life::ended,    life_action::ignore},
    {life::ended,    life_event::stop_ordered,    life::ended,    life_action::ignore},
});
// clang-format on

struct life_step {
  life next = life::ended;
  life_action action = life_action::forbidden;
};

/// The table as an array, so that a lookup is one load.
inline constexpr auto life_table = [] {
  std::array<std::array<life_step, life_event_count>, life_count> table{};
  for (const life_rule& r : life_rules)
    table.at(std::to_underlying(r.from)).at(std::to_underlying(r.on)) = {r.next, r.action};
  return table;
}();

[[nodiscard]] constexpr life_step step_of(life from, life_event on) noexcept {
  return life_table[std::to_underlying(from)][std::to_underlying(on)];
}

[[nodiscard]] constexpr std::string_view to_string(life state) noexcept {
  switch (state) {
    case life::unborn: return "unborn";
    case life::creating: return "creating";
    case life::running: return "running";
    case life::failed: return "failed";
    case life::restarting: return "restarting";
    case life::restarting_after_failure: return "restarting_after_failure";
    case life::draining: return "draining";
    case life::stopping: return "stopping";
    case life::ended: return "ended";
  }
  return "unknown";
}

[[nodiscard]] constexpr std::string_view to_string(life_event event) noexcept {
  switch (event) {
    case life_event::begun: return "begun";
    case life_event::started: return "started";
    case life_event::failed: return "failed";
    case life_event::failure_resumed: return "failure_resumed";
    case life_event::restart_ordered: return "restart_ordered";
    case life_event::children_done: return "children_done";
    case life_event::drain_ordered: return "drain_ordered";
    case life_event::stop_ordered: return "stop_ordered";
  }
  return "unknown";
}

}  // namespace coppice::detail
