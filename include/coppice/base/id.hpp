#pragma once
/// Strong identifiers: ids of different tags do not mix, and none converts to a number implicitly.
#include <compare>
#include <cstdint>
#include <functional>

namespace coppice {

template <class Tag, class Rep = std::uint64_t>
class id {
 public:
  constexpr id() noexcept = default;
  constexpr explicit id(Rep value) noexcept : value_{value} {}
  [[nodiscard]] constexpr Rep value() const noexcept { return value_; }
  /// False for the default id, which identifies nothing.
  constexpr explicit operator bool() const noexcept { return value_ != Rep{}; }
  friend constexpr auto operator<=>(id, id) noexcept = default;

 private:
  Rep value_{};
};

}  // namespace coppice

template <class Tag, class Rep>
struct std::hash<coppice::id<Tag, Rep>> {
  std::size_t operator()(coppice::id<Tag, Rep> i) const noexcept { return std::hash<Rep>{}(i.value()); }
};
