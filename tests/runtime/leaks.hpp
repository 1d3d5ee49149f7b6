#pragma once
/// A broken invariant may leak the memory that was being handed over: the tests that break one say so.
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace coppice {

/// What this thread allocates until the end of the scope may leak.
class leaks_expected {
 public:
  leaks_expected() = default;
  leaks_expected(const leaks_expected&) = delete;
  leaks_expected& operator=(const leaks_expected&) = delete;
  ~leaks_expected() {}

 private:
#ifdef __SANITIZE_ADDRESS__
  __lsan::ScopedDisabler disabled_;
#endif
};

}  // namespace coppice
