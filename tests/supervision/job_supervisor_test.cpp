// Jobs under a supervisor.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "office.hpp"

namespace {

using namespace coppice;

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

TEST(job_supervisor, is_a_child_like_any_supervisor_and_several_live_side_by_side) {
  family f;
  const dynamic_supervisor_spec one_at_a_time{.max_children = 1};
  ASSERT_TRUE(f.start({.children = {child<job_supervisor>().with({.id = "mails"}),
                                    child<job_supervisor>(one_at_a_time).with({.id = "pages"})}}));
  EXPECT_EQ(f.ask(count_children(f.tree)), (child_counts{.specs = 2, .active = 2, .supervisors = 2}));
  const ref<job_supervisor> mails{f.ask(which_child(f.tree, "mails"))->who};
  const ref<job_supervisor> pages{f.ask(which_child(f.tree, "pages"))->who};
  const result<pid> mail = f.ask(start_job(mails, for_ever, 1));
  const result<pid> page = f.ask(start_job(pages, for_ever, 1));
  EXPECT_EQ(f.ask(start_job(pages, for_ever, 2)).error().code(), errc::capacity);
  f.rt().kill(mails.id());
  f.settle();
  EXPECT_FALSE(f.rt().alive(*mail)) << "jobs end with their supervisor";
  EXPECT_TRUE(f.rt().alive(*page));
  const ref<job_supervisor> anew{f.ask(which_child(f.tree, "mails"))->who};
  EXPECT_TRUE(f.ask(start_job(anew, for_ever, 3)));
  EXPECT_EQ(f.ask(count_children(anew))->specs, 1U);
}

task<> starts_two(self& me, ref<job_supervisor> jobs, std::vector<pid>* into) {
  const auto linked = co_await async_under(me, jobs, for_ever, 1);
  const auto free = co_await async_under_nolink(me, jobs, for_ever, 2);
  into->push_back(linked->id());
  into->push_back(free->id());
  co_await me.receive<never>();
}

TEST(job_supervisor, lists_its_jobs_which_are_linked_to_it_and_to_their_owner) {
  office o;
  std::vector<pid> made;
  const pid owner = o.rt().spawn(starts_two, o.jobs, &made);
  ASSERT_TRUE(o.world().settle());
  const std::vector<child_info> all = o.list();
  ASSERT_EQ(all.size(), 2U);
  for (const child_info& c : all) {
    EXPECT_EQ(c.id, "job");
    EXPECT_EQ(c.restart, restart::temporary);
    EXPECT_TRUE(std::ranges::find(made, c.who) != made.end());
  }
  const auto linked = o.rt().info(made[0])->links;
  EXPECT_EQ(linked.size(), 2U);
  EXPECT_TRUE(std::ranges::find(linked, owner) != linked.end());
  EXPECT_EQ(o.rt().info(made[1])->links, std::vector{o.jobs.id()});
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
        const auto j = co_await start_job(jobs, always, count_runs);
        co_await me.receive<down>();
      },
      o.jobs);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(runs, 4);
  EXPECT_FALSE(o.rt().alive(o.jobs.id()));
}

// ---- settings of one job

int attempts = 0;
task<> works_at_the_third_attempt(self& me) {
  co_await me.yield();
  if (++attempts < 3) throw std::runtime_error{"out of luck"};
}

TEST(job_supervisor, a_transient_job_is_run_again_until_it_succeeds) {
  office o{{.limit = {.restarts = 3}}};
  attempts = 0;
  o.rt().spawn(
      +[](self&, ref<job_supervisor> jobs) -> task<> {
        const child_options until_it_works{.restart = restart::transient};
        const auto j = co_await start_job(jobs, until_it_works, works_at_the_third_attempt);
        EXPECT_TRUE(j);
      },
      o.jobs);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(o.count(), 0U) << "a job that is done is forgotten";
}

/// Does not end when it is asked to.
task<> stays(self& me) {
  me.trap_exits();
  for (;;) co_await me.receive<exited>();
}
task<> starts_and_terminates(self&, ref<job_supervisor> jobs, std::vector<std::string>* into) {
  const child_options patient{.shutdown = 1s};
  const result<pid> job = co_await start_job(jobs, patient, stays);
  const result<void> first = co_await terminate_child(jobs, *job);
  into->push_back(first ? "terminated" : first.error().to_string());
  const result<void> second = co_await terminate_child(jobs, *job);
  into->emplace_back(to_string(second.error().code()));
}

TEST(job_supervisor, terminates_a_job_and_kills_it_after_the_time_it_was_given) {
  office o;
  std::vector<std::string> seen;
  o.rt().spawn(starts_and_terminates, o.jobs, &seen);
  o.world().run_for(1s - a_tick);
  EXPECT_TRUE(seen.empty()) << "it has its time";
  o.world().run_for(2 * a_tick);
  EXPECT_EQ(seen, (std::vector<std::string>{"terminated", "not_found"}));
  EXPECT_EQ(o.count(), 0U);
}

task<> awaits_what_is_terminated(self& me, ref<job_supervisor> jobs, std::string* into) {
  result<job<int>> j = co_await async_under_nolink(me, jobs, for_ever, 1);
  const result<void> over = co_await terminate_child(jobs, j->id());
  EXPECT_TRUE(over);
  const result<int> r = co_await j->await();
  *into = r.error().to_string();
}

TEST(job_supervisor, the_owner_of_a_job_that_is_terminated_gets_the_reason) {
  office o;
  std::string got;
  o.rt().spawn(awaits_what_is_terminated, o.jobs, &got);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(got, (error{errc::exited, "shutdown"}).to_string());
}

// ---- await

task<> awaits_in_vain(self& me, ref<job_supervisor> jobs, bool* done) {
  result<job<int>> j = co_await async_under(me, jobs, slowly, 1000);
  const result<int> early = co_await j->await(10ms);
  EXPECT_EQ(early.error().code(), errc::timeout);
  co_await me.sleep(2s);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0) << "a late result is no message";
  const result<int> late = co_await j->await();
  EXPECT_EQ(late, 1000);
  *done = true;
}

TEST(job_supervisor, an_await_that_gives_up_leaves_the_job_alone_and_no_message_comes) {
  office o;
  bool done = false;
  o.rt().spawn(awaits_in_vain, o.jobs, &done);
  o.world().run_for(10s);
  EXPECT_TRUE(done);
}

enum class fate : std::uint8_t { throws, throws_no_exception, exits, exits_normally };
task<int> meets(self& me, fate how) {
  if (how == fate::throws) throw std::runtime_error{"out of luck"};
  if (how == fate::throws_no_exception) throw 42;  // NOLINT(hicpp-exception-baseclass): what it is about
  if (how == fate::exits) co_await me.exit(exit_reason::shutdown("enough"));
  if (how == fate::exits_normally) co_await me.exit(exit_reason::normal());
  co_return 1;
}
struct seen {
  std::string result;
  int mail = 99;
};
task<> sees_the_end(self& me, ref<job_supervisor> jobs, fate how, bool linked, seen* into) {
  me.trap_exits();
  auto starting = linked ? async_under(me, jobs, meets, how) : async_under_nolink(me, jobs, meets, how);
  result<job<int>> j = co_await std::move(starting);
  const result<int> r = co_await j->await();
  into->result = r ? "a value" : std::string{r.error().text()};
  into->mail = co_await mail_left(me);
}

TEST(job_supervisor, await_tells_however_a_job_has_ended_and_nothing_else_does) {
  const std::map<fate, std::string> expected{{fate::throws, "std::runtime_error: out of luck"},
                                             {fate::throws_no_exception, "int"},
                                             {fate::exits, exit_reason::shutdown("enough").to_string()},
                                             {fate::exits_normally, "normal"}};
  for (const auto& [how, text] : expected) {
    for (const bool linked : {true, false}) {
      office o;
      seen got;
      o.rt().spawn(sees_the_end, o.jobs, how, linked, &got);
      ASSERT_TRUE(o.world().settle());
      EXPECT_NE(got.result.find(text), std::string::npos) << got.result;
      EXPECT_EQ(got.mail, 0);
      EXPECT_EQ(o.count(), 0U);
    }
  }
}

// ---- the first moments of a job

struct go {};
task<int> fails_when_told(self& me) {
  co_await me.receive<go>();
  throw std::runtime_error{"out of luck"};
}
task<> lets_go_at_once(self& me, ref<job_supervisor> jobs, trap how, bool* done) {
  me.trap_exits(how);
  result<job<int>> ignored = co_await async_under(me, jobs, fails_when_told);
  ignored->ignore();
  result<job<int>> killed = co_await async_under(me, jobs, for_ever, 1);
  const std::optional<result<int>> nothing = co_await killed->kill();
  EXPECT_FALSE(nothing) << "killed, as told";
  const exit_reason end = exit_reason::error("enough");
  me.exit(ignored->id(), end);
  result<job<int>> awaited = co_await async_under(me, jobs, twice, 2);
  co_await me.sleep(1s);
  const result<int> four = co_await awaited->await();
  EXPECT_EQ(four, 4);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
  *done = true;
  co_await me.receive<never>();
}

TEST(job_supervisor, a_job_that_is_dropped_before_it_has_begun_does_no_harm) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    office o{{}, seed};
    bool done = false;
    const pid owner = o.rt().spawn(lets_go_at_once, o.jobs, seed % 2 == 0 ? trap::on : trap::off, &done);
    o.world().run_for(2s);
    ASSERT_TRUE(done) << "seed " << seed;
    EXPECT_TRUE(o.rt().info(owner)->links.empty()) << "nothing is left of the links";
    EXPECT_EQ(o.count(), 0U);
  }
}

task<> lets_many_go(self& me, int rounds) {
  const dynamic_supervisor_spec any_number;
  const spawn_options linked{.link = true};
  const auto jobs = co_await start<job_supervisor>(me, linked, any_number);
  for (int i = 0; i < rounds; ++i) {
    result<job<int>> killed = co_await async_under(me, *jobs, for_ever, 1);
    const std::optional<result<int>> nothing = co_await killed->kill();
    EXPECT_FALSE(nothing);
    result<job<int>> ignored = co_await async_under(me, *jobs, fails_when_told);
    ignored->ignore();
    me.monitor(ignored->id());
    me.send(ignored->id(), go{});  // and it fails
    const down d = co_await me.receive<down>();
    EXPECT_EQ(d.who, ignored->id());
  }
}

TEST(job_supervisor, jobs_that_are_dropped_at_once_do_no_harm_on_threads) {
  runtime rt{runtime_options{.workers = 2, .level = log_level::off}};
  EXPECT_EQ(rt.run(lets_many_go, 2000), exit_reason::normal());
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

task<int> streams_in_vain(self& me, ref<job_supervisor> jobs) {
  const std::vector<int> numbers{1, 2, 3};
  auto stream = async_stream_under(me, jobs, numbers, for_ever, {.max_concurrency = 3, .timeout = forever});
  const auto one = co_await stream.next();
  co_return one ? 1 : 0;
}

TEST(job_supervisor, knows_of_the_end_of_jobs_whose_owner_it_has_stopped) {
  office o;
  const auto owner = std::make_shared<pid>();
  o.rt().spawn(
      +[](self&, ref<job_supervisor> jobs, std::shared_ptr<pid> into) -> task<> {
        const auto started = co_await start_job(jobs, streams_in_vain, jobs);
        *into = *started;
      },
      o.jobs, owner);
  ASSERT_TRUE(o.world().settle());
  ASSERT_EQ(o.count(), 4U);
  o.rt().spawn(
      +[](self&, ref<job_supervisor> jobs, pid who) -> task<> {
        const auto stopped = co_await terminate_child(jobs, who);
        EXPECT_TRUE(stopped);
      },
      o.jobs, *owner);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(o.count(), 0U);
}

TEST(job_supervisor, answers_through_a_ref_of_another_kind_what_both_know_and_nothing_else) {
  office o;
  const auto said = std::make_shared<std::string>();
  o.rt().spawn(
      +[](self&, ref<job_supervisor> jobs, std::shared_ptr<std::string> into) -> task<> {
        const auto started = co_await start_job(jobs, for_ever, 1);
        const ref<supervisor> wrong{jobs.id()};
        const auto all = co_await which_children(wrong);
        const auto one = co_await which_child(wrong, "job");
        *into = std::to_string(all->size()) + " " + std::string{to_string(one.error().code())};
      },
      o.jobs, said);
  ASSERT_TRUE(o.world().settle());
  EXPECT_EQ(*said, "1 no_reply");
}

}  // namespace
