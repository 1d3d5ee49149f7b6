#pragma once
/// Programs of the operating system: start them, exchange bytes with them, signal them, learn how they ended.
/// (Processes of a runtime are something else: runtime/spawn.hpp.)
///
///     os_process_events events;
///     events.output = [](os_stream, std::string_view bytes) { ... };
///     events.ended = [](const os_exit& how) { ... };
///     const auto child = env.os_processes().spawn({.program = "gzip", .arguments = {"-c"}}, std::move(events));
///     if (!child) std::cerr << child.error() << '\n';
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <coppice/base/cxx23.hpp>
#include <coppice/base/error.hpp>

namespace coppice {

/// What a program writes to.
enum class os_stream : std::uint8_t { output, error };

/// What a standard stream of a program is connected to.
enum class os_stdio : std::uint8_t {
  pipe,     ///< us: `os_process_events::output` for what the program writes, `os_process::write_input` for its input
  inherit,  ///< what our own stream is connected to
  null,     ///< nothing: `/dev/null`
};

/// The process group of a program: which others `signal_group` reaches.
enum class os_group : std::uint8_t {
  own,      ///< a new group, of the program and its descendants
  session,  ///< a new session, and with it a new group: it also loses our terminal
  inherit,  ///< ours: signals that a terminal sends to us reach it too, and `signal_group` is refused
};

/// A file descriptor of ours that a program gets under a number of its own.
struct os_descriptor {
  int ours = -1;
  int theirs = -1;  ///< 3 or more
};

/// What to start, and how. The program gets its three standard streams and `descriptors`, but no other descriptor of
/// ours, and all signals with their default effect and not blocked.
struct os_command {
  /// A path, or a name without `/`, which is searched for in the directories of our `PATH`. A relative path begins in
  /// `directory`.
  std::string program;
  std::vector<std::string> arguments{};  ///< without the name of the program
  /// Environment variables, in addition to ours and with precedence over them.
  std::map<std::string, std::string> variables{};
  /// False: the program gets `variables` and none of ours.
  bool inherits_variables = true;
  std::string directory{};  ///< its working directory; empty: ours
  os_stdio input = os_stdio::null;
  os_stdio output = os_stdio::pipe;
  os_stdio error = os_stdio::pipe;
  std::vector<os_descriptor> descriptors{};
  os_group group = os_group::own;
  /// The system kills the program when ours ends, however that happens. It does so neither for descendants of the
  /// program nor for a program that runs with the rights of somebody else (set-user-id).
  bool killed_with_us = true;
};

/// The faults of a command that no system could start; `spawn` makes this check, too.
[[nodiscard]] inline result<void> check(const os_command& c) {
  const auto wrong = [&](std::string_view what) {
    return fail(errc::invalid, "cannot start '" + c.program + "': " + std::string{what});
  };
  const auto has_zero = [](std::string_view text) { return text.find('\0') != std::string_view::npos; };
  if (c.program.empty()) return wrong("the command names no program");
  if (has_zero(c.program) || has_zero(c.directory) || std::ranges::any_of(c.arguments, has_zero))
    return wrong("the name, the directory or an argument contains a zero byte");
  for (const auto& [name, value] : c.variables)
    if (name.empty() || name.find('=') != std::string::npos || has_zero(name) || has_zero(value))
      return wrong("the environment variable '" + name + "' has no valid name, or contains a zero byte");
  for (auto d = c.descriptors.begin(); d != c.descriptors.end(); ++d) {
    if (d->ours < 0 || d->theirs < 3)
      return wrong("a descriptor is negative, or is to become one of the numbers 0 to 2");
    if (std::any_of(c.descriptors.begin(), d, [&](const os_descriptor& e) { return e.theirs == d->theirs; }))
      return wrong("two descriptors are to become number " + std::to_string(d->theirs));
  }
  return {};
}

/// How a program ended.
struct os_exit {
  /// The code with which it exited, 0 if a signal ended it. -1: unknown, because other code of our program has waited
  /// for all children, or has SIGCHLD ignored.
  int code = 0;
  int signal = 0;     ///< the signal that ended it; 0: none did
  bool core = false;  ///< the system wrote a memory image of it
  std::chrono::microseconds user_time{0};
  std::chrono::microseconds system_time{0};
  std::int64_t memory_peak_kib = 0;

  [[nodiscard]] bool ok() const noexcept { return code == 0 && signal == 0; }
};

/// For example `exit code 3` or `signal 11, core dumped`.
[[nodiscard]] inline std::string to_string(const os_exit& e) {
  if (e.signal == 0) return e.code == -1 ? "unknown exit code" : "exit code " + std::to_string(e.code);
  return "signal " + std::to_string(e.signal) + (e.core ? ", core dumped" : "");
}

/// What a program does, told to who started it. Functions that are left empty are not called. All calls for all
/// programs of an environment are made one at a time, on one thread of the environment, possibly before `spawn` has
/// returned: the functions may lock and allocate, use and destroy any `os_process` and spawn others, but must neither
/// throw nor wait. They may own the `os_process`: they are destroyed after the last report, or with the `os_process`.
struct os_process_events {
  /// The program, or a descendant that has its streams, has written these bytes to a stream that is a pipe. They come
  /// in order for each stream, divided anyhow. The bytes are valid during the call.
  std::move_only_function<void(os_stream, std::string_view)> output{};
  /// Nothing more will be written: the program and all descendants that had its piped streams have ended or have closed
  /// them. Called at most once, before or after `ended`; never if no stream is a pipe.
  std::move_only_function<void()> output_closed{};
  /// The program has ended. Called once, after `output` for everything it wrote itself, unless that is held back.
  std::move_only_function<void(const os_exit&)> ended{};
};

/// A program that was started. Destroying it ends the reports: when the destructor returns, no function of
/// `os_process_events` is running, unless it is the caller, and none is called again. Our ends of the pipes are closed,
/// and the program itself is left alone. (So the destructor may have to wait for such a function: do not hold a lock
/// that it takes.) Thread safety: any thread.
class os_process {
 public:
  /// The input that waits for the program may be this large before more is refused.
  static constexpr std::size_t input_limit = std::size_t{1} << 20U;

  virtual ~os_process() = default;
  /// Its number in the operating system. No other process gets it before this object is destroyed.
  [[nodiscard]] virtual std::int64_t id() const noexcept = 0;
  /// Sends a signal to the process. Fails with `errc::exited` if its end is known, with `errc::invalid` if there is no
  /// such signal, or if the process runs with rights that do not let us.
  virtual result<void> signal(int number) = 0;
  /// Sends a signal to all processes of its group, also after its own end. Fails with `errc::invalid` like `signal`,
  /// and if the group is ours; with `errc::exited` if other code has waited for the process, whose number then may be
  /// that of a stranger.
  virtual result<void> signal_group(int number) = 0;
  /// Queues bytes for the standard input of the program. Fails with `errc::exited` if the program has ended or does not
  /// read any more, with `errc::capacity` if `input_limit` bytes are waiting already, with `errc::invalid` if its input
  /// is not a pipe or has been closed. Bytes that the program never reads are dropped.
  virtual result<void> write_input(std::string bytes) = 0;
  /// The program finds the end of its input after what has been written.
  virtual void close_input() = 0;
  /// Stops calls of `output` until `release_output`, so that the pipe fills up and the program has to wait; a call that
  /// is running is not interrupted. `ended` does not wait for output that is held back.
  virtual void hold_output() = 0;
  virtual void release_output() = 0;
};

/// Thread safety: any thread.
class os_processes {
 public:
  virtual ~os_processes() = default;
  /// Starts a program. Fails with a text that says what was tried: `errc::not_found` if there is no such program or
  /// directory, `errc::invalid` for a command that makes no sense, `errc::capacity` if the system has no room for more
  /// processes or descriptors, `errc::start_failed` for all else. It takes about a millisecond.
  [[nodiscard]] virtual result<std::unique_ptr<os_process>> spawn(const os_command& command,
                                                                  os_process_events events) = 0;
};

}  // namespace coppice
