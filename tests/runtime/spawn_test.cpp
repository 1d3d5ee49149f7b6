// Spawning from everywhere: from many threads, into a full table, and while the runtime ends.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;

struct go {};

task<> wait_for_go(self& me) { co_await me.receive<go>(); }
task<> count_up(self&, std::atomic<int>* n) {
  ++*n;
  co_return;
}
task<> wait_for(self& me, std::vector<pid> all) {
  for (const pid p : all) me.monitor(p);
  for (std::size_t i = 0; i < all.size(); ++i) co_await me.receive<down>();
}

TEST(spawn, from_many_threads_at_once_starts_each_process_once) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  std::atomic<int> ran{0};
  std::latch begin{8};
  std::vector<std::vector<pid>> made(8);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : made)
      threads.emplace_back([&] {
        begin.arrive_and_wait();
        for (int i = 0; i < 500; ++i) mine.push_back(rt.spawn(count_up, &ran));
      });
  }
  std::vector<pid> all;
  for (const auto& some : made) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "two processes have one pid";
  rt.wait(rt.spawn(wait_for, all));
  EXPECT_EQ(ran, 4000);
}

task<> spawn_tree(self& me, int levels, std::atomic<int>* leaves) {
  if (levels == 0) {
    ++*leaves;
    co_return;
  }
  for (int i = 0; i < 4; ++i) me.spawn_monitor(spawn_tree, levels - 1, leaves);
  for (int i = 0; i < 4; ++i) co_await me.receive<down>();
}

TEST(spawn, a_tree_of_processes_runs_to_its_last_leaf) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  std::atomic<int> leaves{0};
  rt.wait(rt.spawn(spawn_tree, 6, &leaves));
  EXPECT_EQ(leaves, 4096);
}

// ---- a full table

/// Spawns until the table is full.
std::vector<pid> fill(runtime& rt) {
  std::vector<pid> all;
  try {
    for (;;) all.push_back(rt.spawn(wait_for_go));
  } catch (const spawn_failed&) {
    return all;
  }
}

TEST(spawn, into_a_full_table_throws_and_says_what_to_do) {
  runtime rt{{.workers = 1, .processes = 10, .level = log_level::off}};
  EXPECT_EQ(fill(rt).size(), 10U);
  try {
    rt.spawn(wait_for_go);
    FAIL() << "an eleventh process was started";
  } catch (const spawn_failed& failed) {
    EXPECT_EQ(failed.why().code(), errc::capacity);
    EXPECT_NE(std::string{failed.what()}.find("runtime_options::processes"), std::string::npos) << failed.what();
  }
  const auto refused = rt.spawn({.name = "eleventh"}, wait_for_go);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::capacity);
  EXPECT_EQ(rt.where("eleventh"), pid{});
}

/// Waits without a process of its own, for which there may be no room.
void wait_until_ended(runtime& rt, std::uint64_t count) {
  while (rt.counters().ended < count) std::this_thread::yield();
}
/// As many as wanted, or as many as there were after trying often: a slot is free a moment after its process has ended.
std::vector<pid> spawn_patiently(runtime& rt, std::size_t wanted) {
  std::vector<pid> all;
  for (int tries = 0; tries < 10'000 && all.size() < wanted; ++tries) {
    const auto one = rt.spawn({}, wait_for_go);
    if (one)
      all.push_back(*one);
    else
      std::this_thread::yield();
  }
  return all;
}

TEST(spawn, finds_room_again_when_a_process_of_a_full_table_has_ended) {
  runtime rt{{.workers = 1, .processes = 10, .level = log_level::off}};
  const auto all = fill(rt);
  rt.kill(all.front());
  wait_until_ended(rt, 1);
  EXPECT_EQ(spawn_patiently(rt, 1).size(), 1U);
}

TEST(spawn, finds_the_room_of_all_processes_that_have_ended_wherever_they_ran) {
  runtime rt{{.workers = 2, .processes = 100, .level = log_level::off}};
  std::uint64_t ended = 0;
  for (int round = 0; round < 3; ++round) {
    const auto all = spawn_patiently(rt, 100);
    EXPECT_EQ(all.size(), 100U) << "round " << round;
    for (const pid p : all) rt.kill(p);
    wait_until_ended(rt, ended += all.size());
  }
}

task<> spawn_and_tell(self& me, int count, std::atomic<int>* started) {
  for (int i = 0; i < count; ++i) {
    const auto one = me.spawn({}, wait_for_go);
    if (one) ++*started;
  }
  co_return;
}

TEST(spawn, inside_a_process_may_use_the_whole_table) {
  runtime rt{{.workers = 2, .processes = 300, .level = log_level::off}};
  std::atomic<int> started{0};
  rt.spawn(spawn_and_tell, 400, &started);
  wait_until_ended(rt, 1);
  EXPECT_EQ(started, 299);
}

task<> flood_the_table(self& me, std::optional<error>* why) {
  try {
    for (;;) me.spawn_link(wait_for_go);
  } catch (const spawn_failed& failed) {
    why->emplace(failed.why());
  }
  co_return;
}

TEST(spawn, a_process_that_finds_the_table_full_gets_the_exception_itself) {
  std::optional<error> why;
  {
    runtime rt{{.workers = 1, .processes = 20, .level = log_level::off}};
    rt.spawn(flood_the_table, &why);
    wait_until_ended(rt, 1);
  }
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), errc::capacity);
}

// ---- options

TEST(runtime, refuses_options_that_make_no_sense) {
  EXPECT_THROW(runtime{{.processes = 0}}, std::invalid_argument);
  EXPECT_THROW(runtime{{.processes = (1U << 28U) + 1}}, std::invalid_argument);
  EXPECT_THROW(runtime{{.budget = 0}}, std::invalid_argument);
  EXPECT_THROW(runtime{{.workers = 1001}}, std::invalid_argument);
  EXPECT_THROW(runtime{{.stall_after = std::chrono::milliseconds{-1}}}, std::invalid_argument);
  EXPECT_THROW(runtime{{.stop_within = std::chrono::milliseconds{-1}}}, std::invalid_argument);
}

TEST(runtime, without_options_has_a_worker_for_each_core) {
  runtime rt;
  std::atomic<int> ran{0};
  rt.wait(rt.spawn(count_up, &ran));
  EXPECT_EQ(ran, 1);
}

// ---- while the runtime ends

/// Spawns another process from a destructor, which runs while the runtime kills everything.
struct spawns_at_its_end {
  spawns_at_its_end(self& me, std::optional<error>* into) : process{&me}, why{into} {}
  spawns_at_its_end(const spawns_at_its_end&) = delete;
  spawns_at_its_end& operator=(const spawns_at_its_end&) = delete;
  ~spawns_at_its_end() {
    const auto started = process->spawn({}, wait_for_go);
    if (!started) why->emplace(started.error());
  }
  self* process;
  std::optional<error>* why;
};
task<> hold(self& me, std::latch* ready, std::optional<error>* why) {
  const spawns_at_its_end last{me, why};
  ready->count_down();
  co_await me.receive<go>();
}

TEST(spawn, while_the_runtime_ends_is_refused) {
  std::optional<error> why;
  {
    runtime rt{{.workers = 2, .level = log_level::off}};
    std::latch ready{1};
    rt.spawn(hold, &ready, &why);
    ready.wait();
  }
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), errc::stopped);
}

task<> spawn_without_end(self& me, std::atomic<int>* started) {
  ++*started;
  for (;;) {
    me.spawn(spawn_without_end, started);
    co_await me.yield();
  }
}

TEST(runtime, ends_although_its_processes_spawn_more_and_more) {
  std::atomic<int> started{0};
  {
    runtime rt{{.workers = 2, .processes = 5000, .level = log_level::off}};
    rt.spawn(spawn_without_end, &started);
    while (started < 100) std::this_thread::yield();
  }
  EXPECT_GE(started, 100);
}

}  // namespace
