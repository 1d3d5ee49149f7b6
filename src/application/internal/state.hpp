#pragma once
/// What the processes of a program share, and what they say to each other.
#include <atomic>
#include <mutex>

#include "plan.hpp"

namespace coppice::detail {

// -- to the controller
struct signal_heard {
  os_signal which;
};
struct stop_asked {};
struct kill_asked {};

/// Hands signals of the system to the controller; those that come before it is there wait for it.
class signal_relay {
 public:
  void heard(runtime& rt, os_signal s) {
    const std::scoped_lock lock{mutex_};
    if (controller_)
      rt.send(controller_, signal_heard{s});
    else
      early_.push_back(s);
  }
  void connect(runtime& rt, pid controller) {
    const std::scoped_lock lock{mutex_};
    controller_ = controller;
    for (const os_signal s : std::exchange(early_, {})) rt.send(controller_, signal_heard{s});
  }

 private:
  std::mutex mutex_;
  pid controller_;
  std::vector<os_signal> early_;
};

/// Immutable but for the outcome, which is set once.
class program_state {
 public:
  program_state(std::vector<planned> in_order, run_options options)
      : apps{std::move(in_order)}, how{std::move(options)} {}
  const std::vector<planned> apps;  // in the order of their start
  const run_options how;

  void end(program_outcome out) {
    const std::scoped_lock lock{mutex_};
    if (!outcome_) outcome_ = std::move(out);
  }
  [[nodiscard]] std::optional<program_outcome> ended() const {
    const std::scoped_lock lock{mutex_};
    return outcome_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<program_outcome> outcome_;
};

/// To the controller: of one application, from its master. Each says `started` at most once, and one of the others
/// last.
struct news {
  enum class kind : std::uint8_t {
    started,
    start_failed,
    ended,  ///< its top supervisor, by itself
    stopped,
  };
  kind what = kind::started;
  std::size_t which = 0;
  pid top{};
  bool done = false;   ///< of `ended`: nothing is wrong
  std::string text{};  ///< of `start_failed` and `ended`: why
};

// -- to a master
struct stop_order_for_master {};

/// One for each application: runs its hooks, starts and stops its top supervisor.
task<> application_master(self& me, std::shared_ptr<const program_state> program, std::size_t which);
/// Starts the applications in order and stops them in reverse.
task<> program_controller(self& me, std::shared_ptr<program_state> program);

/// All live processes that were spawned by one of `roots`, or by one of those, and so on; parents before children.
[[nodiscard]] std::vector<pid> family_of(kernel& k, std::vector<pid> roots);

/// The texts of an error and its causes, without the codes.
[[nodiscard]] std::string story(const error& why);

}  // namespace coppice::detail
