#pragma once
/// Programs of the operating system, as a simulated node runs them: a test says what a program does, and the code under
/// test starts it by its name, through `environment::os_processes`.
///
///     class worker final : public sim::os_program {
///       void start(sim::os_program_self& me) override {
///         me.after(2s, [&me] { me.print("ready\n"); });
///       }
///     };
///     node.install("worker", [](const os_command&) { return std::make_unique<worker>(); });
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include <coppice/env/os_processes.hpp>

namespace coppice::sim {

class os_program;

/// What a program can do while it runs. After its end nothing of it has an effect.
class os_program_self {
 public:
  virtual ~os_program_self() = default;
  [[nodiscard]] virtual const os_command& command() const noexcept = 0;
  /// Writes to a standard stream. A simulated program never has to wait until somebody reads.
  virtual void print(std::string_view text, os_stream to = os_stream::output) = 0;
  /// Calls `what` later, by the clock of the node, unless the program has ended by then.
  virtual void after(std::chrono::nanoseconds delay, std::function<void()> what) = 0;
  /// Starts a descendant with the same command, streams and group. Nobody is told of its end; signals reach it through
  /// the group.
  virtual void fork(std::unique_ptr<os_program> descendant) = 0;
  /// From now on nobody can write to the program.
  virtual void close_input() = 0;
  /// Ends the program.
  virtual void end(const os_exit& how) = 0;
  void exit(int code) { end({.code = code}); }
};

/// What a program does. Its functions are called in steps of the world; the seed decides when.
class os_program {
 public:
  virtual ~os_program() = default;
  virtual void start(os_program_self& me) = 0;
  /// Bytes have arrived at its standard input, divided anyhow.
  virtual void input(os_program_self& /*me*/, std::string_view /*bytes*/) {}
  /// Nothing more will arrive. Called once, right after the start if the input of the program is not a pipe.
  virtual void input_closed(os_program_self& /*me*/) {}
  /// A signal has arrived. Unless overridden, the program ends, or ignores the signal, as the system does by default;
  /// it is never stopped (SIGSTOP). SIGKILL is not delivered here: it ends the program.
  virtual void signalled(os_program_self& me, int number);
};

/// Makes the program that a command names. It may throw `std::system_error`: then the start fails with that code.
using os_program_maker = std::function<std::unique_ptr<os_program>(const os_command&)>;

}  // namespace coppice::sim
