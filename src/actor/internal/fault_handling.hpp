#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// The path of a failure: the child fails, its parent decides, the directive is carried out, the child follows it.
class fault_handling : public duty {
 public:
  using duty::duty;

  // -- 1. this actor fails
  /// `escalated`: the child whose failure this actor could not handle. `handling`: where the message in hand is from.
  void fail(exit_reason why, std::exception_ptr thrown, pid escalated = {}, const mail_origin& handling = {});

  // -- 2. the parent decides
  void on(signals::child_failed f);

  // -- 3. the parent carries out its decision
  void on(const signals::child_restart_due& s);
  /// Restarts this child only.
  void restart_child(child_record& c, const exit_reason& cause);

  // -- 4. the child follows
  void on(const signals::suspend& s);
  void on(const signals::resume& s);
  void on(const signals::resume_own_failure& s);
  void on(const signals::restart& s);

  // -- top-level actors
  void on(const signals::own_restart_due& s);

  /// Sends a signal to all children that are actors, but not to `except`.
  template <class Signal>
  void tell_children(Signal s, pid except = {}) {
    if (!me_.rare) return;
    for (const auto& [who, c] : me_.rare->children)
      if (who != except && !c.spec) signal_to(who, s);
  }

 private:
  void decide_about(child_record& c, const signals::child_failed& f);
  [[nodiscard]] judgement judge(const actor_strategy& by, child_record& c, const signals::child_failed& f,
                                bool ask_the_instance);
  [[nodiscard]] directive ask_instance(const child_failure& f);
  void limit_restart(child_record& c, const strategy_options& options, judgement& j);
  void announce(const child_record& c, const signals::child_failed& f, const judgement& j);

  void carry_out(child_record& c, const judgement& j, const signals::child_failed& f);
  void resume_child(child_record& c);
  void restart_instead_of_resume(child_record& c);
  void schedule_restart(child_record& c, const judgement& j, const exit_reason& cause);
  void restart_children(child_record& failed, bool all, const exit_reason& cause);
  void restart_siblings_waiting_for(pid gone, const exit_reason& cause);

  void let_guardian_decide(const exit_reason& why, const std::exception_ptr& thrown);
};

}  // namespace coppice::detail
