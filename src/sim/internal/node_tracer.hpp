#pragma once
#include <deque>
#include <map>

#include <coppice/sim/world.hpp>

namespace coppice::sim {

/// Writes what the processes of one runtime do into the trace of the world.
class node_tracer final : public detail::tracer {
 public:
  node_tracer(world& w, detail::kernel& of);

  void handles(const detail::slot& p, const detail::envelope& e) override;
  void saw(const process_ended& event) override;
  void saw(const process_stalled& event) override;
  void saw(const dead_letter& event) override;
  /// For events of a process that no signal explains.
  void tell(pid who, std::string what);

 private:
  /// Its name, or else its label, or else its class. A process that has ended keeps the last one for a while: it is
  /// needed for messages that nobody receives any more.
  [[nodiscard]] std::string called(pid who);
  /// Empty: its body is a function, or is not made yet.
  [[nodiscard]] std::string class_of(const detail::slot& p);
  void forget_oldest();

  world& world_;
  detail::kernel& kernel_;
  std::map<pid, std::string> known_;  // of live processes, and of those in `ended_`
  std::deque<pid> ended_;             // the oldest end first
};

}  // namespace coppice::sim
