// Fairness: whatever some processes do, the others have their turn.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct ball {};
struct note {
  int n = 0;
};
struct echo {
  using reply = int;
  int n = 0;
};

struct parrot {
  static int handle(echo m) { return m.n; }
};

/// One worker, so that nobody can help out.
runtime_options alone() { return {.workers = 1, .level = log_level::off}; }

void expect_service(runtime& rt, ref<parrot> p) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
}

task<> floods_itself(self& me, std::atomic<int>* rounds) {
  for (;;) {
    me.send(me.id(), ball{});
    co_await me.receive<ball>();
    ++*rounds;
  }
}
TEST(fairness, a_process_that_floods_itself_does_not_starve_others) {
  runtime rt{alone()};
  std::atomic<int> rounds{0};
  rt.spawn(floods_itself, &rounds);
  while (rounds == 0) std::this_thread::yield();
  expect_service(rt, rt.spawn<parrot>());
}

task<> yields_for_ever(self& me) {
  for (;;) co_await me.yield();
}
TEST(fairness, processes_that_only_yield_do_not_starve_others) {
  runtime rt{alone()};
  for (int i = 0; i < 10; ++i) rt.spawn(yields_for_ever);
  expect_service(rt, rt.spawn<parrot>());
}

task<> returns_the_ball(self& me, std::atomic<int>* rounds) {
  for (;;) {
    const pid from = co_await me.receive<pid>();
    ++*rounds;
    me.send(from, me.id());
  }
}
TEST(fairness, two_processes_that_keep_each_other_busy_do_not_starve_others) {
  runtime rt{alone()};
  std::atomic<int> rounds{0};
  const pid one = rt.spawn(returns_the_ball, &rounds);
  const pid other = rt.spawn(returns_the_ball, &rounds);
  rt.send(one, other);
  while (rounds < 10) std::this_thread::yield();
  expect_service(rt, rt.spawn<parrot>());
}

task<> spawns_its_successor(self& me, std::atomic<int>* generations) {
  ++*generations;
  me.spawn(spawns_its_successor, generations);
  co_return;
}
TEST(fairness, an_endless_chain_of_spawns_does_not_starve_others) {
  runtime rt{alone()};
  std::atomic<int> generations{0};
  rt.spawn(spawns_its_successor, &generations);
  while (generations < 10) std::this_thread::yield();
  expect_service(rt, rt.spawn<parrot>());
}

task<> floods(self& me, pid victim, std::atomic<bool>* enough) {
  while (!*enough) {
    for (int i = 0; i < 10; ++i) me.send(victim, note{i});
    co_await me.yield();
  }
}
task<> drowns(self& me, std::atomic<int>* handled) {
  for (;;) {
    co_await me.receive<note>();
    ++*handled;
  }
}
TEST(fairness, processes_that_flood_another_starve_neither_it_nor_others) {
  runtime rt{alone()};
  std::atomic<bool> enough{false};
  std::atomic<int> handled{0};
  const pid victim = rt.spawn(drowns, &handled);
  for (int i = 0; i < 3; ++i) rt.spawn(floods, victim, &enough);
  expect_service(rt, rt.spawn<parrot>());
  while (handled < 1000) std::this_thread::yield();
  enough = true;
}

task<> sleeps_a_little(self& me) {
  for (int i = 0; i < 5; ++i) co_await me.sleep(1ms);
}
TEST(fairness, timers_fire_while_every_worker_is_busy) {
  runtime rt{alone()};
  for (int i = 0; i < 10; ++i) rt.spawn(yields_for_ever);
  const pid p = rt.spawn(sleeps_a_little);
  rt.wait(p);
  EXPECT_FALSE(rt.alive(p));
}

task<> takes_from_the_heap_for_ever(self& me) {
  // All its mail was put aside, so that receiving never waits.
  for (int i = 0; i < 1000; ++i) me.send(me.id(), note{i});
  me.send(me.id(), ball{});
  co_await me.receive<ball>();
  for (;;) {
    const note n = co_await me.receive<note>();
    me.send(me.id(), n);
    me.send(me.id(), ball{});
    co_await me.receive<ball>();
  }
}
TEST(fairness, a_process_that_always_finds_mail_put_aside_has_its_budget_too) {
  runtime rt{alone()};
  rt.spawn(takes_from_the_heap_for_ever);
  expect_service(rt, rt.spawn<parrot>());
}

// ---- the budget

struct journal {
  std::mutex mutex;
  std::string text;
  void add(char c) {
    const std::scoped_lock lock{mutex};
    text += c;
  }
  std::string read() {
    const std::scoped_lock lock{mutex};
    return text;
  }
};
struct writer {
  writer(journal* j, char c) : where{j}, sign{c} {}
  void handle(note) const { where->add(sign); }
  journal* where;
  char sign;
};
task<> occupies(self&, std::latch* begun, std::latch* over) {
  begun->count_down();
  over->wait();
  co_return;
}
TEST(fairness, a_process_handles_no_more_than_its_budget_before_others_have_their_turn) {
  runtime rt{{.workers = 1, .budget = 10, .level = log_level::off}};
  journal j;
  const ref<writer> a = rt.spawn<writer>(&j, 'a');
  const ref<writer> b = rt.spawn<writer>(&j, 'b');
  std::latch begun{1};
  std::latch over{1};
  rt.spawn(occupies, &begun, &over);
  begun.wait();
  for (int i = 0; i < 100; ++i) rt.cast<note>(a);
  for (int i = 0; i < 100; ++i) rt.cast<note>(b);
  over.count_down();
  while (j.read().size() < 200) std::this_thread::yield();
  EXPECT_EQ(j.read().find(std::string(21, 'a')), std::string::npos) << j.read();
  EXPECT_EQ(j.read().find(std::string(21, 'b')), std::string::npos) << j.read();
}

// ---- the order of turns

/// A process that adds its sign when it begins, and for every note.
struct signer {
  signer(journal* j, char c) : where{j}, sign{c} {}
  static int handle(echo m) { return m.n; }
  void handle(note) const { where->add(sign); }
  journal* where;
  char sign;
};
task<> signs(self&, journal* j, char sign) {
  j->add(sign);
  co_return;
}
task<> signals_and_spawns(self& me, journal* j) {
  const ref<signer> queued = me.spawn<signer>(j, 'q');
  const ref<signer> next = me.spawn<signer>(j, 'n');
  const result<int> first = co_await queued.call<echo>(1);
  const result<int> second = co_await next.call<echo>(2);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  queued.cast<note>();
  next.cast<note>();  // takes the place of the one signalled before, which goes to the queue
  for (const char sign : {'1', '2', '3'}) me.spawn(signs, j, sign);
}
TEST(order_of_turns, is_the_one_just_signalled_then_the_newest_then_the_queue) {
  runtime rt{alone()};
  journal j;
  rt.spawn(signals_and_spawns, &j);
  while (j.read().size() < 5) std::this_thread::yield();
  EXPECT_EQ(j.read(), "n321q");
}

/// Spawns `count` processes, the last of which signs with '!', and waits for the test.
task<> spawns_many(self& me, journal* j, int count, std::latch* begun, std::latch* over) {
  me.spawn(signs, j, 'o');
  for (int i = 1; i < count; ++i) me.spawn(signs, j, '.');
  begun->count_down();
  over->wait();
  co_return;
}
TEST(order_of_turns, gives_one_turn_to_the_oldest_after_64_of_the_newest) {
  runtime rt{{.workers = 1, .stall_after = 0ms, .level = log_level::off}};
  journal j;
  std::latch begun{1};
  std::latch over{1};
  rt.spawn(spawns_many, &j, 200, &begun, &over);
  begun.wait();
  rt.spawn(signs, &j, 'p');
  rt.spawn(signs, &j, 'q');
  over.count_down();
  while (j.read().size() < 202) std::this_thread::yield();
  const std::string streak(64, '.');
  EXPECT_EQ(j.read().substr(0, 130), streak + 'o' + streak + 'p') << j.read();
  EXPECT_EQ(j.read().back(), 'q') << j.read();
}

// ---- workers help each other

task<> arrives(self&, std::latch* all) {
  all->count_down();
  co_return;
}
task<> spawns_and_blocks(self& me, std::latch* all) {
  for (int i = 0; i < 20; ++i) me.spawn(arrives, all);
  all->wait();
  co_return;
}
TEST(workers, what_a_busy_one_has_spawned_is_run_by_another) {
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  std::latch all{20};
  rt.wait(rt.spawn(spawns_and_blocks, &all));
  EXPECT_TRUE(all.try_wait());
}

task<> arrives_when_told(self& me, std::latch* all) {
  co_await me.receive<ball>();
  all->count_down();
}
task<> signals_and_blocks(self& me, pid other, std::latch* all) {
  me.send(other, ball{});
  all->wait();  // for the process it has just signalled, which would be its worker's next
  co_return;
}
TEST(workers, the_next_process_of_a_busy_one_is_run_by_another) {
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  for (int i = 0; i < 10; ++i) {
    std::latch all{1};
    const pid other = rt.spawn(arrives_when_told, &all);
    while (!rt.info(other)) std::this_thread::yield();
    rt.wait(rt.spawn(signals_and_blocks, other, &all));
    EXPECT_TRUE(all.try_wait());
  }
}

TEST(workers, that_have_nothing_to_do_are_parked) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const ref<parrot> p = rt.spawn<parrot>();
  const auto before = rt.counters().parked;
  for (int i = 0; i < 20; ++i) {
    const auto now = rt.counters().parked;
    expect_service(rt, p);
    while (rt.counters().parked == now) std::this_thread::yield();
  }
  EXPECT_GE(rt.counters().parked, before + 20);
}

// ---- a ring, for the whole machinery

task<> passes_on(self& me, int rounds, pid next) {
  for (int i = 0; i < rounds; ++i) {
    const note n = co_await me.receive<note>();
    if (next) {
      me.send(next, note{n.n + 1});
      continue;
    }
    const pid after = co_await me.receive<pid>();
    me.send(after, note{n.n + 1});
    me.send(me.id(), after);
  }
}
TEST(workers, a_ball_goes_round_a_ring_of_a_thousand_processes) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  constexpr int size = 1000;
  constexpr int rounds = 20;
  const pid last = rt.spawn(passes_on, rounds + 1, pid{});
  pid first = last;
  for (int i = 1; i < size; ++i) first = rt.spawn(passes_on, rounds + 1, first);
  rt.send(last, first);
  rt.send(first, note{0});
  rt.wait(last);
  EXPECT_FALSE(rt.alive(last));
}

}  // namespace
