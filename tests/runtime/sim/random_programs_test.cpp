// Random programs on one to three nodes, with faults of all kinds; a model that knows only the facts (reference,
// section A) judges what the processes did and saw. Where what is:
//   random_log.hpp      the log that a run leaves
//   random_process.hpp  what a process does and sees
//   random_bodies.hpp   coroutines and objects
//   random_world.hpp    nodes and faults; the course of a run
//   random_history.hpp  questions to a log
//   random_model.hpp, random_model_more.hpp  the rules
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "random_world.hpp"

namespace {

using namespace coppice;
using namespace coppice::random_programs;

constexpr std::uint64_t seeds_per_block = 400;
constexpr std::uint64_t blocks = 20;

/// Branches so rare that one might doubt that any seed gets there. A run of many seeds has been in all of them.
constexpr std::array expected_marks{
    "a down put aside came after a demonitor",
    "a flood of notes",
    "a frozen process did not run",
    "a killed peer was survived",
    "a late answer vanished",
    "a name was given after its holder had ended",
    "a name was taken",
    "a node crashed",
    "a node was lost",
    "a node was restarted",
    "a normal end was ignored",
    "a normal end was trapped",
    "a normal end was trapped on another node",
    "a normal signal was trapped",
    "a note was lost with its connection",
    "a peer's own kill was trapped",
    "a server that traps obeyed its parent",
    "a spawn failed",
    "a stuck process was reported",
    "abandoned",
    "an answer came too late to be given",
    "call: answered",
    "call: calling_self",
    "call: exited",
    "call: no_reply",
    "call: noconnection",
    "call: noproc",
    "call: timeout",
    "cancelled with the timeout on its way",
    "demonitored with the down on its way",
    "died of a killed peer",
    "died of the kill that a peer gave as its own reason",
    "down: noconnection",
    "down: noproc",
    "down: the reason that its owner had given",
    "down: the true reason",
    "ended by its own normal signal",
    "killed while trapping",
    "link: noconnection",
    "link: noproc",
    "link: threw",
    "message: cancelled",
    "message: cancelled too late",
    "race: an end crosses an unlink",
    "race: both sides unlink",
    "race: one side unlinks, the other links",
    "race: unlinked and linked anew",
    "timer: cancelled",
    "timer: cancelled too late",
};

void property(sim::world& w) {
  run one{w};
  one.play();
  one.calm_down();
  one.end_all();
  one.check();
}

class random_programs : public testing::TestWithParam<std::uint64_t> {
 public:
  static void TearDownTestSuite() { seeds::expect_marks(expected_marks); }
};

TEST_P(random_programs, keep_the_rules) {
  seeds::hold(seeds_per_block, property, 1 + GetParam() * seeds::scaled(seeds_per_block));
}

INSTANTIATE_TEST_SUITE_P(seeds, random_programs, testing::Range<std::uint64_t>(0, blocks));

}  // namespace
