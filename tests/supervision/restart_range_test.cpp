// Which children are restarted together, for every strategy and place.
#include <gtest/gtest.h>

#include <coppice/supervision/supervisor_spec.hpp>

namespace {

using namespace coppice;

constexpr std::size_t most = 6;

TEST(range_to_restart, of_one_for_one_is_the_child_alone) {
  for (std::size_t count = 1; count <= most; ++count)
    for (std::size_t place = 0; place < count; ++place)
      EXPECT_EQ(range_to_restart(strategy::one_for_one, place, count), (restart_range{place, place + 1}));
}

TEST(range_to_restart, of_one_for_all_is_everybody) {
  for (std::size_t count = 1; count <= most; ++count)
    for (std::size_t place = 0; place < count; ++place)
      EXPECT_EQ(range_to_restart(strategy::one_for_all, place, count), (restart_range{0, count}));
}

TEST(range_to_restart, of_rest_for_one_is_the_child_and_those_behind_it) {
  for (std::size_t count = 1; count <= most; ++count)
    for (std::size_t place = 0; place < count; ++place)
      EXPECT_EQ(range_to_restart(strategy::rest_for_one, place, count), (restart_range{place, count}));
}

TEST(range_to_restart, always_contains_the_child_that_ended) {
  for (const strategy s : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one})
    for (std::size_t count = 1; count <= most; ++count)
      for (std::size_t place = 0; place < count; ++place) {
        const restart_range r = range_to_restart(s, place, count);
        EXPECT_TRUE(r.first <= place && place < r.last && r.last <= count) << to_string(s) << place << count;
      }
}

TEST(range_to_restart, is_known_at_compile_time) {
  static_assert(range_to_restart(strategy::one_for_one, 1, 3) == restart_range{1, 2});
  static_assert(range_to_restart(strategy::one_for_all, 1, 3) == restart_range{0, 3});
  static_assert(range_to_restart(strategy::rest_for_one, 1, 3) == restart_range{1, 3});
  static_assert(range_to_restart(strategy::rest_for_one, 1, 3).size() == 2);
}

}  // namespace
