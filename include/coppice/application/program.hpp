#pragma once
/// A running program of applications.
#include <memory>

#include <coppice/application/outcome.hpp>
#include <coppice/runtime/runtime.hpp>
#include <coppice/spec/restart.hpp>

namespace coppice {

namespace detail {
class program_state;
}

enum class application_state : std::uint8_t { waiting, starting, running, stopping, ended };
[[nodiscard]] std::string_view to_string(application_state state) noexcept;

struct application_info {
  std::string name;
  application_state state = application_state::waiting;
  coppice::restart restart = coppice::restart::permanent;
  pid top;  ///< its top supervisor, while it is running or stopping
};

/// Published on the event stream.
struct application_event {
  application_state now = application_state::waiting;  ///< its new state
  std::string name;
  std::string text;  ///< why it ended by itself, or could not be started
};

/// Published on the event stream when the hook `reload` of an application has succeeded, so that its processes can take
/// over the new configuration.
struct config_changed {
  std::string application;
};

/// Published on the event stream for each signal in `run_options::publish`.
struct program_signal {
  os_signal which = os_signal::user1;
};

/// A program that was started on a runtime. The runtime must outlive this object. Destroying the object does not stop
/// the program, but signals have their usual effect again. Thread safety: any thread, `wait` one at a time.
class running_program {
 public:
  running_program(running_program&&) noexcept;
  running_program& operator=(running_program&&) noexcept;
  ~running_program();

  /// How it ended; nothing while it runs.
  [[nodiscard]] std::optional<program_outcome> ended() const;
  /// From a plain thread: waits until the program has ended. Afterwards signals have their usual effect again.
  program_outcome wait();
  /// Stops all applications in reverse order, as the first signal does. Returns at once.
  void stop();
  /// Kills all processes of the program, as the second signal does. Returns at once.
  void kill();
  /// The process that starts and stops the applications; nobody when nothing was started.
  [[nodiscard]] pid controller() const noexcept;
  /// The runtime of the program, for threads that may outlive it.
  [[nodiscard]] runtime_handle handle() const noexcept;

 private:
  friend class applications;
  running_program(runtime& rt, std::shared_ptr<detail::program_state> state) noexcept;
  runtime* rt_;
  std::shared_ptr<detail::program_state> state_;
  pid controller_;
  std::unique_ptr<os_signal_subscription> signals_;
};

/// From a process of a program: stops the program in order, as `running_program::stop`. False: no program runs on this
/// runtime.
bool stop_program(self& me);
/// The largest exit code of a program's own; shells use the codes above for commands that cannot be run and for
/// signals.
inline constexpr int largest_own_code = 125;
/// The same, and the program returns this code instead of 0. The first code given wins. It is not used if the program
/// gave up, could not be started or was not stopped in time: those have codes of their own. Throws
/// `std::invalid_argument` for a code below 0 or above `largest_own_code`.
bool stop_program(self& me, int exit_code);
/// From a process of a program: runs the `reload` hooks, as SIGHUP does. False: no program runs on this runtime.
bool reload_program(self& me);

namespace calls {
struct which_applications {
  using reply = std::vector<application_info>;
};
}  // namespace calls
/// All applications in the order of their start. Error: `noproc` when no program runs on this runtime. From a plain
/// thread: `rt.call(call<calls::which_applications>(rt.where(program_name)))`.
[[nodiscard]] pending_call<calls::which_applications> which_applications(self& me);
/// The name of the controller.
inline constexpr std::string_view program_name = "coppice.program";

}  // namespace coppice
