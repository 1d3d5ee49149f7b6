#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include <coppice/base/duration_text.hpp>

namespace coppice {

/// How a child is stopped: asked, and killed if it has not ended after a time; or killed at once; or asked and waited
/// for without limit.
///
///     .shutdown = 2s      .shutdown = coppice::shutdown::brutal_kill()      .shutdown = coppice::shutdown::infinity()
class shutdown {
 public:
  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor): 2s is a way to stop
  constexpr shutdown(std::chrono::duration<Rep, Period> time) noexcept : time_{time} {}
  [[nodiscard]] static constexpr shutdown brutal_kill() noexcept { return shutdown{brutal}; }
  /// A time of `std::chrono::nanoseconds::max()` means the same.
  [[nodiscard]] static constexpr shutdown infinity() noexcept { return shutdown{std::chrono::nanoseconds::max()}; }

  [[nodiscard]] constexpr bool is_brutal() const noexcept { return time_ == brutal; }
  [[nodiscard]] constexpr bool is_infinite() const noexcept { return time_ == std::chrono::nanoseconds::max(); }
  /// How long to wait after the request: `std::chrono::nanoseconds::max()` if infinite, 0 for a brutal kill.
  [[nodiscard]] constexpr std::chrono::nanoseconds time() const noexcept {
    return is_brutal() ? std::chrono::nanoseconds{0} : time_;
  }
  friend constexpr bool operator==(const shutdown&, const shutdown&) noexcept = default;

 private:
  static constexpr std::chrono::nanoseconds brutal = std::chrono::nanoseconds::min();
  std::chrono::nanoseconds time_;
};

/// For example `5s`, `brutal_kill`, `infinity`.
[[nodiscard]] std::string to_string(const shutdown& s);

}  // namespace coppice
