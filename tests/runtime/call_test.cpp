// Calls between processes and from plain threads: the answer, or exactly one of the errors that a call has.
#include <gtest/gtest.h>

#include <any>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct add {
  using reply = int;
  int a = 0;
  int b = 0;
};
struct touch {
  using reply = void;
};
struct fetch {
  using reply = std::unique_ptr<std::string>;
  std::unique_ptr<std::string> text;
};
struct slow {
  using reply = int;
};
struct fail_at {
  using reply = int;
};
struct done {};

/// Answers `add`, `touch` and `fetch`, never answers `slow`, and fails at `fail_at`.
task<> server(self& me) {
  std::vector<request<slow>> waiting;
  for (;;) {
    auto m = co_await me.receive<request<add>, request<touch>, request<fetch>, request<slow>, request<fail_at>>();
    if (auto* r = std::get_if<request<add>>(&m)) r->reply(r->message.a + r->message.b);
    if (auto* t = std::get_if<request<touch>>(&m)) t->reply();
    if (auto* f = std::get_if<request<fetch>>(&m)) f->reply(std::move(f->message.text));
    if (auto* s = std::get_if<request<slow>>(&m)) waiting.push_back(std::move(*s));
    if (std::holds_alternative<request<fail_at>>(m)) throw std::runtime_error{"asked to fail"};
  }
}

// ---- answers

task<> calls_all(self& me) {
  const pid s = me.spawn(server);
  for (int i = 0; i < 1000; ++i) {
    const result<int> sum = co_await call<add>(s, i, 1);
    EXPECT_EQ(sum, i + 1);
  }
  const result<void> touched = co_await call<touch>(s);
  EXPECT_TRUE(touched);
  auto text = co_await call<fetch>(s, std::make_unique<std::string>("there and back"));
  EXPECT_TRUE(text);
  if (text) {
    EXPECT_EQ(**text, "there and back");
  }
}
TEST(call, gets_the_answer_also_nothing_and_what_only_moves) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(calls_all), exit_reason::normal());
}

TEST(call, from_a_plain_thread_gets_the_answer_too) {
  runtime rt{quiet()};
  const pid s = rt.spawn(server);
  EXPECT_EQ(rt.call(call<add>(s, 2, 3)), 5);
  EXPECT_TRUE(rt.call(call<touch>(s)));
  EXPECT_EQ(**rt.call(call<fetch>(s, std::make_unique<std::string>("x"))), "x");
  EXPECT_EQ(rt.call(call<add>(s, 2, 3).within(forever)), 5);
}

TEST(call, from_many_threads_at_once_each_gets_its_own_answer) {
  runtime rt{quiet()};
  const pid s = rt.spawn(server);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&rt, s, t] {
      for (int i = 0; i < 200; ++i) EXPECT_EQ(rt.call(call<add>(s, t * 1000, i)), t * 1000 + i);
    });
}

task<> calls_with_other_mail(self& me) {
  const pid s = me.spawn(server);
  me.send(me.id(), 1);
  const auto sum = co_await call<add>(s, 1, 1);
  EXPECT_EQ(sum, 2);
  me.send(me.id(), 2);
  const int first = co_await me.receive<int>();
  const int second = co_await me.receive<int>();
  EXPECT_EQ(first * 10 + second, 12);
}
TEST(call, mail_that_comes_while_it_waits_is_kept_in_order) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(calls_with_other_mail), exit_reason::normal());
}

task<> fails_by_hand(self& me) {
  auto r = co_await me.receive<request<add>>();
  r.fail(error{errc::invalid, "no sums today"});
}
TEST(call, the_callee_may_answer_with_an_error_of_its_own) {
  runtime rt{quiet()};
  const auto got = rt.call(call<add>(rt.spawn(fails_by_hand), 1, 2));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error(), (error{errc::invalid, "no sums today"}));
}

task<> answers_twice(self& me) {
  auto r = co_await me.receive<request<add>>();
  r.reply(1);
  r.reply(2);
  r.fail(error{errc::invalid});
}
TEST(call, only_the_first_answer_counts) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.call(call<add>(rt.spawn(answers_twice))), 1);
}

task<> knows_the_caller(self& me, pid* caller) {
  auto r = co_await me.receive<request<touch>>();
  *caller = r.caller();
  r.reply();
}
task<> calls_and_tells(self& me, pid s, pid* mine) {
  *mine = me.id();
  const auto touched = co_await call<touch>(s);
  EXPECT_TRUE(touched);
}
TEST(call, the_request_tells_who_calls) {
  runtime rt{quiet()};
  pid caller;
  pid mine;
  const pid s = rt.spawn(knows_the_caller, &caller);
  rt.wait(rt.spawn(calls_and_tells, s, &mine));
  EXPECT_EQ(caller, mine);
}

// ---- errors

TEST(call, without_an_answer_in_time_gives_timeout) {
  runtime rt{quiet()};
  const pid s = rt.spawn(server);
  const auto got = rt.call(call<slow>(s).within(1ms));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::timeout);
  EXPECT_NE(got.error().text().find(to_string(s)), std::string_view::npos) << got.error();
}

TEST(call, with_no_time_at_all_gives_timeout_and_does_not_wait) {
  runtime rt{quiet()};
  const pid s = rt.spawn(server);
  EXPECT_EQ(rt.call(call<slow>(s).within(0ns)).error().code(), errc::timeout);
  EXPECT_EQ(rt.call(call<slow>(s).within(-1s)).error().code(), errc::timeout);
}

TEST(call, to_a_process_that_has_ended_gives_noproc) {
  runtime rt{quiet()};
  const pid s = rt.spawn(server);
  rt.kill(s);
  rt.wait(s);
  EXPECT_EQ(rt.call(call<add>(s)).error().code(), errc::noproc);
}

TEST(call, to_an_unknown_name_or_nobody_gives_noproc) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.call(call<add>(rt.where("nobody has this name"))).error().code(), errc::noproc);
}

task<> calls_itself(self& me) {
  const auto got = co_await call<add>(me.id(), 1, 2);
  EXPECT_FALSE(got);
  if (!got) {
    EXPECT_EQ(got.error().code(), errc::calling_self);
  }
}
TEST(call, to_oneself_gives_calling_self) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(calls_itself), exit_reason::normal());
}

TEST(call, to_who_fails_at_it_gives_exited_with_the_reason) {
  runtime rt{quiet()};
  const auto got = rt.call(call<fail_at>(rt.spawn(server)));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::exited);
  EXPECT_NE(got.error().text().find("asked to fail"), std::string_view::npos) << got.error();
}

/// Calls `slow` and tells what came of it.
task<> calls_slow(self& me, pid s, pid boss) {
  auto got = co_await call<slow>(s).within(forever);
  me.send(boss, std::move(got));
}
task<> ends_a_callee(self& me, exit_reason how) {
  const pid s = me.spawn(server);
  for (int i = 0; i < 5; ++i) me.spawn(calls_slow, s, me.id());
  // The calls are held by the server, wait in its queue, or come too late: each caller is told.
  me.exit(s, how);
  for (int i = 0; i < 5; ++i) {
    const auto got = co_await me.receive<result<int>>();
    EXPECT_FALSE(got);
    if (!got && got.error().code() != errc::noproc) {
      const auto expected = how == exit_reason::kill() ? exit_reason::killed() : how;
      EXPECT_EQ(got.error(), (error{errc::exited, expected.to_string()}));
    }
  }
}
TEST(call, to_who_ends_before_it_answers_gives_exited_with_the_reason) {
  runtime rt{quiet()};
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(rt.run(ends_a_callee, exit_reason::error("x")), exit_reason::normal());
    EXPECT_EQ(rt.run(ends_a_callee, exit_reason::kill()), exit_reason::normal());
  }
}

task<> holds_and_waits(self& me, std::latch* held) {
  auto r = co_await me.receive<request<slow>>();
  held->count_down();
  co_await me.receive<done>();
}
TEST(call, to_who_returns_before_it_answers_gives_an_error) {
  runtime rt{quiet()};
  std::latch held{1};
  const pid s = rt.spawn(holds_and_waits, &held);
  std::jthread other{[&] {
    held.wait();
    rt.send(s, done{});
  }};
  EXPECT_FALSE(rt.call(call<slow>(s).within(forever)));
}

task<> ignores_requests(self& me, std::latch* begun, std::latch* sent) {
  begun->count_down();
  sent->wait();
  co_await me.receive<done>();
}
TEST(call, that_waits_in_the_queue_of_who_ends_is_answered_with_the_reason) {
  runtime rt{quiet()};
  std::latch begun{1};
  std::latch sent{1};
  const pid s = rt.spawn(ignores_requests, &begun, &sent);
  begun.wait();
  std::jthread caller{[&] {
    const auto got = rt.call(call<slow>(s).within(forever));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error(), (error{errc::exited, "killed"}));
  }};
  while (rt.counters().spawned < 2 || rt.counters().handled < 1) std::this_thread::yield();  // the call is sent
  rt.kill(s);
  sent.count_down();
}

task<> drops_a_request(self& me) {
  for (;;) {
    auto r = co_await me.receive<request<slow>>();
    (void)r.message;
  }
}
TEST(call, that_is_dropped_by_a_process_that_lives_on_gives_no_reply) {
  runtime rt{quiet()};
  const pid s = rt.spawn(drops_a_request);
  EXPECT_EQ(rt.call(call<slow>(s).within(forever)).error().code(), errc::no_reply);
  EXPECT_TRUE(rt.alive(s));
}

task<> drops_anything(self& me) {
  for (;;) co_await me.receive<any_message>();
}
TEST(call, that_is_taken_as_any_message_and_dropped_gives_no_reply) {
  runtime rt{quiet()};
  const pid s = rt.spawn(drops_anything);
  EXPECT_EQ(rt.call(call<add>(s, 1, 2).within(forever)).error().code(), errc::no_reply);
}

task<> fails_with_anything(self& me) {
  any_message m = co_await me.receive<any_message>();
  throw std::runtime_error{"what is a " + std::string{m.type()}};
}
TEST(call, that_is_taken_as_any_message_by_who_then_fails_gives_exited) {
  runtime rt{quiet()};
  const auto got = rt.call(call<add>(rt.spawn(fails_with_anything), 1, 2).within(forever));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::exited) << got.error();
}

task<> waits_with_anything(self& me, std::latch* taken) {
  const any_message m = co_await me.receive<any_message>();
  taken->count_down();
  co_await me.receive<done>();
}
TEST(call, that_is_taken_as_any_message_by_who_is_then_killed_gives_exited) {
  runtime rt{quiet()};
  std::latch taken{1};
  const pid s = rt.spawn(waits_with_anything, &taken);
  std::jthread killer{[&] {
    taken.wait();
    rt.kill(s);
  }};
  const auto got = rt.call(call<add>(s, 1, 2).within(forever));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error(), (error{errc::exited, "killed"}));
}

// ---- late answers

task<> answers_late(self& me, pid* caller) {
  auto r = co_await me.receive<request<slow>>();
  *caller = r.caller();
  co_await me.receive<done>();
  r.reply(99);
  auto next = co_await me.receive<request<slow>>();
  next.reply(1);
}
task<> gets_a_late_answer(self& me) {
  pid seen;
  const pid s = me.spawn(answers_late, &seen);
  const auto first = co_await call<slow>(s).within(1ms);
  EXPECT_FALSE(first);
  me.send(s, done{});
  const auto second = co_await call<slow>(s);  // the late 99 arrives before its answer
  EXPECT_EQ(second, 1);
  const auto mail = co_await me.receive<any_message>(0ns);
  EXPECT_TRUE(std::holds_alternative<timed_out>(mail)) << "the late answer has become mail";
}
TEST(call, a_late_answer_is_never_seen) {
  runtime rt{quiet()};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rt.run(gets_a_late_answer), exit_reason::normal());
}

// ---- where calls are made

task<> blocks_its_worker(self&, runtime* rt, pid s) {
  EXPECT_THROW((void)rt->call(call<add>(s, 1, 2)), std::logic_error);
  co_return;
}
TEST(call, the_blocking_form_inside_a_process_is_refused) {
  runtime rt{quiet()};
  const pid s = rt.spawn(server);
  EXPECT_EQ(rt.run(blocks_its_worker, &rt, s), exit_reason::normal());
}

task<> prepares_a_call(self& me, pid s) {
  {
    auto never = call<fetch>(s, std::make_unique<std::string>("never sent"));
    (void)never;
  }
  auto later = call<add>(s, 1, 2).within(1s);
  co_await me.yield();
  const auto sum = co_await std::move(later);
  EXPECT_EQ(sum, 3);
}
TEST(call, is_made_when_it_is_awaited_and_never_without) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(prepares_a_call, rt.spawn(server)), exit_reason::normal());
}

task<> is_killed_while_calling(self& me, pid s, pid boss) {
  me.send(boss, done{});
  co_await call<slow>(s).within(forever);
}
task<> kills_callers(self& me) {
  const pid s = me.spawn(server);
  for (int i = 0; i < 100; ++i) {
    const pid c = me.spawn(is_killed_while_calling, s, me.id());
    co_await me.receive<done>();
    me.kill(c);
  }
  const auto sum = co_await call<add>(s, 1, 2);
  EXPECT_EQ(sum, 3);
}
struct always_one {
  struct bump {
    using reply = int;
  };
  [[nodiscard]] static int handle(bump) { return 1; }
};
task<> awaits_a_call_twice(self& me) {
  const ref<always_one> to = me.spawn<always_one>();
  auto call = to.call<always_one::bump>();
  const result<int> first = co_await std::move(call);
  EXPECT_EQ(first, 1);
  const result<int> second = co_await std::move(call);  // NOLINT(bugprone-use-after-move): that is the point
}
TEST(call, that_is_awaited_a_second_time_throws) {
  const exit_reason why = run(awaits_a_call_twice);
  EXPECT_EQ(why.exception_type(), "std::logic_error");
  EXPECT_EQ(why.text(), "this call was awaited before: make a new one each time");
}

TEST(call, a_caller_that_is_killed_while_it_waits_harms_nobody) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(kills_callers), exit_reason::normal());
}

TEST(call, from_a_plain_thread_ends_with_an_error_when_the_process_that_makes_it_is_killed) {
  runtime rt{quiet()};
  const pid s = rt.spawn(server);
  std::jthread caller{[&] { EXPECT_FALSE(rt.call(call<slow>(s).within(forever))); }};
  for (bool killed = false; !killed; std::this_thread::yield())
    for (const process_info& one : rt.snapshot()) {
      if (one.id == s) continue;
      rt.kill(one.id);  // as somebody who kills everything would
      killed = true;
    }
}

struct sum_all {
  using reply = std::size_t;
  std::vector<std::any> numbers;
};
task<> counts(self& me) {
  auto r = co_await me.receive<request<sum_all>>();
  r.reply(r.message.numbers.size());
}
TEST(call, arguments_arrive_as_they_were_given) {
  runtime rt{quiet()};
  std::vector<std::any> three{1, 2, 3};
  EXPECT_EQ(rt.call(call<sum_all>(rt.spawn(counts), std::move(three))), 3U);
}

// ---- messages that cannot be moved

struct stubborn {
  using reply = int;
  stubborn() = default;
  stubborn(stubborn&&) {
    if (throws.exchange(false)) throw std::runtime_error{"I stay here"};
  }
  stubborn& operator=(stubborn&&) = default;
  ~stubborn() = default;
  static inline std::atomic<bool> throws{false};
};
task<> takes_it(self& me) {
  auto taken = co_await me.receive<request<stubborn>>();
  taken.reply(1);
}
TEST(call, whose_message_throws_when_it_is_taken_is_answered_at_once) {
  runtime rt{quiet()};
  const pid p = rt.spawn(takes_it);
  stubborn::throws = true;
  const auto got = rt.call(call<stubborn>(p));
  EXPECT_FALSE(stubborn::throws) << "it was moved";
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().code(), errc::timeout) << got.error();
  rt.wait(p);
  EXPECT_FALSE(rt.alive(p));
}

}  // namespace
