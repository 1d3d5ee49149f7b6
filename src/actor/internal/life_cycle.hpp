#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Creates, restarts and stops an actor, by the table in life_state.hpp.
class life_cycle : public duty {
 public:
  using duty::duty;
  void begin(const start_letter& first);
  void restart(const exit_reason& cause) { on(life_event::restart_ordered, cause); }
  void stop(const exit_reason& reason) { on(life_event::stop_ordered, reason); }
  /// Stops when the children have handled their mail.
  void drain() { on(life_event::drain_ordered, exit_reason::normal()); }
  /// No child has to be waited for any more.
  void children_done() { on(life_event::children_done); }
  /// Executes the action of `failure_resumed`, when the children were resumed.
  void execute(life_action what) { execute(what, {}, false); }
  /// Continues with what had to wait: failures of children, then mail.
  void continue_work();

 private:
  void on(life_event event, const exit_reason& why = {});
  void execute(life_action what, const exit_reason& why, bool answers_failure);
  void look_for_early_exit();
  void create();
  void initialise(context& me);
  void begin_restart(const exit_reason& cause);
  void replace_instance(bool answers_failure);
  void begin_stop(const exit_reason& reason, bool drain);
  void stop_children(bool drain);
  void end_process();
  void end_instance();
};

}  // namespace coppice::detail
