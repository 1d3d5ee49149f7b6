#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>

#include <coppice/base/flat_map.hpp>

namespace {

using coppice::flat_map;

struct spread {
  static constexpr int none = -1;
  std::uint64_t operator()(int n) const noexcept { return coppice::mix(static_cast<std::uint64_t>(n)); }
};
/// Few homes for many keys: long runs that touch, wrap around the end and close up again when one goes.
struct crowded {
  static constexpr int none = -1;
  std::uint64_t operator()(int n) const noexcept { return static_cast<std::uint64_t>(n % 3) * 7 + 250; }
};

template <class Map>
std::map<int, std::string> content_of(const Map& map) {
  std::map<int, std::string> all;
  map.for_each([&](int key, const std::string& value) { EXPECT_TRUE(all.emplace(key, value).second); });
  return all;
}

template <class Hash>
void behaves_like_a_map(unsigned seed, int keys) {
  std::mt19937 random{seed};
  flat_map<int, std::string, Hash> map;
  std::map<int, std::string> model;
  for (int step = 0; step < 4000; ++step) {
    const int key = static_cast<int>(random() % static_cast<unsigned>(keys));
    if (random() % 5 < 3) {
      const std::string value = std::to_string(step);
      EXPECT_EQ(map.insert(key, value), model.emplace(key, value).second);
    } else {
      EXPECT_EQ(map.erase(key), model.erase(key) == 1);
    }
    const int asked = static_cast<int>(random() % static_cast<unsigned>(keys));
    const std::string* found = map.find(asked);
    ASSERT_EQ(found != nullptr, model.contains(asked)) << "seed " << seed << ", step " << step;
    if (found != nullptr) {
      ASSERT_EQ(*found, model.at(asked));
    }
    ASSERT_EQ(map.size(), model.size());
    ASSERT_EQ(map.empty(), model.empty());
    if (random() % 500 == 0) {
      map.clear();
      model.clear();
    }
  }
  EXPECT_EQ(content_of(map), model);
}

TEST(flat_map, answers_like_a_map_after_any_history) {
  for (unsigned seed = 0; seed < 20; ++seed) behaves_like_a_map<spread>(seed, 200);
}

TEST(flat_map, answers_like_a_map_when_nearly_all_hashes_collide) {
  for (unsigned seed = 0; seed < 20; ++seed) behaves_like_a_map<crowded>(seed, 40);
}

TEST(flat_map, an_empty_one_owns_no_memory) {
  flat_map<int, int, spread> map;
  EXPECT_EQ(map.bytes(), 0U);
  EXPECT_EQ(map.find(1), nullptr);
  EXPECT_FALSE(map.erase(1));
  map.insert(1, 2);
  EXPECT_GT(map.bytes(), 0U);
  map.clear();
  EXPECT_EQ(map.bytes(), 0U);
  EXPECT_EQ(map.find(1), nullptr);
}

TEST(flat_map, a_second_insert_of_a_key_changes_nothing) {
  flat_map<int, std::string, spread> map;
  EXPECT_TRUE(map.insert(1, "first"));
  EXPECT_FALSE(map.insert(1, "second"));
  EXPECT_EQ(*map.find(1), "first");
  EXPECT_EQ(map.size(), 1U);
}

TEST(flat_map, a_value_that_was_found_may_be_changed_in_place) {
  flat_map<int, std::string, spread> map;
  map.insert(1, "old");
  *map.find(1) = "new";
  EXPECT_EQ(*map.find(1), "new");
}

TEST(flat_map, values_that_only_move_are_kept_through_growth_and_removal) {
  flat_map<int, std::unique_ptr<int>, spread> map;
  for (int i = 0; i < 100; ++i) map.insert(i, std::make_unique<int>(i));
  for (int i = 0; i < 100; i += 2) map.erase(i);
  for (int i = 1; i < 100; i += 2) EXPECT_EQ(**map.find(i), i);
  EXPECT_EQ(map.size(), 50U);
}

TEST(flat_map, an_erased_value_is_destroyed_at_once) {
  flat_map<int, std::shared_ptr<int>, crowded> map;
  const auto watched = std::make_shared<int>(7);
  for (int i = 0; i < 10; ++i) map.insert(i, i == 4 ? watched : nullptr);
  EXPECT_EQ(watched.use_count(), 2);
  map.erase(4);
  EXPECT_EQ(watched.use_count(), 1);
}

TEST(flat_map, the_same_history_gives_the_same_order_of_visits) {
  flat_map<int, int, spread> one;
  flat_map<int, int, spread> other;
  for (auto* map : {&one, &other}) {
    for (int i = 0; i < 300; ++i) map->insert(i * 31, i);
    for (int i = 0; i < 300; i += 3) map->erase(i * 31);
  }
  std::vector<int> first;
  std::vector<int> second;
  one.for_each([&](int key, int) { first.push_back(key); });
  other.for_each([&](int key, int) { second.push_back(key); });
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 200U);
}

TEST(mix, dense_numbers_fill_the_low_bits_evenly) {
  std::map<std::uint64_t, int> buckets;
  for (std::uint64_t i = 0; i < 4096; ++i) ++buckets[coppice::mix(i) & 63U];
  EXPECT_EQ(buckets.size(), 64U);
  for (const auto& [bucket, count] : buckets) {
    EXPECT_GT(count, 32) << bucket;
    EXPECT_LT(count, 128) << bucket;
  }
}

}  // namespace
