// What a supervisor remembers and tells: the exit history, events, lines of the log.
#include <gtest/gtest.h>
#include <runtime/recorder.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

constexpr restart_limit generous{.restarts = 1000, .within = 1h};

/// `restarted error: crash`, one for each end.
lines actions(family& f, const std::string& id) {
  lines out;
  const auto all = f.ask(exit_history(f.tree, id));
  EXPECT_TRUE(all);
  for (const exit_record& r : *all) out.push_back(std::string{to_string(r.action)} + " " + r.reason.to_string());
  return out;
}

// ---- the history

TEST(exit_history_call, is_empty_as_long_as_nothing_has_ended) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  EXPECT_EQ(actions(f, "a"), lines{});
}

TEST(exit_history_call, tells_of_each_end_when_who_why_and_what_was_done) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a")}}));
  const pid first = f.who("a");
  f.pass(10s);
  f.crash("a");
  const auto all = f.ask(exit_history(f.tree, "a"));
  ASSERT_EQ(all->size(), 1U);
  const exit_record& r = all->front();
  EXPECT_EQ(r.who, first);
  EXPECT_EQ(r.reason, exit_reason::error("crash"));
  EXPECT_EQ(r.action, exit_action::restarted);
  EXPECT_GE(r.uptime, 10s);
  EXPECT_LT(r.uptime, 10s + a_tick);
  EXPECT_NE(r.at, wall_time{});
  const std::string text = to_string(r);
  for (const std::string& part :
       {to_string(first), std::string{"10s"}, std::string{"error: crash"}, std::string{"restarted"}})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(exit_history_call, names_every_kind_of_action) {
  family f;
  const backoff wait{.first = 1s};
  ASSERT_TRUE(f.start(
      {.limit = generous,
       .children = {f.child("a"), f.child("b", {.backoff = wait}), f.child("t", {.restart = restart::transient})}}));
  f.crash("a");
  f.book.starts["a"] = {"fail"};
  f.kill("a");
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  const lines a = actions(f, "a");
  ASSERT_EQ(a.size(), 4U);
  EXPECT_EQ(a[0], "restarted error: crash");
  EXPECT_EQ(a[1], "restarted killed");
  EXPECT_TRUE(a[2].starts_with("retried error: ")) << a[2];
  EXPECT_NE(a[2].find("failed"), std::string::npos);
  EXPECT_EQ(a[3], "stopped shutdown");
  f.crash("b");
  EXPECT_EQ(actions(f, "b"), (lines{"delayed error: crash"}));
  EXPECT_EQ(f.ask(exit_history(f.tree, "b"))->front().because, "backoff of 1s");
  f.finish("t", exit_reason::normal());
  EXPECT_EQ(actions(f, "t"), (lines{"kept normal"}));
}

TEST(exit_history_call, tells_who_a_sibling_was_stopped_for) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all, .children = {f.child("a"), f.child("b")}}));
  f.crash("b");
  const auto a = f.ask(exit_history(f.tree, "a"));
  ASSERT_EQ(a->size(), 1U);
  EXPECT_EQ(a->front().action, exit_action::stopped);
  EXPECT_NE(a->front().because.find("'b'"), std::string::npos) << a->front().because;
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_NE(f.ask(exit_history(f.tree, "a"))->back().because.find("terminate_child"), std::string::npos);
}

TEST(exit_history_call, keeps_the_last_fifty) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a"), f.child("b")}}));
  for (int i = 1; i <= 60; ++i) f.finish("a", exit_reason::error(std::to_string(i)));
  const lines a = actions(f, "a");
  ASSERT_EQ(a.size(), 50U);
  EXPECT_EQ(a.front(), "restarted error: 11");
  EXPECT_EQ(a.back(), "restarted error: 60");
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->restarts, 60U);
  EXPECT_EQ(actions(f, "b"), lines{}) << "each child has its own";
}

TEST(exit_history_call, is_gone_with_the_child) {
  family f;
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a")}}));
  f.crash("a");
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_TRUE(f.ask(delete_child(f.tree, "a")));
  EXPECT_TRUE(f.ask(start_child(f.tree, f.child("a"))));
  EXPECT_EQ(actions(f, "a"), lines{});
}

// ---- events

lines told(family& f) {
  lines out;
  for (const supervisor_event& e : std::exchange(f.events, {})) {
    EXPECT_FALSE(e.text.empty());
    EXPECT_TRUE(e.supervisor);
    out.push_back(std::string{to_string(e.what)} + " " + e.child);
  }
  return out;
}

TEST(supervisor_events, tell_the_life_of_a_child) {
  family f;
  f.listen();
  ASSERT_TRUE(f.start({.limit = generous, .children = {f.child("a"), f.child("b")}}));
  f.settle();
  EXPECT_EQ(told(f), (lines{"started a", "started b"}));
  const pid before = f.who("a");
  f.crash("a");
  ASSERT_EQ(f.events.size(), 2U);
  EXPECT_EQ(f.events[0].who, before);
  EXPECT_EQ(f.events[0].reason, exit_reason::error("crash"));
  EXPECT_EQ(f.events[0].supervisor, f.tree.id());
  EXPECT_EQ(f.events[1].who, f.who("a"));
  EXPECT_EQ(told(f), (lines{"exited a", "restarted a"}));
  f.book.starts["a"] = {"fail"};
  f.crash("a");
  EXPECT_EQ(told(f), (lines{"exited a", "start_failed a", "restarted a"}));
  EXPECT_TRUE(f.ask(terminate_child(f.tree, "a")));
  EXPECT_EQ(told(f), (lines{"stopped a"}));
  f.stop();
  EXPECT_EQ(told(f), (lines{"stopped b"}));
}

TEST(supervisor_events, tell_of_a_wait) {
  family f;
  f.listen();
  const backoff wait{.first = 1s};
  ASSERT_TRUE(f.start({.children = {f.child("a", {.backoff = wait})}}));
  f.settle();
  told(f);
  f.crash("a");
  ASSERT_EQ(f.events.size(), 2U);
  EXPECT_NE(f.events[1].text.find("1s"), std::string::npos) << f.events[1].text;
  EXPECT_EQ(told(f), (lines{"exited a", "delayed a"}));
  f.pass(1s + a_tick);
  EXPECT_EQ(told(f), (lines{"restarted a"}));
}

TEST(supervisor_events, tell_when_a_supervisor_gives_up_and_why) {
  family f;
  f.listen();
  ASSERT_TRUE(f.start({.limit = {.restarts = 0, .within = 5s}, .children = {f.child("a"), f.child("b")}}));
  f.settle();
  told(f);
  f.crash("b");
  ASSERT_EQ(f.events.size(), 3U);
  EXPECT_NE(f.events[1].text.find("more than 0 restarts within 5s"), std::string::npos) << f.events[1].text;
  EXPECT_EQ(f.events[1].reason, exit_reason::error("crash"));
  EXPECT_EQ(told(f), (lines{"exited b", "gave_up b", "stopped a"}));
}

TEST(supervisor_events, tell_when_significant_children_are_done) {
  family f;
  f.listen();
  ASSERT_TRUE(
      f.start({.auto_shutdown = auto_shutdown::any_significant,
               .children = {f.child("a"), f.child("s", {.restart = restart::transient, .significant = true})}}));
  f.settle();
  told(f);
  f.finish("s", exit_reason::normal());
  EXPECT_EQ(told(f), (lines{"exited s", "shut_down s", "stopped a"}));
}

TEST(supervisor_events, tell_of_a_first_start_that_fails) {
  family f;
  f.listen();
  f.book.starts["b"] = {"fail"};
  EXPECT_FALSE(f.start({.children = {f.child("a"), f.child("b")}}));
  f.settle();
  EXPECT_EQ(told(f), (lines{"started a", "start_failed b", "stopped a"}));
}

// ---- the log

struct logged_family : family {
  explicit logged_family(std::shared_ptr<recorder> into, log_level level = log_level::info)
      : family{1, {.processes = 1U << 16U, .level = level, .log = into}}, log{std::move(into)} {}
  std::shared_ptr<recorder> log;
  /// The lines of supervisors about a child: `error ended: ...`.
  lines about(const std::string& id) {
    lines out;
    for (const auto& l : log->all())
      if (l.fields.contains("child") && l.fields.at("child") == id)
        out.push_back(std::string{to_string(l.level)} + " " + l.text);
    log->lines.clear();
    return out;
  }
};

TEST(supervisor_log, tells_of_starts_and_ends_at_their_levels) {
  logged_family f{std::make_shared<recorder>()};
  ASSERT_TRUE(f.start({.limit = generous,
                       .children = {f.child("a"), f.child("n", {.restart = restart::transient}),
                                    f.child("t", {.restart = restart::temporary})}}));
  EXPECT_EQ(f.about("a"), (lines{"info child 'a' started"}));
  f.crash("a");
  EXPECT_EQ(f.about("a"), (lines{"error child 'a' ended: error: crash", "info child 'a' started again"}));
  f.finish("n", exit_reason::normal());
  EXPECT_EQ(f.about("n"), (lines{"info child 'n' ended and is not restarted: normal"})) << "no error";
  f.crash("t");
  EXPECT_EQ(f.about("t"), (lines{"error child 't' ended and is not restarted: error: crash"}));
}

TEST(supervisor_log, has_fields_to_search_by) {
  logged_family f{std::make_shared<recorder>()};
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  bool found = false;
  for (const auto& l : f.log->all()) {
    if (l.text != "child 'a' started") continue;
    found = true;
    EXPECT_EQ(l.fields.at("supervisor"), to_string(f.tree.id()));
    EXPECT_EQ(l.fields.at("child"), "a");
    EXPECT_EQ(l.fields.at("pid"), to_string(f.who("a")));
    EXPECT_EQ(l.fields.at("event"), "started");
  }
  EXPECT_TRUE(found);
}

TEST(supervisor_log, of_a_stop_is_an_error_only_when_the_child_did_not_end_as_told) {
  struct row {
    child_options how;
    bool stubborn;
    bool expected;
  };
  const std::vector<row> rows = {
      {{.shutdown = 1s}, false, true},
      {{.shutdown = 1s}, true, false},  // killed in the end
      {{.shutdown = shutdown::brutal_kill()}, false, true},
      {{.restart = restart::temporary, .shutdown = 1s}, false, true},
  };
  for (const row& r : rows) {
    logged_family f{std::make_shared<recorder>()};
    ASSERT_TRUE(f.start({.children = {f.child("a", r.how, true, r.stubborn)}}));
    f.about("a");
    const auto done = f.begin(terminate_child(f.tree, "a"));
    f.pass(1s + a_tick);
    const lines seen = f.about("a");
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].starts_with("info child 'a' stopped: "), r.expected) << seen[0];
    EXPECT_EQ(seen[0].starts_with("error child 'a' did not stop as asked: killed"), !r.expected) << seen[0];
  }
}

/// Ends in its own way when it is told to stop.
struct wilful {
  static constexpr bool traps_exits = true;
  explicit wilful(exit_reason w) : why{std::move(w)} {}
  static void handle(int) {}
  void terminate(const exit_reason&) const { throw exit_with{why}; }
  exit_reason why;
};
TEST(supervisor_log, of_a_stop_accepts_normal_ends_of_children_that_are_not_permanent) {
  for (const auto type : {restart::permanent, restart::transient, restart::temporary})
    for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown("done"), exit_reason::error("x")}) {
      logged_family f{std::make_shared<recorder>()};
      ASSERT_TRUE(f.start({.children = {child<wilful>(why).with({.id = "w", .restart = type})}}));
      f.about("w");
      EXPECT_TRUE(f.ask(terminate_child(f.tree, "w")));
      const bool expected = type != restart::permanent && !why.abnormal();
      const lines seen = f.about("w");
      ASSERT_EQ(seen.size(), 1U);
      EXPECT_EQ(seen[0].starts_with("info"), expected) << seen[0] << ", " << to_string(type);
    }
}

TEST(supervisor_log, is_silent_about_calls_that_fail_and_ends_that_were_wanted) {
  logged_family f{std::make_shared<recorder>(), log_level::warning};
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("n", {.restart = restart::transient})}}));
  f.book.starts["b"] = {"refuse"};
  EXPECT_FALSE(f.ask(start_child(f.tree, f.child("b"))));
  f.finish("n", exit_reason::shutdown());
  f.stop();
  EXPECT_TRUE(f.log->all().empty()) << f.log->all().front().text;
}

}  // namespace
