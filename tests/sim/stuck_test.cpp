// A stuck process handles no signal, whatever it waits for.
#include <gtest/gtest.h>

#include "people.hpp"
#include "waits.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

/// Everything these processes wait for arrives after one second; they are stuck for ten.
void expect_held(task<> (*body)(self&, time_point*), std::uint64_t seed) {
  time_point woken{};
  world w{seed};
  node& n = w.add_node();
  const pid who = n.rt().spawn(body, &woken);
  w.run_for(1ms);
  const time_point begin = w.now();
  n.stick(who, 10s);
  w.run_for(9s);
  EXPECT_EQ(woken, time_point{}) << "a stuck process went on, seed " << seed;
  EXPECT_EQ(n.rt().counters().stalls, 1U);
  EXPECT_EQ(n.rt().info(who)->state, process_state::running);
  EXPECT_TRUE(w.run());
  EXPECT_GE(woken - begin, 10s);
  EXPECT_LE(woken - begin, 10s + 10ms);
  EXPECT_FALSE(n.rt().alive(who));
  EXPECT_EQ(n.rt().counters().stalls, 1U) << "counted once";
}

TEST(stuck, holds_whatever_the_process_waits_for) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const auto body : all_waits) expect_held(body, seed);
}

TEST(stuck, one_that_has_nothing_to_handle_is_not_a_stall) {
  world w{1};
  node& n = w.add_node();
  const pid idle = n.rt().spawn(idler);
  w.run_for(1ms);
  n.stick(idle, 10s);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(n.rt().counters().stalls, 0U);
}

TEST(stuck, each_stall_counts) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid first = n.rt().spawn(listener, &got);
  const pid second = n.rt().spawn(listener, &got);
  w.run_for(1ms);
  for (const pid who : {first, second, first}) {
    n.stick(who, 1s);
    n.rt().send(who, number{1});
    EXPECT_TRUE(w.run());
  }
  EXPECT_EQ(n.rt().counters().stalls, 3U);
  EXPECT_EQ(got.numbers.size(), 3U);
}

TEST(stuck, for_less_than_the_limit_is_not_a_stall) {
  seen got;
  world w{1};
  node& n = w.add_node();
  const pid who = n.rt().spawn(listener, &got);
  w.run_for(1ms);
  n.stick(who, 400ms);
  n.rt().send(who, number{1});
  EXPECT_TRUE(w.run());
  EXPECT_EQ(got.numbers.size(), 1U);
  EXPECT_EQ(n.rt().counters().stalls, 0U);
}

task<> looks_at_all(self&, runtime* rt, std::vector<process_info>* into) {
  *into = rt->snapshot();
  co_return;
}
TEST(stuck, and_all_other_processes_are_described_completely) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    seen got;
    std::vector<process_info> from_inside;
    world w{seed};
    node& n = w.add_node();
    const pid idle = n.rt().spawn(idler);
    const pid stuck = n.rt().spawn(watcher, idle, &got);
    const pid runnable = n.rt().spawn(listener, &got);
    w.run_for(1ms);
    n.stick(stuck, 10s);
    n.rt().send(stuck, number{1});
    w.run_for(1ms);
    n.rt().send(runnable, number{2});
    std::vector<process_info> from_outside = n.rt().snapshot();
    n.rt().spawn(looks_at_all, &n.rt(), &from_inside);
    w.run_for(1ms);
    EXPECT_EQ(from_outside.size(), 3U);
    EXPECT_EQ(from_inside.size(), 4U);
    for (const auto* all : {&from_outside, &from_inside})
      for (const process_info& one : *all) {
        EXPECT_TRUE(one.complete) << one.id << ", seed " << seed;
        if (one.id != stuck) continue;
        EXPECT_EQ(one.links, std::vector<pid>{idle});
        EXPECT_EQ(one.state, process_state::running);
      }
  }
}

// ---- calls

/// Calls the process whose pid it receives, and replies to nobody.
task<> calls_before_it_replies(self& me, call_outcome* into) {
  const pid other = co_await me.receive<pid>();
  into->got = co_await call<ask>(other).within(5s);
  into->at = me.now();
  co_await me.receive<end_now>();
}
TEST(call, of_two_that_call_each_other_times_out_for_both) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    call_outcome first;
    call_outcome second;
    world w{seed};
    node& n = w.add_node();
    const pid a = n.rt().spawn(calls_before_it_replies, &first);
    const pid b = n.rt().spawn(calls_before_it_replies, &second);
    const time_point begin = w.now();
    n.rt().send(a, b);
    n.rt().send(b, a);
    EXPECT_TRUE(w.run());
    for (const call_outcome* each : {&first, &second}) {
      ASSERT_TRUE(each->got && !each->got->has_value()) << "seed " << seed;
      EXPECT_EQ(each->got->error().code(), errc::timeout);
      EXPECT_GE(each->at - begin, 5s);
    }
  }
}

// ---- replies from another node

struct errand {
  reply_to<int> to;
};
task<> front(self& me, pid far) {
  for (;;) {
    request<ask> r = co_await me.receive<request<ask>>();
    errand e{r.defer()};
    me.send(far, std::move(e));
  }
}
task<> answers_for_the_front(self& me, bool* given) {
  errand e = co_await me.receive<errand>();
  const end_now now = co_await me.receive<end_now>();
  (void)now;
  *given = e.to.reply(7);
}

struct far_answer {
  call_outcome out;
  bool given = false;
  world w;
  node& a;
  node& b;
  pid far;

  far_answer(std::uint64_t seed, std::chrono::nanoseconds limit) : w{seed}, a{w.add_node()}, b{w.add_node()} {
    far = b.rt().spawn(answers_for_the_front, &given);
    const pid s = a.rt().spawn(front, far);
    a.rt().spawn(caller, s, limit, &out);
    w.run_for(100ms);
  }
};

TEST(far_answer, to_a_deferred_request_travels_like_any_signal) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    far_answer f{seed, forever};
    const time_point before = f.w.now();
    f.b.rt().send(f.far, end_now{});
    EXPECT_TRUE(f.w.run());
    EXPECT_TRUE(f.given);
    EXPECT_EQ(f.out.got, result<int>{7});
    EXPECT_GE(f.out.at - before, f.w.net().quality.delay_min) << "faster than the network, seed " << seed;
  }
}

TEST(far_answer, to_a_deferred_request_does_not_pass_a_partition) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    for (const bool noticed : {false, true}) {
      far_answer f{seed, 1min};
      f.w.partition(f.a, f.b);
      if (noticed) f.w.run_for(20s);
      f.b.rt().send(f.far, end_now{});
      EXPECT_TRUE(f.w.run());
      ASSERT_TRUE(f.out.got) << "the call never ended, seed " << seed;
      ASSERT_FALSE(f.out.got->has_value()) << "an answer through a partition, seed " << seed;
      const error_code why = f.out.got->error().code();
      EXPECT_TRUE(why == errc::timeout || why == errc::noconnection) << f.out.got->error();
    }
}

TEST(far_answer, to_a_deferred_request_comes_after_a_partition_that_heals_in_time) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    far_answer f{seed, 1min};
    f.w.partition(f.a, f.b);
    f.b.rt().send(f.far, end_now{});
    f.w.run_for(2s);
    EXPECT_TRUE(f.given);
    EXPECT_FALSE(f.out.got);
    f.w.heal();
    EXPECT_TRUE(f.w.run());
    EXPECT_EQ(f.out.got, result<int>{7});
  }
}

}  // namespace
