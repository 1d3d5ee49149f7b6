// Random hierarchies of actors under random failures, in every hook. The hooks of each instance, the decisions and
// the way of the mail are written down, and a model judges them. The files:
//   actor_log.hpp     what a run leaves
//   actor_member.hpp  the actors
//   actor_plan.hpp    random hierarchies and strategies
//   actor_model.hpp   the model
//   actor_world.hpp   the course of a run
#include <gtest/gtest.h>

#include "actor_world.hpp"

namespace {

using namespace coppice;
using namespace coppice::random_actors;

constexpr std::uint64_t seeds_each = 400;

/// A run of many seeds has been in all of these.
constexpr std::array expected_marks{
    "a constructor failed",
    "a decider failed",
    "a frozen process did not run",
    "a limit was reached",
    "a long wait",
    "a parent was frozen",
    "a restart waited for a thaw",
    "a subtree was frozen",
    "an actor was frozen",
    "an error for an answer",
    "answered",
    "became",
    "children lived on",
    "escalate",
    "failed in a continuation",
    "failed in a question",
    "failed in a timer",
    "failed in receive",
    "failed in restarting",
    "failed in stash",
    "failed in started",
    "failed in stopped",
    "failed in stopping",
    "failed in terminated",
    "killed because it was frozen",
    "mail before an end",
    "restart",
    "restarted for a sibling",
    "restarted with its parent",
    "resume",
    "stashed",
    "stashed again",
    "stop",
};

class random_actors : public testing::Test {
 public:
  static void TearDownTestSuite() { seeds::expect_marks(expected_marks); }
  static void keep_the_rules(const trouble& t) {
    seeds::hold(seeds_each, [&](sim::world& w) {
      run one{w, t};
      one.play();
      one.end();
    });
  }
};

using kind = rules::kind;

TEST_F(random_actors, of_all_kinds) { keep_the_rules({}); }
TEST_F(random_actors, that_fail_a_lot) {
  keep_the_rules({.hook_failures = 0.2, .favourites = {deed::fail, deed::chat}});
}
TEST_F(random_actors, one_for_one) { keep_the_rules({.land = {.strategy = kind::one}}); }
TEST_F(random_actors, all_for_one) {
  keep_the_rules({.land = {.waits = 0.6, .strategy = kind::all}, .favourites = {deed::fail, deed::poison_other}});
}
TEST_F(random_actors, that_escalate) {
  keep_the_rules({.land = {.keeps = 0.6, .low_limits = 0.1, .strategy = kind::one, .weights = {3, 2, 0, 6}},
                  .hook_failures = 0.1,
                  .favourites = {deed::fail, deed::fail_softly}});
}
TEST_F(random_actors, that_keep_their_children) {
  keep_the_rules({.land = {.keeps = 1, .low_limits = 0.1}, .favourites = {deed::fail, deed::spawn}});
}
TEST_F(random_actors, with_limits) {
  keep_the_rules({.land = {.depth = 2, .low_limits = 1, .weights = {1, 8, 0, 0}}, .favourites = {deed::fail}});
}
TEST_F(random_actors, with_strategies_of_their_own) {
  keep_the_rules({.land = {.strategy = kind::custom}, .favourites = {deed::fail}});
}
TEST_F(random_actors, with_mailbox_policies) {
  keep_the_rules({.land = {.policies = 1}, .notes = 60, .favourites = {deed::chat, deed::stash, deed::unstash}});
}
TEST_F(random_actors, that_watch) {
  keep_the_rules({.stops = 4, .favourites = {deed::watch, deed::unwatch, deed::chat, deed::finish}});
}
TEST_F(random_actors, that_put_mail_aside) {
  keep_the_rules(
      {.land = {.policies = 0.5},
       .notes = 60,
       .favourites = {deed::stash, deed::stash, deed::unstash, deed::unstash_one, deed::become, deed::fail}});
}
TEST_F(random_actors, that_are_frozen) {
  keep_the_rules({.freezes = 20, .favourites = {deed::fail, deed::stop_other}});
}
TEST_F(random_actors, that_ask) { keep_the_rules({.notes = 40, .favourites = {deed::ask, deed::ask, deed::fail}}); }

}  // namespace
