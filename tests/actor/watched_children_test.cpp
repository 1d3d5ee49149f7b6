// Parents that are told of the end of every child.
#include <gtest/gtest.h>

#include <coppice/spec/child.hpp>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

TEST(watched_children, tell_their_parent_of_their_end_without_a_watch_and_once) {
  stage s;
  const auto parent = s.enter("p", {.watch_children = true});
  player_ref a;
  player_ref b;
  s.in(parent, [&](context& me) {
    a = me.spawn(s.role("a"));
    b = *me.spawn({.name = "b"}, s.role("b"));
    me.watch(b);
  });
  (void)s.heard();
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped", "p: terminated stopped normal"}));
  stop_actor(s.rt, b.id());
  EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped", "p: terminated stopped normal"}));
}

TEST(watched_children, are_those_of_the_actor_that_asks_for_it_only) {
  stage s;
  const auto parent = s.enter("p");
  player_ref a;
  s.in(parent, [&](context& me) { a = me.spawn(s.role("a").with({.watch_children = true})); });
  (void)s.heard();
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped"}));
}

TEST(watched_children, that_are_unwatched_end_in_silence) {
  stage s;
  const auto parent = s.enter("p", {.watch_children = true});
  player_ref a;
  s.in(parent, [&](context& me) {
    a = me.spawn(s.role("a"));
    me.unwatch(a);
  });
  (void)s.heard();
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped"}));
}

TEST(watched_children, that_are_restarted_have_not_ended) {
  stage s;
  const auto parent = s.enter("p", {.watch_children = true});
  player_ref a;
  s.in(parent, [&](context& me) { a = me.spawn(s.role("a")); });
  (void)s.heard();
  s.in(a, [](context&) { throw std::runtime_error{"boom"}; });
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "a: started"}));
}

TEST(watched_children, of_a_parent_that_is_restarted_tell_the_new_instance_of_the_new_ones_only) {
  stage s;
  const auto parent = s.enter("p", {.watch_children = true});
  player_ref a;
  s.in(parent, [&](context& me) { a = me.spawn(s.role("a")); });
  (void)s.heard();
  s.in(parent, [](context&) { throw std::runtime_error{"boom"}; });
  EXPECT_EQ(s.heard(), (lines{"p: restarting", "a: stopping", "a: stopped", "p: started"}));
  s.in(parent, [&](context& me) { a = me.spawn(s.role("b")); });
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"b: started", "b: stopping", "b: stopped", "p: terminated stopped normal"}));
}

TEST(watched_children, that_a_restarted_parent_keeps_stay_watched) {
  stage s;
  const auto parent = s.enter("p", {.keep_children = true, .watch_children = true});
  player_ref a;
  s.in(parent, [&](context& me) { a = me.spawn(s.role("a")); });
  s.in(parent, [](context&) { throw std::runtime_error{"boom"}; });
  (void)s.heard();
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped", "p: terminated stopped normal"}));
}

task<> sleeps(self& me) { co_await me.sleep(24h); }

TEST(watched_children, that_are_processes_tell_of_the_end_of_each) {
  stage s;
  const auto parent = s.enter("p", {.watch_children = true});
  s.in(parent, [](context& me) { EXPECT_TRUE(me.spawn(child(sleeps).with({.id = "s"}))); });
  (void)s.heard();
  for (int i = 0; i < 2; ++i) {
    pid running;
    s.in(parent, [&](context& me) { running = me.children().front(); });
    s.rt.kill(running);
    EXPECT_EQ(s.heard(), (lines{"p: terminated stopped killed"}));
  }
}

}  // namespace
