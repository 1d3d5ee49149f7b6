#pragma once
/// The C++ name of a type, at compile time and without RTTI, for logs and reports.
///
/// Such a name is for people: it never goes to disk or over the wire.
#include <initializer_list>
#include <string_view>

namespace coppice {

namespace detail {
template <class T>
constexpr std::string_view pretty_function() noexcept {
  return __PRETTY_FUNCTION__;
}
// The text around the name is the same for every type, so one known type tells how much to cut off.
inline constexpr std::size_t name_prefix = pretty_function<int>().find("int");
inline constexpr std::size_t name_suffix = pretty_function<int>().size() - name_prefix - 3;
}  // namespace detail

/// For example `"app::counter::bump"`. An unnamed namespace at its beginning is left out: compilers write it in
/// different ways.
template <class T>
constexpr std::string_view type_name() noexcept {
  constexpr std::string_view whole = detail::pretty_function<T>();
  std::string_view name = whole.substr(detail::name_prefix, whole.size() - detail::name_prefix - detail::name_suffix);
  for (const std::string_view unnamed : {"{anonymous}::", "(anonymous namespace)::"})
    if (name.starts_with(unnamed)) name.remove_prefix(unnamed.size());
  return name;
}

}  // namespace coppice
