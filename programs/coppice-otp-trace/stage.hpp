#pragma once
/// What the processes of a scenario share: the trace, and what is known of each id. One thread, as the simulation.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <coppice/supervision/supervisor.hpp>

#include "scenario.hpp"

namespace otp_trace {

class stage {
 public:
  explicit stage(const scenario& s);
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  // -- the trace

  void say(std::string_view line) { (trace_ += line) += '\n'; }
  /// Of a process, in the order in which things happen.
  void event(std::string_view what) { say("  " + std::string{what}); }
  [[nodiscard]] const std::string& trace() const noexcept { return trace_; }

  // -- the cast

  /// The last spec given for the id.
  [[nodiscard]] coppice::child_spec child(const std::string& id);
  /// What a supervisor starts with: its children are those declared, with the last specs given for them.
  [[nodiscard]] coppice::supervisor_spec tree(const std::string& id);
  /// A worker has a new spec from here on.
  void give_spec(const std::string& worker, const options& how);
  [[nodiscard]] const options& how(const std::string& worker) const { return workers_.at(worker).how; }
  /// What the next start of the worker does.
  [[nodiscard]] start next_start(const std::string& worker);
  /// The declared children of a supervisor that are supervisors, in order.
  [[nodiscard]] std::vector<std::string> supervisors_below(const std::string& id) const;

  // -- who is on

  void has_begun(const std::string& id, coppice::pid who) { pids_[id] = who; }
  /// The last process that began with the id; nobody when there was none.
  [[nodiscard]] coppice::pid last(const std::string& id) const;

 private:
  struct worker_role {
    options how;
    std::size_t started = 0;  // by the last spec
  };

  std::string trace_;
  std::map<std::string, declaration, std::less<>> supervisors_;
  std::map<std::string, worker_role, std::less<>> workers_;
  std::map<std::string, std::vector<std::string>, std::less<>> children_;
  std::map<std::string, coppice::pid, std::less<>> pids_;
};

/// For the trace: `normal`, `shutdown`, `shutdown+` and so on.
[[nodiscard]] std::string word_for(const coppice::exit_reason& reason);
/// What a worker ends with that is told to: `crash` or one of the reasons above.
[[nodiscard]] coppice::exit_reason reason_for(std::string_view word);

}  // namespace otp_trace
