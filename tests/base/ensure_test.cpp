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

void must_not_throw() noexcept { ensure(false, "a list that ends in itself"); }

TEST(ensure_death, where_nothing_may_be_thrown_the_program_ends_with_the_text) {
  EXPECT_DEATH(must_not_throw(), "broken invariant: a list that ends in itself at .*ensure_test.cpp");
}

int seen = 0;
TEST(ensure, an_observer_sees_it_before_it_is_thrown) {
  coppice::detail::observe_broken_invariants([](const broken_invariant&) noexcept { ++seen; });
  EXPECT_THROW(ensure(false, "why"), broken_invariant);
  coppice::detail::observe_broken_invariants(nullptr);
  EXPECT_EQ(seen, 1);
}

}  // namespace
