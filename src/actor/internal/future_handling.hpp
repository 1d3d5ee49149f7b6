#pragma once
#include "duty.hpp"

namespace coppice::detail {

/// Waits for answers and ends as futures, and runs the continuations of `reenter_after`.
class future_handling : public duty {
 public:
  using duty::duty;
  void expect_answer(const std::shared_ptr<future_base>& f, std::chrono::nanoseconds timeout);
  void expect_end(pid who, const std::shared_ptr<future_base>& f, std::chrono::nanoseconds timeout);
  void receive_reply(envelope& e);
  /// Handles a `down`. False: no future waits for it.
  [[nodiscard]] bool receive_end(monitor_ref by, const terminated& notice);
  void on(const signals::future_timed_out& s);
  void on(const signals::end_wait_timed_out& s);

 private:
  void time_out(future_base& f, std::string_view what);
  void run_continuations(const std::shared_ptr<future_base>& f);
};

}  // namespace coppice::detail
