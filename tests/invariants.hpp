#pragma once
/// For tests that corrupt a state on purpose.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/exit_reason.hpp>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace coppice {

/// A broken invariant may leak the memory that was being handed over: what this thread allocates until the end of the
/// scope may leak.
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

/// The text of the invariant that `corrupted` finds broken.
template <class F>
[[nodiscard]] std::string broken_by(F&& corrupted) {
  const leaks_expected leaks;
  try {
    std::forward<F>(corrupted)();
  } catch (const broken_invariant& broken) {
    return broken.what();
  }
  return "nothing was found broken";
}

inline void expect_found(std::string_view text, std::string_view found) {
  EXPECT_NE(text.find(found), std::string_view::npos) << text;
}
/// The process ended because it found this broken.
inline void expect_broken(const exit_reason& why, std::string_view found) {
  EXPECT_EQ(why.exception_type(), "coppice::broken_invariant");
  expect_found(why.text(), found);
}

}  // namespace coppice
