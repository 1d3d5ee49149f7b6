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
/// | 0    | `stopped`       | a signal or somebody inside asked for it, and all applications stopped in order   |
/// | 1    | `gave_up`       | an application ended that must not: its supervisor gave up, say                   |
/// | 2    | `refused`       | the options make no sense; nothing was started                                    |
/// | 3    | `start_failed`  | an application could not be started; those before it were stopped again           |
/// | 4    | `not_in_time`   | as `stopped`, but it took longer than `stop_within`, and the rest was killed      |
/// | 128+ | `stopped_hard`  | a second signal came while it was stopping, and the rest was killed: 143 for      |
/// |      |                 | SIGTERM, 130 for SIGINT, 129 for SIGHUP; 137 for `program::kill`                  |
enum class outcome : std::uint8_t { done, stopped, gave_up, refused, start_failed, not_in_time, stopped_hard };
[[nodiscard]] std::string_view to_string(outcome what) noexcept;

struct program_outcome {
  outcome what = outcome::done;
  /// For people: which application, which child, why. Empty when all went well.
  std::string text{};
  /// Of `stopped` and `stopped_hard`, when it was a signal.
  std::optional<os_signal> signal{};

  [[nodiscard]] int exit_code() const noexcept;
};

}  // namespace coppice
