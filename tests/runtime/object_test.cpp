// Processes that are plain objects with handlers.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct bump {
  using reply = int;
  int by = 1;
};
struct reset {};
struct name_of {
  using reply = pid;
};
struct touch {
  using reply = void;
};
struct take {
  using reply = std::unique_ptr<int>;
  std::unique_ptr<int> number;
};
struct stop_now {
  exit_reason why;
};
struct fail_now {
  using reply = int;
};
struct stranger {};

struct counter {
  using protocol = coppice::protocol<bump, reset, touch>;
  counter() = default;
  explicit counter(int start) : value{start} {}
  int handle(bump m) { return value += m.by; }
  void handle(reset) { value = 0; }
  static pid handle(name_of, self& me) { return me.id(); }
  void handle(touch) { ++touched; }
  static std::unique_ptr<int> handle(take m) { return std::move(m.number); }
  static void handle(stop_now m, self& me) { me.stop(std::move(m.why)); }
  static int handle(fail_now) { throw std::runtime_error{"asked to fail"}; }
  int value = 0;
  int touched = 0;
};

// ---- handlers

TEST(object, answers_calls_by_its_handlers) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>(40);
  EXPECT_EQ(rt.call(c.call<bump>()), 41);
  EXPECT_EQ(rt.call(c.call<bump>(2)), 43);
  EXPECT_TRUE(rt.call(c.call<touch>()));
  EXPECT_EQ(**rt.call(c.call<take>(std::make_unique<int>(7))), 7);
}

TEST(object, a_handler_that_asks_for_self_gets_it) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>();
  EXPECT_EQ(rt.call(c.call<name_of>()), c.id());
}

TEST(object, casts_and_calls_of_one_sender_are_handled_in_order) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>();
  for (int i = 0; i < 1000; ++i) rt.cast<bump>(c, 1);
  EXPECT_EQ(rt.call(c.call<bump>(0)), 1000);
  rt.cast<reset>(c);
  EXPECT_EQ(rt.call(c.call<bump>(0)), 0);
}

task<> uses_a_ref(self& me) {
  const ref<counter> c = me.spawn_link<counter>(5);
  c.cast<bump>(5);
  const result<int> n = co_await c.call<bump>(1);
  EXPECT_EQ(n, 11);
  const result<void> touched = co_await c.call<touch>();
  EXPECT_TRUE(touched);
  const result<int> quick = co_await c.call<bump>(1).within(1h);
  EXPECT_EQ(quick, 12);
}
TEST(object, is_used_through_its_ref_inside_processes) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(uses_a_ref), exit_reason::normal());
}

TEST(object, a_ref_used_outside_of_any_process_throws) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>();
  EXPECT_THROW(c.cast<reset>(), std::logic_error);
}

// ---- life

struct watched {
  explicit watched(std::shared_ptr<int> w) : token{std::move(w)} {}
  static void handle(stop_now m, self& me) { me.stop(std::move(m.why)); }
  std::shared_ptr<int> token;
};
TEST(object, is_destroyed_when_its_process_ends) {
  runtime rt{quiet()};
  const auto token = std::make_shared<int>(1);
  const ref<watched> w = rt.spawn<watched>(token);
  rt.kill(w.id());
  rt.wait(w.id());
  EXPECT_EQ(token.use_count(), 1);
}

struct knows_itself {
  knows_itself(self& me, pid* into, int n) : number{n} { *into = me.id(); }
  int handle(bump) const { return number; }
  int number;
};
TEST(object, a_constructor_may_take_self_first) {
  runtime rt{quiet()};
  pid seen;
  const ref<knows_itself> k = rt.spawn<knows_itself>(&seen, 3);
  EXPECT_EQ(rt.call(k.call<bump>()), 3);
  EXPECT_EQ(seen, k.id());
}

struct refuses {
  explicit refuses(std::string why) { throw std::runtime_error{why}; }
  static int handle(bump) { return 0; }
};
task<> spawns_a_refusal(self& me) {
  me.trap_exits();
  const ref<refuses> r = me.spawn_link<refuses>(std::string{"not today"});
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.from, r.id());
  EXPECT_EQ(x.reason, exit_reason::error("std::runtime_error", "not today", ""));
  const result<int> n = co_await r.call<bump>();
  EXPECT_EQ(n.error().code(), errc::noproc);
}
TEST(object, a_constructor_that_throws_is_the_end_of_the_new_process_only) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(spawns_a_refusal), exit_reason::normal());
}

struct refuses_after_members {
  explicit refuses_after_members(std::shared_ptr<int> w) : token{std::move(w)} { throw std::runtime_error{"late"}; }
  static void handle(reset) {}
  std::shared_ptr<int> token;
};
TEST(object, what_a_failing_constructor_has_made_and_its_arguments_are_destroyed) {
  runtime rt{quiet()};
  const auto token = std::make_shared<int>(1);
  const ref<refuses_after_members> r = rt.spawn<refuses_after_members>(token);
  rt.wait(r.id());
  while (rt.counters().ended < 2) std::this_thread::yield();
  EXPECT_EQ(token.use_count(), 1);
}

struct stops_at_once {
  explicit stops_at_once(self& me) { me.stop(exit_reason::shutdown("no work")); }
  static void handle(reset) {}
};
task<> spawns_one_that_stops(self& me) {
  me.trap_exits();
  me.spawn_link<stops_at_once>();
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.reason, exit_reason::shutdown("no work"));
}
TEST(object, a_constructor_may_stop_its_process) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(spawns_one_that_stops), exit_reason::normal());
}

task<> stops_an_object(self& me) {
  me.trap_exits();
  const ref<counter> c = me.spawn_link<counter>();
  stop_now order{exit_reason::shutdown("told")};
  c.cast<stop_now>(std::move(order));
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.reason, exit_reason::shutdown("told"));
}
TEST(object, stop_in_a_handler_ends_the_process_with_that_reason) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(stops_an_object), exit_reason::normal());
}

TEST(object, a_handler_that_throws_answers_its_caller_with_the_reason) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>();
  const auto got = rt.call(c.call<fail_now>());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::exited);
  EXPECT_NE(got.error().text().find("asked to fail"), std::string_view::npos) << got.error();
  EXPECT_NE(got.error().text().find("fail_now"), std::string_view::npos) << got.error();
}

struct says_goodbye {
  struct bye {
    using reply = std::string;
  };
  static std::string handle(bye, self& me) {
    me.stop(exit_reason::shutdown());
    return "bye";
  }
};
TEST(object, a_handler_that_stops_still_answers) {
  runtime rt{quiet()};
  const ref<says_goodbye> s = rt.spawn<says_goodbye>();
  EXPECT_EQ(rt.call(s.call<says_goodbye::bye>()), "bye");
  rt.wait(s.id());
}

// ---- messages that were not sent through its ref

TEST(object, untyped_messages_of_its_protocol_reach_the_handlers) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>();
  rt.send(c.id(), bump{5});
  EXPECT_EQ(rt.call(call<bump>(c.id(), 2)), 7);
  EXPECT_TRUE(rt.call(call<touch>(c.id())));
  rt.send(c.id(), reset{});
  EXPECT_EQ(rt.call(c.call<bump>(0)), 0);
  EXPECT_EQ(rt.counters().dead_letters, 0U);
}

TEST(object, untyped_messages_outside_of_its_protocol_are_dead_letters) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>();
  rt.send(c.id(), stranger{});
  rt.send(c.id(), std::make_unique<int>(1));
  rt.send(c.id(), stop_now{exit_reason::normal()});  // handled, but not listed
  EXPECT_EQ(rt.call(call<name_of>(c.id())).error().code(), errc::no_reply);
  EXPECT_EQ(rt.call(c.call<bump>(1)), 1);
  EXPECT_EQ(rt.counters().dead_letters, 3U) << "a request is answered instead";
}

struct other_counter {
  static int handle(bump) { return -1; }
  void handle(reset) {}
};
TEST(object, what_comes_through_a_ref_of_another_type_is_a_dead_letter) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>(5);
  const ref<other_counter> wrong{c.id()};
  rt.cast<reset>(wrong);
  EXPECT_EQ(rt.call(wrong.call<bump>(1)).error().code(), errc::no_reply);
  EXPECT_EQ(rt.call(c.call<bump>(0)), 5);
  EXPECT_EQ(rt.counters().dead_letters, 1U);
}

task<> waits_for_stranger(self& me) { co_await me.receive<stranger>(); }
TEST(object, what_comes_through_a_ref_to_a_coroutine_stays_in_its_mailbox_until_it_ends) {
  runtime rt{quiet()};
  const pid p = rt.spawn(waits_for_stranger);
  rt.cast<reset>(ref<counter>{p});
  rt.send(p, stranger{});
  rt.wait(p);
  while (rt.counters().ended < 2) std::this_thread::yield();
  EXPECT_EQ(rt.counters().dead_letters, 1U);
}

// ---- signals as messages

struct observer {
  struct watch_one {
    pid who;
  };
  struct link_one {
    pid who;
  };
  struct start_one {};
  struct seen {
    using reply = std::vector<std::string>;
  };
  explicit observer(self& me) { me.trap_exits(); }
  void handle(watch_one m, self& me) { ref = me.monitor(m.who); }
  static void handle(link_one m, self& me) { me.link(m.who); }
  void handle(start_one, self& me) { timer = me.start_timer(1ms); }
  void handle(const down& d) { note("down " + d.reason.to_string() + (d.ref == ref ? "" : "?")); }
  void handle(const exited& x) { note("exited " + x.reason.to_string()); }
  void handle(timer_fired t) { note(t.ref == timer ? "timeout" : "timeout?"); }
  std::vector<std::string> handle(seen) const { return all; }
  void note(std::string what) {
    all.push_back(std::move(what));
    changed->count_down();
  }
  observer(self& me, std::latch* l) : observer{me} { changed = l; }
  std::vector<std::string> all{};
  monitor_ref ref{};
  timer_ref timer{};
  std::latch* changed = nullptr;
};
TEST(object, gets_exits_downs_and_timeouts_by_its_handlers) {
  runtime rt{quiet()};
  std::latch changed{3};
  const ref<observer> o = rt.spawn<observer>(&changed);
  const pid p = rt.spawn(waits_for_stranger);
  const pid q = rt.spawn(waits_for_stranger);
  rt.cast<observer::watch_one>(o, p);
  rt.cast<observer::link_one>(o, q);
  EXPECT_TRUE(rt.call(o.call<observer::seen>())->empty());
  rt.kill(p);
  rt.kill(q);
  rt.cast<observer::start_one>(o);
  changed.wait();
  auto all = *rt.call(o.call<observer::seen>());
  std::ranges::sort(all);
  EXPECT_EQ(all, (std::vector<std::string>{"down killed", "exited killed", "timeout"}));
}

TEST(object, an_exit_without_a_handler_for_it_is_a_dead_letter_when_it_traps) {
  struct traps {
    explicit traps(self& me) { me.trap_exits(); }
    static int handle(bump) { return 1; }
  };
  runtime rt{quiet()};
  const ref<traps> t = rt.spawn<traps>();
  EXPECT_EQ(rt.call(t.call<bump>()), 1);
  rt.exit(t.id(), exit_reason::shutdown());
  EXPECT_EQ(rt.call(t.call<bump>()), 1);
  EXPECT_EQ(rt.counters().dead_letters, 1U);
}

struct canceller {
  struct begin {};
  struct check {
    using reply = int;
  };
  void handle(begin, self& me) {
    const timer_ref t = me.start_timer(1ms);
    while (me.remaining(t)) std::this_thread::yield();  // its timeout is queued now
    EXPECT_TRUE(me.cancel(t));
  }
  void handle(timer_fired) { ++timeouts; }
  int handle(check) const { return timeouts; }
  int timeouts = 0;
};
TEST(object, a_cancelled_timer_does_not_reach_its_handler_even_if_it_was_queued) {
  runtime rt{quiet()};
  const ref<canceller> c = rt.spawn<canceller>();
  rt.cast<canceller::begin>(c);
  EXPECT_EQ(rt.call(c.call<canceller::check>()), 0);
}

// ---- what is accepted where, at compile time

static_assert(handles_call<counter, bump> && handles_cast<counter, bump>);
static_assert(handles_cast<counter, reset> && !handles_call<counter, reset>);
static_assert(handles_call<counter, name_of>, "a handler with self& counts");
static_assert(!handles_cast<counter, stranger> && !handles_call<counter, stranger>);
static_assert(std::is_trivially_copyable_v<ref<counter>> && sizeof(ref<counter>) == sizeof(pid));

TEST(object, refs_are_values_that_compare_by_process) {
  runtime rt{quiet()};
  const ref<counter> c = rt.spawn<counter>();
  const ref<counter> d = rt.spawn<counter>();
  EXPECT_EQ(c, ref<counter>{c.id()});
  EXPECT_NE(c, d);
  EXPECT_FALSE(ref<counter>{});
  EXPECT_TRUE(c);
}

struct ends_at_once {
  ends_at_once(self& me, std::string text) { me.stop(exit_reason::error(std::move(text))); }
  static void handle(reset) {}
};
struct refuses_to_be {
  refuses_to_be() { throw std::runtime_error{"not born"}; }
  static void handle(reset) {}
};
task<> monitors_objects(self& me) {
  for (int i = 0; i < 300; ++i) {
    const monitored ends = me.spawn_monitor<ends_at_once>("number " + std::to_string(i));
    const monitored fails = me.spawn_monitor<refuses_to_be>();
    for (int k = 0; k < 2; ++k) {
      const down d = co_await me.receive<down>();
      const bool first = d.ref == ends.ref;
      EXPECT_EQ(d.ref, first ? ends.ref : fails.ref);
      EXPECT_EQ(d.who, first ? ends.who : fails.who);
      EXPECT_EQ(d.reason, first ? exit_reason::error("number " + std::to_string(i))
                                : exit_reason::error("std::runtime_error", "not born", ""));
    }
  }
}
TEST(spawn_monitor, of_an_object_tells_its_true_reason_however_early_it_ends) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(monitors_objects), exit_reason::normal());
}

}  // namespace
