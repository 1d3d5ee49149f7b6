// Timers of processes. What is waited for here is milliseconds; what must not happen is due in an hour.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct note {
  int n = 0;
};
struct go {};

// ---- send_after

task<> sends_later(self& me) {
  me.send_after(1ms, me.id(), note{1});
  const note n = co_await me.receive<note>();
  EXPECT_EQ(n.n, 1);
  me.send_after(0ns, me.id(), note{2});
  const note now = co_await me.receive<note>();
  EXPECT_EQ(now.n, 2);
  me.send_after(-5s, me.id(), note{3});
  const note past = co_await me.receive<note>();
  EXPECT_EQ(past.n, 3);
}
TEST(send_after, delivers_the_message_also_when_its_time_is_over_already) {
  EXPECT_EQ(run(sends_later), exit_reason::normal());
}

task<> waits_for_notes(self& me, int count, std::vector<int>* into) {
  for (int i = 0; i < count; ++i) {
    const note n = co_await me.receive<note>();
    into->push_back(n.n);
  }
}
TEST(send_after, from_outside_works_as_well) {
  std::vector<int> seen;
  sim::world w{1};  // its clock stands still between the calls
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(waits_for_notes, 3, &seen);
  rt.send_after(5ms, p, note{3});
  rt.send_after(3ms, p, note{2});
  rt.send_after(1ms, p, note{1});
  EXPECT_TRUE(w.run());
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}
TEST(send_after, from_a_plain_thread_works_as_well) {
  runtime rt{quiet()};
  std::vector<int> seen;
  const pid p = rt.spawn(waits_for_notes, 1, &seen);
  rt.send_after(1ms, p, note{1});
  rt.wait(p);
  EXPECT_EQ(seen, std::vector<int>{1});
}

task<> sends_in_one_tick(self& me) {
  for (int i = 0; i < 100; ++i) me.send_after(2ms, me.id(), note{i});
  for (int i = 0; i < 100; ++i) {
    const note n = co_await me.receive<note>();
    EXPECT_EQ(n.n, i);
  }
}
TEST(send_after, with_one_delay_delivers_in_the_order_of_the_calls) {
  EXPECT_EQ(run(sends_in_one_tick), exit_reason::normal());
}

task<> cancels_before(self& me) {
  const auto watched = std::make_shared<int>(1);
  const timer_ref t = me.send_after(1h, me.id(), watched);
  EXPECT_EQ(watched.use_count(), 2);
  EXPECT_TRUE(me.cancel(t));
  EXPECT_EQ(watched.use_count(), 1) << "a cancelled message is destroyed at once";
  EXPECT_FALSE(me.cancel(t));
  EXPECT_FALSE(me.cancel(timer_ref{}));
  co_return;
}
TEST(send_after, cancelled_in_time_is_never_delivered_and_destroyed_at_once) {
  EXPECT_EQ(run(cancels_before), exit_reason::normal());
}

task<> cancels_after(self& me) {
  const timer_ref t = me.send_after(1ms, me.id(), note{1});
  co_await me.receive<note>();
  EXPECT_FALSE(me.cancel(t));
}
TEST(send_after, cancelled_too_late_says_so) { EXPECT_EQ(run(cancels_after), exit_reason::normal()); }

TEST(send_after, may_be_cancelled_by_anybody) {
  runtime rt{quiet()};
  std::vector<int> seen;
  const pid p = rt.spawn(waits_for_notes, 1, &seen);
  const timer_ref t = rt.send_after(1h, p, note{1});
  EXPECT_EQ(rt.counters().timers, 1U);
  EXPECT_TRUE(rt.cancel(t));
  EXPECT_FALSE(rt.cancel(t));
  EXPECT_EQ(rt.counters().timers, 0U);
}

TEST(send_after, to_a_process_that_has_ended_is_a_dead_letter_when_it_fires) {
  runtime rt{quiet()};
  const pid p = rt.spawn([](self&) -> task<> { co_return; });
  rt.wait(p);
  const auto before = rt.counters().dead_letters;
  rt.send_after(1ms, p, note{1});
  std::vector<int> seen;
  const pid q = rt.spawn(waits_for_notes, 1, &seen);
  rt.send_after(5ms, q, note{2});
  rt.wait(q);
  while (rt.counters().dead_letters == before) std::this_thread::yield();
  EXPECT_EQ(rt.counters().dead_letters, before + 1);
}

/// Its destructor cancels a timer, and so needs the lock of a wheel.
struct cancels_at_its_end {
  cancels_at_its_end(runtime* r, timer_ref t, std::atomic<bool>* d) : rt{r}, other{t}, destroyed{d} {}
  cancels_at_its_end(cancels_at_its_end&& from) noexcept
      : rt{std::exchange(from.rt, nullptr)}, other{from.other}, destroyed{from.destroyed} {}
  cancels_at_its_end& operator=(cancels_at_its_end&&) = delete;
  ~cancels_at_its_end() {
    if (rt == nullptr) return;
    (void)rt->cancel(other);
    *destroyed = true;
  }
  runtime* rt;
  timer_ref other;
  std::atomic<bool>* destroyed;
};
task<> sleeper(self& me) { co_await me.sleep(1h); }

TEST(send_after, to_a_process_whose_slot_another_one_has_may_run_destructors_that_use_timers) {
  runtime_options small = quiet();
  small.processes = 3;
  runtime rt{small};
  const pid ended = rt.spawn([](self&) -> task<> { co_return; });
  rt.wait(ended);
  for (bool taken = false; !taken;) {  // until the table is full, and so every slot is in use
    const result<pid> next = rt.spawn(spawn_options{}, sleeper);
    taken = next && next->index() == ended.index();
    std::this_thread::yield();
  }
  std::atomic<bool> destroyed{false};
  const timer_ref other = rt.send_after(1h, ended, note{1});
  rt.send_after(1ms, ended, cancels_at_its_end{&rt, other, &destroyed});
  while (!destroyed) std::this_thread::yield();
}

TEST(send_after, to_a_pid_that_no_process_ever_had_is_a_dead_letter_when_it_fires) {
  runtime_options small = quiet();
  small.processes = 16;
  runtime rt{small};
  const auto before = rt.counters().dead_letters;
  rt.send_after(1ms, pid::from_parts(rt.node(), 1U << 20U, 1), note{1});
  while (rt.counters().dead_letters == before) std::this_thread::yield();
}

task<> sends_never(self& me) {
  std::vector<timer_ref> all;
  all.push_back(me.send_after(forever, me.id(), note{1}));
  all.push_back(me.send_after(24h * 365 * 250, me.id(), note{2}));
  all.push_back(me.start_timer(forever));
  const auto early = co_await me.receive<note, timer_fired>(5ms);
  EXPECT_TRUE(std::holds_alternative<timed_out>(early)) << "a timer for the end of time has fired";
  for (const timer_ref t : all) EXPECT_TRUE(me.cancel(t));
}
TEST(send_after, a_delay_beyond_the_end_of_the_clock_is_for_ever) {
  EXPECT_EQ(run(sends_never), exit_reason::normal());
}

// ---- start_timer

task<> starts_timers(self& me) {
  std::set<timer_ref> open;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(open.insert(me.start_timer(1ms * (i % 3))).second);
  for (int i = 0; i < 20; ++i) {
    const timer_fired t = co_await me.receive<timer_fired>();
    EXPECT_EQ(open.erase(t.ref), 1U);
  }
}
TEST(start_timer, brings_a_timeout_with_its_ref) { EXPECT_EQ(run(starts_timers), exit_reason::normal()); }

task<> cancels_timers(self& me) {
  const timer_ref t = me.start_timer(1h);
  EXPECT_TRUE(me.cancel(t));
  EXPECT_FALSE(me.cancel(t));
  const timer_ref u = me.start_timer(0ns);
  co_await me.receive<timer_fired>();
  EXPECT_FALSE(me.cancel(u));
}
TEST(start_timer, cancel_says_whether_it_came_in_time) { EXPECT_EQ(run(cancels_timers), exit_reason::normal()); }

/// Waits until both timers have fired, with the `timer_fired` of one still in the queue or put aside.
task<> cancels_what_was_put_aside(self& me) {
  const timer_ref t = me.start_timer(1ms);
  me.send_after(20ms, me.id(), note{1});  // a later tick of the same wheel: behind the timeout
  co_await me.receive<note>();            // the timeout was put aside
  EXPECT_TRUE(me.cancel(t));
  const auto none = co_await me.receive<timer_fired>(0ns);
  EXPECT_TRUE(std::holds_alternative<timed_out>(none));
}
TEST(start_timer, cancel_flushes_a_timeout_that_was_put_aside) {
  EXPECT_EQ(run(cancels_what_was_put_aside), exit_reason::normal());
}

/// Blocks until the timer has fired, so that its timeout stands in the queue, unseen.
task<> cancels_what_is_queued(self& me, runtime* rt) {
  const timer_ref t = me.start_timer(1ms);
  while (me.remaining(t)) std::this_thread::yield();
  EXPECT_EQ(rt->counters().timers, 0U);
  EXPECT_TRUE(me.cancel(t));
  const auto none = co_await me.receive<timer_fired>(0ns);
  EXPECT_TRUE(std::holds_alternative<timed_out>(none));
}
TEST(start_timer, cancel_flushes_a_timeout_that_is_still_queued) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(cancels_what_is_queued, &rt), exit_reason::normal());
}

task<> cancels_in_a_race(self& me) {
  for (int i = 0; i < 300; ++i) {
    const timer_ref t = me.start_timer(i % 2 == 0 ? 0ns : 1ms);
    for (int k = 0; k < i % 7; ++k) co_await me.yield();
    me.cancel(t);
    const auto none = co_await me.receive<timer_fired>(0ns);
    EXPECT_TRUE(std::holds_alternative<timed_out>(none)) << i;
  }
}
TEST(start_timer, once_it_is_cancelled_nothing_comes_even_in_a_race) {
  EXPECT_EQ(run(cancels_in_a_race), exit_reason::normal());
}

task<> starts_and_ends(self& me) {
  for (int i = 0; i < 10; ++i) me.start_timer(1h);
  co_return;
}
TEST(start_timer, timers_end_with_their_process) {
  runtime rt{quiet()};
  const pid p = rt.spawn(starts_and_ends);
  rt.wait(p);
  while (rt.counters().ended < 2) std::this_thread::yield();
  EXPECT_EQ(rt.counters().timers, 0U);
  EXPECT_EQ(rt.counters().dead_letters, 0U);
}

// ---- remaining

task<> asks_how_long(self& me) {
  const timer_ref t = me.send_after(1h, me.id(), note{1});
  const auto left = me.remaining(t);
  EXPECT_TRUE(left && *left <= 1h && *left > 0ns);
  me.cancel(t);
  EXPECT_FALSE(me.remaining(t));
  const timer_ref u = me.start_timer(1ms);
  co_await me.receive<timer_fired>();
  EXPECT_FALSE(me.remaining(u));
  EXPECT_FALSE(me.remaining(timer_ref{}));
}
TEST(remaining, is_known_while_the_timer_is_pending_only) { EXPECT_EQ(run(asks_how_long), exit_reason::normal()); }

// ---- waiting

task<> waits_with_a_limit(self& me) {
  const auto m = co_await me.receive<note>(1h);
  EXPECT_TRUE(std::holds_alternative<note>(m));
}
TEST(timers, those_of_waits_go_with_their_process) {
  runtime rt{quiet()};
  for (int i = 0; i < 100; ++i) {
    const pid p = rt.spawn(waits_with_a_limit);
    rt.send(p, note{1});
    rt.wait(p);
  }
  while (rt.counters().ended < 200) std::this_thread::yield();
  EXPECT_EQ(rt.counters().timers, 0U);
}

task<> sleeps_often(self& me, int times) {
  for (int i = 0; i < times; ++i) co_await me.sleep(1ms);
}
TEST(sleep, of_many_processes_at_once_ends_for_all) {
  runtime rt{quiet()};
  std::vector<pid> all;
  for (int i = 0; i < 500; ++i) all.push_back(rt.spawn(sleeps_often, 3));
  for (const pid p : all) rt.wait(p);
  for (const pid p : all) EXPECT_FALSE(rt.alive(p));
}

struct at_its_end {
  explicit at_its_end(std::shared_ptr<int> w) : watched{std::move(w)} {}
  std::shared_ptr<int> watched;
};
TEST(timers, messages_of_pending_timers_are_destroyed_with_the_runtime) {
  const auto watched = std::make_shared<int>(1);
  {
    runtime rt{quiet()};
    std::vector<int> seen;
    const pid p = rt.spawn(waits_for_notes, 1, &seen);
    for (int i = 0; i < 10; ++i) rt.send_after(1h, p, at_its_end{watched});
    EXPECT_EQ(watched.use_count(), 11);
  }
  EXPECT_EQ(watched.use_count(), 1);
}

}  // namespace
