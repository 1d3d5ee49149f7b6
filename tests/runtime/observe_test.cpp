// What can be seen of a runtime from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <latch>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "own_environment.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
struct note {
  int n = 0;
};

/// Once it waits for mail.
process_info info_at_rest(runtime& rt, pid p) {
  for (;;) {
    const auto seen = rt.info(p);
    if (seen && seen->state == process_state::waiting) return *seen;
    std::this_thread::yield();
  }
}

task<> idles(self& me) { co_await me.receive<go>(); }
task<> dresses_up(self& me, std::latch* ready) {
  me.trap_exits();
  me.label("for the eyes of people");
  ready->count_down();
  co_await me.receive<go>();
}
TEST(info, shows_what_a_process_is) {
  runtime rt{quiet()};
  std::latch ready{1};
  const pid p = *rt.spawn({.name = "seen"}, dresses_up, &ready);
  ready.wait();
  const process_info seen = info_at_rest(rt, p);
  EXPECT_EQ(seen.id, p);
  EXPECT_EQ(seen.name, "seen");
  EXPECT_EQ(seen.label, "for the eyes of people");
  EXPECT_EQ(seen.parent, pid{});
  EXPECT_EQ(seen.links, std::vector<pid>{});
  EXPECT_EQ(seen.mailbox, 0U);
  EXPECT_EQ(seen.monitors, 0U);
  EXPECT_EQ(seen.monitored, 0U);
  EXPECT_TRUE(seen.traps_exits);
  EXPECT_GE(seen.handled, 1U);
  EXPECT_GT(seen.memory, 64U);
}

TEST(info, of_who_is_no_more_or_never_was_is_nothing) {
  runtime rt{quiet()};
  const pid p = rt.spawn(idles);
  rt.kill(p);
  rt.wait(p);
  EXPECT_EQ(rt.info(p), std::nullopt);
  EXPECT_EQ(rt.info(pid{}), std::nullopt);
  EXPECT_EQ(rt.info(pid::from_parts(rt.node(), 1'000'000, 0)), std::nullopt);
}

task<> has_family(self& me, std::array<pid, 3>* family, std::latch* ready) {
  (*family)[0] = me.spawn_link(idles);
  (*family)[1] = me.spawn(idles);
  (*family)[2] = me.spawn_monitor(idles).who;
  me.link((*family)[1]);
  ready->count_down();
  co_await me.receive<go>();
}
TEST(info, shows_parents_links_and_monitors_from_both_sides) {
  runtime rt{quiet()};
  std::array<pid, 3> family;
  std::latch ready{1};
  const pid p = rt.spawn(has_family, &family, &ready);
  ready.wait();
  process_info seen = info_at_rest(rt, p);
  std::ranges::sort(seen.links);
  std::vector<pid> linked{family[0], family[1]};
  std::ranges::sort(linked);
  EXPECT_EQ(seen.links, linked);
  EXPECT_EQ(seen.monitors, 1U);
  for (const pid child : family) EXPECT_EQ(info_at_rest(rt, child).parent, p);
  EXPECT_EQ(info_at_rest(rt, family[0]).links, std::vector<pid>{p});
  EXPECT_EQ(info_at_rest(rt, family[1]).links, std::vector<pid>{p});
  EXPECT_EQ(info_at_rest(rt, family[2]).links, std::vector<pid>{});
  EXPECT_EQ(info_at_rest(rt, family[2]).monitored, 1U);
}

task<> chain(self& me, int length, std::vector<pid>* members, std::latch* ready) {
  members->push_back(me.id());
  if (length > 1)
    me.spawn(chain, length - 1, members, ready);
  else
    ready->count_down();
  co_await me.receive<go>();
}
TEST(ancestors, lead_to_the_first_as_far_as_they_live) {
  runtime rt{quiet()};
  std::vector<pid> members;
  std::latch ready{1};
  rt.spawn(chain, 5, &members, &ready);
  ready.wait();
  for (const pid p : members) (void)info_at_rest(rt, p);
  EXPECT_EQ(rt.ancestors(members[4]), (std::vector<pid>{members[3], members[2], members[1], members[0]}));
  EXPECT_EQ(rt.ancestors(members[0]), std::vector<pid>{});
  rt.kill(members[1]);
  rt.wait(members[1]);
  const auto left = rt.ancestors(members[4]);
  ASSERT_GE(left.size(), 2U);
  EXPECT_EQ(left[0], members[3]);
  EXPECT_EQ(left[1], members[2]);
}

// ---- state

task<> occupies(self&, std::latch* begun, std::latch* over) {
  begun->count_down();
  over->wait();
  co_return;
}
TEST(info, tells_running_runnable_and_waiting_apart) {
  runtime rt{{.workers = 1, .stall_after = 0ms, .level = log_level::off}};
  const pid waiting = rt.spawn(idles);
  const pid runnable = rt.spawn(idles);
  (void)info_at_rest(rt, waiting);
  (void)info_at_rest(rt, runnable);
  std::latch begun{1};
  std::latch over{1};
  const pid running = rt.spawn(occupies, &begun, &over);
  begun.wait();
  rt.send(runnable, note{1});
  EXPECT_EQ(rt.info(waiting)->state, process_state::waiting);
  EXPECT_EQ(rt.info(runnable)->state, process_state::runnable);
  EXPECT_EQ(rt.info(running)->state, process_state::running);
  EXPECT_EQ(to_string(process_state::waiting), "waiting");
  EXPECT_EQ(to_string(process_state::runnable), "runnable");
  EXPECT_EQ(to_string(process_state::running), "running");
  over.count_down();
}

// ---- mailbox

TEST(info, counts_messages_that_were_put_aside) {
  runtime rt{quiet()};
  const pid p = rt.spawn(idles);
  for (int i = 0; i < 7; ++i) rt.send(p, note{i});
  while (info_at_rest(rt, p).mailbox != 7) std::this_thread::yield();
  EXPECT_EQ(info_at_rest(rt, p).mailbox, 7U);
}

task<> takes_two(self& me, std::latch* taken) {
  co_await me.receive<go>();
  co_await me.receive<note>();
  co_await me.receive<note>();
  taken->count_down();
  co_await me.receive<go>();
}
TEST(info, no_longer_counts_messages_that_were_taken_later) {
  runtime rt{quiet()};
  std::latch taken{1};
  const pid p = rt.spawn(takes_two, &taken);
  for (int i = 0; i < 7; ++i) rt.send(p, note{i});
  rt.send(p, go{});
  taken.wait();
  EXPECT_EQ(info_at_rest(rt, p).mailbox, 5U);
}

struct step_by_step {
  step_by_step(std::counting_semaphore<>* e, std::counting_semaphore<>* l) : entered{e}, leave{l} {}
  void handle(note) const {
    entered->release();
    leave->acquire();
  }
  std::counting_semaphore<>* entered;
  std::counting_semaphore<>* leave;
};
TEST(info, counts_the_backlog_of_a_process_whose_handler_runs) {
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  std::counting_semaphore<> entered{0};
  std::counting_semaphore<> leave{0};
  const ref<step_by_step> p = rt.spawn<step_by_step>(&entered, &leave);
  for (int i = 0; i < 10; ++i) rt.cast<note>(p);
  entered.acquire();
  EXPECT_EQ(rt.info(p.id())->mailbox, 9U) << "right at the first look";
  leave.release();
  entered.acquire();
  EXPECT_EQ(rt.info(p.id())->mailbox, 8U);
  leave.release(10);
}

// ---- all of them

TEST(snapshot, has_every_process_once) {
  runtime rt{quiet()};
  std::vector<pid> all;
  for (int i = 0; i < 100; ++i) all.push_back(rt.spawn(idles));
  for (const pid p : all) (void)info_at_rest(rt, p);
  std::vector<pid> seen;
  for (const process_info& one : rt.snapshot()) seen.push_back(one.id);
  std::ranges::sort(all);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, all);
  for (const pid p : all) rt.kill(p);
  for (const pid p : all) rt.wait(p);
  while (rt.counters().ended < rt.counters().spawned) std::this_thread::yield();
  EXPECT_TRUE(rt.snapshot().empty());
}

task<> comes_and_goes(self& me, std::atomic<bool>* enough) {
  me.trap_exits();
  me.label("busy");
  const pid child = me.spawn_link(idles);
  me.monitor(child);
  me.send(child, note{1});
  co_await me.yield();
  me.kill(child);
  if (!*enough) me.spawn(comes_and_goes, enough);
  co_await me.receive<down>();
}
TEST(snapshot, may_be_taken_at_any_time_while_processes_come_and_go) {
  runtime rt{quiet()};
  std::atomic<bool> enough{false};
  for (int i = 0; i < 10; ++i) rt.spawn(comes_and_goes, &enough);
  for (int i = 0; i < 50; ++i)
    for (const process_info& one : rt.snapshot()) {
      EXPECT_EQ(one.id.node(), rt.node());
      EXPECT_TRUE(one.label.empty() || one.label == "busy" || one.label == one.type);
    }
  enough = true;
}

task<> looks_around(self& me, runtime* rt, bool* found) {
  for (const process_info& one : rt->snapshot()) *found |= one.id == me.id();
  co_return;
}
TEST(snapshot, may_be_taken_inside_a_process) {
  runtime rt{quiet()};
  bool found = false;
  rt.wait(rt.spawn(looks_around, &rt, &found));
  EXPECT_TRUE(found);
}

task<> links_and_gets_stuck(self& me, pid other, trap_door* door) {
  me.link(other);
  me.monitor(other);
  door->fall_in();
  co_return;
}
process_info info_in(const std::vector<process_info>& all, pid who) {
  const auto found = std::ranges::find(all, who, &process_info::id);
  return found != all.end() ? *found : process_info{};
}
TEST(snapshot, of_a_process_stuck_in_its_code_is_complete) {
  trap_door door;
  runtime rt{quiet()};
  const pid idle = rt.spawn(idles);
  (void)info_at_rest(rt, idle);
  const pid stuck = rt.spawn(links_and_gets_stuck, idle, &door);
  door.wait_until_inside();
  const std::vector<process_info> all = rt.snapshot();
  const process_info busy = info_in(all, stuck);
  EXPECT_EQ(busy.id, stuck);
  EXPECT_TRUE(busy.complete);
  EXPECT_EQ(busy.state, process_state::running);
  EXPECT_EQ(busy.links, std::vector<pid>{idle});
  EXPECT_EQ(busy.monitors, 1U);
  const process_info waiting = info_in(all, idle);
  EXPECT_TRUE(waiting.complete);
  EXPECT_EQ(waiting.links, std::vector<pid>{stuck});
  EXPECT_EQ(waiting.monitored, 1U);
  door.open();
}

/// Counts the waits in the code of processes.
class counting_threads final : public own_threads {
 public:
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::optional<time_point> until) override {
    if (detail::turn_here() != nullptr) ++waits_of_processes;
    own_threads::wait(word, expected, until);
  }
  std::atomic<int> waits_of_processes{0};
};
task<> looks_at_all(self&, runtime* rt, std::vector<process_info>* into) {
  *into = rt->snapshot();
  co_return;
}
task<> looks_at_itself(self& me, runtime* rt, std::optional<process_info>* into, pid* child) {
  *child = me.spawn_link(idles);
  me.send(me.id(), std::string{"in the queue"});
  *into = rt->info(me.id());
  co_return;
}
TEST(snapshot, of_the_process_that_looks_is_complete) {
  runtime rt{quiet()};
  std::optional<process_info> seen;
  pid child;
  rt.wait(rt.spawn(looks_at_itself, &rt, &seen, &child));
  ASSERT_TRUE(seen.has_value());
  EXPECT_TRUE(seen->complete);
  EXPECT_EQ(seen->state, process_state::running);
  EXPECT_EQ(seen->links, std::vector<pid>{child});
  EXPECT_EQ(seen->mailbox, 1U);
}

TEST(snapshot, inside_a_process_does_not_wait_for_a_busy_one) {
  trap_door door;
  counting_threads threads;
  std::vector<process_info> all;
  runtime rt{std::make_shared<own_environment>(own_environment::parts{.workers = &threads}), quiet()};
  const pid idle = rt.spawn(idles);
  (void)info_at_rest(rt, idle);
  const pid stuck = rt.spawn(links_and_gets_stuck, idle, &door);
  door.wait_until_inside();
  rt.wait(rt.spawn(looks_at_all, &rt, &all));
  EXPECT_EQ(info_in(all, stuck).id, stuck);
  EXPECT_TRUE(info_in(all, stuck).complete);
  EXPECT_TRUE(info_in(all, idle).complete);
  EXPECT_EQ(threads.waits_of_processes, 0);
  door.open();
}

// ---- counters

TEST(counters, are_exact_when_nothing_runs) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.counters().spawned, 0U);
  std::vector<pid> all;
  for (int i = 0; i < 100; ++i) all.push_back(rt.spawn(idles));
  for (const pid p : all) rt.send(p, go{});
  while (rt.counters().ended < 100) std::this_thread::yield();
  for (const pid p : all) rt.send(p, go{});
  while (rt.counters().handled < 300) std::this_thread::yield();
  const runtime_counters seen = rt.counters();
  EXPECT_EQ(seen.spawned, 100U);
  EXPECT_EQ(seen.ended, 100U);
  EXPECT_EQ(seen.handled, 300U);  // a start, a message and a dead letter each
  EXPECT_EQ(seen.dead_letters, 100U);
  EXPECT_EQ(seen.timers, 0U);
  EXPECT_EQ(seen.stalls, 0U);
  EXPECT_GT(seen.injected, 0U);
  EXPECT_GT(seen.turns, 0U);
}

task<> yields(self& me, int times) {
  for (int i = 0; i < times; ++i) co_await me.yield();
}
TEST(counters, count_every_resumption_behind_a_yield_once) {
  runtime rt{{.workers = 1, .level = log_level::off}};
  rt.spawn(yields, 1000);
  while (rt.counters().ended < 1) std::this_thread::yield();
  const pid next = rt.spawn(idles);  // once the only worker is behind this one, the first has been counted
  rt.send(next, go{});
  while (rt.counters().ended < 2) std::this_thread::yield();
  const pid last = rt.spawn(idles);
  while (!rt.info(last) || rt.info(last)->state != process_state::waiting) std::this_thread::yield();
  EXPECT_EQ(rt.counters().handled, 1001U + 2U + 1U);
}

}  // namespace
