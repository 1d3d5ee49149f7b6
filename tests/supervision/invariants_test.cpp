// Corrupts the state of a supervisor on purpose: the right invariant must be found broken.
#include <gtest/gtest.h>

#include <coppice/supervision/job_supervisor.hpp>

#include "family.hpp"
#include "supervision/internal/children.hpp"

namespace {

using namespace coppice;
using namespace coppice::detail;

task<> idles(self& me) { co_await me.sleep(1h); }

child_spec idle_child(std::string_view id) { return child(idles).with({.id = id}); }

std::vector<child_spec> two_children() { return {idle_child("a"), idle_child("b")}; }

/// The text of the invariant that `f` finds broken; empty if it finds none.
template <class F>
std::string broken_by(F&& f) {
  try {
    f();
  } catch (const broken_invariant& x) {
    return x.what();
  }
  return {};
}
void expect_broken(const std::string& found, const std::string& expected) {
  EXPECT_NE(found.find(expected), std::string::npos) << "found: " << found;
}

task<> observed(self& me, task<> (*test)(self&), std::optional<exit_reason>* into) {
  me.trap_exits();
  try {
    co_await test(me);
    *into = exit_reason::normal();
  } catch (const std::exception& x) {
    *into = exit_reason::error(x.what());
  }
}
/// Runs `test` in a process that traps exits.
void in_a_process(task<> (*test)(self&)) {
  sim::world world{1};
  runtime& rt = world.add_node({}, {.level = log_level::off}).rt();
  std::optional<exit_reason> why;
  rt.spawn(observed, test, &why);
  world.run_for(1min);
  EXPECT_EQ(why, exit_reason::normal());
}

// ---- the list

TEST(child_list_invariant, a_child_is_removed_from_its_own_place_only) {
  child_list list{two_children()};
  list.at(0)->place = 1;
  expect_broken(broken_by([&] { list.remove(*list.at(0)); }), "a child is not at its place in the list");
  list.at(0)->place = 7;
  expect_broken(broken_by([&] { list.remove(*list.at(0)); }), "a child is not at its place in the list");
}

TEST(child_list_invariant, a_child_that_waits_for_its_backoff_is_not_removed) {
  child_list list{two_children()};
  list.at(0)->wait = timer_ref{17};
  expect_broken(broken_by([&] { list.remove(*list.at(0)); }), "removed while a restart waits");
  list.at(0)->wait = {};
}

TEST(child_list_invariant, an_upgrade_takes_each_child_from_its_own_place) {
  for (const std::uint32_t wrong : {1U, 7U}) {
    child_list list{two_children()};
    list.at(0)->place = wrong;
    expect_broken(broken_by([&] { list.upgrade(two_children()); }), "a child is not at its place in the list");
  }
}

// ---- one child

TEST(exit_ring_invariant, only_a_child_that_has_ended_has_a_last_end) {
  const supervised c{idle_child("a")};
  expect_broken(broken_by([&] { (void)c.last_reason(); }), "without a recorded end");
}

// ---- pending restarts

task<> waits_twice(self& me) {
  supervised c{idle_child("a")};
  pending_restarts pending;
  pending.add_timer(me, c, 1s);
  expect_broken(broken_by([&] { pending.add_timer(me, c, 1s); }), "was to wait once more");
  co_return;
}
TEST(pending_restart_invariant, a_child_waits_for_one_backoff_at_a_time) { in_a_process(waits_twice); }

task<> loses_its_state(self& me) {
  supervised c{idle_child("a")};
  pending_restarts pending;
  pending.add_timer(me, c, 1s);
  c.state = child_state::running;
  expect_broken(broken_by([&] { (void)pending.take_timer(c.wait); }), "a child that does not wait is over");
  co_return;
}
TEST(pending_restart_invariant, a_child_whose_backoff_is_over_was_restarting) { in_a_process(loses_its_state); }

task<> has_a_foreign_timer(self& me) {
  supervised c{idle_child("a")};
  pending_restarts pending;
  c.wait = me.start_timer(1s);
  expect_broken(broken_by([&] { pending.cancel(me, c); }), "a timer that its supervisor does not know");
  co_return;
}
TEST(pending_restart_invariant, a_child_waits_for_a_known_timer) { in_a_process(has_a_foreign_timer); }

// ---- running children

task<> marked_down_too_early(self& me) {
  supervised c{idle_child("a")};
  running_children running;
  c.who = me.spawn_link(idles);
  c.state = child_state::running;
  EXPECT_TRUE(running.add(c.who, c));
  me.kill(c.who);
  const exited x = co_await me.receive<exited>();
  c.state = child_state::undefined;
  expect_broken(broken_by([&] { (void)running.take_ended(me, x); }), "of a child that is down was known as running");
}
TEST(running_children_invariant, a_process_that_ends_belongs_to_a_running_child) {
  in_a_process(marked_down_too_early);
}

// ---- starting, restarting, removing

task<> started_twice(self& me) {
  children all{{}, two_children()};
  supervised& c = *all.list().at(0);
  c.state = child_state::running;
  expect_broken(broken_by([&] { (void)all.note_start(me, c, ignored{}, me.now()); }), "a running child was started");
  expect_broken(broken_by([&] { all.remove(me, c); }), "a running child was to be removed");
  expect_broken(broken_by([&] { (void)all.restart(me, c); }), "a running child was to be restarted");
  co_return;
}
TEST(children_invariant, a_running_child_is_not_started_restarted_or_removed) { in_a_process(started_twice); }

task<> restarted_elsewhere(self& me) {
  children all{{.strategy = strategy::rest_for_one}, two_children()};
  supervised& c = *all.list().at(0);
  c.place = 9;
  expect_broken(broken_by([&] { (void)all.restart(me, c); }), "does not contain the child that ended");
  c.place = 0;
  co_return;
}
TEST(children_invariant, a_child_is_restarted_with_its_group) { in_a_process(restarted_elsewhere); }

task<> started_without_a_start(self& me) {
  children all{{}, two_children()};
  supervised& c = *all.list().at(0);
  c.spec.start = {};
  expect_broken(broken_by([&] { (void)all.launch(me, c); }), "a child without a start");
  co_return;
}
TEST(children_invariant, only_a_child_with_a_start_is_started) { in_a_process(started_without_a_start); }

// ---- the handover of a job to its owner

TEST(handover_invariant, a_job_begins_once) {
  handover h;
  EXPECT_TRUE(h.begin(pid{}));
  expect_broken(broken_by([&] { (void)h.begin(pid{}); }), "a job has begun twice");
}

}  // namespace
