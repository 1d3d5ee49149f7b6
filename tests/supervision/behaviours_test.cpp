// Agents, registries and jobs as children of a supervisor.
#include <gtest/gtest.h>

#include <coppice/behaviour/agent.hpp>
#include <coppice/behaviour/registry.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

int same(int n) { return n; }
int next(int n) { return n + 1; }

TEST(behaviour_children, an_agent_begins_anew_with_its_first_value) {
  family f;
  const child_spec plain = child<agent<int>>(41);
  EXPECT_EQ(plain.id, "agent<int>");
  EXPECT_EQ(plain.restart, restart::permanent);
  ASSERT_TRUE(f.start({.children = {child<agent<int>>(41).with({.id = "number"})}}));
  const ref<agent<int>> first{f.ask(which_child(f.tree, "number"))->who};
  EXPECT_TRUE(f.ask(agents::update(first, next)));
  EXPECT_EQ(f.ask(agents::get(first, same)), 42);
  f.rt().kill(first.id());
  f.settle();
  const ref<agent<int>> second{f.ask(which_child(f.tree, "number"))->who};
  EXPECT_NE(second.id(), first.id());
  EXPECT_EQ(f.ask(agents::get(second, same)), 41);
}

struct line {
  int n = 0;
};
struct writes_lines {
  using protocol = coppice::protocol<line>;
  static constexpr child_defaults supervision{.mailbox = mailbox{.capacity = 2}};
  void handle(line m) const { into->push_back(m.n); }
  std::vector<int>* into;
};
task<> waits_for_nothing(self& me) { co_await me.sleep(24h); }

TEST(behaviour_children, have_the_mailbox_of_their_spec_after_each_start) {
  family f;
  std::vector<int> lines_written;
  const mailbox three{.capacity = 3};
  ASSERT_TRUE(f.start({.limit = {.restarts = 10, .within = 1h},
                       .children = {child<writes_lines>(&lines_written),
                                    child<writes_lines>(&lines_written).with({.id = "wide", .mailbox = three}),
                                    child(waits_for_nothing).with({.id = "deaf", .mailbox = three})}}));
  for (int round = 0; round < 2; ++round) {
    for (const auto& [id, room] : {std::pair{"writes_lines", 2U}, {"wide", 3U}, {"deaf", 3U}}) {
      const pid who = f.ask(which_child(f.tree, id))->who;
      const std::uint64_t before = f.rt().counters().dead_letters;
      for (int i = 0; i < 5; ++i) f.rt().send(who, line{i});
      EXPECT_EQ(f.rt().counters().dead_letters - before, 5U - room) << id;
      f.rt().kill(who);
      f.settle();
    }
  }
}

using names = registry<std::string>;
struct never {};
task<> registers(self& me, names in) {
  EXPECT_TRUE(in.register_as(me, "a"));
  co_await me.receive<never>();
}

TEST(behaviour_children, a_keeper_is_started_again_and_its_registry_begins_anew) {
  family f;
  const names all;
  ASSERT_TRUE(f.start({.children = {child<names::keeper>(all).with({.id = "names"})}}));
  const pid first = f.ask(which_child(f.tree, "names"))->who;
  EXPECT_EQ(all.kept_by(), first);
  const pid registered = f.rt().spawn(registers, all);
  f.settle();
  EXPECT_EQ(all.where("a"), registered);
  f.rt().kill(first);
  f.settle();
  EXPECT_FALSE(f.rt().alive(registered)) << "it does not go on believing in an entry that is lost";
  EXPECT_NE(all.kept_by(), first);
  EXPECT_EQ(all.kept_by(), f.ask(which_child(f.tree, "names"))->who);
  EXPECT_EQ(all.count(), 0U);
  const pid anew = f.rt().spawn(registers, all);
  f.settle();
  EXPECT_EQ(all.where("a"), anew);
}

task<> counts(self& me, int* runs) {
  ++*runs;
  co_await me.sleep(1s);
}

TEST(behaviour_children, a_temporary_job_is_done_once_and_forgotten) {
  family f;
  int runs = 0;
  const child_options once{.id = "job", .restart = restart::temporary};
  ASSERT_TRUE(f.start({.children = {child(counts, &runs).with(once)}}));
  EXPECT_EQ(f.state(), "job:running");
  f.pass(2s);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(f.state(), "");
  EXPECT_FALSE(f.ended());
}

}  // namespace
