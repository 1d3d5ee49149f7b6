// Routers.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

struct troupe : stage {
  explicit troupe(routing how, int n = 3) {
    for (int i = 0; i < n; ++i) members.push_back(enter("m" + std::to_string(i)));
    std::vector<pid> pids;
    for (const auto m : members) pids.push_back(m.id());
    group = spawn_actor(rt, group_of(pids, {.how = how}));
    (void)heard();
  }
  void route(std::string text) { rt.cast<note>(group, std::move(text)); }
  std::vector<player_ref> members;
  actor_ref<router> group;
};

TEST(group, round_robin_takes_turns) {
  troupe t{routing::round_robin};
  for (int i = 0; i < 5; ++i) t.route(std::to_string(i)), t.world.settle();
  EXPECT_EQ(t.heard(), (lines{"m0: 0", "m1: 1", "m2: 2", "m0: 3", "m1: 4"}));
}

TEST(group, random_reaches_all_and_loses_none) {
  troupe t{routing::random};
  for (int i = 0; i < 300; ++i) t.route("x");
  const lines heard = t.heard();
  EXPECT_EQ(heard.size(), 300U);
  EXPECT_EQ(std::set<std::string>(heard.begin(), heard.end()).size(), 3U);
}

TEST(group, broadcast_reaches_each_once) {
  troupe t{routing::broadcast};
  t.route("x");
  lines heard = t.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard, (lines{"m0: x", "m1: x", "m2: x"}));
}

std::map<std::string, std::string> places(troupe& t) {
  std::map<std::string, std::string> by_key;
  for (int i = 0; i < 200; ++i) t.route("k" + std::to_string(i));
  for (const auto& l : t.heard()) by_key[l.substr(4)] = l.substr(0, 2);
  return by_key;
}

TEST(group, consistent_hash_keeps_keys_in_their_place_as_routees_come_and_go) {
  troupe t{routing::consistent_hash};
  const auto before = places(t);
  EXPECT_EQ(before.size(), 200U);
  EXPECT_EQ(places(t), before);
  const auto fourth = t.enter("m3");
  t.rt.cast<add_routee>(t.group, fourth.id());
  (void)t.heard();
  const auto with_four = places(t);
  int moved = 0;
  for (const auto& [key, place] : with_four)
    if (place != before.at(key)) {
      ++moved;
      EXPECT_EQ(place, "m3") << "only to the new one";
    }
  EXPECT_GT(moved, 20);
  EXPECT_LT(moved, 100);
  t.rt.cast<remove_routee>(t.group, fourth.id());
  EXPECT_EQ(places(t), before);
}

TEST(group, what_has_no_key_is_a_dead_letter_of_consistent_hash) {
  troupe t{routing::consistent_hash};
  t.rt.cast<whisper>(t.group);
  EXPECT_EQ(t.heard(), lines{});
  EXPECT_EQ(t.dead_letters(), 1U);
}

TEST(group, a_routee_that_has_ended_leaves) {
  troupe t{routing::round_robin};
  stop_actor(t.rt, t.members[1].id());
  (void)t.heard();
  for (int i = 0; i < 4; ++i) t.route(std::to_string(i)), t.world.settle();
  EXPECT_EQ(t.heard(), (lines{"m0: 0", "m2: 1", "m0: 2", "m2: 3"}));
  EXPECT_EQ(t.dead_letters(), 0U);
}

TEST(group, without_routees_messages_are_dead_letters_and_calls_fail) {
  troupe t{routing::round_robin, 0};
  t.route("x");
  EXPECT_EQ(t.heard(), lines{});
  EXPECT_EQ(t.dead_letters(), 1U);
  const auto a = t.enter("a");
  (void)t.heard();
  t.in(a, [g = t.group](context& me) { me.call(coppice::call<question>(g.id(), "x")).pipe_to(me.id()); });
  EXPECT_EQ(t.heard(), (lines{"a: error noproc"}));
}

TEST(group, keeps_the_sender_and_the_call) {
  for (const auto how : {routing::round_robin, routing::random, routing::broadcast}) {
    troupe t{how};
    const auto a = t.enter("a");
    (void)t.heard();
    t.in(a, [g = t.group](context& me) {
      me.send_from(me.id(), player_ref{g.id()}, note{"x"});
      me.call(player_ref{g.id()}.call<question>("q")).pipe_to(me.id());
    });
    const lines heard = t.heard();
    EXPECT_EQ(std::ranges::count(heard, "a: text q"), 1) << to_string(how);
    EXPECT_GE(std::ranges::count_if(heard, [](const auto& l) { return l.ends_with(": x from somebody"); }), 1);
  }
}

struct keyed_question {
  using reply = std::string;
  int number = 0;
  [[nodiscard]] int routing_key() const { return number; }
};

TEST(group, consistent_hash_keeps_the_sender_and_the_call) {
  stage s;
  const auto a = s.enter("a");
  const auto b = spawn_actor(s.rt, props<behaving>([book = s.book] {
                               return behaviour{[book](const note& m, context& me) {
                                                  book->push_back(m.text + (me.sender() ? " from somebody" : ""));
                                                },
                                                [](keyed_question, context& me) { me.reply(std::string{"yes"}); }};
                             }));
  const auto g = spawn_actor(s.rt, group_of({b.id()}, {.how = routing::consistent_hash}));
  (void)s.heard();
  s.in(a, [g](context& me) {
    me.send_from(me.id(), g.id(), note{"x"});
    me.call(coppice::call<keyed_question>(g.id(), 7)).pipe_to(me.id());
  });
  EXPECT_EQ(s.heard(), (lines{"x from somebody", "a: text yes"}));
}

TEST(group, manages_its_routees) {
  troupe t{routing::round_robin, 1};
  const auto other = t.enter("m1");
  t.rt.cast<add_routee>(t.group, other.id());
  t.rt.cast<add_routee>(t.group, other.id());
  const auto a = t.enter("a");
  std::vector<pid> all;
  t.in(a, [&](context& me) {
    me.reenter_after(me.call(t.group.call<get_routees>()), [&](const auto& r, context&) { all = *r; });
  });
  EXPECT_EQ(all, (std::vector<pid>{t.members[0].id(), other.id()}));
  (void)t.heard();
  t.rt.cast<to_all_routees>(t.group, broadcast_of(note{"all"}));
  lines heard = t.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard, (lines{"m0: all", "m1: all"}));
}

TEST(pool, spawns_its_routees_and_stops_them_with_itself) {
  stage s;
  const auto pool = spawn_actor(s.rt, pool_of(s.role("w"), {.size = 3}));
  EXPECT_EQ(s.heard(), (lines{"w: started", "w: started", "w: started"}));
  for (int i = 0; i < 3; ++i) s.rt.cast<note>(pool, "x");
  EXPECT_EQ(s.heard(), (lines{"w: x", "w: x", "w: x"}));
  stop_actor(s.rt, pool.id());
  EXPECT_EQ(s.heard().size(), 6U);
  EXPECT_EQ(s.rt.snapshot().size(), 0U);
}

TEST(pool, supervises_its_routees_by_its_own_strategy) {
  stage s;
  const auto pool = spawn_actor(s.rt, pool_of(s.role("w"), {.size = 2}));
  (void)s.heard();
  s.rt.cast<act>(pool, [](context&) { throw 1; });
  EXPECT_EQ(s.heard(), (lines{"w: restarting", "w: started"})) << "the default";
  const auto strict = spawn_actor(s.rt, pool_of(s.role("v"), {.size = 2}).with({.strategy = always_stop()}));
  (void)s.heard();
  s.rt.cast<act>(strict, [](context&) { throw 1; });
  EXPECT_EQ(s.heard(), (lines{"v: stopping", "v: stopped"})) << "and it is not replaced";
  for (int i = 0; i < 2; ++i) s.rt.cast<note>(strict, "x");
  EXPECT_EQ(s.heard(), (lines{"v: x", "v: x"}));
  EXPECT_EQ(s.dead_letters(), 0U);
}

TEST(pool, can_be_resized_and_lets_those_it_removes_finish) {
  stage s;
  const auto pool = spawn_actor(s.rt, pool_of(s.role("w"), {.size = 1}));
  s.rt.cast<resize_pool>(pool, 3U);
  EXPECT_EQ(s.heard(), (lines{"w: started", "w: started", "w: started"}));
  for (int i = 0; i < 3; ++i) s.rt.cast<note>(pool, "x");
  s.rt.cast<resize_pool>(pool, 0U);
  const lines heard = s.heard();
  EXPECT_EQ(std::ranges::count(heard, "w: x"), 3);
  EXPECT_EQ(std::ranges::count(heard, "w: stopped"), 2) << "one is left";
}

TEST(pool, a_restarted_router_has_a_new_pool) {
  stage s;
  const auto pool = spawn_actor(s.rt, pool_of(s.role("w"), {.size = 2}));
  (void)s.heard();
  s.rt.cast<to_all_routees>(pool, [](context&, pid) { throw 1; });
  const lines heard = s.heard();
  EXPECT_EQ(std::ranges::count(heard, "w: stopped"), 2);
  EXPECT_EQ(std::ranges::count(heard, "w: started"), 2);
  s.rt.cast<note>(pool, "x");
  EXPECT_EQ(s.heard(), (lines{"w: x"}));
}

TEST(pool, whose_routees_cant_be_made_holds_up_nobody) {
  stage s;
  const auto pool =
      spawn_actor(s.rt, pool_of(props<player>::from([]() -> player { throw std::runtime_error{"no"}; }), {.size = 2}));
  EXPECT_EQ(s.heard(), lines{}) << "each has used up its limit";
  EXPECT_TRUE(s.rt.alive(pool.id()));
  s.rt.cast<note>(pool, "x");
  EXPECT_EQ(s.heard(), lines{});
  EXPECT_EQ(s.dead_letters(), 1U);
}

TEST(pool, of_nobody_is_refused) {
  stage s;
  EXPECT_THROW((void)pool_of(s.role("w"), {.size = 0}), std::invalid_argument);
}

TEST(router, holds_a_hundred_under_churn) {
  troupe t{routing::consistent_hash, 100};
  for (int round = 0; round < 20; ++round) {
    stop_actor(t.rt, t.members[static_cast<std::size_t>(round)].id());
    const auto fresh = t.enter("n" + std::to_string(round));
    t.rt.cast<add_routee>(t.group, fresh.id());
    (void)t.heard();
    for (int i = 0; i < 50; ++i) t.route("k" + std::to_string(i));
    EXPECT_EQ(t.heard().size(), 50U);
  }
  EXPECT_EQ(t.dead_letters(), 0U);
}

}  // namespace
