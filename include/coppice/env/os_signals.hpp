#pragma once
/// What the operating system asks of a program: to stop, or to look at its configuration again. (Signals between
/// processes of a runtime are something else: runtime/signals.hpp.)
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <coppice/base/cxx23.hpp>

namespace coppice {

enum class os_signal : std::uint8_t {
  terminate,  ///< SIGTERM: a service manager or `kill` asks for an end
  interrupt,  ///< SIGINT: somebody pressed Ctrl-C
  hangup,     ///< SIGHUP: the terminal is gone; for services by custom: read the configuration again
};

[[nodiscard]] constexpr std::string_view to_string(os_signal s) noexcept {
  switch (s) {
    case os_signal::terminate: return "SIGTERM";
    case os_signal::interrupt: return "SIGINT";
    case os_signal::hangup: return "SIGHUP";
  }
  return "?";
}

/// The number of the signal in the system; shells report 128 plus this number for a program that it ended.
[[nodiscard]] constexpr int number_of(os_signal s) noexcept {
  switch (s) {
    case os_signal::terminate: return 15;
    case os_signal::interrupt: return 2;
    case os_signal::hangup: return 1;
  }
  return 0;
}

/// Ends when it is destroyed: `heard` is then not running and will not be called again.
class os_signal_subscription {
 public:
  virtual ~os_signal_subscription() = default;
};

/// Thread safety: any thread.
class os_signals {
 public:
  virtual ~os_signals() = default;
  /// Until the subscription is destroyed, `heard` is called once for each signal of `which` that this program gets, one
  /// call at a time, on a thread of its own: it may lock and allocate, but must not throw, nor make or destroy
  /// subscriptions. Meanwhile those signals do nothing else; afterwards they do what they did before. A signal that the
  /// program ignores stays ignored. Throws `std::system_error` when there is no thread for it.
  [[nodiscard]] virtual std::unique_ptr<os_signal_subscription> subscribe(
      std::vector<os_signal> which, std::move_only_function<void(os_signal)> heard) = 0;
};

}  // namespace coppice
