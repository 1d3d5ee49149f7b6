// How children are stopped.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

TEST(shutdown_of_children, asks_them_and_waits_for_each) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.shutdown = shutdown::infinity()}, true, true)}}));
  f.book.take();
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop b shutdown"}));
  f.pass(24h);
  EXPECT_FALSE(f.ended()) << "infinity means infinity";
  EXPECT_EQ(f.book.take(), lines{}) << "and the one before it waits";
  f.kill("b");
  EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(shutdown_of_children, kills_one_that_takes_too_long_and_no_other) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.shutdown = 2s}, true, true), f.child("c")}}));
  f.book.take();
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop c shutdown", "stop b shutdown"}));
  f.pass(2s - a_tick);
  EXPECT_TRUE(f.rt().alive(f.who("b")));
  f.pass(2 * a_tick);
  EXPECT_FALSE(f.rt().alive(f.who("b")));
  EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(shutdown_of_children, gives_a_worker_five_seconds_and_a_supervisor_all_the_time_it_needs) {
  family f;
  supervisor_spec branch{.children = {f.child("x", {.shutdown = 1min}, true, true)}};
  ASSERT_TRUE(f.start({.children = {f.child("w", {}, true, true), child<supervisor>(branch).with({.id = "branch"})}}));
  f.stop();
  f.pass(1min - a_tick);
  EXPECT_TRUE(f.rt().alive(f.who("x")));
  f.pass(2 * a_tick);
  EXPECT_FALSE(f.rt().alive(f.who("x")));
  f.pass(5s - 3 * a_tick);
  EXPECT_FALSE(f.ended());
  f.pass(4 * a_tick);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(shutdown_of_children, of_zero_asks_and_kills_at_once) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = 0s}, true, true)}}));
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_FALSE(f.rt().alive(f.who("a")));
}

TEST(shutdown_of_children, that_is_brutal_asks_nobody) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.shutdown = shutdown::brutal_kill()})}}));
  f.book.take();
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "b")));
  EXPECT_EQ(f.ask(which_child(f.tree, "b"))->last_reason, exit_reason::killed());
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"}));
}

TEST(shutdown_of_children, ends_one_that_does_not_trap_exits_without_terminate) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {}, false)}}));
  f.book.take();
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_EQ(f.book.take(), lines{});
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->last_reason, exit_reason::shutdown());
}

TEST(shutdown_of_children, says_shutdown_whatever_the_supervisor_ends_with) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::error("enough"), exit_reason::shutdown("done")}) {
    family f;
    ASSERT_TRUE(f.start({.children = {f.child("a")}}));
    f.book.take();
    f.stop(why);
    EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"}));
    EXPECT_EQ(f.ended(), why);
  }
}

/// Idle, without `terminate`: only its destructor tells.
struct quiet {
  quiet(journal* b, std::string i) : book{b}, id{std::move(i)} {}
  ~quiet() { book->lines.push_back("gone " + id); }
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;
  void init(self& me) const { book->pids[id] = me.id(); }
  static int handle(worker::ping) { return 1; }
  journal* book;
  std::string id;
};
std::vector<child_spec> many_quiet(journal* book, int n) {
  std::vector<child_spec> all;
  for (int i = 0; i < n; ++i) all.push_back(child<quiet>(book, std::to_string(i)).with({.id = std::to_string(i)}));
  return all;
}
lines gone(int from, int to) {
  lines all;
  for (int i = from; i >= to; --i) all.push_back("gone " + std::to_string(i));
  return all;
}

task<> linked_to(self& me, pid other) {
  me.link(other);
  co_await me.receive<worker::finish>();
}

TEST(shutdown_of_children, ends_idle_ones_in_reverse_and_tells_their_links) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    family f{seed};
    ASSERT_TRUE(f.start({.children = many_quiet(&f.book, 200)}));
    const pid friend_of_7 = f.rt().spawn(linked_to, f.who("7"));
    f.settle();
    f.stop();
    EXPECT_EQ(f.book.take(), gone(199, 0));
    EXPECT_EQ(f.ended(), exit_reason::shutdown());
    EXPECT_FALSE(f.rt().alive(friend_of_7));
    EXPECT_FALSE(f.rt().alive(f.who("7")));
  }
}

TEST(shutdown_of_children, waits_for_a_busy_one_among_idle_ones) {
  family f;
  ASSERT_TRUE(f.start({.children = many_quiet(&f.book, 10)}));
  f.stick(f.who("4"), 1s);
  f.stop();
  EXPECT_EQ(f.book.take(), gone(9, 5));
  f.pass(1s + a_tick);
  EXPECT_EQ(f.book.take(), gone(4, 0));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

// ---- children that do not stop as asked

struct leave {};
/// Unlinks itself from its supervisor; ends when it is told to, or to exit.
struct loner {
  using protocol = coppice::protocol<leave>;
  static constexpr bool traps_exits = true;
  loner(journal* b, std::string i) : book{b}, id{std::move(i)} {}
  void init(self& me) const {
    book->pids[id] = me.id();
    me.unlink(me.parent());
  }
  static void handle(leave, self& me) { me.stop(exit_reason::error("gone")); }
  void terminate(const exit_reason& why) const { book->lines.push_back("stop " + id + " " + why.to_string()); }
  journal* book;
  std::string id;
};

TEST(unlinked_child, is_stopped_all_the_same) {
  family f;
  ASSERT_TRUE(f.start({.children = {child<loner>(&f.book, "l").with({.id = "l"})}}));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "l")));
  EXPECT_EQ(f.book.take(), (lines{"stop l shutdown"}));
  EXPECT_TRUE(f.ask(restart_child(f.tree, "l")));
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop l shutdown"}));
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(unlinked_child, that_ends_goes_unnoticed_and_hangs_nothing) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), child<loner>(&f.book, "l").with({.id = "l"})}}));
  f.rt().send(f.who("l"), leave{});
  f.settle();
  EXPECT_EQ(f.state(), "a:running l:running") << "nobody told";
  EXPECT_EQ(f.ask(count_children(f.tree))->active, 1U);
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "l")));
  EXPECT_EQ(f.ask(which_child(f.tree, "l"))->last_reason, exit_reason::noproc());
  EXPECT_TRUE(f.ask(restart_child(f.tree, "l")));
  EXPECT_EQ(f.ask(count_children(f.tree))->active, 2U);
  f.rt().send(f.who("l"), leave{});
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(shutdown_of_children, takes_the_true_reason_of_one_that_ended_just_before) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b")}}));
  f.node().stick(f.tree.id(), 1s);
  const auto stopped = f.begin(terminate_child(f.tree, "b"));
  f.settle();
  f.rt().send(f.who("b"), worker::finish{exit_reason::error("too early")});
  f.pass(1s + a_tick);
  EXPECT_TRUE(**stopped);
  EXPECT_EQ(f.state(), "a:running b:undefined");
  EXPECT_EQ(f.ask(which_child(f.tree, "b"))->last_reason, exit_reason::error("too early"));
  EXPECT_EQ(f.ask(which_child(f.tree, "b"))->restarts, 0U) << "its end was the answer to the order";
}

TEST(shutdown_of_children, in_a_race_with_their_own_end_ends) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const auto type : {restart::permanent, restart::transient, restart::temporary})
      for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::shutdown("x"),
                                     exit_reason::error("x"), exit_reason::killed()}) {
        family f{seed};
        ASSERT_TRUE(f.start({.limit = {.restarts = 10, .within = 5s},
                             .children = {f.child("a", {.restart = type}), f.child("b", {.restart = type})}}));
        f.rt().send(f.who("a"), worker::finish{why});
        f.rt().send(f.who("b"), worker::finish{why});
        f.stop();
        EXPECT_EQ(f.ended(), exit_reason::shutdown()) << seed << to_string(type) << why;
        EXPECT_FALSE(f.rt().alive(f.who("a")));
        EXPECT_FALSE(f.rt().alive(f.who("b")));
      }
}

// ---- a supervisor that is killed

TEST(killed_supervisor, leaves_no_orphans_behind) {
  family f;
  supervisor_spec branch{.children = {f.child("x"), f.child("y", {}, false)}};
  ASSERT_TRUE(f.start({.children = {f.child("a"), child<supervisor>(branch).with({.id = "branch"})}}));
  f.book.take();
  f.rt().kill(f.tree.id());
  f.settle();
  EXPECT_EQ(f.ended(), exit_reason::killed());
  for (const char* id : {"a", "x", "y"}) EXPECT_FALSE(f.rt().alive(f.who(id))) << id;
  EXPECT_TRUE(std::ranges::find(f.book.lines, "stop a killed") != f.book.lines.end());
}

TEST(killed_supervisor, takes_a_child_with_it_that_it_was_stopping) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = 1min}, false)}}));
  ASSERT_TRUE(f.ask(start_child(f.tree, f.child("b", {.shutdown = 1min}, true, true))));
  f.stop();
  f.rt().kill(f.tree.id());
  f.settle();
  EXPECT_FALSE(f.rt().alive(f.who("a")));
  EXPECT_EQ(f.ended(), exit_reason::killed());
}

TEST(killed_supervisor, is_restarted_by_its_own_with_its_children) {
  family f;
  supervisor_spec branch{.children = {f.child("x", {.name = "xavier"})}};
  ASSERT_TRUE(f.start(
      {.limit = {.restarts = 5, .within = 5s}, .children = {child<supervisor>(branch).with({.id = "branch"})}}));
  const pid before = f.who("x");
  f.rt().kill(f.ask(which_child(f.tree, "branch"))->who);
  f.settle();
  EXPECT_EQ(f.state(), "branch:running");
  EXPECT_NE(f.who("x"), before);
  EXPECT_EQ(f.rt().where("xavier"), f.who("x"));
}

}  // namespace
