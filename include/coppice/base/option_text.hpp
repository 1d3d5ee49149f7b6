#pragma once
#include <concepts>
#include <cstddef>
#include <string_view>
#include <utility>

namespace coppice {

/// A string of an options struct that is built in braces where it is used. In `co_await f(spec.with({.id = text}))`
/// g++ 12 copies the bytes of such an aggregate and destroys both copies. This string knows its address, and a copy of
/// its bytes at another address does not free what it does not own; `std::string` would be freed twice.
class option_text {
 public:
  option_text() = default;
  template <class S>
    requires std::convertible_to<const S&, std::string_view>
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for a string in options
  option_text(const S& text) : option_text{std::string_view{text}, 0} {}
  option_text(const option_text& other) : option_text{other.view(), 0} {}
  option_text(option_text&& other) noexcept
      : text_{std::exchange(other.text_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
  option_text& operator=(const option_text& other) {
    if (this != &other) *this = option_text{other};
    return *this;
  }
  option_text& operator=(option_text&& other) noexcept {
    std::swap(text_, other.text_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~option_text() {
    if (owner_ == this) delete[] text_;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for a string in options
  operator std::string_view() const noexcept { return view(); }
  template <class S>
    requires std::convertible_to<const S&, std::string_view>
  friend bool operator==(const option_text& a, const S& b) noexcept {
    return a.view() == std::string_view{b};
  }

 private:
  option_text(std::string_view text, int /*to tell the constructors apart*/)
      : text_{text.empty() ? nullptr : new char[text.size()]}, size_{text.size()} {
    text.copy(text_, size_);
  }
  char* text_ = nullptr;
  std::size_t size_ = 0;
  const option_text* owner_ = this;
};

}  // namespace coppice
