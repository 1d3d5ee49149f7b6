#pragma once
/// Applications that run: what can be asked of them and told to them.
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
  pid top;  ///< its top supervisor, while it is running
};

/// Published on the event stream.
struct application_event {
  application_state now = application_state::waiting;  ///< what it has become
  std::string name;
  std::string text;  ///< why it ended, when nobody stopped it; why it could not be started
};

/// A program that was started on a runtime, which must outlive it. Destroying it does not stop the program, but it does
/// not hear of signals any more.
/// Thread safety: any thread, `wait` one at a time.
class program {
 public:
  program(program&&) noexcept;
  program& operator=(program&&) noexcept;
  ~program();

  /// How it ended; nothing while it runs.
  [[nodiscard]] std::optional<program_outcome> ended() const;
  /// From a plain thread: until it has ended. Then signals do again what they did before.
  program_outcome wait();
  /// Stops all applications in reverse order, as the first signal does. Returns at once.
  void stop();
  /// Kills all that is left, as the second signal does. Returns at once.
  void kill();
  /// The process that starts and stops the applications; nobody when nothing was started.
  [[nodiscard]] pid controller() const noexcept;

 private:
  friend class applications;
  program(runtime& rt, std::shared_ptr<detail::program_state> state) noexcept;
  runtime* rt_;
  std::shared_ptr<detail::program_state> state_;
  pid controller_;
  std::unique_ptr<os_signal_subscription> signals_;
};

/// Inside a process of a program: stops it in order, as `program::stop`. False: there is no program on this runtime.
bool stop_program(self& me);

namespace calls {
struct which_applications {
  using reply = std::vector<application_info>;
};
}  // namespace calls
/// In the order of their start. `noproc` when there is no program on this runtime. From a plain thread:
/// `rt.call<calls::which_applications>(rt.where(program_name))`.
[[nodiscard]] detail::calling<calls::which_applications> which_applications(self& me);
/// What the controller is registered as.
inline constexpr std::string_view program_name = "coppice.program";

}  // namespace coppice
