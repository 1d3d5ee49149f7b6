// Many seeds, and what is said about the one that fails.
#include <gtest/gtest.h>

#include <cstdlib>

#include <coppice/sim/explore.hpp>

#include "people.hpp"

namespace coppice::sim {
namespace {

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
  EXPECT_EQ(runs, 7);
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
  EXPECT_NE(report.find("forgetful: seed 4: the same seed left another trace"), std::string::npos) << report;
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
  ASSERT_EQ(::unsetenv("COPPICE_SEED"), 0);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{77}));
  EXPECT_EQ(report, "replayed: seed 77: the one\n  replay: COPPICE_SEED=77 again");
  EXPECT_EQ(trace, "1000000000 seen by the one who replays 1 2 3\n");
}

TEST(require, says_what_did_not_hold) {
  EXPECT_NO_THROW(require(true, "fine"));
  EXPECT_THROW(require(false, "not fine"), violation);
}

}  // namespace
}  // namespace coppice::sim
