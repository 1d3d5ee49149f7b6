// The supervisor as a process: who may end it, and what it does not believe.
#include <gtest/gtest.h>

#include "family.hpp"

namespace asking {

using namespace coppice;

struct go {};
/// Asks its own supervisor while it is being started, or stopped.
struct naughty {
  static constexpr bool traps_exits = true;
  using protocol = coppice::protocol<go>;
  explicit naughty(bool at_start) : in_init{at_start} {}
  task<init_result> init(self& me) const {
    if (in_init) {
      const ref<supervisor> mine{me.parent()};
      const auto n = co_await count_children(mine);
      EXPECT_FALSE(n) << "nobody answers";
    }
    co_return init_result::ok();
  }
  static task<void> terminate(const exit_reason&, self& me) {
    const ref<supervisor> mine{me.parent()};
    const auto n = co_await count_children(mine);
    EXPECT_FALSE(n) << "nobody answers";
  }
  static void handle(go) {}
  bool in_init;
};

}  // namespace asking

namespace {

using namespace coppice;
using namespace asking;

TEST(supervisor_process, ends_with_the_reason_its_parent_gives_it) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::error("enough")}) {
    family f;
    ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b")}}));
    f.book.take();
    f.stop(why);
    EXPECT_EQ(f.book.take(), (lines{"stop b shutdown", "stop a shutdown"}));
    EXPECT_EQ(f.ended(), why);
  }
}

TEST(supervisor_process, ignores_exits_from_anybody_else) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  f.book.take();
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::error("x")})
    f.rt().exit(f.tree.id(), why);
  f.settle();
  EXPECT_FALSE(f.ended());
  EXPECT_EQ(f.book.take(), lines{});
  EXPECT_EQ(f.state(), "a:running");
}

task<> dies_linked(self& me, pid to) {
  me.link(to);
  const go m = co_await me.receive<go>();
  (void)m;
  throw std::runtime_error{"stranger"};
}
TEST(supervisor_process, ignores_the_end_of_a_linked_stranger) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const pid stranger = f.rt().spawn(dies_linked, f.tree.id());
  f.settle();
  f.rt().send(stranger, go{});
  f.settle();
  EXPECT_FALSE(f.ended());
  EXPECT_EQ(f.state(), "a:running");
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 0U);
}

TEST(supervisor_process, does_not_believe_a_forged_end_of_a_child) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const pid a = f.who("a");
  f.rt().send(f.tree.id(), exited{.from = a, .reason = exit_reason::error("forged"), .linked = true});
  f.settle();
  EXPECT_EQ(f.who("a"), a);
  EXPECT_TRUE(f.rt().alive(a));
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 0U);
  f.rt().send(f.tree.id(), exited{.from = a, .reason = exit_reason::error("forged"), .linked = true});
  f.crash("a");
  EXPECT_EQ(f.state(), "a:running") << "the true end still counts";
  EXPECT_NE(f.who("a"), a);
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->last_reason, exit_reason::error("crash"));
}

TEST(supervisor_process, drops_mail_that_it_does_not_know) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const auto before = f.rt().counters().dead_letters;
  f.rt().send(f.tree.id(), go{});
  f.rt().send(f.tree.id(), std::string{"what?"});
  f.settle();
  EXPECT_EQ(f.rt().counters().dead_letters, before + 2);
  EXPECT_EQ(f.state(), "a:running");
}

TEST(supervisor_process, ends_when_its_parent_does_even_normally) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::error("x")}) {
    family f;
    supervisor_spec inner{.children = {f.child("x")}};
    ASSERT_TRUE(f.start({.children = {child<supervisor>(inner).with({.id = "inner"})}}));
    const pid who = f.ask(which_child(f.tree, "inner"))->who;
    f.stop(why);
    EXPECT_FALSE(f.rt().alive(who));
    EXPECT_FALSE(f.rt().alive(f.who("x")));
  }
}

// ---- stop

task<> stops(self& me, pid who, exit_reason why, std::chrono::nanoseconds time, std::optional<result<void>>* into) {
  *into = co_await stop(me, who, std::move(why), time);
}

TEST(supervisor_stop, waits_until_all_children_are_down) {
  family f;
  std::optional<result<void>> done;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.shutdown = 3s}, true, true)}}));
  f.book.take();
  f.rt().spawn(stops, f.tree.id(), exit_reason::shutdown("for today"), forever, &done);
  f.settle();
  EXPECT_FALSE(done);
  f.pass(3s + a_tick);
  ASSERT_TRUE(done);
  EXPECT_TRUE(*done);
  EXPECT_EQ(f.book.take(), (lines{"stop b shutdown", "stop a shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown("for today"));
}

TEST(supervisor_stop, goes_on_when_its_caller_has_given_up) {
  family f;
  std::optional<result<void>> done;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = 1min}, true, true)}}));
  f.rt().spawn(stops, f.tree.id(), exit_reason::normal(), 1s, &done);
  f.pass(1s + a_tick);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->error().code(), errc::timeout);
  EXPECT_FALSE(f.ended());
  f.pass(1min);
  EXPECT_EQ(f.ended(), exit_reason::normal());
}

// ---- one thing at a time

TEST(supervisor_process, handles_what_came_meanwhile_in_its_order) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 5, .within = 1h},
                       .children = {f.child("a"), f.child("b"), f.child("slow", {.shutdown = 10s}, true, true)}}));
  const auto stopped = f.begin(terminate_child(f.tree, "slow"));
  f.settle();
  f.book.take();
  f.crash("b");
  f.crash("a");
  const auto listed = f.begin(which_children(f.tree));
  f.settle();
  EXPECT_EQ(f.book.take(), (lines{"stop b error", "stop a error"})) << "they wait";
  f.pass(10s + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"start b", "start a"}));
  EXPECT_TRUE(**stopped);
  ASSERT_TRUE(*listed);
  EXPECT_EQ((**listed)->at(0).state, child_state::running);
}

TEST(supervisor_process, that_is_told_to_end_while_it_starts_ends_when_it_has_started) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  f.book.starts["b"] = {"hang"};
  const auto started = f.begin(start_child(f.tree, f.child("b")));
  f.settle();
  f.book.take();
  f.stop();
  EXPECT_FALSE(f.ended());
  f.pass(1h + a_tick);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_EQ(f.book.take(), (lines{"start b", "stop b shutdown", "stop a shutdown"}));
}

TEST(child_that_asks_its_supervisor, while_it_starts_is_given_up_after_start_within) {
  family f;
  ASSERT_TRUE(f.start({}));
  const auto got = f.begin(start_child(f.tree, child<naughty>(true).with({.start_within = 3s})));
  f.pass(3s + a_tick);
  ASSERT_TRUE(*got);
  EXPECT_EQ((*got)->error().root().code(), errc::timeout);
  EXPECT_EQ(f.state(), "");
}
TEST(child_that_asks_its_supervisor, while_it_stops_is_killed_after_its_time) {
  family f;
  ASSERT_TRUE(f.start({.children = {child<naughty>(false).with({.shutdown = 3s})}}));
  f.stop();
  EXPECT_FALSE(f.ended());
  f.pass(3s + a_tick);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

}  // namespace
