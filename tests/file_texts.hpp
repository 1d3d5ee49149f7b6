#pragma once
// Texts as bytes, for tests of files.
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <coppice/env/disk.hpp>

namespace coppice::file_texts {

[[nodiscard]] inline std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

/// Throws if the file can't be read.
[[nodiscard]] inline std::string text_of(file& f) {
  const auto size = f.size();
  if (!size) throw std::runtime_error{size.error().to_string()};
  std::string text(*size, '?');
  const auto got = f.read(0, std::as_writable_bytes(std::span{text.data(), text.size()}));
  if (!got) throw std::runtime_error{got.error().to_string()};
  text.resize(*got);
  return text;
}
[[nodiscard]] inline std::string text_at(disk& d, const std::string& path) {
  const auto opened = d.open(path, {});
  if (!opened) throw std::runtime_error{opened.error().to_string()};
  return text_of(**opened);
}

/// Throws the error of a call that had to succeed.
inline void check(const result<void>& done) {
  if (!done) throw std::runtime_error{done.error().to_string()};
}
template <class T>
[[nodiscard]] T value(result<T> got) {
  if (!got) throw std::runtime_error{got.error().to_string()};
  return *std::move(got);
}

}  // namespace coppice::file_texts
