// Runs over many seeds, and the report about the one that fails.
#include <gtest/gtest.h>

#include <cstdlib>

#include <coppice/sim/explore.hpp>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

TEST(explore, runs_the_property_in_a_world_of_each_seed) {
  std::vector<std::uint64_t> seeds;
  const auto note_seed = [&](world& w) { seeds.push_back(w.seed()); };
  EXPECT_EQ(explore({.name = "all", .first_seed = 5, .seeds = 4, .repeat_every = 0}, note_seed), "");
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{5, 6, 7, 8}));
}

TEST(explore, tells_the_first_seed_that_fails_and_how_to_replay_it) {
  int runs = 0;
  const auto fails_from_seven = [&](world& w) {
    ++runs;
    require(w.seed() < 7, "seven is too much");
  };
  const std::string report =
      explore({.name = "below seven", .seeds = 100, .replay = "bin/tests --one"}, fails_from_seven);
  EXPECT_EQ(report, "below seven: seed 7: seven is too much\n  replay: COPPICE_SEED=7 bin/tests --one");
  EXPECT_EQ(runs, 8) << "the seventh runs once more, for the events of the report";
}

TEST(explore, takes_any_exception_for_a_failure) {
  const auto throws = [](world&) { throw std::out_of_range{"over the edge"}; };
  EXPECT_NE(explore({.name = "edge"}, throws).find("seed 1: over the edge"), std::string::npos);
}

TEST(explore, runs_a_share_of_the_seeds_twice) {
  std::vector<std::uint64_t> seeds;
  const auto note_seed = [&](world& w) { seeds.push_back(w.seed()); };
  EXPECT_EQ(explore({.name = "some twice", .seeds = 6, .repeat_every = 3}, note_seed), "");
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{1, 2, 3, 3, 4, 5, 6, 6}));
}

task<> idles_so_often(self& me, int times) {
  for (int i = 0; i < times; ++i) co_await me.yield();
}

TEST(explore, detects_that_the_same_seed_went_another_way) {
  const auto depends_on_the_past = [](world& w) {
    static int past = 0;
    w.add_node().rt().spawn(idles_so_often, ++past);
    w.run();
  };
  const std::string report = explore({.name = "forgetful", .repeat_every = 4, .replay = "again"}, depends_on_the_past);
  EXPECT_NE(report.find("forgetful: seed 4: the second run of the same seed has a different hash"), std::string::npos)
      << report;
  EXPECT_NE(report.find("COPPICE_SEED=4 again"), std::string::npos) << report;
}

TEST(explore, a_failure_only_in_the_second_run_of_a_seed_counts) {
  int runs = 0;
  const auto fails_the_second_time = [&](world&) { require(++runs != 2, "worn out"); };
  const std::string report = explore({.name = "wear", .seeds = 1, .repeat_every = 1}, fails_the_second_time);
  EXPECT_NE(report.find("worn out"), std::string::npos) << report;
}

TEST(explore, with_a_seed_from_the_environment_runs_only_that_one_with_its_trace) {
  std::vector<std::uint64_t> seeds;
  const auto note_seed = [&](world& w) {
    seeds.push_back(w.seed());
    w.note("seen by the one who replays", 1, 2, 3);
    require(w.seed() != 77, "the one");
  };
  ASSERT_EQ(::setenv("COPPICE_SEED", "77", 1), 0);  // NOLINT(concurrency-mt-unsafe): one thread
  testing::internal::CaptureStderr();
  const std::string report = explore({.name = "replayed", .seeds = 10, .replay = "again"}, note_seed);
  const std::string trace = testing::internal::GetCapturedStderr();
  ASSERT_EQ(::unsetenv("COPPICE_SEED"), 0);  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{77}));
  EXPECT_TRUE(report.starts_with("replayed: seed 77: the one\n  replay: COPPICE_SEED=77 again\n")) << report;
  EXPECT_EQ(trace, "1.000000000 seen by the one who replays 1 2 3\n");
}

TEST(explore, what_is_thrown_may_be_anything) {
  const std::string report = explore({.name = "odd", .seeds = 3, .replay = "again"}, [](world&) { throw 42; });
  EXPECT_TRUE(report.starts_with("odd: seed 1: threw something")) << report;
}

TEST(explore, no_seeds_at_all_are_refused) {
  EXPECT_THROW((void)explore({.name = "none", .seeds = 0}, [](world&) {}), std::invalid_argument);
}

/// Sets COPPICE_SEED until the end of the scope.
struct seed_in_environment {
  explicit seed_in_environment(const char* seed) {
    ::setenv("COPPICE_SEED", seed, 1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  ~seed_in_environment() { ::unsetenv("COPPICE_SEED"); }  // NOLINT(concurrency-mt-unsafe): one thread
  seed_in_environment(const seed_in_environment&) = delete;
  seed_in_environment& operator=(const seed_in_environment&) = delete;
};

TEST(explore, a_seed_in_the_environment_that_is_not_a_number_is_refused) {
  for (const char* seed : {"abc", "-1", "7x", "99999999999999999999"}) {
    const seed_in_environment set{seed};
    EXPECT_THROW((void)explore({.name = "any"}, [](world&) {}), std::invalid_argument) << seed;
  }
}

TEST(explore, an_empty_seed_in_the_environment_is_none) {
  const seed_in_environment set{""};
  int runs = 0;
  EXPECT_EQ(explore({.name = "any", .seeds = 5, .repeat_every = 0}, [&](world&) { ++runs; }), "");
  EXPECT_EQ(runs, 5);
}

TEST(explore, a_replayed_seed_that_goes_another_way_each_time_is_told) {
  const seed_in_environment set{"3"};
  std::uint64_t turn = 0;
  testing::internal::CaptureStderr();
  const std::string report = explore({.name = "fickle"}, [&](world& w) { w.note("turn", ++turn); });
  (void)testing::internal::GetCapturedStderr();
  EXPECT_TRUE(report.starts_with("fickle: seed 3: the second run of the same seed has a different hash")) << report;
}

TEST(explore, a_second_run_that_fails_is_reported_with_its_failure) {
  int run = 0;
  const std::string report =
      explore({.name = "fails later", .first_seed = 7, .seeds = 1, .repeat_every = 1}, [&](world&) {
        if (++run == 2) throw std::runtime_error{"no more luck"};
      });
  EXPECT_TRUE(report.starts_with("fails later: seed 7: the second run of the same seed failed: no more luck\n"))
      << report;
}

TEST(explore_death_test, a_crash_says_which_seed_it_was_and_how_to_replay_it) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto aborts_at_four = [](world& w) {
    if (w.seed() == 4) std::abort();
  };
  EXPECT_DEATH((void)explore({.name = "fragile", .seeds = 9, .replay = "again"}, aborts_at_four),
               "fragile: seed 4: crashed\n  replay: COPPICE_SEED=4 again");
}

TEST(require, says_what_did_not_hold) {
  EXPECT_NO_THROW(require(true, "fine"));
  EXPECT_THROW(require(false, "not fine"), violation);
}

}  // namespace
