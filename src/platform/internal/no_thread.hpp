#pragma once
#include <system_error>

namespace coppice {

/// Adds a text that says what was attempted: the error of the system does not say it.
[[noreturn]] inline void rethrow_no_thread(const std::system_error& x,
                                           const char* text = "no thread could be started") {
  throw std::system_error{x.code(), text};
}

}  // namespace coppice
