#include <gtest/gtest.h>

#include <string>

#include <coppice/base/ensure.hpp>

namespace {

using coppice::broken_invariant;
using coppice::ensure;

TEST(ensure, does_nothing_while_the_invariant_holds) { EXPECT_NO_THROW(ensure(true, "never seen")); }

TEST(ensure, throws_with_the_reason_and_the_place_of_the_caller) {
  unsigned line = 0;
  try {
    line = __LINE__ + 1;
    ensure(false, "the queue is never longer than its limit");
    FAIL() << "nothing was thrown";
  } catch (const broken_invariant& broken) {
    const std::string text = broken.what();
    EXPECT_NE(text.find("the queue is never longer than its limit"), std::string::npos) << text;
    EXPECT_NE(text.find("ensure_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  }
}

TEST(ensure, a_broken_invariant_is_a_logic_error) { EXPECT_THROW(ensure(false, "why"), std::logic_error); }

}  // namespace
