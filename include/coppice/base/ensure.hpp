#pragma once
/// Invariants of the library itself, checked in release builds too.
///
/// `ensure` stands where a counter is lowered, a state changes or ownership is handed over. It costs one compare. When
/// the invariant is violated, it throws `broken_invariant`, whose text says what was found and where. Inside a process,
/// this also ends the process, with the text as its exit reason, even if the process catches the exception: its state
/// can't be trusted. On a thread of the runtime between two processes, or in a function that must not throw, the
/// exception ends the program, with the text on standard error. On a thread of the user it reaches the caller.
#include <source_location>
#include <stdexcept>
#include <string_view>

namespace coppice {

/// Thrown by `ensure`: a defect of this library. Inside a process it ends that process and nothing else.
class broken_invariant final : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn, gnu::cold]] void invariant_broken(std::string_view found, std::source_location at);

/// Called with each `broken_invariant` before it is thrown. The runtime sets an observer that ends the running process.
using invariant_observer = void (*)(const broken_invariant&) noexcept;
void observe_broken_invariants(invariant_observer observer) noexcept;
}  // namespace detail

/// Throws `broken_invariant` with `found` and the place of the caller unless `holds`.
inline void ensure(bool holds, std::string_view found, std::source_location at = std::source_location::current()) {
  if (!holds) [[unlikely]]
    detail::invariant_broken(found, at);
}

}  // namespace coppice
