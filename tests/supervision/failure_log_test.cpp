// One line in the log for each failure: by the supervisor, by the process itself, or none above `info` if somebody
// holds the result.
#include <gtest/gtest.h>
#include <runtime/recorder.hpp>

#include <coppice/runtime/freeze.hpp>

#include "office.hpp"

namespace {

using namespace coppice;

/// The lines of that level, as text with the reason.
lines of_level(recorder& log, log_level level) {
  lines out;
  for (const recorder::line& l : log.all())
    if (l.level == level) out.push_back(l.text + (l.fields.contains("reason") ? ": " + l.fields.at("reason") : ""));
  return out;
}

struct logged {
  std::shared_ptr<recorder> log = std::make_shared<recorder>();
  family f{1, {.processes = 1U << 16U, .level = log_level::info, .log = log}};
  [[nodiscard]] lines errors() { return of_level(*log, log_level::error); }
  [[nodiscard]] lines infos() { return of_level(*log, log_level::info); }
};

TEST(failure_log, of_a_child_is_one_line_by_its_supervisor) {
  logged t;
  ASSERT_TRUE(t.f.start({.children = {t.f.child("a"), t.f.child("b", {.restart = restart::temporary})}}));
  t.f.crash("a");
  t.f.crash("b");
  EXPECT_EQ(t.errors(), (lines{"child 'a' ended: error: crash", "child 'b' ended and is not restarted: error: crash"}));
}

TEST(failure_log, of_a_start_that_throws_is_one_line_by_the_supervisor) {
  logged t;
  ASSERT_TRUE(t.f.start({.children = {t.f.child("a")}}));
  t.f.book.starts["b"] = {"throw"};
  EXPECT_FALSE(t.f.ask(start_child(t.f.tree, t.f.child("b"))));
  ASSERT_EQ(t.errors().size(), 1U) << t.errors()[1];
  EXPECT_TRUE(t.errors()[0].starts_with("child 'b' could not be started: start_failed: ")) << t.errors()[0];
  t.f.book.starts["b"] = {"refuse"};
  EXPECT_FALSE(t.f.ask(start_child(t.f.tree, t.f.child("b"))));
  EXPECT_EQ(t.errors().size(), 1U) << "a child that declines is for the caller to judge";
}

/// A supervisor over a supervisor over `a`.
supervisor_spec nested(family& f) {
  const supervisor_spec lower{.children = {f.child("a")}};
  const supervisor_spec middle{.children = {child<supervisor>(lower).with({.id = "lower"})}};
  return {.children = {child<supervisor>(middle).with({.id = "middle"})}};
}

TEST(failure_log, of_a_start_in_a_tree_is_one_line_by_the_lowest_supervisor) {
  logged t;
  t.f.book.starts["a"] = {"throw"};
  EXPECT_FALSE(t.f.start(nested(t.f)));
  ASSERT_EQ(t.errors().size(), 1U);
  EXPECT_TRUE(t.errors()[0].contains("child 'a' could not be started")) << t.errors()[0];
  for (const std::string id : {"lower", "middle"}) {
    const std::string line = "start_failed: child '" + id + "' could not be started: ";
    EXPECT_EQ(std::ranges::count_if(t.infos(), [&](const auto& l) { return l.starts_with(line); }), 1) << id;
  }
}

TEST(failure_log, of_a_start_in_a_tree_that_is_added_is_one_line_by_the_lowest_supervisor) {
  logged t;
  ASSERT_TRUE(t.f.start({}));
  t.f.book.starts["a"] = {"throw"};
  EXPECT_FALSE(t.f.ask(start_child(t.f.tree, child<supervisor>(nested(t.f)).with({.id = "top"}))));
  ASSERT_EQ(t.errors().size(), 1U);
  EXPECT_TRUE(t.errors()[0].contains("child 'a' could not be started")) << t.errors()[0];
}

TEST(failure_log, of_a_supervisor_that_is_killed_while_it_starts_is_a_line_by_its_own_supervisor) {
  logged t;
  const supervisor_spec below{.children = {t.f.child("a")}};
  t.f.book.starts["a"] = {"hang"};
  EXPECT_FALSE(t.f.start({.children = {child<supervisor>(below).with({.id = "below", .start_within = 10s})}}));
  t.f.pass(11s);
  EXPECT_EQ(std::ranges::count_if(t.errors(), [](const auto& l) { return l.contains("child 'below' could not be"); }),
            1);
}

TEST(failure_log, of_a_restart_that_fails_is_one_line_by_the_supervisor) {
  logged t;
  ASSERT_TRUE(t.f.start({.limit = {.restarts = 5}, .children = {t.f.child("a")}}));
  t.f.book.starts["a"] = {"throw"};
  t.f.crash("a");
  ASSERT_EQ(t.errors().size(), 2U);
  EXPECT_EQ(t.errors()[0], "child 'a' ended: error: crash");
  EXPECT_TRUE(t.errors()[1].starts_with("child 'a' could not be started again: ")) << t.errors()[1];
  EXPECT_EQ(t.f.state(), "a:running");
}

task<> fails_later(self& me) {
  co_await me.sleep(1s);
  throw std::runtime_error{"out of luck"};
}
task<start_result> starts_it(self& sup) { co_return sup.spawn_link(fails_later); }

TEST(failure_log, of_a_process_that_a_start_function_made_is_one_line_by_the_process) {
  logged t;
  ASSERT_TRUE(t.f.start({.children = {child(starts_it).with({.id = "f"})}}));
  t.f.pass(1s + a_tick);
  EXPECT_EQ(t.errors(), (lines{"process ended: error: std::runtime_error: out of luck"}));
  EXPECT_EQ(std::ranges::count(t.infos(), "child 'f' ended: error: std::runtime_error: out of luck"), 1);
}

task<> freezes(self&, pid who) { (void)co_await freeze(who); }

TEST(failure_log, of_a_child_whose_supervisor_is_killed_before_it_can_report_is_a_line_by_the_process) {
  logged t;
  ASSERT_TRUE(t.f.start({.children = {t.f.child("a")}}));
  t.f.rt().spawn(freezes, t.f.tree.id());
  t.f.settle();
  t.f.crash("a");
  EXPECT_EQ(t.errors(), lines{}) << "the supervisor may still report it";
  t.f.rt().kill(t.f.tree.id());
  t.f.settle();
  EXPECT_EQ(t.errors(), (lines{"process ended: error: crash"}));
}

TEST(failure_log, of_a_child_that_fails_while_another_one_stops_is_one_line) {
  for (const bool killed : {false, true}) {
    logged t;
    ASSERT_TRUE(t.f.start({.children = {t.f.child("a"), t.f.child("b", {.shutdown = 2s}, true, true)}}));
    t.f.stop();  // `b` takes its time
    t.f.crash("a");
    EXPECT_EQ(t.errors(), lines{}) << "the supervisor waits for b";
    if (killed) t.f.rt().kill(t.f.tree.id());
    t.f.pass(3s);
    const lines errors = t.errors();
    EXPECT_EQ(std::ranges::count(
                  errors, killed ? "process ended: error: crash" : "child 'a' did not stop as asked: error: crash"),
              1);
    EXPECT_EQ(std::ranges::count_if(errors, [](const auto& l) { return l.contains("crash"); }), 1);
  }
}

// ---- jobs

task<int> slowly_fails(self& me, int) {
  co_await me.sleep(100ms);
  throw std::runtime_error{"out of luck"};
}

enum class owner { holds, ignores, drops };

task<> owns_a_job_that_fails(self& me, owner how) {
  auto work = async_nolink(me, slowly_fails, 1);
  if (how == owner::ignores) (void)work.ignore();
  if (how == owner::drops) work = completed(me, 1);
  co_await me.sleep(1s);
}
task<> owns_a_supervised_job_that_fails(self& me, ref<job_supervisor> jobs, owner how) {
  auto work = co_await async_under_nolink(me, jobs, slowly_fails, 1);
  if (how == owner::ignores) (void)work->ignore();
  if (how == owner::drops) *work = completed(me, 1);
  co_await me.sleep(1s);
}

TEST(failure_log, of_a_job_is_an_error_only_if_nobody_holds_its_result) {
  for (const owner how : {owner::holds, owner::ignores, owner::drops}) {
    logged t;
    t.f.rt().spawn(owns_a_job_that_fails, how);
    t.f.pass(2s);
    EXPECT_EQ((how == owner::holds ? t.infos() : t.errors()),
              (lines{"process ended: error: std::runtime_error: out of luck"}));
    EXPECT_EQ(t.errors().size(), how == owner::holds ? 0U : 1U);
  }
}

TEST(failure_log, of_a_supervised_job_is_one_error_only_if_nobody_holds_its_result) {
  for (const owner how : {owner::holds, owner::ignores, owner::drops}) {
    logged t;
    ref<job_supervisor> jobs;
    t.f.rt().spawn(
        +[](self& me, ref<job_supervisor>* into) -> task<> {
          const dynamic_supervisor_spec spec{};
          const auto made = co_await start<job_supervisor>(me, spec);
          *into = *made;
        },
        &jobs);
    t.f.settle();
    t.f.rt().spawn(owns_a_supervised_job_that_fails, jobs, how);
    t.f.pass(2s);
    const std::string by_supervisor = "child 'job' ended and is not restarted: error: std::runtime_error: out of luck";
    EXPECT_EQ(t.errors(), how == owner::holds ? lines{} : lines{by_supervisor});
    EXPECT_EQ(std::ranges::count(t.infos(), by_supervisor), how == owner::holds ? 1 : 0);
  }
}

// ---- crash loops

TEST(failure_log, of_a_crash_loop_is_limited_and_hides_no_other_failure) {
  logged t;
  ASSERT_TRUE(t.f.start({.limit = {.restarts = 300, .within = 1h}, .children = {t.f.child("a"), t.f.child("loop")}}));
  for (int i = 0; i < 100; ++i) t.f.crash("loop");
  t.f.crash("a");
  lines errors = t.errors();
  EXPECT_EQ(std::ranges::count(errors, "child 'loop' ended: error: crash"), 10);
  EXPECT_EQ(std::ranges::count(errors, "child 'a' ended: error: crash"), 1);
  EXPECT_EQ(std::ranges::count(t.infos(), "child 'loop' started again"), 10);
  t.f.pass(1s + a_tick);
  t.f.crash("loop");
  errors = t.errors();
  ASSERT_EQ(errors.size(), 13U);
  EXPECT_EQ(errors[11], "child 'loop': exited") << "the number of those left out";
  EXPECT_EQ(errors[12], "child 'loop' ended: error: crash");
}

TEST(failure_log, of_a_child_without_a_process_has_no_field_for_one) {
  logged t;
  const backoff slowly{.first = 1s};
  ASSERT_TRUE(t.f.start({.children = {t.f.child("a", {.backoff = slowly})}}));
  t.f.crash("a");
  bool delayed = false;
  for (const recorder::line& l : t.log->all()) {
    EXPECT_TRUE(!l.fields.contains("pid") || l.fields.at("pid") != to_string(pid{})) << l.text;
    if (l.fields.contains("event") && l.fields.at("event") == "delayed") delayed = !l.fields.contains("pid");
  }
  EXPECT_TRUE(delayed);
}

}  // namespace
