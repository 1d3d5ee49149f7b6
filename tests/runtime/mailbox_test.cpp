// Processes and servers whose mailbox has a limit or priorities.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using numbers = std::vector<int>;

struct number {
  int n = 0;
};
struct ranked {
  int n = 0;
  int level = 4;
  [[nodiscard]] int priority() const { return level; }
};
struct ask {
  using reply = int;
  int n = 0;
};
struct go {};

spawn_options holding(std::size_t capacity, when_full what = when_full::drop_newest) {
  return {.mailbox = {.capacity = capacity, .when_full = what}};
}

/// A simulated node, so that all that is sent between two looks arrives before anything runs.
struct house {
  sim::world world{1};
  runtime& rt = world.add_node("house", {.processes = 1U << 10U, .level = log_level::off}).rt();
  /// Time for all that has been sent to be handled.
  void pass() { world.run_for(1s); }
  std::uint64_t dead_letters() { return rt.counters().dead_letters; }
  void flood(pid to, int count) {
    for (int i = 0; i < count; ++i) rt.send(to, number{i});
  }
};

// ---- the three kinds of processes

task<> writes_down(self& me, numbers* into) {
  for (;;) {
    const number m = co_await me.receive<number>();
    into->push_back(m.n);
  }
}
class plain_server {
 public:
  using protocol = coppice::protocol<number, ranked, ask>;
  explicit plain_server(numbers* into) : into_{into} {}
  void handle(number m) { into_->push_back(m.n); }
  void handle(ranked m) { into_->push_back(m.n); }
  int handle(ask m) {
    into_->push_back(m.n);
    return m.n;
  }

 private:
  numbers* into_;
};
class waiting_server {
 public:
  using protocol = coppice::protocol<number, ranked, ask>;
  explicit waiting_server(numbers* into) : into_{into} {}
  task<void> handle(number m, self& me) {
    co_await me.sleep(1ms);
    into_->push_back(m.n);
  }
  void handle(ranked m) { into_->push_back(m.n); }
  int handle(ask m) {
    into_->push_back(m.n);
    return m.n;
  }

 private:
  numbers* into_;
};

/// Starts each kind with these options and calls `test(house, pid, numbers received)`.
template <class F>
void with_each_kind(const spawn_options& options, F test) {
  for (const int kind : {0, 1, 2}) {
    SCOPED_TRACE(kind);
    house h;
    numbers got;
    const pid who = kind == 0   ? *h.rt.spawn(options, writes_down, &got)
                    : kind == 1 ? h.rt.spawn<plain_server>(options, &got)->id()
                                : h.rt.spawn<waiting_server>(options, &got)->id();
    h.pass();
    test(h, who, got);
  }
}

TEST(limited_mailbox, refuses_the_newest_message_when_it_is_full) {
  with_each_kind(holding(3), [](house& h, pid who, numbers& got) {
    h.flood(who, 5);
    EXPECT_EQ(h.rt.info(who)->mailbox, 3U);
    h.pass();
    EXPECT_EQ(got, (numbers{0, 1, 2}));
    EXPECT_EQ(h.dead_letters(), 2U);
  });
}
TEST(limited_mailbox, can_drop_the_oldest_message_instead) {
  with_each_kind(holding(3, when_full::drop_oldest), [](house& h, pid who, numbers& got) {
    h.flood(who, 5);
    EXPECT_EQ(h.rt.info(who)->mailbox, 3U);
    h.pass();
    EXPECT_EQ(got, (numbers{2, 3, 4}));
    EXPECT_EQ(h.dead_letters(), 2U);
  });
}
TEST(limited_mailbox, takes_messages_again_when_there_is_room) {
  with_each_kind(holding(2), [](house& h, pid who, numbers& got) {
    for (int round = 0; round < 3; ++round) {
      h.flood(who, 4);
      h.pass();
    }
    EXPECT_EQ(got, (numbers{0, 1, 0, 1, 0, 1}));
    EXPECT_EQ(h.dead_letters(), 6U);
  });
}
TEST(limited_mailbox, counts_what_is_sent_before_the_process_begins) {
  house h;
  numbers got;
  const pid who = *h.rt.spawn(holding(2), writes_down, &got);
  h.flood(who, 5);
  h.pass();
  EXPECT_EQ(got, (numbers{0, 1}));
  EXPECT_EQ(h.dead_letters(), 3U);
}
TEST(limited_mailbox, makes_senders_that_are_not_actors_lose_their_messages) {
  with_each_kind(holding(2, when_full::sender_waits), [](house& h, pid who, numbers& got) {
    h.flood(who, 5);
    h.pass();
    EXPECT_EQ(got, (numbers{0, 1}));
    EXPECT_EQ(h.dead_letters(), 3U);
  });
}
TEST(limited_mailbox, by_priority_gives_the_highest_first) {
  const spawn_options by_priority{.mailbox = {.by_priority = true}};
  for (const bool waits : {false, true}) {
    house h;
    numbers got;
    const auto send_all = [&](auto to) {
      h.pass();
      for (const ranked m : {ranked{1, 0}, ranked{2, 7}, ranked{3, 4}, ranked{4, 7}}) h.rt.cast<ranked>(to, m);
      h.rt.cast<number>(to, 5);
      h.pass();
    };
    waits ? send_all(*h.rt.spawn<waiting_server>(by_priority, &got))
          : send_all(*h.rt.spawn<plain_server>(by_priority, &got));
    EXPECT_EQ(got, (numbers{2, 4, 3, 5, 1}));
    EXPECT_EQ(h.dead_letters(), 0U);
  }
}

// ---- calls

task<> calls_once(self& me, pid who, std::optional<result<int>>* into, std::chrono::nanoseconds* took) {
  const time_point before = me.host().now();
  *into = co_await call<ask>(who, 7).within(1h);
  *took = me.host().now() - before;
}
TEST(limited_mailbox, a_call_without_room_fails_at_once) {
  with_each_kind(holding(1), [](house& h, pid who, numbers&) {
    h.world.nodes().front().stick(who, 10s);
    h.flood(who, 1);
    std::optional<result<int>> answer;
    std::chrono::nanoseconds took{1h};
    h.rt.spawn(calls_once, who, &answer, &took);
    h.world.run_for(1s);
    ASSERT_TRUE(answer.has_value());
    ASSERT_FALSE(answer->has_value());
    EXPECT_EQ(answer->error().code(), errc::capacity);
    EXPECT_LT(took, 1ms);
    EXPECT_EQ(h.dead_letters(), 0U) << "its caller knows";
  });
}
TEST(limited_mailbox, a_call_that_is_dropped_for_a_newer_message_fails_at_once) {
  with_each_kind(holding(1, when_full::drop_oldest), [](house& h, pid who, numbers&) {
    h.world.nodes().front().stick(who, 10s);
    std::optional<result<int>> answer;
    std::chrono::nanoseconds took{1h};
    h.rt.spawn(calls_once, who, &answer, &took);
    h.world.run_for(1s);
    EXPECT_FALSE(answer.has_value());
    h.flood(who, 1);
    h.world.run_for(1s);
    ASSERT_TRUE(answer.has_value());
    ASSERT_FALSE(answer->has_value());
    EXPECT_EQ(answer->error().code(), errc::capacity);
  });
}

// ---- messages put aside

task<> takes_when_told(self& me, numbers* into) {
  for (;;) {
    co_await me.receive<go>();
    const auto m = co_await me.receive<number>(0s);
    if (const auto* one = std::get_if<number>(&m)) into->push_back(one->n);
  }
}
TEST(limited_mailbox, messages_put_aside_take_room_until_they_are_received) {
  house h;
  numbers got;
  const pid who = *h.rt.spawn(holding(3), takes_when_told, &got);
  h.flood(who, 2);
  h.pass();
  EXPECT_EQ(h.rt.info(who)->mailbox, 2U) << "both are put aside";
  h.rt.send(who, number{2});
  h.pass();
  h.rt.send(who, number{3});
  EXPECT_EQ(h.dead_letters(), 1U) << "three are put aside";
  h.rt.send(who, go{});
  EXPECT_EQ(h.dead_letters(), 2U) << "a full mailbox refuses also what its process waits for";
}
TEST(limited_mailbox, receiving_a_message_that_was_put_aside_makes_room) {
  house h;
  numbers got;
  const pid who = *h.rt.spawn(holding(3), takes_when_told, &got);
  h.flood(who, 2);
  h.pass();
  for (int i = 0; i < 5; ++i) {
    h.rt.send(who, go{});
    h.pass();
    h.rt.send(who, number{2 + i});
    h.pass();
  }
  EXPECT_EQ(got, (numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(h.dead_letters(), 0U);
  EXPECT_EQ(h.rt.info(who)->mailbox, 2U);
}

// ---- signals

struct seen_signals {
  numbers messages;
  int exits = 0;
  int downs = 0;
  int timers = 0;
};
task<> ends_at_once(self&) { co_return; }
task<> fills_itself(self& me, seen_signals* into) {
  me.trap_exits();
  me.send(me.id(), number{1});
  me.send(me.id(), number{2});  // there is no room for this one
  (void)me.start_timer(1ms);
  me.spawn_link(ends_at_once);
  (void)me.spawn_monitor(ends_at_once);
  co_await me.sleep(1s);
  while (into->exits + into->downs + into->timers < 3 || into->messages.empty()) {
    const auto m = co_await me.receive<number, exited, down, timer_fired>();
    if (const auto* one = std::get_if<number>(&m)) into->messages.push_back(one->n);
    into->exits += std::holds_alternative<exited>(m) ? 1 : 0;
    into->downs += std::holds_alternative<down>(m) ? 1 : 0;
    into->timers += std::holds_alternative<timer_fired>(m) ? 1 : 0;
  }
}
TEST(limited_mailbox, never_refuses_exits_downs_and_timers) {
  house h;
  seen_signals seen;
  const pid who = *h.rt.spawn(holding(1), fills_itself, &seen);
  h.world.run_for(2s);
  EXPECT_FALSE(h.rt.alive(who));
  EXPECT_EQ(seen.messages, numbers{1});
  EXPECT_EQ(seen.exits, 1);
  EXPECT_EQ(seen.downs, 1);
  EXPECT_EQ(seen.timers, 1);
}
TEST(limited_mailbox, does_not_keep_a_full_process_alive) {
  with_each_kind(holding(1), [](house& h, pid who, numbers& got) {
    h.flood(who, 3);
    h.rt.kill(who);
    h.pass();
    EXPECT_FALSE(h.rt.alive(who));
    EXPECT_EQ(got, numbers{});
    EXPECT_EQ(h.dead_letters(), 3U) << "the one that waited, and two that found no room";
  });
}
class goes_idle {
 public:
  using protocol = coppice::protocol<number>;
  explicit goes_idle(int* idle) : idle_{idle} {}
  void handle(number) {}
  void handle(became_idle, self& me) {
    ++*idle_;
    me.stop(exit_reason::normal());
  }
  [[nodiscard]] static std::chrono::nanoseconds idle_after() { return 0s; }

 private:
  int* idle_;
};
TEST(limited_mailbox, has_no_say_in_when_a_server_is_idle) {
  house h;
  int idle = 0;
  const auto who = h.rt.spawn<goes_idle>(holding(1), &idle);
  h.flood(who->id(), 1);
  h.pass();
  EXPECT_EQ(idle, 1);
  EXPECT_EQ(h.dead_letters(), 0U);
}

/// Sends its message and ends: the news of the end comes behind the message.
task<> sends_and_ends(self& me, pid to) {
  me.send(to, me.id());
  co_return;
}
task<> watches_senders(self& me, bool* in_order) {
  std::set<pid> heard_of;
  for (int i = 0; i < 8; ++i) (void)me.spawn_monitor(sends_and_ends, me.id());
  for (int ends = 0; ends < 8;) {
    const auto m = co_await me.receive<pid, down>();
    if (const auto* end = std::get_if<down>(&m)) {
      ++ends;
      if (!heard_of.contains(end->who)) *in_order = false;
    } else {
      heard_of.insert(std::get<pid>(m));
    }
  }
}
TEST(limited_mailbox, keeps_the_order_of_messages_and_signals_of_one_sender) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    sim::world world{seed};
    runtime& rt = world.add_node("house", {.processes = 1U << 8U, .level = log_level::off}).rt();
    bool in_order = true;
    const pid who = *rt.spawn(holding(8), watches_senders, &in_order);
    world.settle();
    EXPECT_FALSE(rt.alive(who));
    ASSERT_TRUE(in_order) << "seed " << seed;
  }
}

class tells_and_answers {
 public:
  struct tell_me {
    using reply = int;
    pid whom;
  };
  static int handle(tell_me m, self& me) {
    for (int i = 0; i < 3; ++i) me.send(m.whom, number{i});
    return 3;
  }
};
task<> looks_after_the_reply(self& me, ref<tells_and_answers> teller, int* found) {
  const auto told = co_await teller.call<tells_and_answers::tell_me>(me.id());
  EXPECT_TRUE(told.has_value());
  for (;;) {
    const auto m = co_await me.receive<number>(0s);
    if (std::holds_alternative<timed_out>(m)) break;
    ++*found;
  }
}
TEST(limited_mailbox, has_all_that_was_sent_before_a_reply_when_the_reply_is_there) {
  house h;
  int found = 0;
  const auto teller = h.rt.spawn<tells_and_answers>();
  ASSERT_TRUE(h.rt.spawn(holding(10), looks_after_the_reply, teller, &found));
  h.pass();
  EXPECT_EQ(found, 3);
}

// ---- the end

TEST(limited_mailbox, callers_whose_request_waits_learn_of_the_end) {
  with_each_kind(holding(5), [](house& h, pid who, numbers&) {
    h.world.nodes().front().stick(who, 10s);
    std::optional<result<int>> answer;
    std::chrono::nanoseconds took{0};
    h.flood(who, 2);
    h.rt.spawn(calls_once, who, &answer, &took);
    h.world.run_for(1s);
    h.rt.kill(who);
    h.world.run_for(20s);
    ASSERT_TRUE(answer.has_value());
    ASSERT_FALSE(answer->has_value());
    EXPECT_EQ(answer->error().code(), errc::exited);
  });
}
TEST(limited_mailbox, callers_whose_request_waits_learn_that_the_process_was_abandoned) {
  with_each_kind(holding(5), [](house& h, pid who, numbers&) {
    h.world.nodes().front().stick(who, 10s);
    std::optional<result<int>> answer;
    std::chrono::nanoseconds took{0};
    h.rt.spawn(calls_once, who, &answer, &took);
    h.world.run_for(1s);
    EXPECT_TRUE(h.rt.abandon(who));
    h.world.run_for(20s);
    ASSERT_TRUE(answer.has_value());
    ASSERT_FALSE(answer->has_value());
    EXPECT_EQ(answer->error(), (error{errc::exited, "abandoned"}));
  });
}
TEST(limited_mailbox, of_a_crashed_node_frees_its_messages) {
  const auto token = std::make_shared<int>(0);
  struct keeps {
    std::shared_ptr<int> what;
  };
  for (const bool has_begun : {true, false}) {
    sim::world world{1};
    sim::node& n = world.add_node("house", {.processes = 1U << 8U, .level = log_level::off});
    numbers got;
    const pid who = *n.rt().spawn(holding(5), takes_when_told, &got);
    if (has_begun) world.settle();
    for (int i = 0; i < 7; ++i) n.rt().send(who, keeps{token});
    n.crash();
    EXPECT_EQ(token.use_count(), 1);
  }
}

class gets_stuck {
 public:
  explicit gets_stuck(trap_door* door) : door_{door} {}
  int handle(ask m) {
    door_->fall_in();
    return m.n;
  }

 private:
  trap_door* door_;
};
TEST(limited_mailbox, the_caller_whose_request_is_being_handled_learns_that_the_process_was_abandoned) {
  trap_door door;
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  const auto stuck = rt.spawn<gets_stuck>(holding(5), &door);
  result<int> answer{0};
  std::jthread calls{[&] { answer = rt.call(stuck->call<ask>(1).within(forever)); }};
  door.wait_until_inside();
  EXPECT_TRUE(rt.abandon(stuck->id()));
  calls.join();
  door.open();
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error(), (error{errc::exited, "abandoned"}));
}

// ---- nonsense

TEST(limited_mailbox, options_that_make_no_sense_are_refused) {
  house h;
  numbers got;
  const spawn_options never_waits{.mailbox = {.capacity = 1, .waits_at_most = 0s}};
  const spawn_options waits_for_nothing{.mailbox = {.when_full = when_full::sender_waits}};
  for (const spawn_options& nonsense : {never_waits, waits_for_nothing}) {
    EXPECT_THROW((void)h.rt.spawn(nonsense, writes_down, &got), std::invalid_argument);
    EXPECT_THROW((void)h.rt.spawn<plain_server>(nonsense, &got), std::invalid_argument);
    EXPECT_EQ(nonsense.mailbox.check().error().code(), errc::invalid);
  }
  EXPECT_TRUE(mailbox{}.check().has_value());
}

}  // namespace
