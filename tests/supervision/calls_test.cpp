// What supervisors are asked, and what they answer.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

error_code code_of(const auto& answer) { return answer ? errc{} : answer.error().code(); }

TEST(start_child_call, adds_a_child_behind_the_others) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const auto who = f.ask(start_child(f.tree, f.child("b")));
  ASSERT_TRUE(who);
  EXPECT_EQ(*who, f.who("b"));
  EXPECT_EQ(f.state(), "a:running b:running");
}

TEST(start_child_call, refuses_an_id_that_is_there) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b")}}));
  const auto running = f.ask(start_child(f.tree, f.child("a")));
  EXPECT_EQ(code_of(running), supervision_errc::already_started);
  EXPECT_NE(running.error().text().find(to_string(f.who("a"))), std::string_view::npos) << running.error();
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "b")));
  EXPECT_EQ(code_of(f.ask(start_child(f.tree, f.child("b")))), supervision_errc::already_present);
  EXPECT_EQ(f.state(), "a:running b:undefined");
}

TEST(start_child_call, refuses_a_spec_that_makes_no_sense_without_harm) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  EXPECT_EQ(code_of(f.ask(start_child(f.tree, child_spec{}))), errc::invalid);
  EXPECT_EQ(code_of(f.ask(start_child(f.tree, child_spec{.id = "b"}))), errc::invalid);
  EXPECT_EQ(code_of(f.ask(start_child(f.tree, f.child("b", {.shutdown = -1s})))), errc::invalid);
  EXPECT_EQ(code_of(f.ask(start_child(f.tree, f.child("b", {.restart = restart::temporary, .significant = true})))),
            errc::bad_combination);
  EXPECT_EQ(f.state(), "a:running");
}

TEST(start_child_call, that_fails_leaves_nothing_behind_and_no_sibling_touched) {
  for (const auto how : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    family f;
    ASSERT_TRUE(f.start({.strategy = how, .children = {f.child("a"), f.child("b")}}));
    f.book.take();
    f.book.starts["c"] = {"fail", "throw", "refuse"};
    const auto failed = f.ask(start_child(f.tree, f.child("c")));
    EXPECT_EQ(failed.error(), (error{errc::start_failed, "child 'c' could not be started"}));
    EXPECT_EQ(failed.error().root(), (error{errc::start_failed, "error: failed"}))
        << "what the child said is the cause";
    EXPECT_EQ(code_of(f.ask(start_child(f.tree, f.child("c")))), errc::start_failed);
    EXPECT_EQ(f.ask(start_child(f.tree, f.child("c"))).error().root(), (error{errc::invalid, "refused"}));
    EXPECT_EQ(f.book.take(), (lines{"fail c", "throw c", "refuse c"}));
    EXPECT_EQ(f.state(), "a:running b:running");
    EXPECT_TRUE(f.ask(start_child(f.tree, f.child("c"))));
  }
}

TEST(start_child_call, of_one_that_has_nothing_to_do_gives_nobody) {
  family f;
  ASSERT_TRUE(f.start({}));
  f.book.starts["a"] = {"ignore"};
  EXPECT_EQ(f.ask(start_child(f.tree, f.child("a"))), pid{});
  EXPECT_EQ(f.state(), "a:undefined");
}

TEST(terminate_child_call, stops_it_and_keeps_its_place) {
  for (const auto how : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    family f;
    ASSERT_TRUE(f.start({.strategy = how, .children = {f.child("a"), f.child("b"), f.child("c")}}));
    f.book.take();
    EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
    EXPECT_EQ(f.book.take(), (lines{"stop a shutdown"})) << "no sibling is touched";
    EXPECT_TRUE(f.ask(terminate_child(f.tree, "a"))) << "twice is once";
    EXPECT_EQ(f.state(), "a:undefined b:running c:running");
    f.pass(1h);
    EXPECT_EQ(f.state(), "a:undefined b:running c:running");
  }
}

TEST(terminate_child_call, forgets_a_temporary_child) {
  family f;
  const child_spec t = f.child("t", {.restart = restart::temporary});
  ASSERT_TRUE(f.start({.children = {t}}));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "t")));
  EXPECT_EQ(code_of(f.ask(terminate_child(f.tree, "t"))), errc::not_found);
  EXPECT_TRUE(f.ask(start_child(f.tree, t))) << "and its id is free";
}

TEST(restart_child_call, starts_one_that_is_down) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b")}}));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  f.book.starts["a"] = {"fail", "ignore"};
  const auto failed = f.ask(restart_child(f.tree, "a"));
  EXPECT_EQ(failed.error(), (error{errc::start_failed, "child 'a' could not be started"}));
  EXPECT_EQ(failed.error().root(), (error{errc::start_failed, "error: failed"}));
  EXPECT_EQ(f.state(), "a:undefined b:running") << "a start that fails leaves it down";
  EXPECT_EQ(f.ask(restart_child(f.tree, "a")), pid{});
  const auto who = f.ask(restart_child(f.tree, "a"));
  ASSERT_TRUE(who);
  EXPECT_EQ(*who, f.who("a"));
  EXPECT_EQ(f.state(), "a:running b:running") << "at its old place";
  EXPECT_EQ(code_of(f.ask(restart_child(f.tree, "a"))), supervision_errc::running);
}

TEST(delete_child_call, forgets_one_that_is_down) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b"), f.child("c")}}));
  EXPECT_EQ(code_of(f.ask(delete_child(f.tree, "a"))), supervision_errc::running);
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_TRUE(f.ask(delete_child(f.tree, "a")));
  EXPECT_EQ(code_of(f.ask(delete_child(f.tree, "a"))), errc::not_found);
  EXPECT_EQ(code_of(f.ask(restart_child(f.tree, "a"))), errc::not_found);
  EXPECT_EQ(f.state(), "b:running c:running");
  EXPECT_TRUE(f.ask(start_child(f.tree, f.child("a"))));
  EXPECT_EQ(f.state(), "b:running c:running a:running") << "added anew it comes last";
}

TEST(calls_for_children, that_are_not_there_are_not_found) {
  family f;
  ASSERT_TRUE(f.start({}));
  EXPECT_EQ(code_of(f.ask(terminate_child(f.tree, "x"))), errc::not_found);
  EXPECT_EQ(code_of(f.ask(restart_child(f.tree, "x"))), errc::not_found);
  EXPECT_EQ(code_of(f.ask(delete_child(f.tree, "x"))), errc::not_found);
  EXPECT_EQ(code_of(f.ask(retry_now(f.tree, "x"))), errc::not_found);
  EXPECT_EQ(code_of(f.ask(which_child(f.tree, "x"))), errc::not_found);
  EXPECT_EQ(code_of(f.ask(get_childspec(f.tree, "x"))), errc::not_found);
  EXPECT_EQ(code_of(f.ask(exit_history(f.tree, "x"))), errc::not_found);
  EXPECT_NE(f.ask(which_child(f.tree, "x")).error().text().find("'x'"), std::string_view::npos);
}

TEST(calls_to_a_supervisor, that_is_gone_are_errors) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  f.stop();
  EXPECT_EQ(code_of(f.ask(which_children(f.tree))), errc::noproc);
  EXPECT_EQ(code_of(f.ask(start_child(f.tree, f.child("b")))), errc::noproc);
  EXPECT_EQ(code_of(f.ask(terminate_child(f.tree, "a"))), errc::noproc);
  EXPECT_EQ(code_of(f.ask(count_children(ref<supervisor>{}))), errc::noproc);
}

TEST(calls_to_a_supervisor, that_is_busy_wait_as_long_as_it_takes) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = 1h}, true, true), f.child("b")}}));
  const auto stopped = f.begin(terminate_child(f.tree, "a"));
  f.settle();
  const auto counted = f.begin(count_children(f.tree));
  f.pass(30min);
  EXPECT_FALSE(*counted);
  f.pass(30min + a_tick);
  EXPECT_TRUE(**stopped);
  ASSERT_TRUE(*counted);
  EXPECT_EQ((*counted)->value().active, 1U);
}

TEST(calls_to_a_supervisor, that_ends_meanwhile_are_errors) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = 1min}, true, true)}}));
  const auto stopped = f.begin(terminate_child(f.tree, "a"));
  f.settle();
  const auto counted = f.begin(count_children(f.tree));
  f.settle();
  f.rt().kill(f.tree.id());
  f.settle();
  EXPECT_EQ((*stopped)->error().code(), errc::exited);
  EXPECT_EQ((*counted)->error().code(), errc::exited);
}

// ---- lists

TEST(which_children_call, tells_what_is_known_of_each) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 5, .within = 5s},
                       .auto_shutdown = auto_shutdown::all_significant,
                       .children = {f.child("a"), f.child("b", {.restart = restart::transient, .significant = true}),
                                    child<supervisor>(supervisor_spec{}).with({.id = "s"})}}));
  f.crash("a");
  f.pass(10s);
  const auto all = f.ask(which_children(f.tree));
  ASSERT_EQ(all->size(), 3U);
  const child_info& a = (*all)[0];
  EXPECT_EQ(a.id, "a");
  EXPECT_EQ(a.who, f.who("a"));
  EXPECT_EQ(a.state, child_state::running);
  EXPECT_EQ(a.type, child_type::worker);
  EXPECT_EQ(a.restart, restart::permanent);
  EXPECT_EQ(a.restarts, 1U);
  EXPECT_EQ(a.last_reason, exit_reason::error("crash"));
  EXPECT_GE(a.uptime, 10s);
  EXPECT_LT(a.uptime, 10s + a_tick);
  const child_info& b = (*all)[1];
  EXPECT_EQ(b.restart, restart::transient);
  EXPECT_TRUE(b.significant);
  EXPECT_EQ(b.last_reason, std::nullopt);
  EXPECT_EQ((*all)[2].type, child_type::supervisor);
}

TEST(which_child_call, tells_of_one_in_every_state) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->state, child_state::running);
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  const auto down = f.ask(which_child(f.tree, "a"));
  EXPECT_EQ(down->state, child_state::undefined);
  EXPECT_EQ(down->who, pid{});
  EXPECT_EQ(down->uptime, 0s);
  EXPECT_EQ(down->last_reason, exit_reason::shutdown());
}

TEST(get_childspec_call, gives_the_whole_spec_with_its_defaults) {
  family f;
  const backoff wait{.first = 1s};
  ASSERT_TRUE(f.start({.children = {f.child("a", {.name = "anna", .backoff = wait, .start_within = 3s}),
                                    child<supervisor>(supervisor_spec{}).with({.id = "s"})}}));
  const auto a = f.ask(get_childspec(f.tree, "a"));
  ASSERT_TRUE(a);
  EXPECT_EQ(a->id, "a");
  EXPECT_EQ(a->name, "anna");
  EXPECT_EQ(a->shutdown, shutdown{5s});
  EXPECT_EQ(a->restart, restart::permanent);
  EXPECT_EQ(a->backoff, wait);
  EXPECT_EQ(a->start_within, 3s);
  EXPECT_TRUE(a->start);
  EXPECT_EQ(f.ask(get_childspec(f.tree, "s"))->shutdown, shutdown::infinity());
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_TRUE(f.ask(delete_child(f.tree, "a")));
  EXPECT_TRUE(f.ask(start_child(f.tree, *a))) << "it can be used again";
}

TEST(count_children_call, counts_specs_by_type_and_processes_that_are_alive) {
  family f;
  std::vector<child_spec> many;
  for (int i = 0; i < 1000; ++i) many.push_back(f.child("w" + std::to_string(i)));
  for (int i = 0; i < 10; ++i)
    many.push_back(child<supervisor>(supervisor_spec{}).with({.id = "s" + std::to_string(i)}));
  ASSERT_TRUE(f.start({.children = std::move(many)}));
  EXPECT_EQ(f.ask(count_children(f.tree)),
            (child_counts{.specs = 1010, .active = 1010, .supervisors = 10, .workers = 1000}));
  for (int i = 0; i < 1000; i += 10) EXPECT_TRUE(f.ask(terminate_child(f.tree, "w" + std::to_string(i))));
  EXPECT_EQ(f.ask(count_children(f.tree)),
            (child_counts{.specs = 1010, .active = 910, .supervisors = 10, .workers = 1000}));
  for (int i = 0; i < 1000; i += 10) EXPECT_TRUE(f.ask(delete_child(f.tree, "w" + std::to_string(i))));
  EXPECT_EQ(f.ask(count_children(f.tree)),
            (child_counts{.specs = 910, .active = 910, .supervisors = 10, .workers = 900}));
  f.crash("w999");
  EXPECT_EQ(f.ask(count_children(f.tree))->active, 910U) << "places are found though others are gone";
}

// ---- what is kept

struct heavy {
  static void handle(int) {}
  explicit heavy(std::shared_ptr<int> l) : load{std::move(l)} {}
  std::shared_ptr<int> load;
};
TEST(temporary_children, do_not_keep_what_they_were_started_with) {
  family f;
  const auto load = std::make_shared<int>(1);
  supervisor_spec spec{.children = {child<heavy>(load).with({.id = "t", .restart = restart::temporary}),
                                    child<heavy>(load).with({.id = "p"})}};
  ASSERT_TRUE(f.start(std::move(spec)));
  EXPECT_TRUE(f.ask(start_child(f.tree, child<heavy>(load).with({.id = "u", .restart = restart::temporary}))));
  EXPECT_FALSE(f.ask(get_childspec(f.tree, "t"))->start);
  EXPECT_FALSE(f.ask(get_childspec(f.tree, "u"))->start);
  EXPECT_TRUE(f.ask(get_childspec(f.tree, "p"))->start);
  EXPECT_EQ(load.use_count(), 1 + 3 + 1) << "one for each process, and the spec of the permanent one";
}

}  // namespace
