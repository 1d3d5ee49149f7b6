#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace coppice {

/// How a child is stopped: it is asked to, and killed when it has not ended after a while; or killed at once; or waited
/// for however long it takes.
///
///     .shutdown = 2s      .shutdown = coppice::shutdown::brutal_kill()      .shutdown = coppice::shutdown::infinity()
class shutdown {
 public:
  template <class Rep, class Period>
  // NOLINTNEXTLINE(google-explicit-constructor): 2s is a way to stop
  constexpr shutdown(std::chrono::duration<Rep, Period> time) noexcept : time_{time} {}
  [[nodiscard]] static constexpr shutdown brutal_kill() noexcept {
    return shutdown{std::chrono::nanoseconds{0}, kind::brutal};
  }
  [[nodiscard]] static constexpr shutdown infinity() noexcept {
    return shutdown{std::chrono::nanoseconds::max(), kind::infinite};
  }

  [[nodiscard]] constexpr bool is_brutal() const noexcept { return kind_ == kind::brutal; }
  [[nodiscard]] constexpr bool is_infinite() const noexcept { return kind_ == kind::infinite; }
  /// How long it is waited for; the longest time there is when it is infinite.
  [[nodiscard]] constexpr std::chrono::nanoseconds time() const noexcept { return time_; }
  friend constexpr bool operator==(const shutdown&, const shutdown&) noexcept = default;

 private:
  enum class kind : std::uint8_t { timed, brutal, infinite };
  constexpr shutdown(std::chrono::nanoseconds time, kind k) noexcept : time_{time}, kind_{k} {}
  std::chrono::nanoseconds time_;
  kind kind_ = kind::timed;
};

/// For example `5s`, `brutal_kill`, `infinity`.
[[nodiscard]] std::string to_string(const shutdown& s);
/// A duration as people write it: `1.5s`, `20ms`, `2min`.
[[nodiscard]] std::string to_string(std::chrono::nanoseconds time);

}  // namespace coppice
