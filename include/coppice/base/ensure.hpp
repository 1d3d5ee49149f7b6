#pragma once
/// Our own invariants, checked in release builds too.
#include <source_location>
#include <stdexcept>
#include <string_view>

namespace coppice {

/// What `ensure` throws: a defect of this library. Inside a process it ends that process and nothing else.
class broken_invariant : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void invariant_broken(std::string_view why, std::source_location at);
}

/// Throws `broken_invariant` with the place and `why` unless `holds`.
inline void ensure(bool holds, std::string_view why, std::source_location at = std::source_location::current()) {
  if (!holds) [[unlikely]]
    detail::invariant_broken(why, at);
}

}  // namespace coppice
