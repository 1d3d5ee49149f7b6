// A supervisor that ends by itself says why, since its exit reason is `shutdown` in any case.
#include "family.hpp"

namespace {

using namespace coppice;

task<> collects(self& me, std::vector<supervisor_ended>* into) {
  me.subscribe<supervisor_ended>();
  for (;;) {
    supervisor_ended e = co_await me.receive<supervisor_ended>();
    into->push_back(std::move(e));
  }
}

TEST(supervisor_ended, is_published_once_by_a_supervisor_that_gives_up) {
  std::vector<supervisor_ended> seen;
  family f;
  f.rt().spawn(collects, &seen);
  f.settle();
  ASSERT_TRUE(f.start({.limit = {.restarts = 1, .within = 5s}, .children = {f.child("a"), f.child("b")}}));
  f.crash("b");
  EXPECT_TRUE(seen.empty()) << "a restart is no end";
  f.crash("b");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].who, f.tree.id());
  EXPECT_EQ(seen[0].why, supervisor_ended::cause::gave_up);
  EXPECT_EQ(seen[0].child, "b");
  EXPECT_EQ(seen[0].reason, exit_reason::error("crash"));
  EXPECT_NE(seen[0].text.find("gives up"), std::string::npos);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(supervisor_ended, is_published_by_a_supervisor_whose_significant_children_are_done) {
  std::vector<supervisor_ended> seen;
  family f;
  f.rt().spawn(collects, &seen);
  f.settle();
  const child_options significant{.restart = restart::transient, .significant = true};
  ASSERT_TRUE(f.start(
      {.auto_shutdown = auto_shutdown::any_significant, .children = {f.child("a", significant), f.child("b")}}));
  f.finish("a", exit_reason::normal());
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].why, supervisor_ended::cause::done);
  EXPECT_EQ(seen[0].child, "a");
  EXPECT_EQ(seen[0].reason, exit_reason::normal());
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(supervisor_ended, is_not_published_by_a_supervisor_that_is_stopped) {
  std::vector<supervisor_ended> seen;
  family f;
  f.rt().spawn(collects, &seen);
  f.settle();
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_TRUE(seen.empty());
}

}  // namespace
