// Watching other processes.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

TEST(watch, tells_of_the_end_once_with_its_reason) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.in(a, [b](context& me) {
    me.watch(b);
    me.watch(b);
  });
  (void)s.heard();
  s.in(b, [](context&) { throw exit_with{exit_reason::error("tired")}; });
  EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped", "a: terminated stopped error"}));
}

TEST(watch, of_what_has_ended_is_answered_at_once) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  stop_actor(s.rt, b.id());
  (void)s.heard();
  s.in(a, [b](context& me) { me.watch(b); });
  EXPECT_EQ(s.heard(), (lines{"a: terminated not_found noproc"}));
  s.in(a, [](context& me) { me.watch(pid{}); });
  EXPECT_EQ(s.heard(), (lines{"a: terminated not_found noproc"}));
}

TEST(watch, while_it_stops_is_answered_when_it_has) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  player_ref child;
  s.in(b, [&](context& me) { child = me.spawn(s.role("c")); });
  (void)s.heard();
  stop_actor(s.rt, b.id());
  s.rt.cast<act>(a, [b](context& me) { me.watch(b); });
  const lines heard = s.heard();
  EXPECT_EQ(heard.back(), heard.back().starts_with("a: terminated") ? heard.back() : "a: terminated ...");
  EXPECT_EQ(std::ranges::count_if(heard, [](const auto& l) { return l.starts_with("a: terminated"); }), 1);
}

TEST(watch, notice_comes_behind_the_mail_the_dead_sent) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    stage s{seed};
    const auto a = s.enter("a");
    const auto b = s.enter("b");
    s.in(a, [b](context& me) { me.watch(b); });
    (void)s.heard();
    s.rt.cast<act>(b, [a](context& me) {
      for (int i = 0; i < 5; ++i) me.cast<note>(a, std::to_string(i));
      me.stop();
    });
    lines heard = s.heard();
    std::erase_if(heard, [](const auto& l) { return l.starts_with("b"); });
    EXPECT_EQ(heard, (lines{"a: 0", "a: 1", "a: 2", "a: 3", "a: 4", "a: terminated stopped normal"})) << seed;
  }
}

TEST(watch, nothing_comes_after_unwatch_also_when_it_is_queued) {
  for (const bool unwatched : {false, true}) {
    stage s;
    const auto a = s.enter("a");
    const auto b = s.enter("b");
    s.in(a, [b](context& me) { me.watch(b); });
    (void)s.heard();
    s.world.nodes().front().stick(a.id(), 2s);
    s.tell(a, "takes its time");
    s.rt.cast<act>(a, [=](context& me) {
      if (unwatched) me.unwatch(b.id());
    });
    s.pass(1s);
    stop_actor(s.rt, b.id());
    s.pass(2s);  // the end of b is in the mailbox of a before a looks
    lines heard = s.heard();
    EXPECT_EQ(std::ranges::count(heard, "b: stopped"), 1);
    EXPECT_EQ(std::ranges::count(heard, "a: terminated stopped normal"), unwatched ? 0 : 1);
  }
}

TEST(watch, nothing_comes_after_unwatch_of_an_end_that_came_while_it_was_suspended) {
  stage s;
  const auto top =
      s.enter("top", {.strategy = one_for_one(
                          {.decide = [](const child_failure&) { return directive::resume; }, .wait = std::nullopt})});
  const auto b = s.enter("b");
  player_ref a;
  s.in(top, [&](context& me) { a = me.spawn(s.role("a")); });
  s.in(a, [b](context& me) { me.watch(b); });
  (void)s.heard();
  s.rt.cast<act>(a, [](context&) { throw 1; });
  s.rt.cast<act>(a, [b](context& me) { me.unwatch(b.id()); });
  stop_actor(s.rt, b.id());
  EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped"}));
}

TEST(watch, a_restart_is_not_an_end) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.in(a, [b](context& me) { me.watch(b); });
  (void)s.heard();
  s.in(b, [](context&) { throw 1; });
  EXPECT_EQ(s.heard(), (lines{"b: restarting", "b: started"}));
  stop_actor(s.rt, b.id());
  EXPECT_EQ(s.heard().back(), "a: terminated stopped normal") << "the watch outlived the restart";
}

TEST(watch, survives_a_restart_of_the_watcher) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.in(a, [b](context& me) { me.watch(b); });
  s.in(a, [](context&) { throw 1; });
  (void)s.heard();
  stop_actor(s.rt, b.id());
  EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped", "a: terminated stopped normal"}));
}

TEST(watch, of_children_that_a_restart_stops_is_over) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [&](context& me) { me.watch(me.spawn(s.role("c"))); });
  (void)s.heard();
  s.in(a, [](context&) { throw 1; });
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "c: stopping", "c: stopped", "a: started"}));
}

TEST(watch, a_parent_is_notified_of_its_child_once_and_only_when_it_watches) {
  stage s;
  const auto a = s.enter("a");
  player_ref c;
  s.in(a, [&](context& me) { c = me.spawn(s.role("c")); });
  (void)s.heard();
  stop_actor(s.rt, c.id());
  EXPECT_EQ(s.heard(), (lines{"c: stopping", "c: stopped"}));
  s.in(a, [&](context& me) {
    c = me.spawn(s.role("c"));
    me.watch(c);
  });
  (void)s.heard();
  stop_actor(s.rt, c.id());
  stop_actor(s.rt, c.id());
  EXPECT_EQ(s.heard(), (lines{"c: stopping", "c: stopped", "a: terminated stopped normal"}));
}

TEST(watch, of_oneself_is_nothing) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [](context& me) { me.watch(me.id()); });
  (void)s.heard();
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped"}));
}

TEST(watch, each_watcher_is_notified_once) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  const auto c = s.enter("c");
  s.in(a, [c](context& me) { me.watch(c); });
  s.in(b, [c](context& me) { me.watch(c); });
  (void)s.heard();
  stop_actor(s.rt, c.id());
  lines heard = s.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard,
            (lines{"a: terminated stopped normal", "b: terminated stopped normal", "c: stopped", "c: stopping"}));
}

TEST(watch, can_be_renewed_after_the_notice) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.in(a, [b](context& me) { me.watch(b); });
  stop_actor(s.rt, b.id());
  (void)s.heard();
  s.in(a, [b](context& me) { me.watch(b); });
  EXPECT_EQ(s.heard(), (lines{"a: terminated not_found noproc"}));
}

TEST(watch, a_name_can_be_used_again_after_the_notice) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [&](context& me) {
    const auto c = me.spawn({.name = "c"}, s.role("c"));
    me.watch(*c);
    me.stop(c->id());
  });
  EXPECT_EQ(s.heard().back(), "a: terminated stopped normal");
  s.in(a, [&](context& me) { EXPECT_TRUE(me.spawn({.name = "c"}, s.role("c")).has_value()); });
}

TEST(watch, a_forged_notice_is_not_believed) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.in(a, [b](context& me) { me.watch(b); });
  (void)s.heard();
  s.rt.send(a.id(), terminated{.who = b.id(), .why = terminated::cause::stopped, .reason = {}});
  EXPECT_EQ(s.heard(), lines{});
}

/// `a` is here, `b` on another node.
struct two_nodes {
  stage s;
  sim::node& far = s.world.add_node("far");
  player_ref a = s.enter("a");
  player_ref b = spawn_actor(far.rt(), s.role("b"));
  two_nodes() {
    s.pass(1s);
    (void)s.heard();
  }
  void watch() {
    s.in(a, [b = b](context& me) { me.watch(b); });
    s.pass(1s);
  }
};

TEST(watch, of_an_actor_on_a_node_that_is_lost_says_so_once) {
  two_nodes n;
  n.watch();
  n.far.crash();
  n.s.pass(5min);
  EXPECT_EQ(n.s.heard(), (lines{"a: terminated node_gone noconnection"}));
}

TEST(watch, of_an_actor_on_another_node_says_how_it_ended) {
  two_nodes n;
  n.watch();
  stop_actor(n.far.rt(), n.b.id());
  n.s.pass(1s);
  EXPECT_EQ(n.s.heard(), (lines{"b: stopping", "b: stopped", "a: terminated stopped normal"}));
  n.watch();
  EXPECT_EQ(n.s.heard(), (lines{"a: terminated not_found noproc"}));
}

TEST(watch, stopping_an_actor_on_another_node_works) {
  two_nodes n;
  n.s.in(n.a, [b = n.b](context& me) { me.stop(b); });
  n.s.pass(1s);
  EXPECT_EQ(n.s.heard(), (lines{"b: stopping", "b: stopped"}));
}

TEST(watch, of_an_actor_on_a_node_that_is_lost_already_says_so) {
  two_nodes n;
  n.far.crash();
  n.s.pass(5min);
  n.watch();
  n.s.pass(5min);
  EXPECT_EQ(n.s.heard(), (lines{"a: terminated node_gone noconnection"}));
}

TEST(watch, of_a_living_actor_that_cant_be_reached_says_so_once_and_can_be_renewed) {
  two_nodes n;
  n.watch();
  n.s.world.partition(n.s.world.nodes().front(), n.far);
  n.s.pass(5min);
  EXPECT_EQ(n.s.heard(), (lines{"a: terminated node_gone noconnection"}));
  n.s.world.heal();
  n.s.pass(5min);
  EXPECT_EQ(n.s.heard(), lines{}) << "it lives, and nobody says otherwise again";
  n.watch();
  stop_actor(n.far.rt(), n.b.id());
  n.s.pass(1s);
  EXPECT_EQ(n.s.heard(), (lines{"b: stopping", "b: stopped", "a: terminated stopped normal"}));
}

TEST(watch, ends_with_who_watches_and_leaves_no_letter) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  s.in(a, [b](context& me) { me.watch(b); });
  stop_actor(s.rt, a.id());
  (void)s.heard();
  stop_actor(s.rt, b.id());
  EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped"}));
  EXPECT_EQ(s.dead_letters(), 0U);
}

/// Has no handler for the end of others.
struct indifferent {
  using protocol = coppice::protocol<act>;
  static void handle(const act& m, context& me) { m.what(me); }
};

TEST(watch, without_a_handler_does_not_end_the_watcher) {
  stage s;
  const auto a = spawn_actor(s.rt, props<indifferent>());
  const auto b = s.enter("b");
  s.rt.cast<act>(a, [b](context& me) { me.watch(b); });
  (void)s.heard();
  s.in(b, [](context&) { throw exit_with{exit_reason::error("tired")}; });
  (void)s.heard();
  EXPECT_TRUE(s.rt.alive(a.id()));
  EXPECT_EQ(s.dead_letters(), 0U);
}

/// Has no time for the end of others before it is told so.
struct busy {
  using protocol = coppice::protocol<note>;
  explicit busy(std::shared_ptr<lines> b) : book{std::move(b)} {}
  void handle(const terminated& m, context& me) {
    whom = m.who;
    if (!open) return me.stash(m);
    book->push_back("terminated " + std::string{to_string(m.why)});
  }
  void handle(const note& m, context& me) {
    if (m.text == "fail") throw 1;
    if (m.text == "forget") me.unwatch(whom);
    open = true;
    me.unstash_all();
  }
  bool open = false;
  pid whom;
  std::shared_ptr<lines> book;
};

TEST(watch, notice_may_be_stashed_and_still_be_unwatched) {
  for (const auto& [forgets, kind] : {std::pair<bool, std::optional<mailbox>>{false, {}},
                                      {true, {}},
                                      {false, mailbox{.by_priority = true}},
                                      {true, mailbox{.capacity = 2}}}) {
    stage s;
    const auto b = s.enter("b");
    const auto a = spawn_actor(
        s.rt, props<busy>(s.book).with({.on_init = {[b](context& me) { me.watch(b); }}}).with({.mailbox = kind}));
    (void)s.heard();
    stop_actor(s.rt, b.id());
    EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped"}));
    s.rt.cast<note>(a, "fail");
    EXPECT_EQ(s.heard(), lines{}) << "the new instance has stashed it again";
    s.rt.cast<note>(a, forgets ? "forget" : "now");
    EXPECT_EQ(s.heard(), forgets ? lines{} : (lines{"terminated stopped"}));
    EXPECT_EQ(s.dead_letters(), 0U);
  }
}

}  // namespace
