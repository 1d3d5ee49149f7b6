#pragma once
/// State shared by the processes of a scenario: the trace, and what is known about each id. Single-threaded.
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
  /// Adds an event of a process. The calls come in the order of the events.
  void event(std::string_view what) { say("  " + std::string{what}); }
  [[nodiscard]] const std::string& trace() const noexcept { return trace_; }

  // -- specs

  /// The last spec given for the id.
  [[nodiscard]] coppice::child_spec child(const std::string& id);
  /// The spec a supervisor starts with: the declared children, with the last specs given for them.
  [[nodiscard]] coppice::supervisor_spec tree(const std::string& id);
  /// Replaces the spec of a worker.
  void give_spec(const std::string& worker, const options& how);
  [[nodiscard]] const options& how(const std::string& worker) const { return workers_.at(worker).how; }
  /// What the next start of the worker does.
  [[nodiscard]] start next_start(const std::string& worker);
  /// The declared children of a supervisor that are supervisors, in order.
  [[nodiscard]] std::vector<std::string> supervisors_below(const std::string& id) const;

  // -- processes

  void has_begun(const std::string& id, coppice::pid who) { pids_[id] = who; }
  /// The last process that was started with this id, or nobody.
  [[nodiscard]] coppice::pid last(const std::string& id) const;

 private:
  struct worker_role {
    options how;
    std::size_t started = 0;  // how many elements of `starts` are used up
  };

  std::string trace_;
  std::map<std::string, declaration, std::less<>> supervisors_;
  std::map<std::string, worker_role, std::less<>> workers_;
  std::map<std::string, std::vector<std::string>, std::less<>> children_;
  std::map<std::string, coppice::pid, std::less<>> pids_;
};

/// For the trace: `normal`, `shutdown`, `shutdown+` and so on.
[[nodiscard]] std::string word_for(const coppice::exit_reason& reason);
/// The exit reason for a word of a step: `crash` or one of the reasons above.
[[nodiscard]] coppice::exit_reason reason_for(std::string_view word);

}  // namespace otp_trace
