#pragma once
/// A counter that cannot fall below zero.
#include <cstdint>
#include <limits>
#include <string_view>

#include <coppice/base/ensure.hpp>

namespace coppice::detail {

class guarded_counter {
 public:
  constexpr explicit guarded_counter(std::uint32_t first = 0) noexcept : value_{first} {}
  void raise() {
    ensure(value_ != std::numeric_limits<std::uint32_t>::max(), "a counter has reached its largest value");
    ++value_;
  }
  /// `too_low` is the text of the `ensure` that fires when the counter is less than `by`.
  void lower(std::uint32_t by, std::string_view too_low) {
    ensure(by <= value_, too_low);
    value_ -= by;
  }
  [[nodiscard]] constexpr std::uint32_t value() const noexcept { return value_; }
  [[nodiscard]] constexpr bool is_zero() const noexcept { return value_ == 0; }

 private:
  std::uint32_t value_;
};

}  // namespace coppice::detail
