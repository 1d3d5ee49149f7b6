// Streams of jobs under a supervisor.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "office.hpp"

namespace {

using namespace coppice;

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

TEST(job_stream, runs_its_jobs_there_in_order) {
  office o;
  std::vector<int> got;
  o.rt().spawn(stream_all, o.jobs, &got);
  ASSERT_TRUE(o.world().settle());
  ASSERT_EQ(got.size(), 20U);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<int>(2 * (i + 1)));
  EXPECT_EQ(o.count(), 0U);
}

TEST(job_stream, that_finds_no_room_ends_with_that_error) {
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
        into->emplace_back("end");
        co_await me.receive<never>();
      },
      o.jobs, codes);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(*codes, (std::vector<std::string>{"capacity", "end"}));
  EXPECT_EQ(o.count(), 0U);
}

template <class Stream>
task<std::vector<int>> drain(Stream* s) {
  std::vector<int> got;
  for (;;) {
    const auto r = co_await s->next();
    if (!r) co_return got;
    got.push_back(*r ? **r : -1);
  }
}

// ---- order

const std::vector<int> slowest_first{50, 40, 30, 20, 10};
task<> streams(self& me, ref<job_supervisor> jobs, stream_options how, std::vector<int>* into) {
  auto s = async_stream_under(me, jobs, slowest_first, slowly, how);
  *into = co_await drain(&s);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}

TEST(job_stream, keeps_the_order_with_the_slowest_first_unless_told_otherwise) {
  for (const std::size_t n : {1U, 2U, 4U, 100U}) {
    for (const bool ordered : {true, false}) {
      office o;
      std::vector<int> got;
      o.rt().spawn(streams, o.jobs, stream_options{.max_concurrency = n, .ordered = ordered}, &got);
      o.world().run_for(1s);
      if (!ordered && n >= slowest_first.size()) {
        EXPECT_EQ(got, (std::vector{10, 20, 30, 40, 50}));
      }
      if (!ordered) std::ranges::sort(got, std::greater{});
      EXPECT_EQ(got, slowest_first);
      EXPECT_EQ(o.count(), 0U);
    }
  }
}

// ---- failures

int fails_when_odd(int n) {
  if (n % 2 != 0) throw std::runtime_error{"odd"};
  return n;
}
const std::vector<int> one_odd{2, 3, 4};
task<> streams_a_failure(self& me, ref<job_supervisor> jobs, std::vector<int>* into) {
  auto s = async_stream_under(me, jobs, one_odd, fails_when_odd, {.max_concurrency = 1});
  *into = co_await drain(&s);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
task<> traps_a_failure(self& me, ref<job_supervisor> jobs, std::vector<int>* into) {
  me.trap_exits();
  auto rest = streams_a_failure(me, jobs, into);
  co_await std::move(rest);
}
task<> streams_without_links(self& me, ref<job_supervisor> jobs, std::vector<int>* into) {
  auto s = async_stream_under_nolink(me, jobs, one_odd, fails_when_odd, {.max_concurrency = 2});
  *into = co_await drain(&s);
}

TEST(job_stream, with_a_failure_takes_a_consumer_along_that_is_linked_and_does_not_trap_exits) {
  office o;
  std::vector<int> got;
  const pid consumer = o.rt().spawn(streams_a_failure, o.jobs, &got);
  ASSERT_TRUE(o.world().settle());
  EXPECT_TRUE(got.empty());
  EXPECT_FALSE(o.rt().alive(consumer));
  EXPECT_EQ(o.count(), 0U);
  for (const auto body : {traps_a_failure, streams_without_links}) {
    o.rt().spawn(body, o.jobs, &got);
    ASSERT_TRUE(o.world().settle());
    EXPECT_EQ(got, (std::vector{2, -1, 4})) << "just a result";
  }
}

task<> kills_the_late(self& me, ref<job_supervisor> jobs, std::vector<int>* into) {
  me.trap_exits();
  const std::vector<int> some{10, 60'000, 20};
  auto s =
      async_stream_under(me, jobs, some, slowly, {.max_concurrency = 2, .timeout = 1s, .on_timeout = on_timeout::kill});
  *into = co_await drain(&s);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}

TEST(job_stream, kills_a_job_that_is_late_when_told_to_and_goes_on) {
  office o;
  std::vector<int> got;
  o.rt().spawn(kills_the_late, o.jobs, &got);
  o.world().run_for(2s);
  EXPECT_EQ(got, (std::vector{10, -1, 20}));
  EXPECT_EQ(o.count(), 0U);
}

// ---- leaving early

task<> leaves_early(self& me, ref<job_supervisor> jobs, trap how, bool linked, int* into) {
  me.trap_exits(how);
  const std::vector<int> endless{1, 60'000, 60'000, 60'000, 60'000};
  const stream_options few{.max_concurrency = 3, .timeout = forever};
  {
    auto s = linked ? async_stream_under(me, jobs, endless, slowly, few)
                    : async_stream_under_nolink(me, jobs, endless, slowly, few);
    const auto first = co_await s.next();
    *into = **first;
  }
  co_await me.receive<never>();
}

TEST(job_stream, left_early_ends_its_jobs_and_leaves_no_messages_and_no_links) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    office o{{}, seed};
    int got = 0;
    const pid p = o.rt().spawn(leaves_early, o.jobs, seed % 2 == 0 ? trap::on : trap::off, seed % 3 == 0, &got);
    o.world().run_for(1s);
    EXPECT_EQ(got, 1);
    ASSERT_TRUE(o.rt().alive(p)) << "seed " << seed;
    EXPECT_EQ(o.rt().info(p)->mailbox, 0U);
    EXPECT_TRUE(o.rt().info(p)->links.empty());
    EXPECT_EQ(o.count(), 0U) << "no job is left";
  }
}

task<> is_killed_in_the_middle(self& me, ref<job_supervisor> jobs) {
  const std::vector<int> endless(10, 60'000);
  auto s = async_stream_under_nolink(me, jobs, endless, slowly, {.max_concurrency = 4, .timeout = forever});
  const auto none = co_await s.next();
  (void)none;
}

TEST(job_stream, whose_consumer_is_killed_ends_its_jobs) {
  office o;
  const pid p = o.rt().spawn(is_killed_in_the_middle, o.jobs);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(o.count(), 4U);
  o.rt().kill(p);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(o.count(), 0U);
}

task<> kills_soon(self& me, pid who, std::uint64_t turns) {
  for (std::uint64_t i = 0; i < turns; ++i) co_await me.yield();
  me.kill(who);
}

TEST(job_stream, whose_consumer_is_killed_while_jobs_are_started_leaves_none) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    office o{{}, seed};
    const pid p = o.rt().spawn(is_killed_in_the_middle, o.jobs);
    o.rt().spawn(kills_soon, p, seed % 16);
    ASSERT_TRUE(o.world().settle());
    EXPECT_FALSE(o.rt().alive(p));
    EXPECT_EQ(o.count(), 0U) << "seed " << seed;
  }
}

/// Keeps the supervisor from answering before the job that it has started is done.
struct patient_sink final : log_sink {
  void write(const log_record& r) override {
    if (!r.text.ends_with("' started")) return;
    ++started;
    while (done < started) std::this_thread::yield();
  }
  int started = 0;
  std::atomic<int> done{0};
};
struct reports {
  std::shared_ptr<patient_sink> to;
  int operator()(int n) const {
    ++to->done;
    return n;
  }
};
task<> sums_up(self& me, ref<job_supervisor> jobs, std::shared_ptr<patient_sink> sink, int* sum) {
  const std::vector<int> numbers{1, 2, 3, 4, 5};
  auto stream = async_stream_under(me, jobs, numbers, reports{sink}, {.max_concurrency = 1, .timeout = forever});
  for (;;) {
    const auto next = co_await stream.next();
    if (!next) co_return;
    *sum += **next;
  }
}
TEST(job_stream, does_not_miss_a_job_that_is_done_before_its_start_was_answered) {
  const auto sink = std::make_shared<patient_sink>();
  runtime rt{{.workers = 3, .level = log_level::info, .log = sink}};
  const auto jobs = start_job_supervisor(rt);
  ASSERT_TRUE(jobs);
  int sum = 0;
  EXPECT_EQ(rt.run(sums_up, *jobs, sink, &sum), exit_reason::normal());
  EXPECT_EQ(sum, 15);
}

/// The job is done, and its process is not gone yet.
struct leaves_late {
  bool used = false;
  leaves_late() = default;
  leaves_late(const leaves_late&) {}
  leaves_late& operator=(const leaves_late&) = delete;
  ~leaves_late() {
    for (int i = 0; used && i < 1000; ++i) std::this_thread::yield();
  }
  int operator()(int n) {
    used = true;
    return n;
  }
};
task<> counts_all(self& me, ref<job_supervisor> jobs, int* n) {
  const std::vector<int> numbers{1, 2, 3, 4, 5, 6, 7, 8};
  auto stream = async_stream_under(me, jobs, numbers, leaves_late{}, {.max_concurrency = 1, .timeout = forever});
  for (;;) {
    const auto next = co_await stream.next();
    if (!next) co_return;
    if (*next) ++*n;
  }
}
TEST(job_stream, waits_for_room_that_its_own_jobs_still_take) {
  runtime rt{{.workers = 3, .level = log_level::off}};
  const auto jobs = start_job_supervisor(rt, {.max_children = 1});
  ASSERT_TRUE(jobs);
  int n = 0;
  EXPECT_EQ(rt.run(counts_all, *jobs, &n), exit_reason::normal());
  EXPECT_EQ(n, 8);
}

}  // namespace
