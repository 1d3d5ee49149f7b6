// Jobs under a supervisor (reference facts 147-154).
#include <gtest/gtest.h>

#include <numeric>

#include <coppice/supervision/job_supervisor.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

struct never {};

int twice(int n) { return 2 * n; }
int fails(int) { throw std::runtime_error{"out of luck"}; }
task<int> slowly(self& me, int n) {
  const std::chrono::milliseconds time{n};
  co_await me.sleep(time);
  co_return n;
}
task<int> for_ever(self& me, int n) {
  co_await me.receive<never>();
  co_return n;
}

/// A simulated node with a job supervisor, and a process of the test in which `body` runs.
class office {
 public:
  explicit office(dynamic_supervisor_spec spec = {}) {
    rt().spawn(
        +[](self& me, dynamic_supervisor_spec s, ref<job_supervisor>* into) -> task<> {
          me.trap_exits();
          const auto made = co_await start_link<job_supervisor>(me, s);
          *into = *made;
          co_await me.receive<never>();
        },
        spec, &jobs);
    EXPECT_TRUE(world_.settle());
  }
  runtime& rt() { return node_.rt(); }
  sim::world& world() { return world_; }
  std::size_t count() {
    auto n = std::make_shared<std::size_t>(99);
    rt().spawn(
        +[](self&, ref<job_supervisor> j, std::shared_ptr<std::size_t> into) -> task<> {
          const auto counted = co_await count_children(j);
          *into = counted ? counted->specs : 77;
        },
        jobs, n);
    EXPECT_TRUE(world_.settle());
    return *n;
  }
  ref<job_supervisor> jobs;

 private:
  sim::world world_{7};
  sim::node& node_ = world_.add_node();
};

TEST(job_supervisor, a_job_is_its_child_until_it_is_done) {
  office o;
  const auto got = std::make_shared<std::optional<result<int>>>();
  o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs, std::shared_ptr<std::optional<result<int>>> into) -> task<> {
        result<job<int>> j = co_await async_under(me, jobs, slowly, 50);
        *into = co_await j->await();
      },
      o.jobs, got);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(o.count(), 1U);
  o.world().run_for(100ms);
  EXPECT_EQ(**got, 50);
  EXPECT_EQ(o.count(), 0U);
}

TEST(job_supervisor, a_failed_job_takes_its_owner_along_and_is_forgotten) {
  office o;
  const pid owner = o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs) -> task<> {
        const auto j = co_await async_under(me, jobs, fails, 1);
        co_await me.receive<never>();
      },
      o.jobs);
  ASSERT_TRUE(o.world().settle());
  EXPECT_FALSE(o.rt().alive(owner));
  EXPECT_EQ(o.count(), 0U);
}

TEST(job_supervisor, without_a_link_a_failure_is_just_the_result) {
  office o;
  const auto got = std::make_shared<std::optional<result<int>>>();
  const pid owner = o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs, std::shared_ptr<std::optional<result<int>>> into) -> task<> {
        result<job<int>> j = co_await async_under_nolink(me, jobs, fails, 1);
        *into = co_await j->await();
        co_await me.receive<never>();
      },
      o.jobs, got);
  ASSERT_TRUE(o.world().settle());
  EXPECT_TRUE(o.rt().alive(owner));
  EXPECT_EQ((*got)->error().code(), errc::exited);
}

TEST(job_supervisor, a_crash_of_the_owner_ends_a_linked_job_and_no_other) {
  office o;
  const pid owner = o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs) -> task<> {
        const auto linked = co_await async_under(me, jobs, for_ever, 1);
        const auto free = co_await async_under_nolink(me, jobs, for_ever, 2);
        const auto effect = co_await start_job(jobs, for_ever, 3);
        co_await me.receive<never>();
      },
      o.jobs);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(o.count(), 3U);
  o.rt().kill(owner);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(o.count(), 2U);
}

TEST(job_supervisor, takes_no_more_jobs_than_it_may) {
  office o{{.max_children = 1}};
  const auto codes = std::make_shared<std::vector<bool>>();
  o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs, std::shared_ptr<std::vector<bool>> into) -> task<> {
        const auto one = co_await async_under(me, jobs, for_ever, 1);
        const auto two = co_await async_under(me, jobs, for_ever, 2);
        const auto three = co_await start_job(jobs, twice, 2);
        into->push_back(one.has_value());
        into->push_back(!two && two.error().code() == errc::capacity);
        into->push_back(!three && three.error().code() == errc::capacity);
        co_await me.receive<never>();
      },
      o.jobs, codes);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(*codes, (std::vector<bool>{true, true, true}));
}

int runs = 0;
void count_runs() { ++runs; }

TEST(job_supervisor, a_permanent_job_that_just_finishes_uses_up_the_limit) {
  office o{{.limit = {.restarts = 3}}};
  runs = 0;
  o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs) -> task<> {
        me.monitor(jobs.id());
        const child_options always{.restart = restart::permanent};
        const auto j = co_await start_job_with(jobs, always, count_runs);
        co_await me.receive<down>();
      },
      o.jobs);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(runs, 4);
  EXPECT_FALSE(o.rt().alive(o.jobs.id()));
}

TEST(job_supervisor, its_end_ends_its_jobs) {
  office o;
  const pid owner = o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs) -> task<> {
        const auto j = co_await async_under(me, jobs, for_ever, 1);
        co_await me.receive<never>();
      },
      o.jobs);
  ASSERT_TRUE(o.world().settle());
  o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs) -> task<> {
        const auto stopped = co_await stop(me, jobs, exit_reason::shutdown());
        EXPECT_TRUE(stopped);
      },
      o.jobs);
  ASSERT_TRUE(o.world().settle());
  EXPECT_FALSE(o.rt().alive(owner));  // linked to the job, which was shut down
}

task<> stream_all(self& me, ref<job_supervisor> jobs, std::vector<int>* into) {
  std::vector<int> numbers(20);
  std::iota(numbers.begin(), numbers.end(), 1);
  auto doubled = async_stream_under(me, jobs, numbers, twice, {.max_concurrency = 3});
  for (;;) {
    const auto next = co_await doubled.next();
    if (!next) co_return;
    into->push_back(**next);
  }
}

TEST(job_supervisor, a_stream_runs_its_jobs_there_in_order) {
  office o;
  std::vector<int> got;
  o.rt().spawn(stream_all, o.jobs, &got);
  ASSERT_TRUE(o.world().settle());
  ASSERT_EQ(got.size(), 20U);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<int>(2 * (i + 1)));
  EXPECT_EQ(o.count(), 0U);
}

TEST(job_supervisor, a_stream_that_finds_no_room_ends_with_that_error) {
  office o{{.max_children = 2}};
  const auto codes = std::make_shared<std::vector<std::string>>();
  o.rt().spawn(
      +[](self& me, ref<job_supervisor> jobs, std::shared_ptr<std::vector<std::string>> into) -> task<> {
        const std::vector<int> numbers{1, 2, 3, 4};
        auto stream = async_stream_under(me, jobs, numbers, for_ever, {.max_concurrency = 4});
        for (;;) {
          const auto next = co_await stream.next();
          if (!next) break;
          into->push_back(*next ? "value" : std::string{to_string(next->error().code())});
        }
        into->push_back("end");
        co_await me.receive<never>();
      },
      o.jobs, codes);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(*codes, (std::vector<std::string>{"capacity", "end"}));
  EXPECT_EQ(o.count(), 0U);
}

}  // namespace
