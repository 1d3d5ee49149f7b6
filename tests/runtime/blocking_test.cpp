// Work on threads for blocking calls.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <coppice/env/lanes.hpp>
#include <coppice/runtime/runtime.hpp>

#include "../line_keeper.hpp"
#include "support.hpp"

namespace {

using namespace coppice;

std::string twice(const std::string& text) { return text + text; }
std::unique_ptr<int> make(std::unique_ptr<int> n) {
  ++*n;
  return n;
}
void set(std::thread::id* into) { *into = std::this_thread::get_id(); }

task<> blocks_for_results(self& me) {
  const std::string half = "ab";
  const std::string text = co_await me.blocking(twice, half);
  EXPECT_EQ(text, "abab");
  const std::unique_ptr<int> number = co_await me.blocking(make, std::make_unique<int>(1));
  EXPECT_EQ(*number, 2);
  std::thread::id other;
  co_await me.blocking(set, &other);
  EXPECT_NE(other, std::thread::id{});
  EXPECT_NE(other, std::this_thread::get_id());
}
TEST(blocking, gives_the_result_of_work_done_on_another_thread) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(blocks_for_results), exit_reason::normal());
}

int fails(int n) { throw std::out_of_range{"number " + std::to_string(n)}; }
task<> catches(self& me, std::string* into) {
  try {
    co_await me.blocking(fails, 7);
  } catch (const std::out_of_range& thrown) {
    *into = thrown.what();
  }
}
task<> does_not_catch(self& me) { co_await me.blocking(fails, 8); }
TEST(blocking, what_the_work_throws_is_thrown_where_it_is_awaited) {
  runtime rt{quiet()};
  std::string seen;
  EXPECT_EQ(rt.run(catches, &seen), exit_reason::normal());
  EXPECT_EQ(seen, "number 7");
  EXPECT_EQ(rt.run(does_not_catch), exit_reason::error("std::out_of_range", "number 8", ""));
}

task<> keeps_mail(self& me, std::latch* begun, std::latch* go_on) {
  co_await me.blocking(
      [](std::latch* b, std::latch* g) {
        b->count_down();
        g->wait();
      },
      begun, go_on);
  const int n = co_await me.receive<int>();
  EXPECT_EQ(n, 5);
}
TEST(blocking, mail_that_comes_meanwhile_is_kept) {
  runtime rt{quiet()};
  std::latch begun{1};
  std::latch go_on{1};
  const pid p = rt.spawn(keeps_mail, &begun, &go_on);
  begun.wait();
  rt.send(p, 5);
  EXPECT_TRUE(rt.alive(p));
  go_on.count_down();
  rt.wait(p);
  EXPECT_EQ(rt.counters().dead_letters, 0U);
}

struct holds {
  std::shared_ptr<int> token;
  std::latch* begun;
  std::latch* go_on;
  std::shared_ptr<int> operator()() const {
    begun->count_down();
    go_on->wait();
    return token;
  }
};
task<> blocks(self& me, holds work) { co_await me.blocking(std::move(work)); }
TEST(blocking, a_process_may_be_killed_meanwhile_and_the_work_ends_without_it) {
  std::latch begun{1};
  std::latch go_on{1};
  const auto token = std::make_shared<int>(1);
  runtime rt{quiet()};
  const pid p = rt.spawn(blocks, holds{token, &begun, &go_on});
  begun.wait();
  rt.kill(p);
  rt.wait(p);
  EXPECT_GT(token.use_count(), 1) << "the work has what it needs";
  go_on.count_down();
  while (token.use_count() > 1) std::this_thread::yield();
}

TEST(blocking, work_may_end_after_the_runtime) {
  std::latch begun{1};
  std::latch go_on{1};
  const auto token = std::make_shared<int>(1);
  {
    runtime rt{{.workers = 2, .stop_within = std::chrono::milliseconds{1}, .level = log_level::off}};
    rt.spawn(blocks, holds{token, &begun, &go_on});
    begun.wait();
  }
  go_on.count_down();
  while (token.use_count() > 1) std::this_thread::yield();
}

task<> meets(self& me, std::latch* all) {
  co_await me.blocking([](std::latch* l) { l->arrive_and_wait(); }, all);
}
TEST(blocking, many_calls_run_at_the_same_time) {
  runtime rt{quiet()};
  constexpr int many = 40;
  std::latch all{many};  // none returns before all have begun
  std::vector<pid> pids;
  for (int i = 0; i < many; ++i) pids.push_back(rt.spawn(meets, &all));
  for (const pid p : pids) rt.wait(p);
  EXPECT_TRUE(all.try_wait());
}

task<> blocks_often(self& me, int* sum) {
  for (int i = 0; i < 100; ++i) {
    const int n = co_await me.blocking([](int k) { return k; }, i);
    *sum += n;
  }
}
TEST(blocking, calls_one_after_another_each_get_their_own_result) {
  runtime rt{quiet()};
  std::vector<int> sums(20);
  std::vector<pid> pids;
  for (int& sum : sums) pids.push_back(rt.spawn(blocks_often, &sum));
  for (const pid p : pids) rt.wait(p);
  for (const int sum : sums) EXPECT_EQ(sum, 4950);
}

task<> is_never_awaited(self& me, std::shared_ptr<int> token) {
  auto unused = me.blocking([](std::shared_ptr<int>) {}, std::move(token));
  (void)unused;
  co_return;
}
TEST(blocking, work_that_is_never_awaited_is_never_done) {
  runtime rt{quiet()};
  const auto token = std::make_shared<int>(1);
  EXPECT_EQ(rt.run(is_never_awaited, token), exit_reason::normal());
  EXPECT_EQ(token.use_count(), 1);
}

// ---- the end of the runtime

struct slow_work {
  std::latch begun{1};
  std::atomic<bool> go_on{false};
  std::atomic<bool> done{false};
};
void works_slowly(slow_work* w) {
  w->begun.count_down();
  while (!w->go_on) std::this_thread::yield();
  w->done = true;
}
task<> has_work_done(self& me, slow_work* w) { co_await me.blocking(works_slowly, w); }

TEST(blocking, that_was_begun_is_done_before_the_runtime_ends) {
  slow_work work;
  std::jthread helper;
  {
    runtime rt{{.workers = 1, .stop_within = std::chrono::hours{1}, .level = log_level::off}};
    const pid p = rt.spawn(has_work_done, &work);
    work.begun.wait();
    helper = std::jthread{[&work, to = rt.handle(), p] {
      while (to.alive(p)) std::this_thread::yield();  // the end of the runtime has begun
      work.go_on = true;
    }};
  }
  EXPECT_TRUE(work.done);
}

/// May outlive the test.
struct hung_work {
  std::latch begun{1};
  std::atomic<bool> go_on{false};
};
int hangs(std::shared_ptr<hung_work> w) {
  w->begun.count_down();
  while (!w->go_on) std::this_thread::yield();
  return 1;
}
task<> has_it_hang(self& me, std::shared_ptr<hung_work> w) { co_await me.blocking(hangs, w); }

TEST(blocking, that_hangs_is_named_and_left_behind_when_the_runtime_ends) {
  const auto work = std::make_shared<hung_work>();
  const auto log = std::make_shared<line_keeper>("blocking work");
  {
    runtime rt{{.workers = 1, .stop_within = std::chrono::milliseconds{1}, .log = log}};
    rt.spawn(has_it_hang, work);
    work->begun.wait();
  }
  EXPECT_EQ(log->lines, (std::vector<std::string>{
                            "error the runtime ends while blocking work has not returned; its thread is left behind"}));
  work->go_on = true;
  while (work.use_count() != 1) std::this_thread::yield();  // its thread has come back, and the frames are gone
}

task<> has_it_hang_in_a_lane(self&, lane* where, std::shared_ptr<hung_work> w) {
  const result<int> got = co_await in_lane(*where, hangs, w);
  EXPECT_FALSE(got.has_value()) << "not reached: it is killed before that";
}
TEST(blocking, of_a_lane_that_hangs_is_named_and_left_behind_when_the_runtime_ends) {
  const auto work = std::make_shared<hung_work>();
  const auto log = std::make_shared<line_keeper>("blocking work");
  const auto writer = real_environment()->lanes().open("writer");
  {
    runtime rt{{.workers = 1, .stop_within = std::chrono::milliseconds{1}, .log = log}};
    rt.spawn(has_it_hang_in_a_lane, writer.get(), work);
    work->begun.wait();
  }
  EXPECT_EQ(log->lines, (std::vector<std::string>{
                            "error the runtime ends while blocking work has not returned; its thread is left behind"}));
  work->go_on = true;
  while (work.use_count() != 1) std::this_thread::yield();  // the job is over, and the frames are gone
  EXPECT_TRUE(writer->submit([] {})) << "the lane itself goes on";
}

TEST(blocking, waits_when_all_threads_of_its_runtime_are_taken) {
  const auto work = std::make_shared<hung_work>();
  runtime rt{{.workers = 2, .blocking_threads = 1, .level = log_level::off}};
  const pid first = rt.spawn(has_it_hang, work);
  work->begun.wait();
  const pid second = rt.spawn(has_it_hang, std::make_shared<hung_work>());
  while (rt.counters().blocking_waiting != 1) std::this_thread::yield();
  EXPECT_EQ(rt.counters().blocking_running, 1U);
  EXPECT_EQ(rt.counters().blocking_done, 0U);
  rt.kill(second);  // its work has not begun, and is dropped
  rt.wait(second);
  work->go_on = true;
  rt.wait(first);
  while (rt.counters().blocking_done != 2) std::this_thread::yield();
  EXPECT_EQ(rt.counters().blocking_waiting, 0U);
}

TEST(blocking, of_another_runtime_has_threads_of_its_own) {
  const auto work = std::make_shared<hung_work>();
  runtime busy{{.workers = 1, .blocking_threads = 1, .level = log_level::off}};
  busy.spawn(has_it_hang, work);
  work->begun.wait();
  runtime other{{.workers = 1, .blocking_threads = 1, .level = log_level::off}};
  EXPECT_EQ(other.run(blocks_for_results), exit_reason::normal());
  work->go_on = true;
}

}  // namespace
