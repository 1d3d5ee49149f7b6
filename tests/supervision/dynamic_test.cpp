// Supervisors whose children come and go.
#include <gtest/gtest.h>

#include <coppice/supervision/dynamic_supervisor.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

/// A family under a dynamic supervisor, which is the only child of the tree.
struct dynamic_family : family {
  explicit dynamic_family(dynamic_supervisor_spec spec = {}, restart_limit above = {.restarts = 0}) {
    EXPECT_TRUE(start({.limit = above, .children = {coppice::child<dynamic_supervisor>(spec).with({.id = "pool"})}}));
    find_pool();
  }
  void find_pool() { pool = ref<dynamic_supervisor>{ask(which_child(tree, "pool"))->who}; }
  result<pid> add(const std::string& id, const child_options& how = {}, bool trap = true, bool stubborn = false) {
    return ask(start_child(pool, child(id, how, trap, stubborn)));
  }
  std::string pool_state() {
    std::string text;
    const auto all = ask(which_children(pool));
    if (!all) return "down";
    for (const child_info& c : *all) text += (text.empty() ? "" : " ") + c.id + ":" + std::string{to_string(c.state)};
    return text;
  }
  ref<dynamic_supervisor> pool;
};

TEST(dynamic, starts_without_children_and_takes_any_number) {
  dynamic_family f;
  EXPECT_EQ(f.pool_state(), "");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(f.add("w" + std::to_string(i)));
  EXPECT_EQ(*f.ask(count_children(f.pool)), (child_counts{.specs = 20, .active = 20, .workers = 20}));
}

TEST(dynamic, ids_need_not_be_unique) {
  dynamic_family f;
  const auto one = f.add("same");
  const auto two = f.add("same");
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
  EXPECT_EQ(f.pool_state(), "same:running same:running");
}

TEST(dynamic, refuses_more_than_its_most_children) {
  dynamic_family f{{.max_children = 2}};
  EXPECT_TRUE(f.add("a"));
  EXPECT_TRUE(f.add("b"));
  EXPECT_EQ(f.add("c").error().code(), errc::capacity);
  EXPECT_TRUE(f.ask(terminate_child(f.pool, f.who("a"))));
  EXPECT_TRUE(f.add("c"));
}

TEST(dynamic, a_child_being_restarted_counts_among_the_most) {
  dynamic_family f{{.limit = {.restarts = 5}, .max_children = 1}};
  ASSERT_TRUE(f.add("a", {.backoff = backoff{.first = 1s}}));
  f.crash("a");
  EXPECT_EQ(f.pool_state(), "a:restarting");
  EXPECT_EQ(f.add("b").error().code(), errc::capacity);
}

TEST(dynamic, temporary_children_are_forgotten_however_they_end) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::error("x")}) {
    dynamic_family f;
    ASSERT_TRUE(f.add("a", {.restart = restart::temporary}));
    f.finish("a", why);
    EXPECT_EQ(f.pool_state(), "") << why;
  }
}

TEST(dynamic, transient_children_are_restarted_only_when_they_end_abnormally) {
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::shutdown("detail")}) {
    dynamic_family f;
    ASSERT_TRUE(f.add("a", {.restart = restart::transient}));
    f.finish("a", why);
    EXPECT_EQ(f.pool_state(), "") << why;
  }
  dynamic_family f;
  ASSERT_TRUE(f.add("a", {.restart = restart::transient}));
  f.crash("a");
  EXPECT_EQ(f.pool_state(), "a:running");
}

TEST(dynamic, permanent_children_are_restarted_with_their_own_arguments) {
  dynamic_family f{{.limit = {.restarts = 5}}};
  ASSERT_TRUE(f.add("a"));
  ASSERT_TRUE(f.add("b"));
  const pid before = f.who("a");
  f.book.take();
  f.finish("a", exit_reason::normal());
  EXPECT_EQ(f.book.take(), (lines{"stop a normal", "start a"}));
  EXPECT_NE(f.who("a"), before);
  EXPECT_EQ(f.pool_state(), "a:running b:running");
}

TEST(dynamic, a_start_that_fails_or_is_ignored_leaves_nothing_behind) {
  dynamic_family f;
  f.book.starts["a"] = {"fail", "ignore", "throw"};
  EXPECT_EQ(f.add("a").error().code(), errc::start_failed);
  const auto ignored = f.add("a");
  ASSERT_TRUE(ignored);
  EXPECT_FALSE(*ignored);
  EXPECT_EQ(f.add("a").error().code(), errc::start_failed);
  EXPECT_EQ(*f.ask(count_children(f.pool)), child_counts{});
}

TEST(dynamic, a_restart_that_is_ignored_forgets_the_child) {
  dynamic_family f;
  f.book.starts["a"] = {"ok", "ignore"};
  ASSERT_TRUE(f.add("a"));
  f.crash("a");
  EXPECT_EQ(f.pool_state(), "");
}

TEST(dynamic, a_failed_restart_is_tried_again_until_the_limit) {
  dynamic_family f{{.limit = {.restarts = 3}}};
  f.book.starts["a"] = {"ok", "fail", "fail", "ok"};
  ASSERT_TRUE(f.add("a"));
  f.crash("a");
  EXPECT_EQ(f.pool_state(), "a:running");
  f.book.starts["a"] = {"fail", "fail", "fail", "fail"};
  f.crash("a");
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(dynamic, giving_up_stops_the_others) {
  dynamic_family f{{.limit = {.restarts = 0}}};
  ASSERT_TRUE(f.add("a"));
  ASSERT_TRUE(f.add("b"));
  f.book.take();
  f.crash("a");
  EXPECT_EQ(f.book.take(), (lines{"stop a error", "stop b shutdown"}));
  EXPECT_TRUE(f.ended());
}

TEST(dynamic, terminate_forgets_the_child_and_a_second_time_finds_nobody) {
  dynamic_family f;
  const auto who = f.add("a");
  EXPECT_TRUE(f.ask(terminate_child(f.pool, *who)));
  EXPECT_EQ(f.ask(terminate_child(f.pool, *who)).error().code(), errc::not_found);
  EXPECT_EQ(f.pool_state(), "");
}

TEST(dynamic, a_restarting_child_is_terminated_by_its_last_pid) {
  dynamic_family f{{.limit = {.restarts = 5}}};
  ASSERT_TRUE(f.add("a", {.backoff = backoff{.first = 1s}}));
  const pid last = f.who("a");
  f.crash("a");
  EXPECT_TRUE(f.ask(terminate_child(f.pool, last)));
  EXPECT_EQ(f.pool_state(), "");
  f.book.take();
  f.pass(10s);
  EXPECT_EQ(f.book.take(), lines{});
}

TEST(dynamic, a_stop_asks_all_children_at_once) {
  dynamic_family f;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(f.add("w" + std::to_string(i), {.shutdown = 100ms}, true, true));
  ASSERT_TRUE(f.add("polite"));
  f.stop();
  EXPECT_FALSE(f.ended());
  f.pass(90ms);
  EXPECT_FALSE(f.ended());
  f.pass(20ms);  // not five times as long
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(dynamic, a_stop_waits_for_each_as_long_as_its_own_spec_says) {
  dynamic_family f;
  ASSERT_TRUE(f.add("quick", {.shutdown = 50ms}, true, true));
  ASSERT_TRUE(f.add("slow", {.shutdown = 500ms}, true, true));
  ASSERT_TRUE(f.add("brutal", {.shutdown = shutdown::brutal_kill()}, true, true));
  f.stop();
  EXPECT_FALSE(f.rt().alive(f.who("brutal")));
  EXPECT_TRUE(f.rt().alive(f.who("quick")));
  f.pass(60ms);
  EXPECT_FALSE(f.rt().alive(f.who("quick")));
  EXPECT_TRUE(f.rt().alive(f.who("slow")));
  f.pass(500ms);
  EXPECT_TRUE(f.ended());
}

TEST(dynamic, a_child_that_unlinked_itself_is_stopped_all_the_same) {
  dynamic_family f;
  const auto who = f.ask(start_child(f.pool, coppice::child(+[](self& me) -> task<> {
                                               me.unlink(me.parent());
                                               co_await me.sleep(1h);
                                             }).with({.id = "loner"})));
  ASSERT_TRUE(who);
  f.settle();
  f.stop();
  EXPECT_TRUE(f.ended());
  EXPECT_FALSE(f.rt().alive(*who));
}

TEST(dynamic, refuses_children_that_make_no_sense) {
  dynamic_family f;
  EXPECT_EQ(f.add("a", {.restart = restart::transient, .significant = true}).error().code(), errc::bad_combination);
  EXPECT_EQ(f.add("a", {.shutdown = -1s}).error().code(), errc::invalid);
  EXPECT_EQ(f.ask(start_child(f.pool, child_spec{.id = "empty"})).error().code(), errc::invalid);
}

TEST(dynamic, limits_can_be_changed_while_it_runs) {
  dynamic_family f{{.limit = {.restarts = 0}, .max_children = 1}};
  ASSERT_TRUE(f.add("a"));
  EXPECT_EQ(f.ask(upgrade(f.pool, dynamic_supervisor_spec{.limit = {.restarts = -1}})).error().code(), errc::invalid);
  EXPECT_TRUE(f.ask(upgrade(f.pool, dynamic_supervisor_spec{.limit = {.restarts = 5}, .max_children = 3})));
  ASSERT_TRUE(f.add("b"));
  f.crash("a");
  EXPECT_EQ(f.pool_state(), "a:running b:running");
}

TEST(dynamic, a_template_puts_the_common_arguments_first_also_at_a_restart) {
  dynamic_family f{{.limit = {.restarts = 5}}};
  const auto workers = child_template<worker>(&f.book).with({.shutdown = 1s});
  ASSERT_TRUE(f.ask(start_child(f.pool, workers(std::string{"made"}, true, false))));
  f.crash("made");
  EXPECT_EQ(f.pool_state(), "worker:running");
  EXPECT_EQ(f.book.take(), (lines{"start made", "stop made error", "start made"}));
}

TEST(dynamic, remembers_how_a_child_ended) {
  dynamic_family f{{.limit = {.restarts = 5}}};
  ASSERT_TRUE(f.add("a"));
  f.crash("a");
  f.kill("a");
  const auto history = f.ask(exit_history(f.pool, f.who("a")));
  ASSERT_TRUE(history);
  ASSERT_EQ(history->size(), 2U);
  EXPECT_EQ((*history)[0].reason.text(), "crash");
  EXPECT_EQ((*history)[1].reason, exit_reason::killed());
  EXPECT_EQ((*history)[1].action, exit_action::restarted);
}

TEST(dynamic, many_temporary_children_cost_no_more_each) {
  dynamic_family f;
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(f.add("w" + std::to_string(i), {.restart = restart::temporary}));
  for (int i = 0; i < 3000; ++i) f.rt().kill(f.who("w" + std::to_string(i)));
  f.settle();
  EXPECT_EQ(*f.ask(count_children(f.pool)), child_counts{});
}

TEST(dynamic, a_stop_of_many_children_lets_others_run_meanwhile) {
  constexpr std::size_t many = 2000;
  dynamic_family f;
  for (std::size_t i = 0; i < many; ++i) ASSERT_TRUE(f.add("w" + std::to_string(i)));
  f.book.take();
  const auto stopped = f.begin(terminate_child(f.tree, "pool"));
  ASSERT_TRUE(f.until([&] { return !f.book.lines.empty(); }));
  ASSERT_TRUE(f.rt().freeze(f.pool.id()));
  f.settle();
  EXPECT_LT(f.book.lines.size(), many) << "it had not asked all of them when the first one ended";
  EXPECT_TRUE(f.rt().thaw(f.pool.id()));
  f.settle();
  EXPECT_EQ(f.book.lines.size(), many);
  EXPECT_TRUE(*stopped);
}

struct leave {};
/// Unlinks itself, and does not tell anybody of its end by a link.
struct unlinked {
  using protocol = coppice::protocol<leave>;
  static void init(self& me) { me.unlink(me.parent()); }
  static task<void> handle(leave, self& me) {
    me.stop();
    co_return;
  }
};

TEST(dynamic, a_stop_that_has_many_ends_to_look_at_misses_none) {
  dynamic_family f;
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(f.add(std::to_string(i), {.restart = restart::temporary}));
  ASSERT_TRUE(f.ask(start_child(f.pool, coppice::child<unlinked>().with({.restart = restart::temporary}))));
  f.book.starts["slow"] = {"hang"};
  const auto slow = f.begin(start_child(f.pool, f.child("slow", {.start_within = 1s})));
  f.settle();
  f.stop();  // waits for the start, and behind it come the ends of all the others
  for (int i = 0; i < 200; ++i) f.rt().kill(f.who(std::to_string(i)));
  f.pass(1min);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

}  // namespace
