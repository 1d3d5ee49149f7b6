// Jobs: results, failures, time limits, and what ends with what.
#include <stdexcept>
#include <string>

#include <coppice/behaviour/job.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

struct go {};
struct tell {
  int value;
};

int twice(int n) { return 2 * n; }
task<int> twice_later(self& me, int n, std::chrono::nanoseconds pause) {
  co_await me.sleep(pause);
  co_return 2 * n;
}
task<int> fails(self& me, std::chrono::nanoseconds pause) {
  co_await me.sleep(pause);
  throw std::runtime_error{"out of luck"};
}
task<int> ends_with(self& me, exit_reason why) {
  co_await me.exit(std::move(why));
  co_return 0;
}
int throws_a_number() { throw 42; }  // NOLINT(hicpp-exception-baseclass): what it is about
task<int> never(self& me) {
  co_await me.receive<go>();
  co_return 1;
}
/// Does not end when it is asked to; says what it was told.
task<int> stubborn(self& me, pid boss) {
  me.trap_exits();
  me.send(boss, go{});
  for (;;) {
    const exited x = co_await me.receive<exited>();
    (void)x;
  }
}
/// Gives its result when it is asked to end.
task<int> obliging(self& me, pid boss) {
  me.trap_exits();
  me.send(boss, go{});
  const exited x = co_await me.receive<exited>();
  (void)x;
  co_return 42;
}

// ---- async and await

task<> awaits_both_kinds(self& me) {
  auto plain = async_job(me, twice, 21);
  auto waiting = async_job(me, twice_later, 4, 1ms);
  const std::string text = "a text of more than a few letters";
  auto capturing = async_job(me, [text] { return text + "!"; });
  auto nothing = async_job(me, [] {});
  const result<int> a = co_await plain.await();
  const result<int> b = co_await waiting.await();
  const result<std::string> c = co_await capturing.await();
  const result<void> d = co_await nothing.await();
  EXPECT_EQ(a, 42);
  EXPECT_EQ(b, 8);
  EXPECT_EQ(c, "a text of more than a few letters!");
  EXPECT_TRUE(d.has_value());
}
TEST(job, gives_what_a_function_or_a_task_returns) {
  EXPECT_EQ(in_the_world(awaits_both_kinds), exit_reason::normal());
  EXPECT_EQ(on_threads(awaits_both_kinds), exit_reason::normal());
}

task<> moves_only(self& me) {
  auto made =
      async_job(me, [](std::unique_ptr<int> n) { return std::make_unique<int>(*n + 1); }, std::make_unique<int>(1));
  const result<std::unique_ptr<int>> got = co_await made.await();
  EXPECT_EQ(**got, 2);
}
TEST(job, takes_and_gives_what_can_only_be_moved) { EXPECT_EQ(in_the_world(moves_only), exit_reason::normal()); }

task<> is_linked(self& me) {
  auto j = async_job(me, never);
  auto free = async_nolink(me, never);
  co_await me.sleep(1s);
  const auto of_linked = me.host().info(j.id());
  const auto of_free = me.host().info(free.id());
  EXPECT_EQ(of_linked->links, std::vector<pid>{me.id()});
  EXPECT_EQ(of_linked->parent, me.id());
  EXPECT_TRUE(of_free->links.empty());
}
TEST(job, is_linked_to_its_owner_unless_told_otherwise) { EXPECT_EQ(in_the_world(is_linked), exit_reason::normal()); }

task<> awaits_in_vain(self& me) {
  auto j = async_job(me, twice_later, 1, 10s);
  const auto begin = me.now();
  const result<int> early = co_await j.await();
  EXPECT_EQ(early.error().code(), errc::timeout);
  EXPECT_GE(me.now() - begin, 5s);
  EXPECT_TRUE(me.alive(j.id()));  // a timeout does not stop it
  co_await me.sleep(10s);
  EXPECT_FALSE(me.alive(j.id()));
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
  const result<int> late = co_await j.await();
  EXPECT_EQ(late, 2);
}
TEST(job, await_gives_up_after_its_timeout_and_a_late_reply_is_never_mail) {
  EXPECT_EQ(in_the_world(awaits_in_vain), exit_reason::normal());
}

task<> drops_it(self& me) {
  me.trap_exits();
  {
    auto j = async_nolink(me, twice_later, 1, 1s);
    const result<int> early = co_await j.await(1ms);
    EXPECT_EQ(early.error().code(), errc::timeout);
  }
  co_await me.sleep(2s);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(job, whose_handle_is_gone_goes_on_and_its_result_is_dropped) {
  EXPECT_EQ(in_the_world(drops_it), exit_reason::normal());
}

// ---- failures

task<> owner_of_a_failure(self& me) {
  auto j = async_job(me, fails, 1s);
  const result<int> never_there = co_await j.await();
  ADD_FAILURE() << "the owner should have ended";
}
task<> sees_the_owner_fail(self& me) {
  const pid owner = me.spawn(owner_of_a_failure);
  const exit_reason why = co_await end_of(me, owner);
  EXPECT_EQ(why.exception_type(), "std::runtime_error");
  EXPECT_EQ(why.text(), "out of luck");
}
TEST(job, that_fails_takes_a_linked_owner_with_it_for_the_same_reason) {
  EXPECT_EQ(in_the_world(sees_the_owner_fail), exit_reason::normal());
}

task<> traps_a_failure(self& me) {
  me.trap_exits();
  auto j = async_job(me, fails, 1s);
  const result<int> r = co_await j.await();
  EXPECT_EQ(r.error().code(), errc::exited);
  EXPECT_NE(r.error().text().find("out of luck"), std::string_view::npos) << r.error();
  auto early = async_job(me, fails, 0s);
  co_await me.sleep(1s);  // its `exited` is there before anybody asks
  const result<int> s = co_await early.await();
  EXPECT_EQ(s.error().code(), errc::exited);
  auto fine = async_job(me, twice, 1);
  co_await me.sleep(1s);
  const result<int> t = co_await fine.await();
  EXPECT_EQ(t, 2);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(job, an_owner_that_traps_exits_is_told_of_a_failure_once) {
  EXPECT_EQ(in_the_world(traps_a_failure), exit_reason::normal());
}

task<> without_link(self& me) {
  auto j = async_nolink(me, fails, 0s);
  const result<int> r = co_await j.await();
  EXPECT_EQ(r.error().code(), errc::exited);
  auto normal = async_nolink(me, ends_with, exit_reason::normal());
  const result<int> n = co_await normal.await();
  EXPECT_EQ(n.error().code(), errc::exited);
  EXPECT_EQ(n.error().text(), "normal");
  auto killed = async_nolink(me, never);
  me.kill(killed.id());
  const result<int> k = co_await killed.await();
  EXPECT_EQ(k.error().text(), "killed");
  auto odd = async_nolink(me, throws_a_number);
  const result<int> o = co_await odd.await();
  EXPECT_NE(o.error().text().find("int"), std::string_view::npos) << o.error();
}
TEST(job, without_a_link_any_end_is_just_the_result) {
  EXPECT_EQ(in_the_world(without_link), exit_reason::normal());
  EXPECT_EQ(on_threads(without_link), exit_reason::normal());
}

task<> starts_and_ends(self& me, pid boss, exit_reason why) {
  auto linked = async_job(me, never);
  auto free = async_nolink(me, never);
  me.send(boss, linked.id());
  me.send(boss, free.id());
  co_await me.exit(std::move(why));
}
task<> sees_the_owner_end(self& me, exit_reason why, bool linked_lives) {
  const pid owner = me.spawn(starts_and_ends, me.id(), std::move(why));
  const pid linked = co_await me.receive<pid>();
  const pid free = co_await me.receive<pid>();
  co_await me.sleep(1s);
  EXPECT_FALSE(me.alive(owner));
  EXPECT_EQ(me.alive(linked), linked_lives);
  EXPECT_TRUE(me.alive(free));
}
TEST(job, ends_with_an_owner_that_fails) {
  EXPECT_EQ(in_the_world(sees_the_owner_end, exit_reason::error("x"), false), exit_reason::normal());
  EXPECT_EQ(in_the_world(sees_the_owner_end, exit_reason::shutdown(), false), exit_reason::normal());
}
TEST(job, lives_on_when_its_owner_ends_normally) {
  EXPECT_EQ(in_the_world(sees_the_owner_end, exit_reason::normal(), true), exit_reason::normal());
}

// ---- only the owner

task<> uses_anothers(self&, job<int> j) {
  const result<int> r = co_await j.await();
  (void)r;
}
task<> shuts_anothers_down(self&, job<int> j) {
  const std::optional<result<int>> r = co_await j.shutdown();
  (void)r;
}
task<> yields_anothers(self&, job<int> j) {
  const std::optional<result<int>> r = co_await j.yield();
  (void)r;
}
task<> ignores_anothers(self&, job<int> j) {
  j.ignore();
  co_return;
}
task<> kills_anothers(self&, job<int> j) {
  const std::optional<result<int>> r = co_await j.kill();
  (void)r;
}
task<> gives_it_away(self& me, task<> (*thief)(self&, job<int>)) {
  me.trap_exits();
  const pid other = me.spawn_link(thief, async_job(me, never));
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.from, other);
  EXPECT_EQ(x.reason.exception_type(), "std::logic_error");
  EXPECT_NE(x.reason.text().find("belongs to " + to_string(me.id())), std::string_view::npos) << x.reason;
}
TEST(job, may_be_awaited_by_its_owner_only) {
  for (const auto thief : {uses_anothers, shuts_anothers_down, kills_anothers, yields_anothers, ignores_anothers})
    EXPECT_EQ(in_the_world(gives_it_away, thief), exit_reason::normal());
}

task<> awaits_twice(self& me) {
  auto j = async_job(me, twice, 1);
  const result<int> first = co_await j.await();
  const result<int> second = co_await j.await();
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second.error().code(), errc::noproc);
}
TEST(job, gives_its_result_once) { EXPECT_EQ(in_the_world(awaits_twice), exit_reason::normal()); }

// ---- yield

task<> yields(self& me) {
  auto j = async_job(me, twice_later, 1, 3s);
  const std::optional<result<int>> at_once = co_await j.yield(0s);
  EXPECT_FALSE(at_once);
  const std::optional<result<int>> soon = co_await j.yield(1s);
  EXPECT_FALSE(soon);
  const std::optional<result<int>> then = co_await j.yield(forever);
  EXPECT_EQ(then, result<int>{2});
}
TEST(job, yield_gives_nothing_while_it_runs_and_may_be_repeated) {
  EXPECT_EQ(in_the_world(yields), exit_reason::normal());
}

task<> yields_late(self& me) {
  auto good = async_job(me, twice, 1);
  auto bad = async_nolink(me, ends_with, exit_reason::shutdown("enough"));
  co_await me.sleep(1s);  // both have ended
  const std::optional<result<int>> value = co_await good.yield(0s);
  const std::optional<result<int>> failure = co_await bad.yield(0s);
  EXPECT_EQ(value, result<int>{2});
  EXPECT_EQ((*failure).error().text(), exit_reason::shutdown("enough").to_string());
}
TEST(job, yield_gives_the_result_of_one_that_has_ended) { EXPECT_EQ(in_the_world(yields_late), exit_reason::normal()); }

// ---- shutdown

task<> shuts_down(self& me) {
  me.trap_exits();
  auto j = async_job(me, never);
  const std::optional<result<int>> r = co_await j.shutdown();
  EXPECT_FALSE(r);  // stopped as asked
  EXPECT_FALSE(me.alive(j.id()));
  const std::optional<result<int>> again = co_await j.shutdown();
  EXPECT_EQ((*again).error().code(), errc::noproc);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(job, shutdown_stops_it_and_gives_nothing) { EXPECT_EQ(in_the_world(shuts_down), exit_reason::normal()); }

task<> shuts_down_too_late(self& me) {
  auto good = async_job(me, twice, 1);
  auto bad = async_nolink(me, fails, 0s);
  auto obliges = async_job(me, obliging, me.id());
  co_await me.receive<go>();
  co_await me.sleep(1s);
  const std::optional<result<int>> value = co_await good.shutdown();
  const std::optional<result<int>> failure = co_await bad.shutdown();
  const std::optional<result<int>> last = co_await obliges.shutdown();
  EXPECT_EQ(value, result<int>{2});
  EXPECT_EQ((*failure).error().code(), errc::exited);
  EXPECT_EQ(last, result<int>{42});
}
TEST(job, shutdown_gives_a_result_that_was_there_or_came_in_spite_of_it) {
  EXPECT_EQ(in_the_world(shuts_down_too_late), exit_reason::normal());
}

task<> shuts_down_what_has_ended(self& me, bool by_a_kill) {
  me.trap_exits();
  for (const exit_reason& why : {exit_reason::normal(), exit_reason::shutdown(), exit_reason::shutdown("enough"),
                                 exit_reason::error("x"), exit_reason::killed()}) {
    auto j = async_job(me, ends_with, why);
    co_await me.sleep(1s);
    auto ending = by_a_kill ? j.kill() : j.shutdown();
    const std::optional<result<int>> r = co_await std::move(ending);
    EXPECT_TRUE(r) << "it did not end because it was told to";
    EXPECT_EQ((*r).error().text(), why.to_string());
  }
  auto good = async_job(me, twice, 1);
  co_await me.sleep(1s);
  auto ending = by_a_kill ? good.kill() : good.shutdown();
  const std::optional<result<int>> value = co_await std::move(ending);
  EXPECT_EQ(value, result<int>{2});
  const std::optional<result<int>> again = co_await good.kill();
  EXPECT_EQ((*again).error().code(), errc::noproc) << "its result was taken";
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(job, shutdown_and_kill_of_one_that_has_ended_give_what_it_ended_with) {
  EXPECT_EQ(in_the_world(shuts_down_what_has_ended, true), exit_reason::normal());
  EXPECT_EQ(in_the_world(shuts_down_what_has_ended, false), exit_reason::normal());
}

task<> shuts_down_the_stubborn(self& me) {
  auto j = async_job(me, stubborn, me.id());
  co_await me.receive<go>();
  const auto begin = me.now();
  const std::optional<result<int>> r = co_await j.shutdown(3s);
  EXPECT_EQ((*r).error().text(), "killed");
  EXPECT_GE(me.now() - begin, 3s);
  auto other = async_job(me, stubborn, me.id());
  co_await me.receive<go>();
  const std::optional<result<int>> k = co_await other.kill();
  EXPECT_FALSE(k);
  EXPECT_FALSE(me.alive(other.id()));
}
TEST(job, shutdown_kills_what_does_not_stop_in_time) {
  EXPECT_EQ(in_the_world(shuts_down_the_stubborn), exit_reason::normal());
}

task<> kills_the_stuck(self& me, pid* which) {
  auto j = async_job(me, never);
  *which = j.id();
  co_await me.sleep(1s);
  me.send(j.id(), go{});  // and it is stuck handling that
  co_await me.yield();
  const std::optional<result<int>> r = co_await j.kill();
  EXPECT_EQ((*r).error().text(), "abandoned");
}
TEST(job, shutdown_gives_up_what_does_not_even_end_when_killed) {
  pid stuck;
  sim::world w{7};
  sim::node& n = w.add_node();
  const pid p = n.rt().spawn(kills_the_stuck, &stuck);
  w.run_for(500ms);
  n.stick(stuck, 24h);
  w.run_for(1min);
  EXPECT_FALSE(n.rt().alive(p));
  EXPECT_FALSE(n.rt().alive(stuck));
}

// ---- ignore, completed

task<> ignores(self& me) {
  me.trap_exits();
  auto j = async_job(me, fails, 1s);
  const std::optional<result<int>> nothing = j.ignore();
  EXPECT_FALSE(nothing);
  auto done = async_job(me, twice, 1);
  co_await me.sleep(2s);
  const std::optional<result<int>> there = done.ignore();
  EXPECT_EQ(there, result<int>{2});
  const result<int> after = co_await j.await();
  EXPECT_EQ(after.error().code(), errc::noproc);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(job, that_is_ignored_goes_on_for_itself_and_leaves_no_word) {
  EXPECT_EQ(in_the_world(ignores), exit_reason::normal());
}

task<> ignores_a_failure(self& me) {
  me.trap_exits();
  auto failed = async_job(me, fails, 0s);
  auto ended = async_job(me, ends_with, exit_reason::normal());
  co_await me.sleep(1s);
  const std::optional<result<int>> failure = failed.ignore();
  EXPECT_EQ((*failure).error().code(), errc::exited);
  const std::optional<result<int>> no_result = ended.ignore();
  EXPECT_EQ((*no_result).error().text(), "normal");
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(job, that_has_failed_when_it_is_ignored_gives_the_failure) {
  EXPECT_EQ(in_the_world(ignores_a_failure), exit_reason::normal());
}

task<> completes(self& me) {
  auto j = completed(me, std::string{"known"});
  EXPECT_FALSE(j.id());
  const result<std::string> r = co_await j.await();
  EXPECT_EQ(r, "known");
  auto k = completed(me, 1);
  const std::optional<result<int>> s = co_await k.shutdown();
  EXPECT_EQ(s, result<int>{1});
  auto l = completed(me, 1);
  const std::optional<result<int>> i = l.ignore();
  EXPECT_EQ(i, result<int>{1});
}
TEST(job, that_is_completed_has_its_result_and_no_process) {
  EXPECT_EQ(in_the_world(completes), exit_reason::normal());
}

// ---- many, on threads

task<> starts_many(self& me) {
  for (int round = 0; round < 2000; ++round) {
    auto a = async_job(me, twice, round);
    auto b = async_nolink(me, [](int n) { return n + 1; }, round);
    auto c = async_nolink(me, ends_with, exit_reason::error("x"));
    const result<int> x = co_await a.await();
    const result<int> z = co_await c.await();
    const result<int> y = co_await b.await();
    EXPECT_EQ(x, 2 * round);
    EXPECT_EQ(y, round + 1);
    EXPECT_EQ(z.error().code(), errc::exited);
  }
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(job, thousands_on_threads_all_give_their_results) { EXPECT_EQ(on_threads(starts_many), exit_reason::normal()); }

/// Can be moved as often as is left.
struct fragile {
  explicit fragile(int* moves) : left{moves} {}
  fragile(fragile&& o)
      : left{o.left} {  // NOLINT(performance-noexcept-move-constructor,bugprone-exception-escape): what it is about
    if ((*left)-- <= 0) throw std::runtime_error{"broken"};
  }
  fragile& operator=(fragile&&) = delete;
  fragile(const fragile&) = delete;
  fragile& operator=(const fragile&) = delete;
  ~fragile() = default;
  int* left;
};
fragile makes_a_fragile_thing(int* moves) { return fragile{moves}; }
task<> awaits_what_breaks(self& me) {
  int moves = 0;
  auto j = async_nolink(me, makes_a_fragile_thing, &moves);
  const auto got = co_await j.await(1h);
  EXPECT_EQ(got ? errc::invalid : got.error().code(), errc::exited);
}
TEST(job, whose_result_fails_to_be_handed_over_has_failed) {
  EXPECT_EQ(in_the_world(awaits_what_breaks), exit_reason::normal());
}

}  // namespace
