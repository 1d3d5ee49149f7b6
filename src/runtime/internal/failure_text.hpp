#pragma once
/// What an exception says about itself, for the exit reason of a process.
#include <exception>
#include <string>

namespace coppice::detail {

struct failure_text {
  std::string type;  // as a program would write it
  std::string text;
};

/// The text contains the exceptions that are nested in it (`std::throw_with_nested`).
[[nodiscard]] failure_text text_of(const std::exception& x);
/// For the exception that is being handled, if it is not a `std::exception`. The text is its value if its type is that
/// of a string, a number or a `std::error_code`. It contains the exceptions that are nested in it.
[[nodiscard]] failure_text text_of_other();

}  // namespace coppice::detail
