// How supervisors start: specs that are refused, children that say no.
#include <gtest/gtest.h>

#include "family.hpp"

namespace trees {

using namespace coppice;

struct branch {
  static supervisor_spec init(family* f, const std::string& id) { return {.children = {f->child(id)}}; }
};
struct perhaps {
  static std::optional<supervisor_spec> init(bool wanted) {
    if (!wanted) return std::nullopt;
    return supervisor_spec{};
  }
};
/// Makes its spec itself, and counts how often it is asked for it.
struct inquired {
  static coppice::child_spec child_spec(family* f, int* times) { return f->child("ask " + std::to_string(++*times)); }
};
struct inquiring {
  static supervisor_spec init(family* f, int* times) { return {.children = {child<inquired>(f, times)}}; }
};
struct cursed {
  static constexpr child_defaults supervision{.id = "the cursed", .restart = restart::temporary};
  static supervisor_spec init() { throw std::runtime_error{"no plan"}; }
};

}  // namespace trees

namespace {

using namespace coppice;
using namespace trees;

bool says(const error& e, std::string_view part) { return e.to_string().find(part) != std::string::npos; }

// ---- specs that are refused

void expect_refused(supervisor_spec spec, errc code, std::string_view field) {
  family f;
  EXPECT_FALSE(check(spec)) << field;
  const auto started = f.start(std::move(spec));
  ASSERT_FALSE(started) << field;
  EXPECT_EQ(started.error().code(), code) << started.error();
  EXPECT_TRUE(says(started.error(), field)) << started.error();
  EXPECT_EQ(f.book.take(), lines{}) << "nothing was started";
}

TEST(supervisor_start, refuses_settings_of_its_own_that_make_no_sense) {
  expect_refused({.strategy = static_cast<strategy>(7)}, errc::invalid, "strategy");
  expect_refused({.limit = {.restarts = -1, .within = 5s}}, errc::invalid, "limit.restarts is -1");
  expect_refused({.limit = {.restarts = 1, .within = 0s}}, errc::invalid, "limit.within is 0s");
  expect_refused({.limit = {.restarts = 1, .within = -1s}}, errc::invalid, "limit.within is -1s");
  expect_refused({.auto_shutdown = static_cast<auto_shutdown>(7)}, errc::invalid, "auto_shutdown");
  expect_refused({.children = {}, .abandon_after = 0s}, errc::invalid, "abandon_after");
}

TEST(supervisor_start, refuses_children_that_make_no_sense_before_any_is_started) {
  family f;
  expect_refused({.children = {f.child("a"), f.child("b"), f.child("a")}}, errc::duplicate_id, "'a'");
  expect_refused({.children = {f.child("a"), {}}}, errc::invalid, "id");
  expect_refused({.children = {f.child("a"), {.id = "b"}}}, errc::invalid, "'b': start");
  expect_refused({.children = {f.child("a"), f.child("b", {.shutdown = -1s})}}, errc::invalid, "'b': shutdown");
  expect_refused({.children = {f.child("a", {.restart = restart::transient, .significant = true})}},
                 errc::bad_combination, "'a': significant");
  expect_refused({.auto_shutdown = auto_shutdown::any_significant, .children = {f.child("a", {.significant = true})}},
                 errc::bad_combination, "'a': significant");
}

TEST(supervisor_start, looks_at_its_own_settings_before_its_children) {
  expect_refused({.limit = {.restarts = -1, .within = 5s}, .children = {{}}}, errc::invalid, "limit.restarts");
}

task<> starts_without_trapping(self& me, supervisor_spec spec, bool* went_on) {
  const spawn_options linked{.link = true};
  const auto made = co_await start<supervisor>(me, linked, std::move(spec));
  *went_on = true;
  EXPECT_FALSE(made);
}
task<> watches_a_starter(self& me, supervisor_spec spec, bool* went_on, exit_reason* why) {
  me.spawn_monitor(starts_without_trapping, std::move(spec), went_on);
  const down d = co_await me.receive<down>();
  *why = d.reason;
}
TEST(supervisor_start, that_fails_takes_a_caller_with_it_that_does_not_trap) {
  family f;
  bool went_on = false;
  exit_reason why;
  f.book.starts["a"] = {"fail"};
  f.rt().spawn(watches_a_starter, supervisor_spec{.children = {f.child("a")}}, &went_on, &why);
  f.settle();
  EXPECT_FALSE(went_on);
  EXPECT_EQ(why.what(), exit_reason::kind::shutdown) << why;
  EXPECT_NE(why.text().find("'a'"), std::string_view::npos) << why;
  f.rt().spawn(watches_a_starter, supervisor_spec{.limit = {.restarts = -1}}, &went_on, &why);
  f.settle();
  EXPECT_FALSE(went_on);
  EXPECT_EQ(why.what(), exit_reason::kind::error) << why;
}

task<> starts_and_looks(self& me, supervisor_spec spec, bool* stray) {
  me.trap_exits();
  const spawn_options linked{.link = true};
  const auto made = co_await start<supervisor>(me, linked, std::move(spec));
  EXPECT_FALSE(made);
  const auto m = co_await me.receive<exited, down>(1s);
  *stray = !std::holds_alternative<timed_out>(m);
}
TEST(supervisor_start, that_fails_leaves_no_exited_behind) {
  family f;
  bool stray = true;
  f.book.starts["a"] = {"fail"};
  f.rt().spawn(starts_and_looks, supervisor_spec{.children = {f.child("a")}}, &stray);
  f.pass(2s);
  EXPECT_FALSE(stray);
}

// ---- children that say no

TEST(supervisor_start, that_fails_stops_those_before_in_reverse_and_starts_none_after) {
  for (const char* how : {"fail", "refuse", "throw"}) {
    family f;
    f.book.starts["c"] = {how};
    const auto started = f.start({.children = {f.child("a"), f.child("b"), f.child("c"), f.child("d")}});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code(), errc::start_failed);
    EXPECT_TRUE(says(started.error(), "child 'c' could not be started")) << started.error();
    EXPECT_EQ(f.book.take(),
              (lines{"start a", "start b", std::string{how} + " c", "stop b shutdown", "stop a shutdown"}));
    ASSERT_NE(started.error().cause(), nullptr);
  }
}

TEST(supervisor_start, that_fails_tells_why_the_child_did) {
  family f;
  f.book.starts["a"] = {"fail", "refuse", "throw"};
  EXPECT_TRUE(says(f.start({.children = {f.child("a")}}).error(), "error: failed"));
  EXPECT_EQ(f.start({.children = {f.child("a")}}).error().root(), (error{errc::invalid, "refused"}));
  EXPECT_TRUE(says(f.start({.children = {f.child("a")}}).error(), "out of luck"));
  EXPECT_TRUE(f.start({.children = {f.child("a")}}));
}

TEST(supervisor_start, of_a_tree_tells_the_whole_way_down_to_the_failure) {
  family f;
  f.book.starts["leaf"] = {"refuse"};
  supervisor_spec branch{.children = {f.child("leaf")}};
  const auto started = f.start({.children = {child<supervisor>(branch).with({.id = "branch"})}});
  ASSERT_FALSE(started);
  EXPECT_TRUE(says(started.error(), "'branch'")) << started.error();
  EXPECT_TRUE(says(started.error(), "'leaf'")) << started.error();
  EXPECT_EQ(started.error().root(), (error{errc::invalid, "refused"}));
}

TEST(supervisor_start, keeps_a_child_that_has_nothing_to_do_as_undefined) {
  family f;
  f.book.starts["b"] = {"ignore"};
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b"), f.child("c")}}));
  EXPECT_EQ(f.state(), "a:running b:undefined c:running");
  EXPECT_EQ(f.ask(count_children(f.tree)), (child_counts{.specs = 3, .active = 2, .supervisors = 0, .workers = 3}));
  EXPECT_TRUE(f.ask(restart_child(f.tree, "b")));
  EXPECT_EQ(f.state(), "a:running b:running c:running");
}

TEST(supervisor_start, forgets_a_temporary_child_that_has_nothing_to_do) {
  family f;
  f.book.starts["b"] = {"ignore", "ignore"};
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.restart = restart::temporary}), f.child("c")}}));
  EXPECT_EQ(f.state(), "a:running c:running");
  EXPECT_EQ(f.ask(start_child(f.tree, f.child("b", {.restart = restart::temporary}))), pid{});
  EXPECT_EQ(f.state(), "a:running c:running");
  EXPECT_EQ(f.ask(count_children(f.tree))->specs, 2U);
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(supervisor_start, waits_for_each_child_before_it_starts_the_next) {
  family f;
  f.book.starts["a"] = {"hang"};
  EXPECT_FALSE(f.start({.children = {f.child("a"), f.child("b")}}));
  EXPECT_EQ(f.book.take(), (lines{"hang a"}));
  f.pass(1h + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"start a", "start b"}));
}

TEST(supervisor_start, keeps_the_order_of_the_list_whatever_the_ids) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("m"), f.child("z"), f.child("a")}}));
  ASSERT_TRUE(f.ask(start_child(f.tree, f.child("k"))));
  EXPECT_EQ(f.book.take(), (lines{"start m", "start z", "start a", "start k"}));
  EXPECT_EQ(f.state(), "m:running z:running a:running k:running");
  f.stop();
  EXPECT_EQ(f.book.take(), (lines{"stop k shutdown", "stop a shutdown", "stop z shutdown", "stop m shutdown"}));
}

TEST(supervisor_start, without_children_is_fine) {
  family f;
  ASSERT_TRUE(f.start({}));
  EXPECT_EQ(f.state(), "");
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

// ---- start_within

TEST(start_within, gives_up_a_start_that_takes_too_long) {
  family f;
  f.book.starts["b"] = {"hang"};
  EXPECT_FALSE(f.start({.children = {f.child("a"), f.child("b", {.start_within = 2s})}}));
  f.pass(2s - a_tick);
  EXPECT_EQ(f.book.take(), (lines{"start a", "hang b"}));
  f.pass(2 * a_tick);
  EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"}));
  f.pass(2h);
  EXPECT_EQ(f.book.take(), lines{}) << "the one that hung was killed";
}

TEST(start_within, counts_as_a_failed_restart) {
  family f;
  ASSERT_TRUE(f.start(
      {.limit = {.restarts = 2, .within = 1h}, .children = {f.child("a"), f.child("b", {.start_within = 2s})}}));
  f.book.starts["b"] = {"hang"};
  f.crash("b");
  f.pass(2s + a_tick);
  EXPECT_EQ(f.state(), "a:running b:running");
  EXPECT_EQ(f.ask(which_child(f.tree, "b"))->restarts, 2U);
}

TEST(start_within, is_an_error_of_a_call) {
  family f;
  ASSERT_TRUE(f.start({}));
  f.book.starts["a"] = {"hang"};
  const auto got = f.begin(start_child(f.tree, f.child("a", {.start_within = 2s})));
  f.pass(2s + a_tick);
  ASSERT_TRUE(*got);
  ASSERT_FALSE(**got);
  EXPECT_EQ((*got)->error().root().code(), errc::timeout);
  EXPECT_EQ(f.state(), "");
}

// ---- supervisors in the form of a type

TEST(supervisor_type, is_a_supervisor_child_with_its_init_run_at_each_start) {
  family f;
  const child_spec spec = child<branch>(&f, "leaf");
  EXPECT_EQ(spec.id, "branch");
  EXPECT_EQ(spec.type, child_type::supervisor);
  EXPECT_EQ(spec.shutdown, std::nullopt) << "the default of supervisors: infinity";
  ASSERT_TRUE(f.start({.children = {spec}}));
  EXPECT_EQ(f.ask(get_childspec(f.tree, "branch"))->shutdown, shutdown::infinity());
  EXPECT_EQ(f.ask(count_children(f.tree)), (child_counts{.specs = 1, .active = 1, .supervisors = 1, .workers = 0}));
  const pid inner = f.ask(which_child(f.tree, "branch"))->who;
  f.book.take();
  f.rt().kill(inner);
  f.settle();
  EXPECT_TRUE(std::ranges::find(f.book.lines, "start leaf") != f.book.lines.end());
  EXPECT_EQ(f.state(), "branch:running");
}

TEST(supervisor_type, without_a_spec_is_ignored) {
  family f;
  ASSERT_TRUE(
      f.start({.children = {child<perhaps>(false).with({.id = "no"}), child<perhaps>(true).with({.id = "yes"})}}));
  EXPECT_EQ(f.state(), "no:undefined yes:running");
}

TEST(supervisor_type, asks_the_types_of_its_children_for_their_specs_at_each_start) {
  family f;
  int times = 0;
  const child_spec spec = child<inquiring>(&f, &times).with({.id = "below"});
  EXPECT_EQ(times, 0) << "not before it starts";
  ASSERT_TRUE(f.start({.limit = {.restarts = 3}, .children = {spec}}));
  EXPECT_EQ(f.book.take(), (lines{"start ask 1"}));
  f.rt().kill(f.ask(which_child(f.tree, "below"))->who);
  f.settle();
  EXPECT_EQ(f.book.take().back(), "start ask 2");
}

TEST(supervisor_function, makes_the_spec_at_each_start) {
  family f;
  int times = 0;
  const auto make = [&f, &times] { return supervisor_spec{.children = {child<inquired>(&f, &times)}}; };
  ASSERT_TRUE(f.start({.limit = {.restarts = 3}, .children = {child<supervisor>(make).with({.id = "below"})}}));
  f.rt().kill(f.ask(which_child(f.tree, "below"))->who);
  f.settle();
  EXPECT_EQ(f.book.take().back(), "start ask 2");
}

TEST(supervisor_type, whose_init_throws_is_a_failed_start) {
  family f;
  const child_spec spec = child<cursed>();
  EXPECT_EQ(spec.id, "the cursed");
  EXPECT_EQ(spec.restart, restart::temporary);
  const auto started = f.start({.children = {f.child("a"), spec}});
  ASSERT_FALSE(started);
  EXPECT_TRUE(says(started.error(), "no plan")) << started.error();
  EXPECT_EQ(f.book.take(), (lines{"start a", "stop a shutdown"}));
}

// ---- names

TEST(supervised_name, belongs_to_the_child_and_to_the_next_one) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.name = "smith"})}}));
  EXPECT_EQ(f.rt().where("smith"), f.who("a"));
  const pid before = f.who("a");
  f.crash("a");
  EXPECT_NE(f.who("a"), before);
  EXPECT_EQ(f.rt().where("smith"), f.who("a"));
}

struct go_away {};
task<> squatter(self& me) { co_await me.receive<go_away>(); }
TEST(supervised_name, that_is_taken_by_somebody_else_is_a_failed_start) {
  family f;
  const auto other = f.rt().spawn({.name = "smith"}, squatter);
  ASSERT_TRUE(other);
  const auto started = f.start({.children = {f.child("a", {.name = "smith"})}});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().root().code(), errc::name_taken) << started.error();
  ASSERT_TRUE(f.start({}));
  const auto got = f.ask(start_child(f.tree, f.child("a", {.name = "smith"})));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().root().code(), errc::name_taken) << got.error();
  EXPECT_EQ(f.state(), "");
  EXPECT_TRUE(f.rt().alive(*other));
}

// ---- a first start that is retried

const child_options patient{.backoff = backoff{.first = 1s}, .retry_first_start = true};

TEST(first_start, that_fails_is_not_retried_because_of_a_backoff_alone) {
  family f;
  f.book.starts["a"] = {"fail"};
  EXPECT_FALSE(f.start({.children = {f.child("a", {.backoff = backoff{.first = 1s}})}}));
  f.pass(1min);
  EXPECT_EQ(f.book.take(), (lines{"fail a"}));
}

TEST(first_start, is_retried_after_the_backoff_and_the_start_of_the_supervisor_waits_for_it) {
  family f;
  f.book.starts["b"] = {"fail", "throw", "ok"};
  const supervisor_spec spec{.limit = {.restarts = 2, .within = 1min},
                             .children = {f.child("a"), f.child("b", patient), f.child("c")}};
  EXPECT_EQ(f.start(spec).error().code(), errc::timeout) << "it has not started yet";
  EXPECT_EQ(f.book.take(), (lines{"start a", "fail b"}));
  f.pass(999ms);
  EXPECT_EQ(f.book.take(), lines{});
  f.pass(1ms + a_tick);
  EXPECT_EQ(f.book.take(), (lines{"throw b"}));
  f.pass(1900ms);
  EXPECT_EQ(f.book.take(), lines{}) << "the second wait is twice as long";
  f.pass(100ms + 2 * a_tick);
  EXPECT_EQ(f.book.take(), (lines{"start b", "start c"}));
  ASSERT_TRUE(f.catch_up());
  const auto history = f.ask(exit_history(f.tree, "b"));
  ASSERT_EQ(history->size(), 2U);
  EXPECT_EQ(history->front().action, exit_action::retried);
  EXPECT_EQ(f.ask(which_child(f.tree, "b"))->restarts, 2U);
}

TEST(first_start, that_succeeds_at_a_retry_is_reported_as_the_first) {
  family f;
  f.listen();
  f.book.starts["a"] = {"fail", "throw", "ok"};
  (void)f.start({.limit = {.restarts = 10, .within = 1min}, .children = {f.child("a", patient)}});
  f.pass(1min);
  ASSERT_TRUE(f.catch_up());
  f.crash("a");
  f.pass(1min);
  using kind = supervisor_event::kind;
  std::vector<kind> seen;
  for (const supervisor_event& e : f.events) seen.push_back(e.what);
  EXPECT_EQ(seen, (std::vector<kind>{kind::start_failed, kind::start_failed, kind::started, kind::exited, kind::delayed,
                                     kind::restarted}));
  EXPECT_EQ(f.events[2].text, "child 'a' started");
  EXPECT_EQ(f.events[5].text, "child 'a' started again");
}

TEST(first_start, is_retried_only_as_often_as_the_limit_allows) {
  family f;
  f.book.starts["b"] = always("fail");
  (void)f.start({.limit = {.restarts = 2, .within = 1min}, .children = {f.child("a"), f.child("b", patient)}});
  f.pass(1min);
  EXPECT_EQ(f.book.take(), (lines{"start a", "fail b", "fail b", "fail b", "stop a shutdown"}));
  const auto failed = f.catch_up();
  EXPECT_EQ(failed.error().code(), errc::start_failed);
  EXPECT_TRUE(says(failed.error(), "child 'b' could not be started")) << failed.error();
}

TEST(first_start, that_waits_is_killed_when_the_start_of_its_supervisor_takes_too_long) {
  family f;
  f.book.starts["b"] = always("fail");
  const supervisor_spec below{.limit = {.restarts = 1000, .within = 1s},
                              .children = {f.child("a"), f.child("b", patient)}};
  (void)f.start({.children = {child<supervisor>(below).with({.id = "below", .start_within = 10s})}});
  f.pass(11s);
  const auto failed = f.catch_up();
  ASSERT_FALSE(failed);
  EXPECT_TRUE(says(failed.error(), "did not start within 10s")) << failed.error();
  f.book.take();
  f.pass(1h);
  EXPECT_EQ(f.book.take(), lines{});
}

TEST(first_start, of_a_child_that_is_added_by_a_call_is_not_retried) {
  family f;
  ASSERT_TRUE(f.start({}));
  f.book.starts["a"] = {"fail"};
  EXPECT_EQ(f.ask(start_child(f.tree, f.child("a", patient))).error().code(), errc::start_failed);
  f.pass(1min);
  EXPECT_EQ(f.book.take(), (lines{"fail a"}));
}

TEST(first_start, without_a_backoff_cannot_be_retried) {
  family f;
  expect_refused({.children = {f.child("a", {.retry_first_start = true})}}, errc::bad_combination,
                 "'a': retry_first_start needs a backoff");
}

}  // namespace
