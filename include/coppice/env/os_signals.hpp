#pragma once
/// What the operating system asks of a program: to stop, to look at its configuration again, or something of the
/// program's own. (Signals between processes of a runtime are something else: runtime/signals.hpp.)
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <coppice/base/cxx23.hpp>

namespace coppice {

enum class os_signal : std::uint8_t {
  terminate,  ///< SIGTERM: a service manager or `kill` asks for an end
  interrupt,  ///< SIGINT: somebody pressed Ctrl-C
  hangup,     ///< SIGHUP: the terminal was closed; services by convention reload their configuration
  user1,      ///< SIGUSR1: its meaning is the program's own
  user2,      ///< SIGUSR2: the same
};

[[nodiscard]] constexpr std::string_view to_string(os_signal s) noexcept {
  switch (s) {
    case os_signal::terminate: return "SIGTERM";
    case os_signal::interrupt: return "SIGINT";
    case os_signal::hangup: return "SIGHUP";
    case os_signal::user1: return "SIGUSR1";
    case os_signal::user2: return "SIGUSR2";
  }
  return "?";
}

/// The number of the signal in the system; shells report 128 plus this number for a program that the signal ended.
[[nodiscard]] constexpr int number_of(os_signal s) noexcept {
  switch (s) {
    case os_signal::terminate: return 15;
    case os_signal::interrupt: return 2;
    case os_signal::hangup: return 1;
    case os_signal::user1: return 10;
    case os_signal::user2: return 12;
  }
  return 0;
}

/// Destroying the subscription ends it: when the destructor returns, `heard` is not running and is not called again.
class os_signal_subscription {
 public:
  virtual ~os_signal_subscription() = default;
};

/// Thread safety: any thread.
class os_signals {
 public:
  virtual ~os_signals() = default;
  /// Calls `heard` for each signal of `which` that the program receives, until the subscription is destroyed. The calls
  /// for all subscriptions are made one at a time, on one thread and not in a signal handler: `heard` may lock and
  /// allocate, but must not throw, nor create or destroy subscriptions. While a subscription for a signal exists, the
  /// signal has no other effect; after the last one, its previous handling is restored. A signal that the program
  /// ignores stays ignored. Throws `std::system_error` if that thread cannot be started.
  [[nodiscard]] virtual std::unique_ptr<os_signal_subscription> subscribe(
      std::vector<os_signal> which, std::move_only_function<void(os_signal)> heard) = 0;
};

}  // namespace coppice
