// Processes that await their work in a lane, on real threads and in a simulation.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <coppice/env/disk.hpp>
#include <coppice/env/lanes.hpp>
#include <coppice/sim/world.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

result<void> replace(disk& files, const std::string& folder, const std::string& name, const std::string& text) {
  auto opened = files.open(folder + name, {.write = true, .create = true});
  if (!opened) return std::unexpected{opened.error()};
  return (*opened)->write(0, std::as_bytes(std::span{text}));
}

task<> saves(self& me, environment* env, lane* writer) {
  std::string text = "hello";
  const result<result<void>> saved =
      co_await in_lane(*writer, [&] { return replace(env->disk(), "/", "state", text); });
  EXPECT_TRUE(saved.has_value());
  EXPECT_TRUE(saved && *saved);
  me.stop(exit_reason::shutdown());
}
TEST(lane_work, uses_the_disk_of_a_simulated_node) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    sim::world w{seed};
    sim::node& n = w.add_node();
    environment& env = n.rt().host().env();
    const auto writer = env.lanes().open("writer");
    EXPECT_EQ(n.rt().run(saves, &env, writer.get()), exit_reason::shutdown());
    EXPECT_EQ(writer->status().done, 1U);
  }
}

task<> counts_in_order(self& me, lane* one, int* counter) {
  for (int i = 0; i < 100; ++i) {
    const result<int> n = co_await in_lane(*one, [](int* c) { return ++*c; }, counter);
    EXPECT_EQ(n, i + 1);
  }
  const result<void> nothing = co_await in_lane(*one, [] {});
  EXPECT_TRUE(nothing.has_value());
  (void)me;
}
TEST(lane_work, gives_its_results_to_the_process) {
  const auto one = real_environment()->lanes().open("one");
  runtime rt{{.workers = 2, .level = log_level::off}};
  int counter = 0;
  EXPECT_EQ(rt.run(counts_in_order, one.get(), &counter), exit_reason::normal());
}

int fails() { throw std::out_of_range{"too far"}; }
task<> fails_in_a_lane(self&, lane* one) { co_await in_lane(*one, fails); }
TEST(lane_work, that_throws_ends_the_process_that_does_not_catch) {
  const auto one = real_environment()->lanes().open("one");
  runtime rt{{.workers = 1, .level = log_level::off}};
  EXPECT_EQ(rt.run(fails_in_a_lane, one.get()), exit_reason::error("std::out_of_range", "too far", ""));
}

task<> finds_it_closed(self&, lane* one) {
  const result<int> n = co_await in_lane(*one, [] { return 1; });
  EXPECT_EQ(n.error().code(), errc::stopped);
}
TEST(lane_work, is_refused_by_a_closed_lane) {
  const auto one = real_environment()->lanes().open("one");
  one->close();
  runtime rt{{.workers = 1, .level = log_level::off}};
  EXPECT_EQ(rt.run(finds_it_closed, one.get()), exit_reason::normal());
}

struct gate {
  std::latch begun{1};
  std::atomic<bool> open{false};
  std::atomic<bool> frame_gone{false};
  void pass() {
    begun.count_down();
    while (!open) std::this_thread::yield();
  }
};
struct frame_mark {
  std::atomic<bool>* gone;
  explicit frame_mark(std::atomic<bool>* g) : gone{g} {}
  frame_mark(const frame_mark&) = delete;
  frame_mark& operator=(const frame_mark&) = delete;
  ~frame_mark() { *gone = true; }
};
task<> uses_its_frame(self&, lane* one, gate* g) {
  const frame_mark mark{&g->frame_gone};
  std::string local = "alive";
  const result<bool> same = co_await in_lane(*one, [&] {
    g->pass();
    return local == "alive";
  });
  EXPECT_EQ(same, true);
}
TEST(lane_work, may_use_the_frame_of_its_process_even_after_a_kill) {
  gate g;
  const auto one = real_environment()->lanes().open("one");
  runtime rt{{.workers = 2, .level = log_level::off}};
  const pid p = rt.spawn(uses_its_frame, one.get(), &g);
  g.begun.wait();
  rt.kill(p);
  rt.wait(p);
  EXPECT_FALSE(g.frame_gone);
  g.open = true;
  while (!g.frame_gone) std::this_thread::yield();
}

task<> notes_the_result(self& me, lane* one, time_point* woken) {
  const result<int> got = co_await in_lane(*one, [] { return 42; });
  EXPECT_EQ(got, 42);
  *woken = me.now();
}
TEST(lane_work, that_ends_while_its_process_is_frozen_gives_its_result_after_the_thaw) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sim::world w{seed};
    sim::node& n = w.add_node();
    n.lanes().quality = {.job_min = 1s, .job_max = 2s};
    const auto one = n.rt().host().env().lanes().open("one");
    time_point woken{};
    const pid who = n.rt().spawn(notes_the_result, one.get(), &woken);
    w.run_for(500ms);
    const result<frozen> held = n.rt().freeze(who, 100ms);
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(held->still_inside, std::vector{who}) << "its work goes on";
    w.run_for(1h);
    EXPECT_EQ(one->status().done, 1U);
    EXPECT_EQ(woken, time_point{});
    EXPECT_TRUE(n.rt().thaw(who));
    w.run_for(1ms);
    EXPECT_NE(woken, time_point{});
    EXPECT_FALSE(n.rt().alive(who));
  }
}

task<> gives_up(self&, lane* one, gate* g, result<void>* into) {
  *into = co_await in_lane(*one, [](gate* held) { held->pass(); }, g).within(1ms);
}
TEST(lane_work, with_a_limit_lets_the_process_go_on) {
  gate g;
  const auto one = real_environment()->lanes().open("one");
  runtime rt{{.workers = 2, .level = log_level::off}};
  result<void> got{};
  EXPECT_EQ(rt.run(gives_up, one.get(), &g, &got), exit_reason::normal());
  EXPECT_EQ(got.error().code(), errc::timeout);
  g.open = true;
  one->close();
  EXPECT_TRUE(one->wait_closed(time_point::max()));
}

TEST(lane_work, of_a_node_that_crashes_leaves_nothing) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    sim::world w{seed};
    sim::node& n = w.add_node();
    environment& env = n.rt().host().env();
    const auto writer = env.lanes().open("writer");
    for (int i = 0; i < 3; ++i) n.rt().spawn(saves, &env, writer.get());
    for (std::uint64_t steps = w.chance().below(20); steps != 0 && w.step();) --steps;
    n.restart();
    EXPECT_TRUE(w.run());
  }
}

}  // namespace
