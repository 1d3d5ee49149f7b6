// Promises, which any thread may complete, and the futures that processes await.
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

using shared_promise = std::optional<promise<std::string>>;

task<> completed_by_a_thread(self& me) {
  for (int i = 0; i < 100; ++i) {
    auto made = make_promise<int>(me);
    std::jthread other{[answer = std::move(made.promise), i]() mutable { EXPECT_TRUE(answer.complete(i)); }};
    const result<int> got = co_await made.future.within(1min);
    EXPECT_EQ(got, i);
  }
}
TEST(promise, may_be_completed_by_any_thread) { EXPECT_EQ(run(completed_by_a_thread), exit_reason::normal()); }

task<> completed_before_the_wait(self& me) {
  auto [answer, value] = make_promise<std::unique_ptr<int>>(me);
  EXPECT_EQ(value.get(), nullptr);
  EXPECT_TRUE(answer.complete(std::make_unique<int>(7)));
  co_await me.sleep(1ms);  // the answer arrives while the process waits for something else
  EXPECT_NE(value.get(), nullptr);
  const result<std::unique_ptr<int>> got = co_await value;
  EXPECT_EQ(**got, 7);
}
TEST(promise, may_be_completed_before_its_future_is_awaited) {
  EXPECT_EQ(run(completed_before_the_wait), exit_reason::normal());
}

task<> first_completion_counts(self& me) {
  auto [answer, value] = make_promise<int>(me);
  promise<int> copy = answer;
  EXPECT_TRUE(copy.complete(1));
  EXPECT_FALSE(answer.complete(2));
  EXPECT_FALSE(answer.fail(error{errc::invalid}));
  const result<int> got = co_await value;
  EXPECT_EQ(got, 1);
}
TEST(promise, the_first_completion_counts) { EXPECT_EQ(run(first_completion_counts), exit_reason::normal()); }

task<> fails_with_an_error(self& me) {
  auto [answer, value] = make_promise<void>(me);
  EXPECT_TRUE(answer.fail(error{errc::invalid, "no such file"}));
  const result<void> got = co_await value;
  EXPECT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code(), errc::invalid);
}
TEST(promise, may_be_completed_with_an_error) { EXPECT_EQ(run(fails_with_an_error), exit_reason::normal()); }

task<> awaits_a_dropped_one(self& me) {
  auto made = make_promise<int>(me);
  std::optional<promise<int>> one = std::move(made.promise);
  std::optional<promise<int>> two = one;
  one.reset();
  const result<int> early = co_await made.future.within(1ms);
  EXPECT_EQ(early.error().code(), errc::timeout);  // a copy is left
  two.reset();
  made.promise = make_promise<int>(me).promise;  // a moved-from promise is empty; give it something to hold
  const result<int> got = co_await made.future;
  EXPECT_EQ(got.error().code(), errc::no_reply);
}
TEST(promise, gives_its_future_an_error_when_the_last_copy_is_destroyed) {
  EXPECT_EQ(run(awaits_a_dropped_one), exit_reason::normal());
}

task<> awaits_again_after_a_limit(self& me) {
  auto [answer, value] = make_promise<int>(me);
  const result<int> first = co_await value.within(1ms);
  EXPECT_EQ(first.error().code(), errc::timeout);
  const result<int> at_once = co_await value.within(0ms);
  EXPECT_EQ(at_once.error().code(), errc::timeout);
  answer.complete(3);
  const result<int> second = co_await value.within(1min);
  EXPECT_EQ(second, 3);
}
TEST(future, stays_pending_when_the_limit_of_a_wait_has_passed) {
  EXPECT_EQ(run(awaits_again_after_a_limit), exit_reason::normal());
}

task<> awaits_twice(self& me) {
  auto [answer, value] = make_promise<int>(me);
  answer.complete(3);
  co_await value;
  co_await value;
}
TEST(future, can_be_awaited_once) {
  EXPECT_EQ(run(awaits_twice), exit_reason::error("std::logic_error", "this future was awaited before", ""));
}

task<> pipes_after_an_await(self& me) {
  auto [answer, value] = make_promise<int>(me);
  answer.complete(3);
  co_await value;
  value.pipe_to(me.id());
}
TEST(future, that_was_awaited_cannot_be_piped) {
  EXPECT_EQ(run(pipes_after_an_await), exit_reason::error("std::logic_error", "this future was awaited before", ""));
}

task<> awaits_foreign(self&, std::shared_ptr<future<int>> of_another) { co_await *of_another; }
task<> lends_its_future(self& me) {
  auto made = make_promise<int>(me);
  const auto lent = std::make_shared<future<int>>(made.future);
  const auto [who, ref] = me.spawn_monitor(awaits_foreign, lent);
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.reason.text(), "this future belongs to " + to_string(me.id()) + "; " + to_string(who) + " can't use it");
}
TEST(future, of_another_process_is_refused) { EXPECT_EQ(run(lends_its_future), exit_reason::normal()); }

task<> waits_for_several(self& me) {
  auto [first, a] = make_promise<int>(me);
  auto [second, b] = make_promise<int>(me);
  second.complete(2);
  me.send(me.id(), std::string{"mail"});
  first.complete(1);
  const result<int> got_a = co_await a;
  const std::string mail = co_await me.receive<std::string>();
  const result<int> got_b = co_await b;
  EXPECT_EQ(got_a, 1);
  EXPECT_EQ(got_b, 2);
}
TEST(future, several_may_be_pending_at_a_time) { EXPECT_EQ(run(waits_for_several), exit_reason::normal()); }

/// Its handlers do not wait, so the value comes as a message.
struct plain_server {
  struct ask {
    using reply = void;
    std::shared_ptr<shared_promise> into;
  };
  struct get {
    using reply = std::string;
  };
  using protocol = coppice::protocol<ask, get, std::string, error>;
  void handle(ask m, self& me) {
    auto made = make_promise<std::string>(me);
    made.future.pipe_to(me.id());
    m.into->emplace(std::move(made.promise));
  }
  void handle(get, reply_to<std::string> to) { waiting.emplace(std::move(to)); }
  void handle(std::string text) { waiting->reply(text); }
  void handle(error why) { waiting->reply(std::string{to_string(why.code())}); }
  std::optional<reply_to<std::string>> waiting;
};
TEST(future, of_a_server_whose_handlers_do_not_wait_comes_as_a_message) {
  runtime rt{quiet()};
  const ref<plain_server> s = rt.spawn<plain_server>();
  const auto into = std::make_shared<shared_promise>();
  ASSERT_TRUE(rt.call(s.call<plain_server::ask>(into)));
  const runtime_handle to = rt.handle();
  std::latch answered{1};
  to.call(s.call<plain_server::get>(), [&](result<std::string> got) {
    EXPECT_EQ(got, "hello");
    answered.count_down();
  });
  // The completion may be handled before the call: then there is nobody to reply to yet.
  while (!rt.info(s.id()) || rt.info(s.id())->handled < 3) std::this_thread::yield();
  EXPECT_TRUE((*into)->complete("hello"));
  answered.wait();
}

task<> makes_and_waits(self& me, shared_promise* into, std::latch* made) {
  auto [answer, value] = make_promise<std::string>(me);
  into->emplace(std::move(answer));
  made->count_down();
  co_await value;
}
TEST(promise, of_a_process_that_has_ended_may_still_be_completed) {
  runtime rt{quiet()};
  shared_promise answer;
  std::latch made{1};
  const pid p = rt.spawn(makes_and_waits, &answer, &made);
  made.wait();
  rt.kill(p);
  rt.wait(p);
  EXPECT_TRUE(answer->complete("late"));
  answer.reset();
}
TEST(promise, may_outlive_its_runtime) {
  shared_promise answer;
  {
    runtime rt{quiet()};
    std::latch made{1};
    rt.spawn(makes_and_waits, &answer, &made);
    made.wait();
  }
  EXPECT_FALSE(answer->complete("late"));
}

struct has_piped {};
task<> pipes_to(self& me, pid to, shared_promise* into) {
  auto [answer, value] = make_promise<std::string>(me);
  value.pipe_to(to);
  into->emplace(std::move(answer));
  me.send(to, has_piped{});
  co_await me.receive<int>();
}
task<> kills_the_owner_of_a_piped_future(self& me, shared_promise* into) {
  const pid asker = me.spawn(pipes_to, me.id(), into);
  co_await me.receive<has_piped>();
  me.kill(asker);
  const error why = co_await me.receive<error>();
  EXPECT_EQ(why.code(), errc::exited);
}
TEST(future, piped_to_another_process_becomes_an_error_if_its_process_ends_first) {
  shared_promise answer;
  EXPECT_EQ(run(kills_the_owner_of_a_piped_future, &answer), exit_reason::normal());
}

// ---- what a process may await

task<int> three(self&) { co_return 3; }
task<> awaits_a_task_twice(self& me) {
  task<int> t = three(me);
  co_await std::move(t);
  co_await std::move(t);
}
TEST(task, that_was_awaited_before_is_refused) {
  EXPECT_EQ(run(awaits_a_task_twice),
            exit_reason::error("std::logic_error", "this task was awaited or moved away before", ""));
}

/// Suspends the frame and arranges for nothing to resume it.
struct suspends {
  using is_awaitable = void;
  [[nodiscard]] static bool await_ready() noexcept { return false; }
  static void await_suspend(std::coroutine_handle<>) noexcept {}
  static void await_resume() noexcept {}
};
task<> waits_for_nothing(self&) { co_await suspends{}; }
TEST(task, that_suspends_while_nobody_waits_ends_its_process_with_a_broken_invariant) {
  const exit_reason why = run(waits_for_nothing);
  EXPECT_EQ(why.exception_type(), "coppice::broken_invariant");
  EXPECT_NE(why.text().find("a frame has suspended, and its process waits for nothing"), std::string_view::npos) << why;
}

}  // namespace
