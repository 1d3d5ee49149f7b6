// Every process ends with exactly one reason, and a failure tells what failed.
// Compiled alone: joined with others, its types would have other names.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace app {

struct order {
  int number;
};
class out_of_stock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
struct strange {};  // no std::exception
class mute : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};
struct stock {
  using reply = int;
};

}  // namespace app

namespace {

using namespace coppice;
using namespace std::chrono_literals;

task<> returns(self&) { co_return; }

TEST(exit, a_body_that_returns_ends_with_normal) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(returns), exit_reason::normal());
}

task<int> returns_a_value(self&) { co_return 5; }

TEST(exit, a_body_with_a_result_ends_with_normal) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(returns_a_value), exit_reason::normal());
}

task<> throws_runtime_error(self&) {
  throw std::runtime_error{"out of luck"};
  co_return;
}

TEST(exit, an_exception_becomes_an_error_with_its_type_and_its_text) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(throws_runtime_error), exit_reason::error("std::runtime_error", "out of luck", ""));
}

task<> throws_int(self&) {
  throw 42;
  co_return;
}
task<> throws_strange(self&) {
  throw app::strange{};
  co_return;
}

TEST(exit, something_thrown_that_is_not_a_std_exception_still_tells_its_type_and_if_it_can_its_value) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(throws_int), exit_reason::error("int", "42", ""));
  EXPECT_EQ(rt.run(throws_strange), exit_reason::error("app::strange", "", ""));
}

task<> breaks_an_invariant(self&) {
  ensure(false, "two and two is five");
  co_return;
}

TEST(exit, a_broken_invariant_ends_only_the_process_it_was_found_in) {
  runtime rt{quiet()};
  const exit_reason why = rt.run(breaks_an_invariant);
  EXPECT_EQ(why.exception_type(), "coppice::broken_invariant");
  EXPECT_NE(why.text().find("two and two is five"), std::string_view::npos);
  EXPECT_EQ(rt.run(returns), exit_reason::normal());
}

void finds_a_broken_invariant_and_catches_it() {
  try {
    ensure(false, "two and two is five");
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): as careless code does
  }
}
task<> swallows_it(self& me) {
  finds_a_broken_invariant_and_catches_it();
  co_await me.sleep(1h);
}
struct swallowing_object {
  struct poke {};
  void handle(poke) { finds_a_broken_invariant_and_catches_it(); }
};
struct swallowing_server {
  struct poke {
    using reply = int;
  };
  using protocol = coppice::protocol<poke>;
  task<int> handle(poke, self& me) {
    finds_a_broken_invariant_and_catches_it();
    co_await me.yield();
    co_return 1;
  }
};
task<> sees_objects_end(self& me) {
  const ref<swallowing_object> object = me.spawn<swallowing_object>();
  me.monitor(object.id());
  object.cast<swallowing_object::poke>();
  const down first = co_await me.receive<down>();
  EXPECT_EQ(first.reason.exception_type(), "coppice::broken_invariant");
  const ref<swallowing_server> server = me.spawn<swallowing_server>();
  me.monitor(server.id());
  const result<int> answer = co_await server.call<swallowing_server::poke>();
  EXPECT_TRUE(answer.has_value() || answer.error().code() == errc::exited);
  const down second = co_await me.receive<down>();
  EXPECT_EQ(second.reason.exception_type(), "coppice::broken_invariant");
}

TEST(exit, a_broken_invariant_ends_its_process_also_when_the_exception_is_caught) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(swallows_it).exception_type(), "coppice::broken_invariant");
  EXPECT_EQ(rt.run(sees_objects_end), exit_reason::normal());
}

task<> fails_below(int depth) {
  if (depth == 0) throw app::out_of_stock{"no apples"};
  co_await fails_below(depth - 1);
}
task<> fails_in_a_nested_task(self&) { co_await fails_below(10); }

TEST(exit, an_exception_from_nested_tasks_ends_the_process_as_one_of_its_own) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(fails_in_a_nested_task), exit_reason::error("app::out_of_stock", "no apples", ""));
}

task<> exits_below(exit_reason why) {
  throw exit_with{std::move(why)};
  co_return;
}
task<> throws_exit_with(self&, exit_reason why) {
  try {
    co_await exits_below(std::move(why));
  } catch (const std::runtime_error&) {
    ADD_FAILURE() << "exit_with is no runtime_error";
  }
}

TEST(exit, exit_with_ends_the_process_with_its_reason_past_all_frames) {
  runtime rt{quiet()};
  for (const exit_reason& why :
       {exit_reason::normal(), exit_reason::shutdown("done"), exit_reason::error("full"), exit_reason::kill()})
    EXPECT_EQ(rt.run(throws_exit_with, why), why);
}

task<> exits_here(self& me, exit_reason why, bool* went_on) {
  co_await me.exit(std::move(why));
  *went_on = true;
}

TEST(exit, awaiting_exit_ends_the_process_here_and_now) {
  runtime rt{quiet()};
  bool went_on = false;
  EXPECT_EQ(rt.run(exits_here, exit_reason::shutdown("enough"), &went_on), exit_reason::shutdown("enough"));
  EXPECT_FALSE(went_on);
}

task<> awaits_exit_below(self& me, bool* went_on) { co_await exits_here(me, exit_reason::error("below"), went_on); }

TEST(exit, awaiting_exit_in_a_nested_task_ends_the_whole_process) {
  runtime rt{quiet()};
  bool went_on = false;
  EXPECT_EQ(rt.run(awaits_exit_below, &went_on), exit_reason::error("below"));
  EXPECT_FALSE(went_on);
}

task<> stops_and_returns(self& me, exit_reason why, int* steps) {
  me.stop(std::move(why));
  ++*steps;
  co_return;
}
task<> stops_and_waits(self& me, exit_reason why, int* steps) {
  me.stop(std::move(why));
  ++*steps;
  co_await me.receive<int>();
  ++*steps;
}

TEST(exit, stop_ends_the_process_when_its_code_returns_or_waits) {
  runtime rt{quiet()};
  int steps = 0;
  EXPECT_EQ(rt.run(stops_and_returns, exit_reason::error("stop"), &steps), exit_reason::error("stop"));
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(rt.run(stops_and_waits, exit_reason::error("wait"), &steps), exit_reason::error("wait"));
  EXPECT_EQ(steps, 2);
}

task<> stops_and_throws(self& me) {
  me.stop(exit_reason::shutdown());
  throw std::runtime_error{"worse"};
  co_return;
}

TEST(exit, an_exception_behind_a_stop_is_the_reason) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(stops_and_throws), exit_reason::error("std::runtime_error", "worse", ""));
}

// ---- the message being handled

task<> fails_at_an_order(self& me) {
  const auto wanted = co_await me.receive<app::order>();
  throw app::out_of_stock{"order " + std::to_string(wanted.number)};
}
task<> orders(self& me, exit_reason* into) {
  const auto [who, ref] = me.spawn_monitor(fails_at_an_order);
  me.send(who, 1.5);  // stays where it is
  me.send(who, app::order{7});
  const down d = co_await me.receive<down>();
  *into = d.reason;
}

TEST(exit, the_reason_names_the_message_that_was_being_handled) {
  runtime rt{quiet()};
  exit_reason why;
  rt.wait(rt.spawn(orders, &why));
  EXPECT_EQ(why, exit_reason::error("app::out_of_stock", "order 7", "app::order"));
}

task<> fails_at_a_kept_order(self& me) {
  co_await me.receive<char>();
  co_await me.receive<app::order>();  // it was put aside
  throw app::out_of_stock{"late"};
}
task<> orders_first(self& me, exit_reason* into) {
  const auto [who, ref] = me.spawn_monitor(fails_at_a_kept_order);
  me.send(who, app::order{7});
  me.send(who, 'x');
  const down d = co_await me.receive<down>();
  *into = d.reason;
}

TEST(exit, the_message_named_is_the_one_received_last_even_if_it_had_been_put_aside) {
  runtime rt{quiet()};
  exit_reason why;
  rt.wait(rt.spawn(orders_first, &why));
  EXPECT_EQ(why, exit_reason::error("app::out_of_stock", "late", "app::order"));
}

struct shop {
  void handle(app::order o) const { throw app::out_of_stock{"order " + std::to_string(o.number)}; }
};

TEST(exit, a_handler_that_throws_ends_its_process_with_type_text_and_message) {
  runtime rt{quiet()};
  const ref<shop> where = rt.spawn<shop>();
  exit_reason why;
  const auto order_and_watch = [](self& me, ref<shop> at, exit_reason* into) -> task<> {
    me.monitor(at.id());
    at.cast<app::order>(9);
    const down d = co_await me.receive<down>();
    *into = d.reason;
  };
  rt.wait(rt.spawn(order_and_watch, where, &why));
  EXPECT_EQ(why, exit_reason::error("app::out_of_stock", "order 9", "app::order"));
}

// ---- failures stay where they are

task<> works_on(self& me, int* handled) {
  for (;;) {
    co_await me.receive<int>();
    if (++*handled == 100) co_return;
  }
}

TEST(exit, the_failure_of_one_process_touches_no_other) {
  runtime rt{quiet()};
  int handled = 0;
  const pid p = rt.spawn(works_on, &handled);
  for (int i = 0; i < 100; ++i) {
    rt.spawn(throws_runtime_error);
    rt.spawn(throws_int);
    rt.send(p, i);
  }
  rt.wait(p);
  EXPECT_EQ(handled, 100);
}

task<> fails_at_an_order_after_a_while(self& me, pid helper) {
  const auto wanted = co_await me.receive<app::order>();
  co_await me.sleep(1ns);
  const auto asked = co_await call<app::stock>(helper);
  EXPECT_TRUE(asked);
  co_await me.yield();
  throw app::out_of_stock{"order " + std::to_string(wanted.number)};
}
task<> knows_the_stock(self& me) {
  auto asked = co_await me.receive<request<app::stock>>();
  asked.reply(3);
}
task<> orders_and_waits(self& me, exit_reason* into) {
  const pid helper = me.spawn(knows_the_stock);
  const monitored child = me.spawn_monitor(fails_at_an_order_after_a_while, helper);
  me.send(child.who, app::order{7});
  const down d = co_await me.receive<down>();
  *into = d.reason;
}
TEST(exit, the_reason_names_the_message_also_when_the_process_has_slept_and_called_since) {
  runtime rt{quiet()};
  exit_reason why;
  rt.wait(rt.spawn(orders_and_waits, &why));
  EXPECT_EQ(why, exit_reason::error("app::out_of_stock", "order 7", "app::order"));
}

task<> fails_without_a_word(self&) {
  throw app::mute{};
  co_return;
}
TEST(exit, an_exception_without_a_text_gives_a_reason_with_an_empty_one) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(fails_without_a_word), exit_reason::error("app::mute", "", ""));
}

}  // namespace
