// Simulated lanes: virtual durations, and crashes before, during and after a job.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <coppice/sim/world.hpp>

#include "file_texts.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace coppice::file_texts;
using namespace std::chrono_literals;

constexpr open_options new_file{.write = true, .create = true};

environment& env_of(node& n) { return n.rt().host().env(); }

TEST(simulated_lane, is_busy_for_the_duration_of_its_job) {
  world w{1};
  node& n = w.add_node();
  n.lanes().quality = {.job_min = 2s, .job_max = 3s};
  const auto l = env_of(n).lanes().open("writer");
  const time_point begin = w.now();
  std::vector<std::chrono::nanoseconds> times;
  const auto note = [&] { times.push_back(w.now() - begin); };
  EXPECT_TRUE(l->submit(note, note));
  EXPECT_TRUE(l->submit(note, note));
  EXPECT_TRUE(w.run());
  ASSERT_EQ(times.size(), 4U);
  EXPECT_EQ(times[0], 0s);
  EXPECT_GE(times[1], 2s);
  EXPECT_LE(times[1], 3s);
  EXPECT_EQ(times[2], times[1]);
  EXPECT_GE(times[3], times[2] + 2s);
}

TEST(simulated_lane, is_delayed_by_slow_disk_calls) {
  world w{1};
  node& n = w.add_node();
  n.lanes().quality = {.job_min = 0s, .job_max = 0s};
  n.disk().quality.call_min = n.disk().quality.call_max = 5s;
  const auto l = env_of(n).lanes().open("writer");
  const time_point begin = w.now();
  std::chrono::nanoseconds took{0};
  EXPECT_TRUE(env_of(n).disk().list("/")) << "its duration is not that of a job";
  EXPECT_TRUE(l->submit(
      [&] {
        const auto f = value(env_of(n).disk().open("/a", new_file));
        check(f->write(0, bytes("x")));
        check(f->sync());
      },
      [&] { took = w.now() - begin; }));
  EXPECT_TRUE(w.run());
  EXPECT_EQ(took, 15s);
}

task<> ticks(self& me, int* count) {
  for (int i = 0; i < 10; ++i) {
    co_await me.sleep(1s);
    ++*count;
  }
}

TEST(simulated_lane, lets_other_things_happen_while_a_job_lasts) {
  world w{1};
  node& n = w.add_node();
  node& other = w.add_node();
  n.lanes().quality = {.job_min = 5500ms, .job_max = 5500ms};
  const auto l = env_of(n).lanes().open("writer");
  int here = 0;
  int there = 0;
  n.rt().spawn(ticks, &here);
  other.rt().spawn(ticks, &there);
  int meanwhile = 0;
  EXPECT_TRUE(l->submit([] {}, [&] { meanwhile = here + there; }));
  EXPECT_TRUE(w.run());
  EXPECT_EQ(meanwhile, 10);
}

TEST(simulated_lane, waits_while_its_node_is_paused) {
  world w{1};
  node& n = w.add_node();
  const auto l = env_of(n).lanes().open("writer");
  bool worked = false;
  EXPECT_TRUE(l->submit([&] { worked = true; }));
  n.pause();
  w.run_for(1h);
  EXPECT_FALSE(worked);
  n.resume();
  EXPECT_TRUE(w.run());
  EXPECT_TRUE(worked);
}

TEST(simulated_lane, hangs_when_it_is_delayed) {
  world w{1};
  node& n = w.add_node();
  const auto l = env_of(n).lanes().open("writer");
  n.lanes().delay("writer", 1h);
  bool over = false;
  EXPECT_TRUE(l->submit([] {}, [&] { over = true; }));
  w.run_for(59min);
  n.lanes().delay("writer", 1h);
  l->close();
  EXPECT_FALSE(l->wait_closed(w.now() + 30min));
  ASSERT_EQ(n.lanes().status().size(), 1U);
  EXPECT_TRUE(n.lanes().status()[0].closed);
  EXPECT_FALSE(over);
  EXPECT_TRUE(l->wait_closed(w.now() + 1h));
  EXPECT_TRUE(over);
  EXPECT_TRUE(n.lanes().status().empty());
}

TEST(simulated_lane, of_a_node_with_a_clock_of_its_own_shows_times_of_that_clock) {
  world w{1};
  node& n = w.add_node("ahead", {.processes = 1U << 8U, .level = log_level::off}, {.offset = 5h, .rate = 2});
  n.lanes().quality = {.job_min = 2s, .job_max = 2s};
  const auto l = env_of(n).lanes().open("writer");
  const time_point world_begin = w.now();
  const time_point begin = env_of(n).clock().now();
  EXPECT_TRUE(l->submit([] {}));
  w.run_for(1s);
  EXPECT_EQ(l->status().running_since, begin);
  EXPECT_EQ(env_of(n).clock().now() - begin, 2s) << "its clock goes twice as fast";
  l->close();
  EXPECT_FALSE(l->wait_closed(begin + 3s));
  EXPECT_TRUE(l->wait_closed(begin + 5s));
  EXPECT_EQ(w.now() - world_begin, 2s) << "jobs last for times of the world";
}

task<> works_with_a_limit(self&, lane* l, std::chrono::nanoseconds limit, result<void>* into) {
  *into = co_await in_lane(*l, [] {}).within(limit);
}
TEST(simulated_lane, of_a_node_with_a_clock_of_its_own_keeps_to_limits_of_that_clock) {
  for (const auto& [limit, in_time] : {std::pair{3s, false}, std::pair{5s, true}}) {
    world w{1};
    node& n = w.add_node("ahead", {.processes = 1U << 8U, .level = log_level::off}, {.offset = 5h, .rate = 2});
    n.lanes().quality = {.job_min = 2s, .job_max = 2s};
    const auto l = env_of(n).lanes().open("writer");
    result<void> got;
    n.rt().spawn(works_with_a_limit, l.get(), std::chrono::nanoseconds{limit}, &got);
    w.run_for(10s);
    EXPECT_EQ(got.has_value(), in_time) << "2 s of the world are 4 s of its clock";
  }
}

// ---- crashes

/// What a job has done, and how many times its parts were destroyed.
struct history {
  std::string text;
  int destroyed = 0;
};

void submit_job(lane& l, history& h) {
  std::shared_ptr<void> token{nullptr, [&h](void*) { ++h.destroyed; }};
  EXPECT_TRUE(l.submit([&h] { h.text += "work "; }, [&h, token = std::move(token)] { h.text += "done "; }));
}

TEST(simulated_lane, drops_its_jobs_when_the_node_crashes) {
  history h;
  world w{1};
  node& n = w.add_node();
  const auto l = env_of(n).lanes().open("writer");
  submit_job(*l, h);
  n.crash();
  EXPECT_EQ(h.destroyed, 1);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(h.text, "") << "the crash came before the job";
  EXPECT_FALSE(l->submit([] {}));
  EXPECT_TRUE(l->wait_closed(w.now()));
}

TEST(simulated_lane, does_not_deliver_the_result_of_a_job_when_the_node_crashes_after_the_work) {
  history h;
  world w{1};
  node& n = w.add_node();
  const auto l = env_of(n).lanes().open("writer");
  submit_job(*l, h);
  EXPECT_TRUE(w.run_until([&] { return !h.text.empty(); }));
  n.restart();
  EXPECT_EQ(h.destroyed, 1);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(h.text, "work ");
  const auto next = env_of(n).lanes().open("writer");
  submit_job(*next, h);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(h.text, "work work done ") << "lanes of the new program work";
}

TEST(simulated_lane, may_lose_power_at_any_disk_call_of_a_job) {
  std::set<std::string> results;
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    for (std::uint64_t at = 1; at <= 4; ++at) {
      std::string calls;
      bool delivered = false;
      world w{seed};
      node& n = w.add_node();
      const auto l = env_of(n).lanes().open("writer");
      n.disk().crash_at_call(at);
      EXPECT_TRUE(l->submit(
          [&] {
            disk& d = env_of(n).disk();
            const auto f = d.open("/a", new_file);
            calls += f ? "y" : "n";
            if (f) calls += (*f)->write(0, bytes("x")) ? "y" : "n";
            if (f) calls += (*f)->sync() ? "y" : "n";
            calls += d.sync_directory("/") ? "y" : "n";
          },
          [&] { delivered = true; }));
      EXPECT_TRUE(w.run());
      EXPECT_FALSE(n.up());
      EXPECT_FALSE(delivered);
      results.insert(calls);
    }
  EXPECT_EQ(results, (std::set<std::string>{"nn", "ynnn", "yynn", "yyyn"}));
}

TEST(simulated_lane, is_over_when_its_work_crashes_the_node_itself) {
  world w{1};
  node& n = w.add_node();
  const auto l = env_of(n).lanes().open("writer");
  bool delivered = false;
  EXPECT_TRUE(l->submit([&] { n.crash(); }, [&] { delivered = true; }));
  EXPECT_TRUE(w.run());
  EXPECT_FALSE(delivered);
}

TEST(simulated_lane, may_crash_its_node_with_a_result) {
  world w{1};
  node& n = w.add_node();
  const auto l = env_of(n).lanes().open("writer");
  EXPECT_TRUE(l->submit([] {}, [&] { n.crash(); }));
  EXPECT_TRUE(w.run());
  EXPECT_FALSE(n.up());
  EXPECT_TRUE(l->status().closed);
}

TEST(simulated_lane, opened_by_a_program_that_has_crashed_is_closed) {
  world w{1};
  node& n = w.add_node();
  const auto before = n.lanes().start(n.id());
  n.restart();
  EXPECT_FALSE(before->open("late")->submit([] {}));
  EXPECT_TRUE(before->status().empty());
  EXPECT_EQ(n.lanes().status().size(), 0U);
}

TEST(simulated_lane, leaves_the_same_trace_for_the_same_seed) {
  const auto hash = [](std::uint64_t seed) {
    world w{seed};
    node& n = w.add_node();
    std::vector<std::unique_ptr<lane>> all;
    for (int i = 0; i < 5; ++i) all.push_back(env_of(n).lanes().open("lane"));
    for (const auto& each : all)
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(each->submit([] {}));
    EXPECT_TRUE(w.run());
    return w.trace_hash();
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
}

}  // namespace
