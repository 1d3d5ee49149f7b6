#include <gtest/gtest.h>

#include <set>
#include <type_traits>
#include <unordered_set>

#include <coppice/base/id.hpp>

namespace {

using apples = coppice::id<struct apple_tag>;
using pears = coppice::id<struct pear_tag>;
using small = coppice::id<struct small_tag, std::uint8_t>;

static_assert(!std::is_convertible_v<std::uint64_t, apples>, "a number does not become an id by itself");
static_assert(!std::is_convertible_v<apples, std::uint64_t>, "nor an id a number");
static_assert(!std::is_convertible_v<apples, bool>);
static_assert(!std::is_constructible_v<apples, pears>, "ids of different tags never mix");
static_assert(!std::equality_comparable_with<apples, pears>);
static_assert(sizeof(small) == 1);
static_assert(std::is_trivially_copyable_v<apples>);

TEST(id, one_that_was_never_given_is_false) {
  EXPECT_FALSE(apples{});
  EXPECT_FALSE(apples{0});
  EXPECT_TRUE(apples{1});
  EXPECT_EQ(apples{}.value(), 0U);
}

TEST(id, orders_and_compares_as_its_number) {
  EXPECT_EQ(apples{7}, apples{7});
  EXPECT_NE(apples{7}, apples{8});
  EXPECT_LT(apples{7}, apples{8});
  EXPECT_EQ((std::set<apples>{apples{3}, apples{1}, apples{3}}.size()), 2U);
}

TEST(id, is_a_key_of_hash_maps) {
  const std::unordered_set<apples> seen{apples{1}, apples{2}, apples{1}};
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen.contains(apples{2}));
}

}  // namespace
