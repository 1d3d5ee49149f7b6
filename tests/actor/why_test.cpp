// What an actor waits for, as observers see it.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;
using namespace std::chrono_literals;

wait_kind waits_for(stage& s, player_ref who) {
  s.world.settle();
  return s.rt.info(who.id())->waits.kind;
}

TEST(why_of_actors, names_the_next_message) {
  stage s;
  const auto a = s.enter("a");
  EXPECT_EQ(waits_for(s, a), wait_kind::mail);
}

TEST(why_of_actors, names_the_decision_about_a_failure) {
  stage s;
  const auto a = s.enter("a", {.guardian = one_for_one({.wait = backoff{.first = 20s, .jitter = 0}})});
  s.in(a, [](context&) { throw std::runtime_error{"enough"}; });
  EXPECT_EQ(waits_for(s, a), wait_kind::decision);
  EXPECT_NE(s.rt.why(a.id()).find("for its parent to decide about a failure"), std::string::npos);
}

TEST(why_of_actors, names_the_children_that_have_to_end_before_a_stop) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [role = s.role("b")](context& me) { (void)me.spawn(role); });
  pid child;
  for (const process_info& p : s.rt.snapshot())
    if (p.parent == a.id()) child = p.id;
  ASSERT_TRUE(child);
  ASSERT_TRUE(s.rt.freeze(child));
  stop_actor(s.rt, a.id());
  EXPECT_EQ(waits_for(s, a), wait_kind::children);
  EXPECT_NE(s.rt.why(a.id()).find("for its children to end"), std::string::npos);
  EXPECT_TRUE(s.rt.thaw(child));
}

}  // namespace
