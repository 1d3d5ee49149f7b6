// Sizes that a service may reach: a million processes, and many that have nothing to do.
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t many = 100'000;  // each has several times its size there
#else
constexpr std::int64_t many = 1'000'000;
#endif

struct number {
  std::int64_t value = 0;
};
struct stop {};

task<> keeps_a_number(self& me, pid collector, std::int64_t mine) {
  me.send(collector, number{mine});
  co_await me.receive<stop>();
  me.send(collector, number{-mine});
}

/// Spawns them, receives a message from each, tells each to stop, and receives another from each.
task<> collects(self& me, std::atomic<std::uint64_t>* alive_at_most, runtime* rt, std::int64_t* sum) {
  std::vector<pid> all;
  all.reserve(many);
  for (std::int64_t i = 1; i <= many; ++i) all.push_back(me.spawn_link(keeps_a_number, me.id(), i));
  for (std::int64_t i = 1; i <= many; ++i) *sum += (co_await me.receive<number>()).value;
  const runtime_counters now = rt->counters();
  *alive_at_most = now.spawned - now.ended;
  for (const pid p : all) me.send(p, stop{});
  for (std::int64_t i = 1; i <= many; ++i) *sum += (co_await me.receive<number>()).value;
}

TEST(million, processes_live_at_once_each_with_its_link_and_its_state) {
  runtime rt{{.workers = 2}};
  for (int round = 0; round < 2; ++round) {
    std::atomic<std::uint64_t> alive{0};
    std::int64_t sum = 0;
    const exit_reason why = rt.wait(rt.spawn(collects, &alive, &rt, &sum));
    EXPECT_EQ(why, exit_reason::normal());
    EXPECT_GE(alive, static_cast<std::uint64_t>(many));
    EXPECT_EQ(sum, 0);
  }
}

struct echo {
  using reply = std::int64_t;
  std::int64_t n = 0;
};
struct server {
  std::int64_t state = 0;
  std::int64_t handle(echo m) { return state += m.n; }
};

TEST(million, servers_each_answer_a_call) {
  runtime rt{{.workers = 2}};
  std::vector<ref<server>> all;
  all.reserve(many);
  for (std::int64_t i = 0; i < many; ++i) all.push_back(rt.spawn<server>(i));
  for (std::int64_t i = 0; i < many; i += many / 1000)
    EXPECT_EQ(rt.call(all[static_cast<std::size_t>(i)].call<echo>(1).within(forever)), i + 1);
  EXPECT_GE(rt.counters().spawned - rt.counters().ended, static_cast<std::uint64_t>(many));
}

// ---- nothing to do

task<> waits_long(self& me) {
  const timer_ref t = me.start_timer(1h);
  (void)co_await me.receive<stop>(2h);
  me.cancel(t);
}

task<> sleeps(self& me, std::chrono::nanoseconds how_long) { co_await me.sleep(how_long); }

std::chrono::nanoseconds cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

TEST(idle, a_runtime_whose_processes_all_wait_uses_no_cpu) {
  runtime rt{{.workers = 4}};
  for (int i = 0; i < 10'000; ++i) rt.spawn(waits_long);
  while (rt.counters().timers < 20'000) std::this_thread::yield();
  while (rt.counters().parked < 4) std::this_thread::yield();
  const auto before = cpu_time();
  rt.wait(rt.spawn(sleeps, 1s));  // the stretch that is looked at
  EXPECT_LT(cpu_time() - before, 10ms);
}

}  // namespace
