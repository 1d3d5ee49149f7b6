// A state that is corrupted on purpose ends the process it belongs to, and the exit reason says what was found.
#include "invariants.hpp"

#include <gtest/gtest.h>

#include <string>

#include <coppice/runtime/detail/starting.hpp>
#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

detail::coroutine& frame_of(self& me) { return static_cast<detail::coroutine&>(me); }

task<> gets_a_timer_that_it_never_armed(self& me) {
  detail::kernel& k = me.host();
  k.send(me.id(), detail::signal::wait_over,
         detail::make_letter<detail::wait_number>(detail::plain<detail::wait_number>));
  co_await me.receive<int>();
}
TEST(broken_invariant, a_timer_of_a_wait_that_was_never_armed) {
  expect_broken(run(gets_a_timer_that_it_never_armed), "a timer of a wait for a process that has armed none");
}

struct waits_twice : detail::waiter {
  static constexpr detail::wait_type how{
      .take = [](detail::waiter&, detail::coroutine&, detail::envelope&) { return false; }};
  waits_twice() : detail::waiter{&how} {}
  [[nodiscard]] static bool await_ready() noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    h.promise().process().wait(h, *this, detail::no_timeout);
    h.promise().process().wait(h, *this, detail::no_timeout);
  }
  void await_resume() const noexcept {}
};
task<> waits_for_two_things(self&) {
  waits_twice both;
  co_await both;
}
TEST(broken_invariant, a_process_that_waits_for_two_things) {
  expect_broken(run(waits_for_two_things), "a process waits for two things at once");
}

task<> answers_a_request_twice(self& me) {
  const leaks_expected leaks;
  detail::serving s{frame_of(me)};
  s.ask({me.id(), 1, &detail::answer_error<int>});
  s.reply(detail::make_reply<int>(1, 2));
  s.reply(detail::make_reply<int>(1, 3));
  co_return;
}
TEST(broken_invariant, a_server_that_answers_a_request_twice) {
  expect_broken(run(answers_a_request_twice), "a request of a server was answered twice");
}

task<void> does_nothing() { co_return; }
task<> runs_two_members(self& me) {
  const leaks_expected leaks;
  detail::serving s{frame_of(me)};
  s.wait_for(does_nothing());
  s.wait_for(does_nothing());
  co_return;
}
TEST(broken_invariant, a_server_that_runs_two_members_at_once) {
  expect_broken(run(runs_two_members), "a server called a member while another one runs");
}

struct lazy {
  [[nodiscard]] static std::chrono::nanoseconds idle_after() { return 1h; }
  static void handle(became_idle) {}
};
task<> checks_what_was_never_armed(self& me) {
  const ref<lazy> server = me.spawn<lazy>();
  me.monitor(server.id());
  me.send(server.id(), detail::idle_check{.handled = 0, .number = 99});
  const down d = co_await me.receive<down>();
  expect_broken(d.reason, "an idle check that was never armed");
}
TEST(broken_invariant, an_idle_check_that_was_never_armed) {
  EXPECT_EQ(run(checks_what_was_never_armed), exit_reason::normal());
}

task<> is_told_of_a_failed_start_without_an_error(self& me) {
  const detail::start_ack ack{me.id(), 7};
  me.host().send(me.id(), detail::signal::notice,
                 detail::make_letter<detail::start_news>(detail::plain<detail::start_news>, ack.call,
                                                         init_result::stop(exit_reason::shutdown())));
  co_await detail::starting(pid{}, ack.call, detail::no_timeout, monitor_ref{}, nullptr);
}
TEST(broken_invariant, a_failed_start_without_an_error) {
  expect_broken(run(is_told_of_a_failed_start_without_an_error), "a failed start without an error");
}

}  // namespace
