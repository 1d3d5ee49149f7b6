// What servers do with their mail, and how they stop.
#include "workshop.hpp"

namespace {

using namespace coppice;

template <class T>
class server : public testing::Test {};
TYPED_TEST_SUITE(server, both_kinds, kind_names);

// ---- exits

TYPED_TEST(server, that_traps_exits_ends_with_the_reason_its_parent_tells_it) {
  for (const exit_reason& why : {exit_reason::shutdown(), exit_reason::normal(), exit_reason::error("enough"),
                                 exit_reason::shutdown("for today"), exit_reason::killed()}) {
    workshop<TypeParam> shop;
    shop.start();
    shop.book.take();
    shop.tell(why);
    EXPECT_EQ(shop.book.take(), (lines{"terminate " + why.to_string(), "starter: exited " + why.to_string()}))
        << "it is not offered to handle(exited)";
    EXPECT_FALSE(shop.alive());
  }
}

TYPED_TEST(server, that_traps_exits_ends_when_its_parent_has_also_normally) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::error("enough")}) {
    workshop<TypeParam> shop;
    shop.start();
    shop.book.take();
    shop.end_starter(why);
    EXPECT_EQ(shop.book.take(), (lines{"terminate " + why.to_string()}));
    EXPECT_FALSE(shop.alive());
  }
}

TYPED_TEST(server, that_traps_exits_ends_with_killed_when_its_parent_was) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().kill(shop.starter);
  shop.settle();
  EXPECT_EQ(shop.book.take(), (lines{"terminate killed"}));
}

TYPED_TEST(server, keeps_its_parent_when_it_unlinks_it) {
  workshop<TypeParam> shop;
  shop.start();
  shop.template cast<unlink_parent>();
  shop.book.take();
  shop.tell(exit_reason::shutdown());
  EXPECT_EQ(shop.book.take(), (lines{"terminate shutdown"}));
}

TYPED_TEST(server, obeys_no_order_that_somebody_forged) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().send(shop.server.id(), exited{.from = shop.starter, .reason = exit_reason::shutdown()});
  shop.settle();
  EXPECT_EQ(shop.book.take(), (lines{"exited shutdown"}));
  EXPECT_TRUE(shop.alive());
}

TYPED_TEST(server, that_was_started_without_a_link_has_no_parent_to_obey) {
  workshop<TypeParam> shop;
  shop.start({}, {.links = false});
  shop.book.take();
  shop.tell(exit_reason::shutdown());
  EXPECT_EQ(shop.book.take(), (lines{"exited shutdown"}));
  EXPECT_TRUE(shop.alive());
}

TYPED_TEST(server, that_traps_exits_gets_those_of_others_as_messages) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().exit(shop.server.id(), exit_reason::shutdown());
  shop.rt().exit(shop.server.id(), exit_reason::error("get out"));
  shop.rt().exit(shop.server.id(), exit_reason::normal());
  shop.settle();
  EXPECT_EQ(shop.book.take(), (lines{"exited shutdown", "exited error: get out", "exited normal"}));
  EXPECT_TRUE(shop.alive());
}

TYPED_TEST(server, that_does_not_trap_exits_dies_without_terminate) {
  workshop<TypeParam> shop;
  shop.start({.traps = false});
  shop.book.take();
  shop.tell(exit_reason::shutdown());
  EXPECT_EQ(shop.book.take(), (lines{"starter: exited shutdown"}));
  EXPECT_FALSE(shop.alive());
}

TYPED_TEST(server, that_does_not_trap_exits_is_not_told_of_a_normal_one) {
  workshop<TypeParam> shop;
  shop.start({.traps = false});
  shop.book.take();
  shop.tell(exit_reason::normal());
  EXPECT_EQ(shop.book.take(), lines{});
  EXPECT_TRUE(shop.alive());
}

TYPED_TEST(server, does_not_terminate_when_it_is_killed) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().kill(shop.server.id());
  shop.settle();
  EXPECT_EQ(shop.book.take(), (lines{"starter: exited killed"}));
}

// ---- answers

TYPED_TEST(server, answers_later_from_another_handler) {
  workshop<TypeParam> shop;
  shop.start();
  const auto answer = shop.template begin<later>();
  shop.settle();
  EXPECT_FALSE(*answer);
  EXPECT_EQ(shop.template call<echo>(1), 1) << "others are served meanwhile";
  shop.template cast<settle_later>(42);
  EXPECT_EQ(*answer, result<int>{42});
}

TYPED_TEST(server, that_ends_with_an_answer_open_tells_the_caller_why) {
  workshop<TypeParam> shop;
  shop.start();
  const auto answer = shop.template begin<later>();
  shop.settle();
  shop.template cast<finish>(exit_reason::shutdown("for today"));
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->error(), (error{errc::exited, "shutdown: for today"}));
}

TYPED_TEST(server, may_answer_with_an_error_of_its_own) {
  workshop<TypeParam> shop;
  shop.start();
  EXPECT_EQ(shop.template call<refuse>().error(), (error{errc::invalid, "not for sale"}));
  EXPECT_TRUE(shop.alive());
}

TYPED_TEST(server, that_stops_in_a_call_answers_after_terminate) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  EXPECT_EQ(shop.template call<finish>(exit_reason::shutdown()), 7);
  const lines seen = shop.book.take();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0], "terminate shutdown");
  EXPECT_TRUE(std::ranges::find(seen, "answered") != seen.end());
  EXPECT_TRUE(std::ranges::find(seen, "starter: exited shutdown") != seen.end());
}

TEST(server_waiting, that_stops_in_a_call_answers_when_a_long_terminate_is_over) {
  workshop<waiting> shop;
  shop.start({.terminate = "hang"});
  const auto answer = shop.begin<finish>(exit_reason::shutdown());
  shop.pass(1s);
  EXPECT_FALSE(*answer);
  EXPECT_TRUE(shop.alive());
}

TYPED_TEST(server, that_stops_takes_no_more_mail) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().template cast<finish>(shop.server, exit_reason::normal());
  shop.rt().template cast<note>(shop.server, "too late");
  const auto answer = shop.template begin<echo>(1);
  shop.settle();
  EXPECT_FALSE(shop.book.has("note too late"));
  ASSERT_TRUE(*answer);
  EXPECT_FALSE(**answer);
}

// ---- failures

TYPED_TEST(server, that_throws_terminates_and_ends_with_what_it_threw) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  const auto got = shop.template call<fail_now>();
  ASSERT_FALSE(got);
  const std::string why = "error: std::runtime_error: asked to fail (handling coppice::fail_now)";
  EXPECT_EQ(got.error(), (error{errc::exited, why}));
  const lines seen = shop.book.take();
  EXPECT_EQ(seen.at(0), "terminate " + why);
  EXPECT_TRUE(std::ranges::find(seen, "starter: exited " + why) != seen.end());
}

TYPED_TEST(server, may_leave_a_handler_by_exit_with) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  const auto got = shop.template call<fail_now>(true);
  EXPECT_EQ(got.error(), (error{errc::exited, "shutdown: by hand"}));
  EXPECT_EQ(shop.book.take().at(0), "terminate shutdown: by hand");
}

TYPED_TEST(server, whose_terminate_throws_ends_with_that_instead) {
  workshop<TypeParam> shop;
  shop.start({.terminate = "throw"});
  shop.book.take();
  shop.tell(exit_reason::shutdown());
  const lines seen = shop.book.take();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0], "terminate shutdown");
  EXPECT_TRUE(seen[1].starts_with("starter: exited error: std::runtime_error: no broom")) << seen[1];
}

TYPED_TEST(server, whose_terminate_throws_after_a_failure_ends_with_the_second) {
  workshop<TypeParam> shop;
  shop.start({.terminate = "throw"});
  shop.book.take();
  const auto got = shop.template call<fail_now>();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::exited);
  EXPECT_NE(got.error().text().find("no broom"), std::string_view::npos) << got.error();
}

TYPED_TEST(server, whose_terminate_throws_after_a_stop_still_answers) {
  workshop<TypeParam> shop;
  shop.start({.terminate = "throw"});
  EXPECT_EQ(shop.template call<finish>(exit_reason::normal()), 7);
}

// ---- idleness

TYPED_TEST(server, is_told_when_nothing_came_for_so_long) {
  workshop<TypeParam> shop;
  shop.start({.idle = 10s});
  shop.book.take();
  shop.pass(10s - a_tick);
  EXPECT_EQ(shop.book.take(), lines{});
  shop.pass(2 * a_tick);
  EXPECT_EQ(shop.book.take(), (lines{"idle"}));
  shop.pass(10s + a_tick);
  EXPECT_EQ(shop.book.take(), (lines{"idle"})) << "and again";
}

TYPED_TEST(server, is_not_idle_as_long_as_messages_come) {
  workshop<TypeParam> shop;
  shop.start({.idle = 10s});
  shop.book.take();
  for (int i = 0; i < 5; ++i) {
    shop.pass(9s);
    shop.template cast<note>("x");
  }
  EXPECT_EQ(shop.book.take(), (lines(5, "note x")));
  shop.pass(10s - a_tick);
  EXPECT_EQ(shop.book.take(), lines{});
  shop.pass(2 * a_tick);
  EXPECT_EQ(shop.book.take(), (lines{"idle"}));
}

TYPED_TEST(server, lets_mail_win_that_waits_when_it_is_idle_at_once) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().template cast<let_idle>(shop.server, 0ns);
  shop.rt().template cast<note>(shop.server, "first");
  shop.rt().template cast<let_idle>(shop.server, 10s);
  shop.settle();
  shop.pass(1s);
  EXPECT_EQ(shop.book.take(), (lines{"note first"}));
}

TYPED_TEST(server, is_idle_at_once_when_nothing_waits) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().template cast<let_idle>(shop.server, 0ns);
  EXPECT_TRUE(shop.world().run_until([&] { return shop.book.has("idle"); }, 1s));
}

TYPED_TEST(server, may_change_how_long_it_waits) {
  workshop<TypeParam> shop;
  shop.start({.idle = 1h});
  shop.book.take();
  shop.template cast<let_idle>(10s);
  shop.pass(10s + a_tick);
  EXPECT_EQ(shop.book.take(), (lines{"idle"})) << "shorter";
  shop.template cast<let_idle>(1min);
  shop.pass(1min - a_tick);
  EXPECT_EQ(shop.book.take(), lines{}) << "longer";
  shop.template cast<let_idle>(forever);
  shop.pass(24h);
  EXPECT_EQ(shop.book.take(), lines{}) << "off";
}

// ---- mail that nobody handles

struct stranger {};
struct strange_question {
  using reply = int;
};
TYPED_TEST(server, leaves_what_it_does_not_handle_as_a_dead_letter) {
  workshop<TypeParam> shop;
  shop.start();
  const auto before = shop.rt().counters().dead_letters;
  shop.rt().send(shop.server.id(), stranger{});
  shop.settle();
  EXPECT_EQ(shop.rt().counters().dead_letters, before + 1);
  EXPECT_TRUE(shop.alive());
}

task<> asks_strangely(self&, pid who, std::optional<result<int>>* into) {
  *into = co_await call<strange_question>(who);
}
TYPED_TEST(server, tells_the_caller_of_a_question_that_it_does_not_handle) {
  workshop<TypeParam> shop;
  std::optional<result<int>> got;
  shop.start();
  shop.rt().spawn(asks_strangely, shop.server.id(), &got);
  shop.settle();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code(), errc::no_reply);
  EXPECT_TRUE(shop.alive());
}

TYPED_TEST(server, is_not_idle_as_long_as_mail_comes_even_if_it_does_not_handle_it) {
  workshop<TypeParam> shop;
  shop.start({.idle = 10s});
  shop.book.take();
  for (int i = 0; i < 3; ++i) {
    shop.pass(9s);
    shop.rt().send(shop.server.id(), stranger{});
    shop.settle();
  }
  EXPECT_EQ(shop.book.take(), lines{}) << "something came";
  shop.pass(10s + a_tick);
  EXPECT_EQ(shop.book.take(), (lines{"idle"}));
}

TYPED_TEST(server, hears_untyped_messages_of_its_protocol) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().send(shop.server.id(), note{"by pid"});
  shop.settle();
  EXPECT_EQ(shop.book.take(), (lines{"note by pid"}));
}

struct deaf {
  static constexpr bool traps_exits = true;
  static int handle(echo m) { return m.n; }
};
TEST(server_without_a_handler_for_exits, lives_on) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const ref<deaf> who = rt.spawn<deaf>();
  EXPECT_TRUE(w.settle());
  const auto before = rt.counters().dead_letters;
  rt.exit(who.id(), exit_reason::shutdown());
  EXPECT_TRUE(w.settle());
  EXPECT_TRUE(rt.alive(who.id()));
  EXPECT_EQ(rt.counters().dead_letters, before + 1);
}

// ---- callers

TYPED_TEST(server, that_is_gone_is_an_error_for_callers_and_nothing_for_casts) {
  workshop<TypeParam> shop;
  shop.start();
  shop.template cast<finish>(exit_reason::normal());
  EXPECT_EQ(shop.template call<echo>(1).error().code(), errc::noproc);
  shop.template cast<note>("to nobody");
}

TYPED_TEST(server, that_is_killed_answers_callers_with_that) {
  workshop<TypeParam> shop;
  shop.start();
  const auto answer = shop.template begin<later>();
  shop.settle();
  shop.rt().kill(shop.server.id());
  shop.settle();
  EXPECT_EQ((*answer)->error(), (error{errc::exited, "killed"}));
}

TYPED_TEST(server, that_does_not_answer_in_time_is_an_error_after_five_seconds) {
  workshop<TypeParam> shop;
  shop.start();
  const auto answer = shop.template begin<later>();
  shop.pass(5s - a_tick);
  EXPECT_FALSE(*answer);
  shop.pass(2 * a_tick);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->error().code(), errc::timeout);
  shop.template cast<settle_later>(1);
  EXPECT_TRUE(shop.alive()) << "a late answer is no harm";
}

// ---- stop

TYPED_TEST(server, is_stopped_and_waited_for) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  const auto done = shop.begin_stop();
  ASSERT_TRUE(*done);
  EXPECT_TRUE(**done);
  EXPECT_EQ(shop.book.take(), (lines{"terminate normal", "starter: exited normal"}));
  EXPECT_FALSE(shop.alive());
}

TYPED_TEST(server, is_stopped_with_a_reason_also_when_it_does_not_trap_exits) {
  for (const exit_reason& why : {exit_reason::shutdown(), exit_reason::error("enough")}) {
    workshop<TypeParam> shop;
    shop.start({.traps = false});
    shop.book.take();
    const auto done = shop.begin_stop(why);
    ASSERT_TRUE(*done);
    EXPECT_TRUE(**done) << (*done)->error();
    EXPECT_EQ(shop.book.take(), (lines{"terminate " + why.to_string(), "starter: exited " + why.to_string()}));
  }
}

TYPED_TEST(server, that_ends_with_another_reason_than_asked_is_an_error) {
  workshop<TypeParam> shop;
  shop.start({.terminate = "throw"});
  const auto done = shop.begin_stop();
  ASSERT_TRUE(*done);
  ASSERT_FALSE(**done);
  EXPECT_EQ((*done)->error().code(), errc::exited);
  EXPECT_NE((*done)->error().text().find("no broom"), std::string_view::npos);
}

TYPED_TEST(server, that_is_gone_can_not_be_stopped) {
  workshop<TypeParam> shop;
  shop.start();
  shop.rt().kill(shop.server.id());
  shop.settle();
  const auto done = shop.begin_stop();
  ASSERT_TRUE(*done);
  EXPECT_EQ((*done)->error().code(), errc::noproc);
}

TEST(server_waiting, that_takes_too_long_to_stop_is_still_about_to) {
  workshop<waiting> shop;
  shop.start({.terminate = "hang"});
  const auto done = shop.begin_stop({}, 5s);
  EXPECT_FALSE(*done);
  shop.pass(5s + a_tick);
  ASSERT_TRUE(*done);
  EXPECT_EQ((*done)->error().code(), errc::timeout);
  EXPECT_TRUE(shop.alive());
  shop.pass(1h);
  EXPECT_FALSE(shop.alive());
}

task<> stops_itself(self& me, std::optional<result<void>>* into) { *into = co_await stop(me, me.id()); }
TEST(server_stop, of_oneself_is_an_error) {
  std::optional<result<void>> got;
  sim::world w{1};
  w.add_node().rt().spawn(stops_itself, &got);
  EXPECT_TRUE(w.settle());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code(), errc::calling_self);
}

}  // namespace
