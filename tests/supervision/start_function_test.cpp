// Children that are functions: bodies, and start functions of the user's.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

struct go_away {
  exit_reason why;
};
task<> lives(self& me, journal* book, std::string id) {
  book->lines.push_back("start " + id);
  book->pids[id] = me.id();
  const go_away m = co_await me.receive<go_away>();
  co_await me.exit(m.why);
}
task<> dies_at_once(self&, int* runs) {
  ++*runs;
  throw std::runtime_error{"short life"};
  co_return;
}

TEST(body_child, is_started_when_it_was_spawned_and_restarted_with_its_arguments) {
  family f;
  ASSERT_TRUE(f.start({.children = {child(lives, &f.book, std::string{"x"}).with({.id = "b"})}}));
  EXPECT_EQ(f.state(), "b:running");
  f.rt().send(f.who("x"), go_away{exit_reason::error("crash")});
  f.settle();
  EXPECT_EQ(f.book.take(), (lines{"start x", "start x"}));
  EXPECT_EQ(f.state(), "b:running");
}

TEST(body_child, that_fails_right_away_is_a_restart_and_no_failed_start) {
  family f;
  int runs = 0;
  EXPECT_TRUE(
      f.start({.limit = {.restarts = 2, .within = 5s}, .children = {child(dies_at_once, &runs).with({.id = "b"})}}))
      << "there is no handshake";
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

// ---- start functions

task<start_result> starts_once(self& sup, journal* book) {
  if (!book->pids["x"]) book->pids["x"] = sup.spawn_link(lives, book, std::string{"x"});
  co_return book->pids["x"];
}
TEST(start_function, that_returns_the_process_of_another_child_has_failed) {
  family f;
  ASSERT_TRUE(f.start({.children = {child(starts_once, &f.book).with({.id = "a"})}}));
  const auto second = f.ask(start_child(f.tree, child(starts_once, &f.book).with({.id = "b"})));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().root().text(),
            "the start function returned " + to_string(f.who("x")) + ", which is the process of child 'a'");
  EXPECT_EQ(f.state(), "a:running");
  EXPECT_TRUE(f.rt().alive(f.who("x")));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_FALSE(f.rt().alive(f.who("x"))) << "it still belongs to a";
}

struct plan {
  journal* book;
  std::deque<std::string> next;
};
task<start_result> starts(self& sup, plan* p) {
  const std::string what = p->next.empty() ? "ok" : p->next.front();
  if (!p->next.empty()) p->next.pop_front();
  p->book->lines.push_back(what);
  if (what == "ignore") co_return ignored{};
  if (what == "error") co_return error{errc::invalid, "no way"};
  if (what == "throw") throw std::runtime_error{"out of luck"};
  if (what == "exit") throw exit_with{exit_reason::error("left")};
  if (what == "nobody") co_return pid{};
  if (what == "unlinked") co_return sup.spawn(lives, p->book, std::string{"x"});
  if (what == "wait") co_await sup.sleep(10s);
  co_return sup.spawn_link(lives, p->book, std::string{"x"});
}

TEST(start_function, runs_in_the_supervisor_and_gives_it_a_child) {
  family f;
  plan p{&f.book, {}};
  ASSERT_TRUE(f.start({.children = {child(starts, &p).with({.id = "s"})}}));
  EXPECT_EQ(f.book.take(), (lines{"ok", "start x"}));
  EXPECT_EQ(f.ask(which_child(f.tree, "s"))->who, f.who("x"));
  EXPECT_EQ(f.rt().info(f.who("x"))->parent, f.tree.id());
  f.kill("x");
  EXPECT_EQ(f.book.take(), (lines{"ok", "start x"}));
  EXPECT_EQ(f.state(), "s:running");
  f.stop();
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_FALSE(f.rt().alive(f.who("x")));
}

TEST(start_function, that_has_nothing_to_start_is_kept_as_undefined) {
  family f;
  plan p{&f.book, {"ignore"}};
  ASSERT_TRUE(f.start({.children = {child(starts, &p).with({.id = "s"})}}));
  EXPECT_EQ(f.state(), "s:undefined");
}

TEST(start_function, that_fails_is_a_failed_start) {
  const std::map<std::string, std::string> texts = {{"error", "no way"}, {"throw", "out of luck"}, {"exit", "left"}};
  for (const auto& [how, text] : texts) {
    family f;
    plan p{&f.book, {how}};
    const auto started = f.start({.children = {f.child("a"), child(starts, &p).with({.id = "s"})}});
    ASSERT_FALSE(started) << how;
    EXPECT_EQ(started.error().code(), errc::start_failed);
    EXPECT_NE(started.error().to_string().find(text), std::string::npos) << started.error();
    EXPECT_EQ(f.book.take(), (lines{"start a", how, "stop a shutdown"}));
  }
}

TEST(start_function, that_answers_with_nobody_has_failed) {
  family f;
  plan p{&f.book, {"nobody"}};
  const auto started = f.start({.children = {child(starts, &p).with({.id = "s"})}});
  ASSERT_FALSE(started) << f.state();
  EXPECT_EQ(started.error().code(), errc::start_failed);
}

TEST(start_function, that_fails_in_a_call_is_only_told_to_the_caller) {
  family f;
  plan p{&f.book, {"error", "ok", "throw", "ok"}};
  ASSERT_TRUE(f.start({}));
  const auto spec = child(starts, &p).with({.id = "s"});
  EXPECT_EQ(f.ask(start_child(f.tree, spec)).error().root(), (error{errc::invalid, "no way"}));
  EXPECT_EQ(f.state(), "") << "it was not added";
  EXPECT_TRUE(f.ask(start_child(f.tree, spec)));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "s")));
  EXPECT_FALSE(f.ask(restart_child(f.tree, "s")));
  EXPECT_EQ(f.state(), "s:undefined") << "it stays down";
  EXPECT_TRUE(f.ask(restart_child(f.tree, "s")));
  EXPECT_EQ(f.state(), "s:running");
}

TEST(start_function, that_waits_holds_up_the_supervisor_and_no_death_is_lost) {
  family f;
  plan p{&f.book, {"wait"}};
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const auto got = f.begin(start_child(f.tree, child(starts, &p).with({.id = "s"})));
  f.settle();
  f.book.take();
  f.crash("a");
  EXPECT_EQ(f.book.take(), (lines{"stop a error"})) << "its restart waits";
  f.pass(10s + a_tick);
  EXPECT_TRUE(**got);
  EXPECT_EQ(f.state(), "a:running s:running");
}

TEST(start_function, may_give_a_child_that_is_not_linked_whose_end_goes_unnoticed) {
  family f;
  plan p{&f.book, {"unlinked"}};
  ASSERT_TRUE(f.start({.children = {child(starts, &p).with({.id = "s"})}}));
  f.kill("x");
  EXPECT_EQ(f.state(), "s:running") << "nobody told";
  EXPECT_EQ(f.ask(count_children(f.tree))->active, 0U);
}

TEST(start_function, may_give_a_child_that_is_not_linked_which_is_stopped_all_the_same) {
  family f;
  plan p{&f.book, {"unlinked"}};
  ASSERT_TRUE(f.start({.children = {child(starts, &p).with({.id = "s"})}}));
  const pid who = f.who("x");
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "s")));
  EXPECT_FALSE(f.rt().alive(who));
  EXPECT_EQ(f.state(), "s:undefined");
}

TEST(start_function, has_neither_a_limit_nor_a_name_in_its_spec) {
  const child_spec spec = child(+[](self&) -> task<start_result> { co_return start_result{ignored{}}; });
  EXPECT_TRUE(check(spec.with({.id = "a"})));
  for (const child_options& how :
       {child_options{.id = "a", .start_within = 1s}, child_options{.id = "a", .name = "n"}}) {
    const auto refused = check(spec.with(how));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::bad_combination);
    EXPECT_EQ(refused.error().text().substr(0, 10), "child 'a':");
  }
}

}  // namespace
