#pragma once
/// What the processes of a program share, and their messages to each other.
#include <atomic>
#include <mutex>

#include "plan.hpp"

namespace coppice::detail {

// -- to the controller
struct signal_received {
  os_signal which;
};
struct stop_asked {
  std::optional<int> code{};  // the exit code, if the program gives one of its own
};
struct reload_asked {};
struct kill_asked {};

/// Passes signals of the system to the controller. Signals that arrive before the controller exists are kept for it.
class signal_relay {
 public:
  void receive(runtime& rt, os_signal s) {
    const std::scoped_lock lock{mutex_};
    if (controller_)
      rt.send(controller_, signal_received{s});
    else
      early_.push_back(s);
  }
  void connect(runtime& rt, pid controller) {
    const std::scoped_lock lock{mutex_};
    controller_ = controller;
    for (const os_signal s : std::exchange(early_, {})) rt.send(controller_, signal_received{s});
  }

 private:
  std::mutex mutex_;
  pid controller_;
  std::vector<os_signal> early_;
};

/// Immutable except for the outcome, which is set once, and for where the handles of the applications lead.
class program_state {
 public:
  program_state(std::vector<planned> in_order, run_options options,
                std::vector<std::shared_ptr<runtime_place>> of_handles = {})
      : apps{std::move(in_order)}, how{std::move(options)}, places_{std::move(of_handles)} {}
  const std::vector<planned> apps;  // in the order of their start
  const run_options how;

  /// Makes the handles of the applications lead to this runtime. The controller calls it before it starts anything, and
  /// its starter before it returns. Only the first call counts: at the second one, another start may have followed.
  void lead_handles_to(const std::weak_ptr<kernel>& here) {
    std::call_once(led_, [&] {
      for (const auto& each : places_) each->set(here);
    });
  }

  void end(program_outcome out) {
    const std::scoped_lock lock{mutex_};
    if (!outcome_) outcome_ = std::move(out);
  }
  /// The outcome if the controller has ended without setting one.
  void end_with_controller() {
    end({.what = program_end::gave_up, .text = "the process that starts and stops the applications was ended"});
  }
  [[nodiscard]] std::optional<program_outcome> ended() const {
    const std::scoped_lock lock{mutex_};
    return outcome_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<program_outcome> outcome_;
  const std::vector<std::shared_ptr<runtime_place>> places_;
  std::once_flag led_;
};

/// From the master of an application to the controller. A master sends `started` at most once, and one of the others as
/// its last message.
struct master_report {
  enum class kind : std::uint8_t {
    started,
    start_failed,
    ended,  ///< the top supervisor ended by itself
    stopped,
  };
  kind what = kind::started;
  std::size_t which = 0;
  pid top{};
  bool done = false;   ///< with `ended`: the application has done its work
  std::string text{};  ///< with `start_failed` and `ended`: why
};

// -- to a master
struct stop_order_for_master {};
struct reload_order_for_master {};

/// The process of one application: runs its hooks, starts and stops its top supervisor.
task<> application_master(self& me, std::shared_ptr<const program_state> program, std::size_t which);
/// The process that starts the applications in order and stops them in reverse order.
task<> program_controller(self& me, std::shared_ptr<program_state> program);

/// All live descendants of `roots`, parents before their children.
[[nodiscard]] std::vector<pid> family_of(kernel& k, std::vector<pid> roots);

/// Whether an application may go from one state to the other:
///
///     waiting -> starting -> running -> stopping -> ended
///
/// and from each of these to `ended`.
[[nodiscard]] constexpr bool may_follow(application_state from, application_state to) noexcept {
  switch (from) {
    case application_state::waiting: return to == application_state::starting || to == application_state::ended;
    case application_state::starting: return to == application_state::running || to == application_state::ended;
    case application_state::running: return to == application_state::stopping || to == application_state::ended;
    case application_state::stopping: return to == application_state::ended;
    case application_state::ended: break;
  }
  return false;
}

/// The texts of an error and its causes. A code stands only where the text is empty.
[[nodiscard]] std::string texts_of(const error& why);

}  // namespace coppice::detail
