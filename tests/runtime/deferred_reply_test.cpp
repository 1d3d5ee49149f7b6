// Answers given later: from another process, from a plain thread, or never.
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct ask {
  using reply = int;
  int n = 0;
};
struct ask_nothing {
  using reply = void;
};
struct end_now {};
using handle = reply_to<int>;

/// Gives its answers away: to `to`, or to nobody when there is none.
task<> passes_on(self& me, pid to) {
  for (;;) {
    auto m = co_await me.receive<request<ask>, end_now>();
    if (std::holds_alternative<end_now>(m)) throw std::runtime_error{"told to end"};
    auto& r = std::get<request<ask>>(m);
    std::pair<int, handle> work{r.message.n, r.defer()};
    me.send(to, std::move(work));
  }
}
task<> answers_for_others(self& me) {
  for (;;) {
    auto work = co_await me.receive<std::pair<int, handle>>();
    EXPECT_TRUE(work.second.reply(work.first * 2));
    EXPECT_FALSE(work.second.reply(0));
    EXPECT_FALSE(work.second.fail(error{errc::invalid}));
  }
}
TEST(deferred_reply, may_be_given_by_another_process) {
  runtime rt{quiet()};
  const pid front = rt.spawn(passes_on, rt.spawn(answers_for_others));
  for (int i = 0; i < 500; ++i) EXPECT_EQ(rt.call(call<ask>(front, i)), i * 2);
}

/// Keeps the answers for the test to give.
struct desk {
  std::mutex mutex;
  std::vector<handle> open;
  void put(handle h) {
    const std::scoped_lock lock{mutex};
    open.push_back(std::move(h));
  }
  std::optional<handle> take() {
    const std::scoped_lock lock{mutex};
    if (open.empty()) return std::nullopt;
    handle h = std::move(open.back());
    open.pop_back();
    return h;
  }
  handle wait_and_take() {
    for (;;) {
      if (auto h = take()) return *std::move(h);
      std::this_thread::yield();
    }
  }
};
task<> puts_on_desk(self& me, desk* where) {
  for (;;) {
    auto m = co_await me.receive<request<ask>, end_now>();
    if (std::holds_alternative<end_now>(m)) throw std::runtime_error{"told to end"};
    where->put(std::get<request<ask>>(m).defer());
  }
}

TEST(deferred_reply, may_be_given_by_a_plain_thread) {
  runtime rt{quiet()};
  desk open;
  const pid s = rt.spawn(puts_on_desk, &open);
  std::jthread clerk{[&] {
    for (int i = 0; i < 300; ++i) EXPECT_TRUE(open.wait_and_take().reply(i));
  }};
  for (int i = 0; i < 300; ++i) EXPECT_EQ(rt.call(call<ask>(s, 0)), i);
}

TEST(deferred_reply, copies_share_one_answer) {
  runtime rt{quiet()};
  desk open;
  const pid s = rt.spawn(puts_on_desk, &open);
  std::jthread clerk{[&] {
    handle one = open.wait_and_take();
    handle other = one;
    EXPECT_TRUE(one.fail(error{errc::invalid, "no"}));
    EXPECT_FALSE(other.reply(1));
  }};
  EXPECT_EQ(rt.call(call<ask>(s, 0)).error(), (error{errc::invalid, "no"}));
}

TEST(deferred_reply, whose_last_copy_goes_unanswered_gives_no_reply) {
  runtime rt{quiet()};
  desk open;
  const pid s = rt.spawn(puts_on_desk, &open);
  std::jthread clerk{[&] { (void)open.wait_and_take(); }};
  EXPECT_EQ(rt.call(call<ask>(s, 0).within(forever)).error().code(), errc::no_reply);
  EXPECT_TRUE(rt.alive(s));
}

TEST(deferred_reply, of_a_callee_that_ends_gives_exited_with_the_reason_and_cannot_be_given_any_more) {
  runtime rt{quiet()};
  desk open;
  const pid s = rt.spawn(puts_on_desk, &open);
  std::optional<handle> late;
  std::jthread clerk{[&] {
    late = open.wait_and_take();
    rt.send(s, end_now{});
  }};
  const auto got = rt.call(call<ask>(s, 0).within(forever));
  clerk.join();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::exited);
  EXPECT_NE(got.error().text().find("told to end"), std::string_view::npos) << got.error();
  EXPECT_FALSE(late->reply(1));
}

TEST(deferred_reply, given_after_the_caller_gave_up_is_never_seen) {
  runtime rt{quiet()};
  desk open;
  const pid s = rt.spawn(puts_on_desk, &open);
  EXPECT_EQ(rt.call(call<ask>(s, 0).within(1ms)).error().code(), errc::timeout);
  (void)open.wait_and_take().reply(1);
  EXPECT_TRUE(rt.alive(s));
}

struct ask_for_handle {
  using reply = handle;
};
task<> leaves_answer_to_test(self& me, std::promise<reply_to<handle>>* test) {
  auto r = co_await me.receive<request<ask_for_handle>>();
  test->set_value(r.defer());
  co_await me.receive<end_now>();
}
task<> calls_once(self&, pid s) { (void)co_await call<ask_for_handle>(s).within(forever); }
task<> idles(self& me) { co_await me.receive<end_now>(); }
// The plain thread destroys the answer, which nobody waits for, and with it the handle of another call: once the slot
// of the caller has another process. As long as the slot is empty, a worker destroys the answer.
TEST(deferred_reply, to_an_ended_caller_that_holds_another_deferred_reply_answers_that_call) {
  runtime rt{runtime_options{.processes = 64, .level = log_level::off}};
  desk open;
  std::promise<reply_to<handle>> outer;
  const pid s = rt.spawn(puts_on_desk, &open);
  const pid caller = rt.spawn(calls_once, rt.spawn(leaves_answer_to_test, &outer));
  std::jthread clerk{[&] {
    reply_to<handle> answer = outer.get_future().get();
    rt.kill(caller);
    rt.wait(caller);
    for (int i = 0; i < 40; ++i) {
      const pid next = rt.spawn(idles);
      while (!rt.info(next)) std::this_thread::yield();
      if (next.index() == caller.index()) break;
    }
    EXPECT_TRUE(answer.reply(open.wait_and_take()));
  }};
  EXPECT_EQ(rt.call(call<ask>(s, 0).within(forever)).error().code(), errc::no_reply);
}

TEST(deferred_reply, that_outlives_the_runtime_is_nothing) {
  desk open;
  std::optional<handle> late;
  {
    runtime rt{quiet()};
    const pid s = rt.spawn(puts_on_desk, &open);
    std::jthread caller{[&] { (void)rt.call(call<ask>(s, 0).within(1ms)); }};
    late = open.wait_and_take();
  }
  EXPECT_FALSE(late->reply(1));
  late.reset();
}

task<> calls_for_ever(self&, pid s) {
  for (;;) co_await call<ask>(s, 1);
}
TEST(deferred_reply, may_be_given_while_the_runtime_ends) {
  for (int round = 0; round < 20; ++round) {
    desk open;
    std::atomic<bool> over{false};
    std::optional<runtime> rt{std::in_place, quiet()};
    const pid s = rt->spawn(puts_on_desk, &open);
    for (int i = 0; i < 10; ++i) rt->spawn(calls_for_ever, s);
    std::jthread clerk{[&] {
      while (!over) {
        if (auto h = open.take()) (void)h->reply(1);
        std::this_thread::yield();
      }
    }};
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    rt.reset();
    over = true;
  }
}

// ---- an object's

struct counter {
  struct later {
    using reply = int;
    int n = 0;
  };
  struct later_with_self {
    using reply = pid;
  };
  struct flush {};
  struct refuse {
    using reply = int;
  };
  static void handle(refuse, reply_to<int>) { throw std::runtime_error{"not today"}; }
  void handle(later m, reply_to<int> to) {
    open.emplace_back(m.n, std::move(to));
    taken->count_down();
  }
  static void handle(later_with_self, reply_to<pid> to, self& me) { to.reply(me.id()); }
  void handle(flush) {
    for (auto& [n, to] : open) to.reply(n + 1);
    open.clear();
  }
  std::latch* taken;
  std::vector<std::pair<int, reply_to<int>>> open{};
};
TEST(deferred_reply, of_an_object_is_given_by_a_later_handler) {
  runtime rt{quiet()};
  std::latch taken{1};
  const ref<counter> c = rt.spawn<counter>(&taken);
  std::jthread flusher{[&] {
    taken.wait();
    rt.cast<counter::flush>(c);
  }};
  EXPECT_EQ(rt.call(c.call<counter::later>(5).within(forever)), 6);
  EXPECT_EQ(rt.call(c.call<counter::later_with_self>()), c.id());
}

TEST(deferred_reply, of_an_object_whose_handler_throws_gives_exited_with_the_reason) {
  runtime rt{quiet()};
  std::latch taken{1};
  const auto got = rt.call(rt.spawn<counter>(&taken).call<counter::refuse>().within(forever));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::exited) << got.error();
  EXPECT_NE(got.error().text().find("not today"), std::string_view::npos) << got.error();
}

task<> throws_with_the_handle(self& me) {
  auto r = co_await me.receive<request<ask>>();
  const handle later = r.defer();
  throw std::runtime_error{"not today"};
}
TEST(deferred_reply, of_a_callee_that_fails_with_the_handle_in_its_hands_gives_exited_with_the_reason) {
  runtime rt{quiet()};
  const auto got = rt.call(call<ask>(rt.spawn(throws_with_the_handle), 1).within(forever));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::exited) << got.error();
}

task<> catches_its_own(self& me) {
  for ([[maybe_unused]] int caught = 0;;) {
    try {
      auto r = co_await me.receive<request<ask>>();
      throw std::runtime_error{"caught below"};
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
}
TEST(deferred_reply, of_a_callee_that_fails_and_recovers_gives_no_reply) {
  runtime rt{quiet()};
  const pid s = rt.spawn(catches_its_own);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rt.call(call<ask>(s, 1).within(forever)).error().code(), errc::no_reply);
  EXPECT_TRUE(rt.alive(s));
}

TEST(deferred_reply, of_an_object_that_is_killed_gives_exited) {
  runtime rt{quiet()};
  std::latch taken{1};
  const ref<counter> c = rt.spawn<counter>(&taken);
  std::jthread killer{[&] {
    taken.wait();
    rt.kill(c.id());
  }};
  const auto got = rt.call(c.call<counter::later>(5).within(forever));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error(), (error{errc::exited, "killed"}));
}

task<> defers_twice(self& me, std::latch* refused) {
  auto first = co_await me.receive<request<ask>>();
  auto answer = first.defer();
  EXPECT_THROW((void)first.defer(), std::logic_error);
  EXPECT_TRUE(answer.reply(1));
  auto second = co_await me.receive<request<ask>>();
  second.reply(2);
  EXPECT_THROW((void)second.defer(), std::logic_error);
  auto third = co_await me.receive<request<ask>>();
  auto moved = std::move(third);
  EXPECT_THROW((void)third.defer(), std::logic_error);  // NOLINT(bugprone-use-after-move): that is the case
  moved.reply(3);
  refused->count_down();
}
TEST(deferred_reply, of_a_request_that_was_answered_deferred_or_moved_away_is_refused) {
  runtime rt{quiet()};
  std::latch refused{1};
  const pid p = rt.spawn(defers_twice, &refused);
  for (const int n : {1, 2, 3}) EXPECT_EQ(rt.call(call<ask>(p)), n);
  refused.wait();
}

}  // namespace
