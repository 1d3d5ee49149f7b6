// How servers start: what `init` answers, and what the starter sees.
#include "workshop.hpp"

namespace {

using namespace coppice;

template <class T>
class server_start : public testing::Test {};
TYPED_TEST_SUITE(server_start, both_kinds, kind_names);

TYPED_TEST(server_start, gives_its_ref_once_init_is_over) {
  workshop<TypeParam> shop;
  shop.start();
  EXPECT_EQ(shop.book.take(), (lines{"init", "started"}));
  EXPECT_TRUE(shop.alive());
  EXPECT_EQ(shop.template call<echo>(5), 5);
}

TYPED_TEST(server_start, init_that_ignores_is_no_failure_for_anybody) {
  for (const bool traps : {true, false}) {
    workshop<TypeParam> shop;
    shop.start({.init = "ignore"}, {.traps = traps});
    ASSERT_TRUE(shop.started);
    ASSERT_FALSE(*shop.started);
    EXPECT_EQ(shop.started->error().code(), errc::ignored);
    EXPECT_EQ(shop.book.take(), (lines{"init", "not started"})) << "and no exited, no terminate";
    EXPECT_FALSE(shop.starter_ended);
  }
}

TYPED_TEST(server_start, init_that_fails_tells_only_whoever_starts_it) {
  for (const bool traps : {true, false}) {
    workshop<TypeParam> shop;
    shop.start({.init = "fail"}, {.traps = traps});
    ASSERT_TRUE(shop.started);
    ASSERT_FALSE(*shop.started);
    EXPECT_EQ(shop.started->error(), (error{errc::invalid, "refused"}));
    EXPECT_EQ(shop.book.take(), (lines{"init", "not started"}));
    EXPECT_FALSE(shop.starter_ended);
  }
}

TYPED_TEST(server_start, init_that_stops_is_an_error_with_the_reason) {
  workshop<TypeParam> shop;
  shop.start({.init = "stop"});
  ASSERT_TRUE(shop.started);
  ASSERT_FALSE(*shop.started);
  EXPECT_EQ(shop.started->error(), (error{errc::start_failed, "error: no luck"}));
  EXPECT_EQ(shop.book.take(), (lines{"init", "not started"})) << "and no exited is left behind";
}

TYPED_TEST(server_start, init_that_stops_takes_a_starter_with_it_that_does_not_trap) {
  workshop<TypeParam> shop;
  shop.start({.init = "stop"}, {.traps = false});
  EXPECT_EQ(shop.starter_ended, exit_reason::error("no luck"));
  EXPECT_EQ(shop.book.take(), (lines{"init"}));
}

TYPED_TEST(server_start, init_that_stops_normally_harms_nobody) {
  for (const bool traps : {true, false}) {
    workshop<TypeParam> shop;
    shop.start({.init = "stop_normal"}, {.traps = traps});
    ASSERT_TRUE(shop.started);
    ASSERT_FALSE(*shop.started);
    EXPECT_EQ(shop.started->error(), (error{errc::start_failed, "normal"}));
    EXPECT_EQ(shop.book.take(), (lines{"init", "not started"}));
    EXPECT_FALSE(shop.starter_ended);
  }
}

TYPED_TEST(server_start, init_that_throws_is_an_error_with_what_it_threw) {
  workshop<TypeParam> shop;
  shop.start({.init = "throw"});
  ASSERT_TRUE(shop.started);
  ASSERT_FALSE(*shop.started);
  EXPECT_EQ(shop.started->error(), (error{errc::start_failed, "error: std::runtime_error: out of luck"}));
  EXPECT_EQ(shop.book.take(), (lines{"init", "not started"})) << "terminate is for servers that have begun";
}

TYPED_TEST(server_start, init_that_throws_takes_a_starter_with_it_that_does_not_trap) {
  workshop<TypeParam> shop;
  shop.start({.init = "throw"}, {.traps = false});
  ASSERT_TRUE(shop.starter_ended);
  EXPECT_EQ(shop.starter_ended->text(), "out of luck");
  EXPECT_EQ(shop.starter_ended->exception_type(), "std::runtime_error");
}

TYPED_TEST(server_start, init_may_end_the_process_by_exit_with) {
  workshop<TypeParam> shop;
  shop.start({.init = "exit"});
  ASSERT_TRUE(shop.started);
  EXPECT_EQ(shop.started->error(), (error{errc::start_failed, "error: left"}));
  shop.start({.init = "exit"}, {.traps = false});
  EXPECT_EQ(shop.starter_ended, exit_reason::error("left"));
}

TYPED_TEST(server_start, a_constructor_that_throws_is_a_failed_start) {
  workshop<TypeParam> shop;
  shop.start({.constructor_throws = true});
  ASSERT_TRUE(shop.started);
  ASSERT_FALSE(*shop.started);
  EXPECT_EQ(shop.started->error(), (error{errc::start_failed, "error: std::runtime_error: no material"}));
  EXPECT_EQ(shop.book.take(), (lines{"not started"}));
}

TYPED_TEST(server_start, without_a_link_a_failure_harms_nobody) {
  workshop<TypeParam> shop;
  shop.start({.init = "stop"}, {.traps = false, .links = false});
  ASSERT_TRUE(shop.started);
  EXPECT_EQ(shop.started->error(), (error{errc::start_failed, "error: no luck"}));
  EXPECT_FALSE(shop.starter_ended);
}

TYPED_TEST(server_start, a_failure_leaves_neither_processes_nor_timers) {
  for (const char* how : {"ignore", "fail", "stop", "throw", "exit"}) {
    workshop<TypeParam> shop;
    const auto before = shop.rt().snapshot().size();
    shop.start({.init = how}, {.within = 5s});
    EXPECT_EQ(shop.rt().snapshot().size(), before + 2) << "only the starter and who watches it, after " << how;
    EXPECT_TRUE(shop.rt().info(shop.starter)->links.empty());
    EXPECT_EQ(shop.rt().info(shop.starter)->monitors, 0U);
  }
}

// ---- names

TYPED_TEST(server_start, its_name_is_registered) {
  workshop<TypeParam> shop;
  shop.start({}, {.name = "smith"});
  EXPECT_EQ(shop.rt().where("smith"), shop.server.id());
}

TYPED_TEST(server_start, a_name_that_is_taken_starts_nothing_and_harms_nobody) {
  for (const bool traps : {true, false}) {
    workshop<TypeParam> shop;
    shop.start({}, {.name = "smith"});
    const pid first = shop.server.id();
    shop.book.take();
    shop.start({}, {.traps = traps, .name = "smith"});
    ASSERT_TRUE(shop.started);
    ASSERT_FALSE(*shop.started);
    EXPECT_EQ(shop.started->error().code(), errc::name_taken);
    EXPECT_NE(shop.started->error().text().find("smith"), std::string_view::npos);
    EXPECT_EQ(shop.book.take(), (lines{"not started"})) << "init was not called";
    EXPECT_FALSE(shop.starter_ended);
    EXPECT_EQ(shop.rt().where("smith"), first);
  }
}

TYPED_TEST(server_start, its_name_is_free_after_a_failed_start) {
  workshop<TypeParam> shop;
  for (const char* how : {"ignore", "fail", "stop", "throw"}) {
    shop.start({.init = how}, {.name = "smith"});
    ASSERT_TRUE(shop.started);
    EXPECT_FALSE(*shop.started);
    EXPECT_EQ(shop.rt().where("smith"), pid{}) << how;
  }
  shop.start({}, {.name = "smith"});
  EXPECT_TRUE(*shop.started);
}

template <class T>
task<> tries_twice(self& me, diary* book) {
  me.trap_exits();
  for (const char* how : {"fail", "stop", "throw", "ignore", "ok"}) {
    settings s{.init = how};
    spawn_options options{.name = "smith", .link = true};
    const result<ref<T>> made = co_await start<T>(me, options, book, std::move(s));
    book->add(made ? "made" : std::string{to_string(made.error().code())});
    const auto stray = co_await me.receive<exited, down>(0s);
    EXPECT_TRUE(std::holds_alternative<timed_out>(stray)) << "after " << how;
  }
}
TYPED_TEST(server_start, once_an_error_is_there_the_process_is_gone_and_its_name_free_at_once) {
  workshop<TypeParam> shop;
  shop.rt().spawn(tries_twice<TypeParam>, &shop.book);
  shop.settle();
  EXPECT_EQ(shop.book.take(), (lines{"init", "invalid", "init", "start_failed", "init", "start_failed", "init",
                                     "ignored", "init", "made", "terminate normal"}));
}

struct knows_its_name {
  explicit knows_its_name(pid* into) : seen{into} {}
  void init(self& me) const {
    *seen = me.where("smith");
    EXPECT_EQ(*seen, me.id());
  }
  static int handle(echo m) { return m.n; }
  pid* seen;
};
task<> starts_by_name(self& me, pid* seen) {
  spawn_options options{.name = "smith", .link = true};
  const auto made = co_await start<knows_its_name>(me, options, seen);
  EXPECT_TRUE(made);
}
TEST(server_start_name, is_there_when_init_runs) {
  pid seen;
  sim::world w{1};
  w.add_node().rt().spawn(starts_by_name, &seen);
  EXPECT_TRUE(w.settle());
  EXPECT_TRUE(seen);
}

// ---- continue

TYPED_TEST(server_start, continue_runs_before_any_mail_that_waits) {
  workshop<TypeParam> shop;
  shop.start({.on_continue = "ok", .mail_in_init = 2});
  std::erase(shop.book.all, "started");
  EXPECT_EQ(shop.book.take(), (lines{"init", "continue", "note 1", "note 2"}));
}

TYPED_TEST(server_start, continue_may_ask_for_itself_again) {
  workshop<TypeParam> shop;
  shop.start({.on_continue = "again", .mail_in_init = 1});
  std::erase(shop.book.all, "started");
  EXPECT_EQ(shop.book.take(), (lines{"init", "continue", "continue", "note 1"}));
}

TYPED_TEST(server_start, a_continue_that_fails_is_no_failed_start) {
  workshop<TypeParam> shop;
  shop.start({.on_continue = "throw"});
  ASSERT_TRUE(shop.started);
  EXPECT_TRUE(*shop.started) << shop.started->error();
  EXPECT_FALSE(shop.alive());
  EXPECT_TRUE(shop.book.has("terminate error: std::runtime_error: not now"));
  EXPECT_TRUE(shop.book.has("starter: exited error: std::runtime_error: not now"));
}

TYPED_TEST(server_start, a_continue_that_stops_runs_terminate_once) {
  workshop<TypeParam> shop;
  shop.start({.on_continue = "stop", .mail_in_init = 1});
  ASSERT_TRUE(shop.started);
  EXPECT_TRUE(*shop.started);
  EXPECT_FALSE(shop.alive());
  EXPECT_EQ(std::ranges::count(shop.book.all, "terminate shutdown"), 1);
  EXPECT_FALSE(shop.book.has("note 1"));
}

TYPED_TEST(server_start, a_handler_may_ask_for_continue_before_the_mail_behind_it) {
  workshop<TypeParam> shop;
  shop.start();
  shop.book.take();
  shop.rt().template cast<go_on>(shop.server);
  shop.rt().template cast<note>(shop.server, "behind");
  shop.settle();
  EXPECT_EQ(shop.book.take(), (lines{"continue", "note behind"}));
}

TEST(server_start_waiting, a_continue_that_waits_does_not_hold_up_the_starter_but_the_mail) {
  workshop<waiting> shop;
  shop.start({.on_continue = "hang", .mail_in_init = 1});
  EXPECT_EQ(shop.book.take(), (lines{"init", "started"}));
  shop.pass(1h + a_tick);
  EXPECT_EQ(shop.book.take(), (lines{"continue", "note 1"}));
}

// ---- starts that take too long

TEST(server_start_waiting, an_init_that_takes_too_long_is_killed) {
  workshop<waiting> shop;
  shop.start({.init = "hang"}, {.name = "smith", .within = 2s});
  EXPECT_FALSE(shop.started);
  shop.pass(2s - a_tick);
  EXPECT_FALSE(shop.started);
  EXPECT_TRUE(shop.rt().where("smith"));
  shop.pass(2 * a_tick);
  ASSERT_TRUE(shop.started);
  ASSERT_FALSE(*shop.started);
  EXPECT_EQ(shop.started->error().code(), errc::timeout);
  EXPECT_FALSE(shop.rt().where("smith"));
  shop.pass(2h);
  EXPECT_EQ(shop.book.take(), (lines{"not started"})) << "and no exited is left behind";
}

TEST(server_start_waiting, a_starter_that_does_not_trap_survives_a_start_that_takes_too_long) {
  workshop<waiting> shop;
  shop.start({.init = "hang"}, {.traps = false, .within = 2s});
  shop.pass(2s + a_tick);
  EXPECT_EQ(shop.starter_ended, std::nullopt) << "it unlinks before it kills";
  ASSERT_TRUE(shop.started);
  EXPECT_EQ(shop.started->error().code(), errc::timeout);
}

TEST(server_start_waiting, an_init_in_time_leaves_no_limit_behind) {
  workshop<waiting> shop;
  shop.start({}, {.within = 2s});
  EXPECT_TRUE(*shop.started);
  shop.pass(1h);
  EXPECT_TRUE(shop.alive());
}

TEST(server_start_waiting, an_order_to_exit_waits_until_init_is_over) {
  workshop<waiting> shop;
  shop.start({.init = "hang"});
  shop.rt().exit(shop.rt().info(shop.starter)->links.at(0), exit_reason::shutdown());
  shop.pass(1h - a_tick);
  EXPECT_FALSE(shop.started);
  shop.pass(2 * a_tick);
  EXPECT_EQ(shop.book.take(), (lines{"init", "started", "exited shutdown"}));
}

// ---- from plain threads

TEST(server_start_from_a_thread, waits_for_init) {
  diary book;
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto made = start<waiting>(rt, {.name = "smith"}, &book, settings{});
  ASSERT_TRUE(made);
  EXPECT_EQ(rt.where("smith"), made->id());
  EXPECT_EQ(rt.call(made->call<echo>(3)), 3);
  EXPECT_EQ(start<waiting>(rt, {.name = "smith"}, &book, settings{}).error().code(), errc::name_taken);
  EXPECT_TRUE(stop(rt, *made));
  EXPECT_EQ(book.take(), (lines{"init", "terminate normal"}));
  EXPECT_EQ(stop(rt, *made).error().code(), errc::noproc);
  EXPECT_EQ(start<plain>(rt, &book, settings{.init = "fail"}).error(), (error{errc::invalid, "refused"}));
  EXPECT_EQ(start<plain>(rt, &book, settings{.init = "ignore"}).error().code(), errc::ignored);
}

TEST(server_start_from_a_thread, kills_a_server_that_takes_longer_than_its_limit) {
  diary book;
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto made = start<waiting>(rt, {.name = "smith", .within = 1ms}, &book, settings{.init = "hang"});
  EXPECT_EQ(made.error().code(), errc::timeout);
  EXPECT_EQ(rt.where("smith"), pid{});
}

TEST(server_start_from_a_thread, has_no_parent_to_link_to) {
  diary book;
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto made = start<waiting>(rt, {.label = "smith", .link = true}, &book, settings{});
  ASSERT_TRUE(made);
  const auto seen = rt.info(made->id());
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->links.empty());
  EXPECT_EQ(seen->label, "smith");
}

}  // namespace
