#pragma once
/// Settings that few children have, in as little room as possible: a supervisor keeps a spec for each of its children,
/// and there may be a hundred thousand.
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::detail {

/// Like `std::optional`, but of the size of one pointer: the value is on the heap. Copies copy the value.
template <class T>
class boxed {
 public:
  boxed() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for the value itself
  boxed(std::nullopt_t) noexcept {}
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for the value itself
  boxed(T value) : value_{std::make_unique<T>(std::move(value))} {}
  boxed(const boxed& other) : value_{other.value_ ? std::make_unique<T>(*other.value_) : nullptr} {}
  boxed(boxed&&) noexcept = default;
  boxed& operator=(const boxed& other) {
    if (this != &other) value_ = other.value_ ? std::make_unique<T>(*other.value_) : nullptr;
    return *this;
  }
  boxed& operator=(boxed&&) noexcept = default;
  ~boxed() = default;

  [[nodiscard]] bool has_value() const noexcept { return value_ != nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] const T& operator*() const noexcept { return *value_; }
  [[nodiscard]] const T* operator->() const noexcept { return value_.get(); }
  /// Null without a value.
  [[nodiscard]] const T* get() const noexcept { return value_.get(); }
  friend bool operator==(const boxed& a, const boxed& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || *a == *b);
  }
  friend bool operator==(const boxed& a, const T& b) { return a.has_value() && *a == b; }

 private:
  std::unique_ptr<T> value_;
};

/// A string that is nearly always empty, of the size of one pointer.
class boxed_text {
 public:
  boxed_text() = default;
  template <class S>
    requires std::convertible_to<const S&, std::string_view>
  boxed_text(const S& text) {  // NOLINT(google-explicit-constructor): it stands for a string
    if (const std::string_view view = text; !view.empty()) text_ = std::string{view};
  }
  [[nodiscard]] bool empty() const noexcept { return !text_; }
  [[nodiscard]] const std::string& str() const noexcept {
    static const std::string none;
    return text_ ? *text_ : none;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for the value itself
  operator const std::string&() const noexcept { return str(); }
  friend bool operator==(const boxed_text& a, const boxed_text& b) { return a.str() == b.str(); }
  template <class S>
    requires std::convertible_to<const S&, std::string_view>
  friend bool operator==(const boxed_text& a, const S& b) {
    return a.str() == std::string_view{b};
  }

 private:
  boxed<std::string> text_;
};

}  // namespace coppice::detail
