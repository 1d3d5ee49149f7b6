// How often a child may fail before it is stopped.
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

using maker = actor_strategy (*)(strategy_options);
constexpr maker kinds[] = {&one_for_one, &all_for_one};

/// "p" with a child "a" under a limit.
struct limited {
  explicit limited(restart_limit limit, maker kind = &one_for_one) {
    s.root("p", {.strategy = kind({.limit = limit})});
    s.child("p", "a");
  }
  /// Whether it was restarted.
  [[nodiscard]] bool survives() {
    s.fail("a", "failure " + std::to_string(++failures));
    return s.said("a") == 0;
  }
  int failures = 0;
  stage s;
};

TEST(actor_limit, of_none_stops_at_the_first_failure) {
  for (const maker kind : kinds) {
    limited l{{.restarts = 0, .within = 10s}, kind};
    EXPECT_FALSE(l.survives());
    EXPECT_EQ(l.s.ended("a")->text(), "failure 1");
    EXPECT_EQ(l.s.answers(), (lines{"a stop"})) << "the event says what is done";
  }
}

TEST(actor_limit, allows_so_many_and_stops_with_the_reason_of_the_next) {
  for (const maker kind : kinds) {
    limited l{{.restarts = 3, .within = 10s}, kind};
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(l.survives()) << i;
    EXPECT_FALSE(l.survives());
    EXPECT_EQ(l.s.ended("a")->text(), "failure 4");
    EXPECT_EQ(l.s.said("p"), 0) << "the parent lives";
  }
}

TEST(actor_limit, is_ten_in_ten_seconds_unless_said_otherwise) {
  stage s;
  s.root("p");
  s.child("p", "a");
  for (int i = 0; i < 10; ++i) s.fail("a");
  EXPECT_EQ(s.said("a"), 0);
  s.fail("a");
  EXPECT_FALSE(s.rt().alive(s.who("a")));
  s.child("p", "b");
  for (int i = 0; i < 10; ++i) s.fail("b");
  s.pass(11s);
  s.fail("b");
  EXPECT_EQ(s.said("b"), 0);
}

TEST(actor_limit, counts_only_what_lies_within_its_time) {
  for (const maker kind : kinds) {
    limited two{{.restarts = 2, .within = 10s}, kind};
    EXPECT_TRUE(two.survives());
    two.s.pass(5s);
    EXPECT_TRUE(two.survives()) << "5 s old, and it is the second";
    limited one{{.restarts = 1, .within = 10s}, kind};
    EXPECT_TRUE(one.survives());
    one.s.pass(11s);
    EXPECT_TRUE(one.survives()) << "the first is 11 s old";
    one.s.pass(9s);
    EXPECT_FALSE(one.survives());
  }
}

TEST(actor_limit, slides_with_time) {
  limited l{{.restarts = 2, .within = 10s}};
  EXPECT_TRUE(l.survives());  // at 0
  l.s.pass(6s);
  EXPECT_TRUE(l.survives());  // at 6
  l.s.pass(6s);
  EXPECT_TRUE(l.survives());  // at 12: the first does not count any more
  l.s.pass(2s);
  EXPECT_FALSE(l.survives()) << "6, 12 and 14";
}

TEST(actor_limit, for_ever_counts_over_the_whole_life) {
  limited l{{.restarts = 2, .within = forever}};
  EXPECT_TRUE(l.survives());
  l.s.pass(24h * 30);
  EXPECT_TRUE(l.survives());
  l.s.pass(24h * 30);
  EXPECT_FALSE(l.survives());
}

TEST(actor_limit, may_have_a_window_of_thirty_days) {
  limited l{{.restarts = 1, .within = 24h * 30}};
  EXPECT_TRUE(l.survives());
  l.s.pass(24h * 31);
  EXPECT_TRUE(l.survives());
  l.s.pass(24h * 29);
  EXPECT_FALSE(l.survives());
}

TEST(actor_limit, does_not_round_its_time) {
  for (const std::chrono::nanoseconds within : {std::chrono::nanoseconds{1500ms}, {1min}, {5h}}) {
    limited inside{{.restarts = 1, .within = within}};
    EXPECT_TRUE(inside.survives());
    inside.s.pass(within - 1ms);
    EXPECT_FALSE(inside.survives()) << within.count();
    limited outside{{.restarts = 1, .within = within}};
    EXPECT_TRUE(outside.survives());
    outside.s.pass(within + 1ms);
    EXPECT_TRUE(outside.survives()) << within.count();
  }
}

TEST(actor_limit, unlimited_is_without_end_and_still_counted) {
  stage s;
  std::size_t seen = 0;
  s.root("p", {.strategy = one_for_one({.limit = unlimited, .decide = [&](const child_failure& f) {
                                          seen = f.restarts;
                                          return directive::restart;
                                        }})});
  s.child("p", "a");
  for (int i = 0; i < 200; ++i) s.fail("a");
  EXPECT_EQ(s.said("a"), 0);
  EXPECT_EQ(seen, 199U);
}

TEST(actor_limit, belongs_to_each_child) {
  for (const maker kind : kinds) {
    limited l{{.restarts = 2, .within = 1h}, kind};
    l.s.child("p", "b");
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(l.survives());
      l.s.fail("b");
      EXPECT_EQ(l.s.said("b"), 0) << "it has failed no more often than that itself";
    }
    EXPECT_FALSE(l.survives());
  }
}

TEST(actor_limit, of_all_for_one_stops_all_when_one_exceeds_it) {
  limited l{{.restarts = 1, .within = 1h}, &all_for_one};
  l.s.child("p", "b");
  EXPECT_TRUE(l.survives());
  EXPECT_FALSE(l.survives());
  EXPECT_EQ(l.s.ended("b")->text(), "failure 2");
}

TEST(actor_limit, begins_anew_with_a_new_actor_of_the_same_name) {
  limited l{{.restarts = 1, .within = 1h}};
  EXPECT_TRUE(l.survives());
  EXPECT_FALSE(l.survives());
  l.s.child("p", "a");
  EXPECT_TRUE(l.survives());
}

TEST(actor_limit, survives_the_restart_of_the_parent_that_keeps_its_children) {
  stage s;
  s.root("p", {.strategy = one_for_one({.limit = {.restarts = 2, .within = 1h}}), .keep_children = true});
  s.child("p", "a");
  s.fail("a");
  s.fail("p");
  s.fail("a");
  EXPECT_EQ(s.said("a"), 0);
  s.fail("a");
  EXPECT_FALSE(s.rt().alive(s.who("a")));
}

TEST(actor_limit, does_not_grow_with_failures_that_are_long_over) {
  stage s;
  std::size_t most = 0;
  s.root("p", {.strategy = one_for_one({.limit = {.restarts = 5, .within = 10s}, .decide = [&](const auto& f) {
                                          most = std::max(most, f.restarts);
                                          return directive::restart;
                                        }})});
  s.child("p", "a");
  for (int i = 0; i < 100; ++i) {
    s.fail("a");
    s.pass(4s);
  }
  EXPECT_EQ(most, 2U);
  EXPECT_EQ(s.said("a"), 0);
}

}  // namespace
