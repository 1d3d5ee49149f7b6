// Random supervision trees under random faults. A model written from the reference judges each
// supervisor: whom it starts and stops, in which order, when it gives up, what it answers; and when the faults are
// over, every tree is whole or has ended, and nothing is left of it. Where what is:
//   tree_log.hpp     the log that a run leaves
//   tree_people.hpp  members of the tree, clients, an observer
//   tree_plan.hpp    random trees
//   tree_world.hpp   faults and calls; the course of a run
//   tree_state.hpp, tree_calls.hpp, tree_model.hpp  the model
#include <gtest/gtest.h>

#include "tree_world.hpp"

namespace {

using namespace coppice;
using namespace coppice::random_trees;

constexpr std::uint64_t seeds_each = 400;

/// A run of many seeds has been in all of these.
constexpr std::array expected_marks{
    "a child was frozen",
    "a death was absorbed",
    "a first start failed",
    "a frozen process did not run",
    "a group was restarted in part",
    "a restart waited for a thaw",
    "a subtree was frozen",
    "a supervisor was frozen",
    "abandoned",
    "an orphan",
    "an unlinked child had ended unseen",
    "gave up",
    "ignored",
    "killed because it was frozen",
    "shut down by any",
    "shut down by the last",
    "started without the child it followed",
    "terminated between two attempts",
    "terminated while it waits",
    "the root lived to the end",
    "tried again",
    "tried before its time",
    "upgraded",
    "waits for its restart",
};

class random_trees : public testing::Test {
 public:
  static void TearDownTestSuite() { seeds::expect_marks(expected_marks); }
  static void keep_the_rules(const trouble& t) {
    seeds::hold(seeds_each, [&](sim::world& w) {
      run one{w, t};
      one.play();
      one.end();
      one.check();
    });
  }
};

constexpr climate lasting{.limits_low = 0, .significant = 0.1};

TEST_F(random_trees, of_all_kinds) { keep_the_rules({}); }
TEST_F(random_trees, that_live_long) { keep_the_rules({.land = lasting, .phases = 100}); }
TEST_F(random_trees, of_one_supervisor) { keep_the_rules({.land = {.depth = 1, .most = 7, .limits_low = 0.1}}); }
TEST_F(random_trees, that_are_deep) {
  keep_the_rules({.land = {.depth = 6, .most = 40, .limits_low = 0.1}, .kills = 4, .calls = 2, .phases = 50});
}
TEST_F(random_trees, with_crashes_and_nothing_else) {
  keep_the_rules({.crashes = 10, .kills = 0, .signals = 0, .unlinks = 0, .stuck = 0, .calls = 0, .weather = 0});
}
TEST_F(random_trees, with_low_limits) {
  keep_the_rules({.land = {.limits_low = 1}, .crashes = 8, .calls = 2, .rests = 0});
}
TEST_F(random_trees, with_limits_to_the_nanosecond) {
  keep_the_rules({.land = {.depth = 2, .backoffs = 0, .limits_low = 0.8, .significant = 0, .minute = 1},
                  .crashes = 20,
                  .calls = 1,
                  .weather = 3,
                  .at_once = 15});
}
TEST_F(random_trees, with_significant_children) {
  keep_the_rules({.land = {.backoffs = 0.1, .limits_low = 0, .significant = 0.9}, .kills = 0, .calls = 4});
}
TEST_F(random_trees, with_waits_before_restarts) {
  keep_the_rules({.land = {.backoffs = 1, .limits_low = 0, .significant = 0.2}, .weather = 3});
}
TEST_F(random_trees, whose_starts_fail) { keep_the_rules({.land = lasting, .calls = 12, .weather = 8}); }
TEST_F(random_trees, that_are_asked_a_lot) { keep_the_rules({.land = lasting, .crashes = 3, .calls = 30}); }
TEST_F(random_trees, whose_supervisors_are_killed) {
  keep_the_rules({.land = lasting, .kills = 10, .unlinks = 3, .weather = 2});
}
TEST_F(random_trees, whose_members_are_stuck) { keep_the_rules({.land = lasting, .stuck = 10, .calls = 10}); }
TEST_F(random_trees, that_are_frozen) { keep_the_rules({.land = lasting, .freezes = 12}); }
TEST_F(random_trees, that_strangers_meddle_with) {
  keep_the_rules({.land = lasting, .kills = 3, .signals = 15, .unlinks = 5});
}

}  // namespace
