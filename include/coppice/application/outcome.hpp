#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <coppice/env/os_signals.hpp>

namespace coppice {

/// How a program of applications ended, and its exit code:
///
/// | code | outcome         |                                                                                  |
/// |------|-----------------|----------------------------------------------------------------------------------|
/// | 0    | `done`          | all applications that are not temporary have done their work                      |
/// | 0    | `stopped`       | a stop was requested, and all applications stopped in order                       |
/// | 1    | `gave_up`       | an application ended that must not end, for example its supervisor gave up        |
/// | 2    | `refused`       | the options are invalid; nothing was started                                      |
/// | 3    | `start_failed`  | an application or the runtime could not be started; what had started was stopped  |
/// | 4    | `not_in_time`   | the stop took longer than `stop_within`, and the remaining processes were killed  |
/// | 128+ | `stopped_hard`  | a second signal arrived during the stop, and the remaining processes were killed: |
/// |      |                 | 143 for SIGTERM, 130 for SIGINT, 129 for SIGHUP; 137 for `running_program::kill` |
///
/// `stop_program(me, code)` replaces the 0 of `done` and `stopped` by a code of the program's own.
enum class program_end : std::uint8_t { done, stopped, gave_up, refused, start_failed, not_in_time, stopped_hard };
[[nodiscard]] std::string_view to_string(program_end what) noexcept;

struct program_outcome {
  program_end what = program_end::done;
  /// For people: which application, which child, why. Empty after `done` and `stopped`.
  std::string text{};
  /// The signal that caused the stop, if it was a signal.
  std::optional<os_signal> signal{};
  /// The first code that a process gave with `stop_program(me, code)`; only after `done` and `stopped`.
  std::optional<int> own_code{};

  [[nodiscard]] int exit_code() const noexcept;
};

}  // namespace coppice
