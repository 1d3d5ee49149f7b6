// Processes begin with copies of their arguments, and their bodies are tasks that may await other tasks.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;

struct go {};

// ---- beginning

task<> note_text(self&, std::string text, std::string* into) {
  *into = std::move(text);
  co_return;
}

TEST(process, gets_copies_of_its_arguments) {
  runtime rt{quiet()};
  std::string seen;
  std::string text = "a text too long for any small buffer of a string";
  const pid p = rt.spawn(note_text, text, &seen);
  text = "changed after the spawn";
  rt.wait(p);
  EXPECT_EQ(seen, "a text too long for any small buffer of a string");
}

task<> note_number(self&, std::unique_ptr<int> number, int* into) {
  *into = *number;
  co_return;
}

TEST(process, takes_arguments_that_only_move) {
  runtime rt{quiet()};
  int seen = 0;
  rt.wait(rt.spawn(note_number, std::make_unique<int>(7), &seen));
  EXPECT_EQ(seen, 7);
}

TEST(process, may_be_a_lambda_that_captures_nothing) {
  runtime rt{quiet()};
  int seen = 0;
  const auto body = [](self&, int* into) -> task<> {
    *into = 5;
    co_return;
  };
  EXPECT_EQ(rt.run(body, &seen), exit_reason::normal());
  EXPECT_EQ(seen, 5);
}

task<> wait_for_go(self& me) { co_await me.receive<go>(); }

TEST(process, has_a_pid_that_no_process_before_it_had) {
  runtime rt{{.workers = 1, .level = log_level::off}};
  std::vector<pid> seen;
  for (int i = 0; i < 300; ++i) {
    const pid p = rt.spawn(wait_for_go);
    for (const pid other : seen) ASSERT_NE(p, other);
    seen.push_back(p);
    EXPECT_TRUE(rt.alive(p));
    rt.send(p, go{});
    rt.wait(p);
    EXPECT_FALSE(rt.alive(p));
  }
}

task<> tell_parent(self& me, pid* id, pid* parent) {
  *id = me.id();
  *parent = me.parent();
  co_return;
}
task<> spawn_one(self& me, pid* child, pid* child_sees, pid* parent_of_child) {
  const auto [who, ref] = me.spawn_monitor(tell_parent, child_sees, parent_of_child);
  *child = who;
  co_await me.receive<down>();
}

TEST(process, knows_itself_and_who_spawned_it) {
  runtime rt{quiet()};
  pid child;
  pid child_sees;
  pid parent_of_child;
  const pid parent = rt.spawn(spawn_one, &child, &child_sees, &parent_of_child);
  rt.wait(parent);
  EXPECT_EQ(child_sees, child);
  EXPECT_EQ(parent_of_child, parent);
  pid id;
  pid nobody = parent;
  rt.wait(rt.spawn(tell_parent, &id, &nobody));
  EXPECT_EQ(nobody, pid{});
}

struct refuses_to_be_copied {
  refuses_to_be_copied() = default;
  refuses_to_be_copied(const refuses_to_be_copied&) { throw std::runtime_error{"no copy"}; }
  refuses_to_be_copied(refuses_to_be_copied&&) noexcept = default;
};
task<> hold(self&, refuses_to_be_copied) { co_return; }

TEST(process, an_argument_that_throws_when_copied_throws_where_it_is_spawned) {
  runtime rt{quiet()};
  const refuses_to_be_copied argument;
  EXPECT_THROW(rt.spawn(hold, argument), std::runtime_error);
  EXPECT_EQ(rt.counters().spawned, 0U);
}

task<> refuses_to_begin(self&) { throw std::runtime_error{"this is no coroutine"}; }

TEST(process, a_body_function_that_throws_instead_of_making_a_task_throws_where_it_is_spawned) {
  runtime rt{quiet()};
  EXPECT_THROW(rt.spawn(refuses_to_begin), std::runtime_error);
}

// ---- tasks

task<long> twice(long n) { co_return n + n; }
task<long> sum_of_doubles(long n) {
  long sum = 0;
  for (long i = 1; i <= n; ++i) {
    const long one = co_await twice(i);
    sum += one;
  }
  co_return sum;
}
task<> note_sum(self&, long n, long* into) {
  const long sum = co_await sum_of_doubles(n);
  *into = sum;
}

TEST(task, gives_its_value_to_the_task_that_awaits_it) {
  runtime rt{quiet()};
  long seen = 0;
  EXPECT_EQ(rt.run(note_sum, 10, &seen), exit_reason::normal());
  EXPECT_EQ(seen, 110);
}

TEST(task, a_million_awaits_that_complete_at_once_use_no_stack) {
  runtime rt{quiet()};
  long seen = 0;
  EXPECT_EQ(rt.run(note_sum, 1'000'000, &seen), exit_reason::normal());
  EXPECT_EQ(seen, 1'000'001'000'000);
}

task<int> depth(int n) {
  if (n == 0) co_return 0;
  const int below = co_await depth(n - 1);
  co_return below + 1;
}
task<> note_depth(self&, int n, int* into) {
  const int deep = co_await depth(n);
  *into = deep;
}

TEST(task, may_be_nested_some_thousand_deep) {
  runtime rt{quiet()};
  int seen = 0;
  EXPECT_EQ(rt.run(note_depth, 5000, &seen), exit_reason::normal());
  EXPECT_EQ(seen, 5000);
}

task<std::unique_ptr<int>> make_number(int n) { co_return std::make_unique<int>(n); }
task<> receive_far_below(self& me, std::vector<int>* into) {
  co_await me.receive<go>();
  auto number = co_await make_number(3);
  into->push_back(*number);
}
task<> note_numbers(self& me, std::vector<int>* into) {
  auto later = make_number(4);  // made here, awaited below
  co_await receive_far_below(me, into);
  const auto number = co_await std::move(later);
  into->push_back(*number);
}

TEST(task, may_be_made_first_awaited_later_and_receive_for_its_process) {
  runtime rt{quiet()};
  std::vector<int> seen;
  const pid p = rt.spawn(note_numbers, &seen);
  rt.send(p, go{});
  rt.wait(p);
  EXPECT_EQ(seen, (std::vector<int>{3, 4}));
}

task<int> throws_below(int n) {
  if (n == 0) throw std::out_of_range{"bottom"};
  const int below = co_await throws_below(n - 1);
  co_return below;
}
task<> catch_above(self&, std::string* into) {
  try {
    co_await throws_below(20);
  } catch (const std::out_of_range& thrown) {
    *into = thrown.what();
  }
}

TEST(task, an_exception_passes_through_nested_tasks_and_can_be_caught_above) {
  runtime rt{quiet()};
  std::string seen;
  EXPECT_EQ(rt.run(catch_above, &seen), exit_reason::normal());
  EXPECT_EQ(seen, "bottom");
}

struct counts_its_end {
  explicit counts_its_end(std::atomic<int>* n) : ended{n} {}
  counts_its_end(counts_its_end&& other) noexcept : ended{std::exchange(other.ended, nullptr)} {}
  counts_its_end& operator=(counts_its_end&&) = delete;
  ~counts_its_end() {
    if (ended != nullptr) ++*ended;
  }
  std::atomic<int>* ended;
};
task<> hold_and_wait(self& me, std::atomic<int>* ended, pid waiting_for) {
  const counts_its_end inner{ended};
  me.send(waiting_for, go{});
  co_await me.receive<int>();
}
task<> hold_three(self& me, std::atomic<int>* ended, pid waiting_for, counts_its_end) {
  const counts_its_end outer{ended};
  co_await hold_and_wait(me, ended, waiting_for);
}

TEST(process, a_kill_runs_the_destructors_of_all_its_frames_and_arguments) {
  runtime rt{quiet()};
  std::atomic<int> ended{0};
  const pid told = rt.spawn(wait_for_go);
  const pid p = rt.spawn(hold_three, &ended, told, counts_its_end{&ended});
  rt.wait(told);  // it waits now, two frames deep
  EXPECT_EQ(ended, 0);
  rt.kill(p);
  rt.wait(p);
  EXPECT_EQ(ended, 3);
}

task<> never_awaits(self&, std::atomic<int>* ended) {
  auto never = [](counts_its_end) -> task<> { co_return; }(counts_its_end{ended});
  co_return;
}

TEST(task, one_that_is_never_awaited_is_destroyed_with_its_arguments) {
  runtime rt{quiet()};
  std::atomic<int> ended{0};
  EXPECT_EQ(rt.run(never_awaits, &ended), exit_reason::normal());
  EXPECT_EQ(ended, 1);
}

task<> yield_often(self& me, int* into) {
  for (int i = 0; i < 1000; ++i) {
    co_await me.yield();
    ++*into;
  }
}

TEST(process, goes_on_behind_a_yield) {
  runtime rt{quiet()};
  int seen = 0;
  EXPECT_EQ(rt.run(yield_often, &seen), exit_reason::normal());
  EXPECT_EQ(seen, 1000);
}

task<int> waits_at_depth(self& me, int n, std::latch* reached) {
  if (n == 0) {
    reached->count_down();
    co_await me.receive<go>();
    co_return 0;
  }
  const int below = co_await waits_at_depth(me, n - 1, reached);
  co_return below + 1;
}
task<> goes_deep(self& me, int n, std::latch* reached, std::shared_ptr<int>) {
  co_await waits_at_depth(me, n, reached);
}
TEST(process, a_kill_destroys_any_number_of_nested_frames_without_using_the_stack_for_each) {
  const auto token = std::make_shared<int>(1);
  runtime rt{quiet()};
  std::latch reached{1};
  const pid p = rt.spawn(goes_deep, 300'000, &reached, token);
  reached.wait();
  rt.kill(p);
  rt.wait(p);
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
