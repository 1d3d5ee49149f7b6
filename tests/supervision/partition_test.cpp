// Children that share the work by a key.
#include <gtest/gtest.h>

#include <coppice/supervision/partition_supervisor.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

struct partition_family : family {
  explicit partition_family(std::size_t n) : shards{n} {
    EXPECT_TRUE(start(partition_supervisor(shards, [this](std::size_t i) { return child(std::to_string(i)); },
                                           {.limit = {.restarts = 10}})));
  }
  result<std::size_t> resize_to(std::size_t n) {
    auto done = std::make_shared<std::optional<result<std::size_t>>>();
    rt().spawn(
        +[](self&, ref<supervisor> sup, partitions where, std::size_t count,
            std::shared_ptr<std::optional<result<std::size_t>>> into) -> task<> {
          *into = co_await resize(sup, where, count);
        },
        tree, shards, n, done);
    settle();
    return **done;
  }
  partitions shards;
};

TEST(partition, each_has_its_child_with_its_number_as_id) {
  partition_family f{3};
  EXPECT_EQ(f.state(), "0:running 1:running 2:running");
  EXPECT_EQ(f.shards.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(f.shards.at(i), f.who(std::to_string(i)));
}

TEST(partition, whole_numbers_go_round_robin_by_their_absolute_value) {
  partition_family f{3};
  EXPECT_EQ(f.shards.of(7), f.who("1"));
  EXPECT_EQ(f.shards.of(-7), f.who("1"));
  EXPECT_EQ(f.shards.of(std::numeric_limits<std::int64_t>::min()), f.shards.of(std::uint64_t{1} << 63U));
}

TEST(partition, the_same_key_always_reaches_the_same_one) {
  partition_family f{4};
  const std::string key = "user 17";
  EXPECT_EQ(f.shards.of(key), f.shards.of("user 17"));
  EXPECT_EQ(f.shards.of(std::string_view{key}), f.shards.of(key));
}

TEST(partition, a_restarted_child_takes_its_place) {
  partition_family f{2};
  const pid before = f.shards.at(1);
  f.crash("1");
  EXPECT_NE(f.shards.at(1), before);
  EXPECT_EQ(f.shards.at(1), f.who("1"));
}

TEST(partition, fewer_or_more_can_be_used_up_to_the_first_number) {
  partition_family f{4};
  for (std::size_t n : {2U, 4U, 1U, 3U, 0U, 4U}) {
    const std::size_t before = f.shards.size();
    EXPECT_EQ(f.resize_to(n), before);
    EXPECT_EQ(f.shards.size(), n);
    for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(f.rt().alive(f.shards.at(i)));
    EXPECT_EQ(f.ask(count_children(f.tree))->active, n);
  }
  EXPECT_EQ(f.resize_to(5).error().code(), errc::invalid);
}

TEST(partition, a_look_up_in_none_throws) {
  partition_family f{1};
  EXPECT_TRUE(f.resize_to(0));
  EXPECT_THROW((void)f.shards.of("x"), std::out_of_range);
  EXPECT_THROW((void)f.shards.at(0), std::out_of_range);
  EXPECT_THROW(partitions{0}, std::invalid_argument);
}

TEST(partition, calls_reach_the_child_of_the_key) {
  partition_family f{2};
  const auto answer = f.ask(f.shards.ref_of<worker>("a").call<worker::ping>());
  EXPECT_EQ(answer, 1);
}

TEST(partition, more_can_be_used_again_after_a_restart_of_all) {
  family f;
  partitions shards{4};
  ASSERT_TRUE(f.start(partition_supervisor(shards, [&](std::size_t i) { return f.child(std::to_string(i)); },
                                           {.strategy = strategy::one_for_all})));
  const auto resize_to = [&](std::size_t n) {
    auto done = std::make_shared<std::optional<result<std::size_t>>>();
    f.rt().spawn(
        +[](self&, ref<supervisor> sup, partitions where, std::size_t count,
            std::shared_ptr<std::optional<result<std::size_t>>> into) -> task<> {
          *into = co_await resize(sup, where, count);
        },
        f.tree, shards, n, done);
    f.settle();
    return **done;
  };
  EXPECT_TRUE(resize_to(2));
  f.crash("0");
  EXPECT_TRUE(resize_to(4));
  EXPECT_EQ(shards.size(), 4U);
}

}  // namespace
