// Waiting for several jobs.
#include <stdexcept>
#include <string>

#include <coppice/behaviour/jobs.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

struct noise {};

task<int> after(self& me, std::chrono::nanoseconds pause, int n) {
  co_await me.sleep(pause);
  if (n < 0) throw std::runtime_error{"a negative number"};
  co_return n;
}
task<> idles(self& me, std::chrono::nanoseconds pause) { co_await me.sleep(pause); }

std::vector<job<int>> slowest_first(self& me) {
  std::vector<job<int>> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(async_job(me, after, std::chrono::seconds{5 - i} - 500ms, i));
  return jobs;
}

// ---- await_many

task<> awaits_in_order(self& me) {
  auto jobs = slowest_first(me);
  me.send(me.id(), noise{});
  const result<std::vector<int>> all = co_await await_many(jobs);
  EXPECT_EQ(all, (std::vector{0, 1, 2, 3, 4}));
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 1) << "only the noise";
}
TEST(await_many, gives_the_results_in_input_order_whatever_the_order_of_answers) {
  EXPECT_EQ(in_the_world(awaits_in_order), exit_reason::normal());
}

task<> awaits_none(self&) {
  const std::vector<job<int>> none;
  const result<std::vector<int>> all = co_await await_many(none);
  EXPECT_EQ(all, std::vector<int>{});
}
TEST(await_many, of_no_jobs_has_no_results) { EXPECT_EQ(in_the_world(awaits_none), exit_reason::normal()); }

task<> awaits_voids(self& me) {
  std::vector<job<void>> jobs;
  jobs.push_back(async_job(me, idles, 2s));
  jobs.push_back(async_job(me, idles, 1s));
  const auto begin = me.now();
  const result<void> all = co_await await_many(jobs);
  EXPECT_TRUE(all.has_value());
  EXPECT_LT(me.now() - begin, 3s);
}
TEST(await_many, waits_for_jobs_that_give_nothing) { EXPECT_EQ(in_the_world(awaits_voids), exit_reason::normal()); }

task<> awaits_a_failure(self& me) {
  std::vector<job<int>> jobs;
  jobs.push_back(async_nolink(me, after, 4s, 1));
  jobs.push_back(async_nolink(me, after, 1s, -1));
  jobs.push_back(completed(me, 3));
  const auto begin = me.now();
  const result<std::vector<int>> all = co_await await_many(jobs);
  EXPECT_EQ(all.error().code(), errc::exited);
  EXPECT_LT(me.now() - begin, 2s) << "it should not have waited for the slow one";
  const result<int> slow = co_await jobs[0].await();
  EXPECT_EQ(slow, 1) << "the others go on";
}
TEST(await_many, fails_at_once_when_one_of_them_fails) {
  EXPECT_EQ(in_the_world(awaits_a_failure), exit_reason::normal());
}

task<int> ends_with(self& me, exit_reason why) {
  co_await me.exit(std::move(why));
  co_return 0;
}
task<> awaits_an_end(self& me, exit_reason why) {
  std::vector<job<int>> jobs;
  jobs.push_back(async_nolink(me, after, 1h, 1));
  jobs.push_back(async_nolink(me, ends_with, why));
  const result<std::vector<int>> all = co_await await_many(jobs, forever);
  EXPECT_EQ(all.error().code(), errc::exited);
  EXPECT_EQ(all.error().text(), why.to_string());
  const result<std::vector<int>> again = co_await await_many(jobs, forever);
  EXPECT_EQ(again.error().code(), errc::noproc) << "that result was taken";
}
TEST(await_many, fails_at_once_however_one_of_them_ends_without_a_result) {
  for (const exit_reason& why :
       {exit_reason::normal(), exit_reason::shutdown(), exit_reason::error("x"), exit_reason::killed()})
    EXPECT_EQ(in_the_world(awaits_an_end, why), exit_reason::normal());
}

task<> owner_of_a_failure(self& me) {
  std::vector<job<int>> jobs;
  jobs.push_back(async_job(me, after, 1h, 1));
  jobs.push_back(async_job(me, after, 1s, -1));
  const result<std::vector<int>> all = co_await await_many(jobs, forever);
  ADD_FAILURE() << "the owner should have ended";
}
task<> sees_the_owner_fail(self& me) {
  const pid owner = me.spawn(owner_of_a_failure);
  const exit_reason why = co_await end_of(me, owner);
  EXPECT_EQ(why.text(), "a negative number");
}
TEST(await_many, a_linked_job_that_fails_takes_the_owner_with_it) {
  EXPECT_EQ(in_the_world(sees_the_owner_fail), exit_reason::normal());
}

task<> awaits_one_twice(self& me) {
  auto one = async_job(me, after, 1s, 1);
  const std::vector<job<int>> twice{one, one};
  const result<std::vector<int>> all = co_await await_many(twice, forever);
  EXPECT_EQ(all.error().code(), errc::noproc) << "a result is given once";
  auto other = async_job(me, after, 1s, 1);
  const std::vector<job<int>> again{other, other};
  const yield_options how{.timeout = forever};
  const auto both = co_await yield_many(again, how);
  EXPECT_EQ(both[0], result<int>{1});
  EXPECT_EQ((*both[1]).error().code(), errc::noproc);
}
TEST(await_many, of_one_job_twice_does_not_wait_for_ever) {
  EXPECT_EQ(in_the_world(awaits_one_twice), exit_reason::normal());
}

task<> awaits_too_long(self& me) {
  std::vector<job<int>> jobs;
  jobs.push_back(async_job(me, after, 1s, 1));
  jobs.push_back(async_job(me, after, 1h, 2));
  const result<std::vector<int>> all = co_await await_many(jobs, 2s);
  EXPECT_EQ(all.error().code(), errc::timeout);
  EXPECT_EQ(all.error().text(), "1 of 2 jobs are not done");
  const result<int> first = co_await jobs[0].await(0s);
  EXPECT_EQ(first, 1) << "what is done can still be taken";
}
TEST(await_many, gives_up_after_its_timeout) { EXPECT_EQ(in_the_world(awaits_too_long), exit_reason::normal()); }

task<> thief(self&, std::vector<job<int>> jobs) {
  const result<std::vector<int>> all = co_await await_many(jobs);
  (void)all;
}
task<> yielding_thief(self&, std::vector<job<int>> jobs) {
  const auto all = co_await yield_many(jobs);
  (void)all;
}
task<> gives_them_away(self& me, task<> (*to)(self&, std::vector<job<int>>)) {
  me.trap_exits();
  me.spawn_link(to, slowest_first(me));
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.reason.exception_type(), "std::logic_error");
}
TEST(await_many, is_for_the_owner_only) {
  EXPECT_EQ(in_the_world(gives_them_away, thief), exit_reason::normal());
  EXPECT_EQ(in_the_world(gives_them_away, yielding_thief), exit_reason::normal());
}

// ---- yield_many

task<> yields_some(self& me) {
  auto jobs = slowest_first(me);
  const yield_options how{.timeout = 2s};
  const auto some = co_await yield_many(jobs, how);
  EXPECT_EQ(some.size(), 5U);
  EXPECT_FALSE(some[0] || some[1] || some[2]);
  EXPECT_EQ(some[3], result<int>{3});
  EXPECT_EQ(some[4], result<int>{4});
  for (int i = 0; i < 3; ++i) {
    const result<int> later = co_await jobs[static_cast<std::size_t>(i)].await();
    EXPECT_EQ(later, i) << "they go on";
  }
}
TEST(yield_many, gives_nothing_for_those_that_are_not_done_in_time) {
  EXPECT_EQ(in_the_world(yields_some), exit_reason::normal());
}

task<> yields_all(self& me) {
  std::vector<job<int>> jobs;
  jobs.push_back(async_nolink(me, after, 24h, 1));
  jobs.push_back(async_nolink(me, after, 1s, -1));
  const yield_options how{.timeout = forever};
  const auto all = co_await yield_many(jobs, how);
  EXPECT_EQ(all[0], result<int>{1});
  EXPECT_EQ((*all[1]).error().code(), errc::exited) << "a failure is a result";
}
TEST(yield_many, may_wait_for_ever) { EXPECT_EQ(in_the_world(yields_all), exit_reason::normal()); }

task<> yields_two(self& me) {
  auto jobs = slowest_first(me);
  const yield_options how{.timeout = forever, .limit = 2};
  const auto begin = me.now();
  const auto two = co_await yield_many(jobs, how);
  EXPECT_LT(me.now() - begin, 2s);
  EXPECT_FALSE(two[0] || two[1] || two[2]);
  EXPECT_TRUE(two[3] && two[4]);
}
TEST(yield_many, is_content_with_as_many_as_its_limit) { EXPECT_EQ(in_the_world(yields_two), exit_reason::normal()); }

task<> leaves_those_beyond_the_limit(self& me, unfinished rest) {
  std::vector<job<int>> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(async_job(me, after, i < 2 ? 1s : 1h, i));
  co_await me.sleep(2s);
  const yield_options how{.timeout = forever, .limit = 1, .rest = rest};
  const auto one = co_await yield_many(jobs, how);
  EXPECT_EQ(one[0], result<int>{0});
  EXPECT_FALSE(one[1] || one[2]);
  const result<int> done = co_await jobs[1].await();
  EXPECT_EQ(done, 1) << "its result was not lost";
  const result<int> later = co_await jobs[2].await(forever);
  EXPECT_EQ(later, 2) << "it was not ended: the time was not over";
}
TEST(yield_many, leaves_the_jobs_beyond_its_limit_alone_whatever_happens_to_late_ones) {
  for (const unfinished rest : {unfinished::leave, unfinished::ignore, unfinished::kill})
    EXPECT_EQ(in_the_world(leaves_those_beyond_the_limit, rest), exit_reason::normal());
}

task<> yields_and_ends_the_rest(self& me, unfinished rest) {
  me.trap_exits();
  std::vector<job<int>> jobs;
  jobs.push_back(async_job(me, after, 1s, 1));
  jobs.push_back(async_job(me, after, 1h, 2));
  const yield_options how{.timeout = 2s, .rest = rest};
  const auto some = co_await yield_many(jobs, how);
  EXPECT_EQ(some[0], result<int>{1});
  EXPECT_FALSE(some[1]);
  EXPECT_EQ(me.alive(jobs[1].id()), rest == unfinished::ignore);
  const result<int> gone = co_await jobs[1].await();
  EXPECT_EQ(gone.error().code(), errc::noproc);
  co_await me.sleep(2h);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(yield_many, kills_or_ignores_the_rest_when_told_to) {
  EXPECT_EQ(in_the_world(yields_and_ends_the_rest, unfinished::kill), exit_reason::normal());
  EXPECT_EQ(in_the_world(yields_and_ends_the_rest, unfinished::ignore), exit_reason::normal());
}

task<> keeps_a_job(self& me, std::shared_ptr<std::optional<job<int>>> into) {
  into->emplace(async_job(me, after, 1h, 1));
  co_await me.receive<noise>();
}
task<> awaits_a_job_of_another(self& me) {
  const auto other = std::make_shared<std::optional<job<int>>>();
  const pid owner = me.spawn(keeps_a_job, other);
  co_await me.sleep(1ms);
  auto first = async_job(me, after, 10ms, 1);
  auto second = async_job(me, after, 50ms, 2);
  const std::vector<job<int>> mixed{first, **other};
  bool refused = false;
  try {
    const auto all = co_await await_many(mixed);
  } catch (const std::logic_error&) {
    refused = true;
  }
  EXPECT_TRUE(refused);
  const std::vector<job<int>> mine{first, second};
  const result<std::vector<int>> both = co_await await_many(mine);
  EXPECT_EQ(both, (std::vector<int>{1, 2}));
  me.send(owner, noise{});
}
TEST(await_many, that_is_refused_leaves_nothing_for_the_next) {
  EXPECT_EQ(in_the_world(awaits_a_job_of_another), exit_reason::normal());
}

}  // namespace
