// Stuck actors that were abandoned: a caller that waits for their answer gets an error.
#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <thread>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

struct number {
  using reply = long;
};
struct gives_numbers {
  using protocol = coppice::protocol<number>;
  long handle(number) { return 7; }
};

task<> asks(self&, actor_ref<gives_numbers> who, std::string* heard) {
  const auto answer = co_await who.call<number>();
  *heard = answer ? "a number" : std::string{to_string(answer.error().code())};
}

TEST(abandoned_actor, answers_all_who_wait_in_its_mailbox) {
  for (const std::size_t capacity : {0U, 10U}) {
    stage s;
    std::string first = "nothing";
    std::string second = "nothing";
    const auto a = spawn_actor(s.rt, props<gives_numbers>().with({.mailbox = mailbox{.capacity = capacity}}));
    s.world.settle();
    s.world.nodes().front().stick(a.id(), 1h);
    s.rt.spawn(asks, a, &first);
    s.world.settle();
    s.rt.spawn(asks, a, &second);
    s.world.settle();
    ASSERT_TRUE(s.rt.abandon(a.id()));
    s.world.settle();
    EXPECT_EQ(second, to_string(errc::exited)) << "with room for " << capacity;
    EXPECT_FALSE(s.rt.alive(a.id()));
  }
}

TEST(abandoned_actor, takes_no_more_calls_into_a_limited_mailbox) {
  stage s;
  std::string later = "nothing";
  std::string before = "nothing";
  const auto a = spawn_actor(s.rt, props<gives_numbers>().with({.mailbox = mailbox{.capacity = 10}}));
  s.world.settle();
  s.world.nodes().front().stick(a.id(), 1h);
  s.rt.spawn(asks, a, &before);
  s.world.settle();
  ASSERT_TRUE(s.rt.abandon(a.id()));
  s.rt.spawn(asks, a, &later);
  s.world.settle();
  EXPECT_EQ(later, to_string(errc::noproc));
}

/// Is stuck in the call until the test releases it.
struct stuck_actor {
  using protocol = coppice::protocol<number>;
  stuck_actor(std::latch& in, std::latch& out) : in_{&in}, out_{&out} {}
  [[nodiscard]] long handle(number) const {
    in_->count_down();
    out_->wait();
    return 7;
  }

 private:
  std::latch* in_;
  std::latch* out_;
};

/// The caller has its answer while the process is still stuck.
template <class Ref>
void expect_answer_of_stuck(runtime& rt, const Ref& who, std::latch& in, std::latch& out) {
  result<long> answer = 0;
  std::thread caller{[&] { answer = rt.call(who.template call<number>()); }};
  in.wait();
  while (!rt.abandon(who.id())) std::this_thread::yield();
  caller.join();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), errc::exited) << answer.error();
  out.count_down();
}

TEST(abandoned_actor, answers_the_call_that_it_is_stuck_in) {
  std::latch in{1};
  std::latch out{1};
  runtime rt{{.workers = 2, .stall_after = 10ms, .level = log_level::off}};
  expect_answer_of_stuck(rt, spawn_actor(rt, props<stuck_actor>(std::ref(in), std::ref(out))), in, out);
}

TEST(abandoned_actor, answers_the_call_that_it_has_taken_from_a_limited_mailbox) {
  std::latch in{1};
  std::latch out{1};
  runtime rt{{.workers = 2, .stall_after = 10ms, .level = log_level::off}};
  const auto limited = props<stuck_actor>(std::ref(in), std::ref(out)).with({.mailbox = mailbox{.capacity = 10}});
  expect_answer_of_stuck(rt, spawn_actor(rt, limited), in, out);
}

/// Is stuck in the first of the calls that it has stashed, or in the first of its continuations.
class late {
 public:
  struct open {};
  struct go_on {};
  struct watched {
    std::latch stashed{1};
    std::latch in{1};
    std::latch out{1};
    std::atomic<int> handled{0};
  };
  using protocol = coppice::protocol<number, open, go_on>;
  explicit late(watched& w) : w_{&w} {}
  void handle(number m, context& me) {
    if (open_) return me.reply(work());
    if (me.stashed() == 0) w_->stashed.count_down();
    me.stash(m);
  }
  void handle(open, context& me) {
    open_ = true;
    me.unstash_all();
  }
  void handle(go_on, context& me) {
    const auto done = me.blocking([] {});
    for (int i = 0; i < 3; ++i) me.reenter_after(done, [this](const result<void>&, context&) { (void)work(); });
  }

 private:
  long work() {
    if (++w_->handled > 1) return 8;
    w_->in.count_down();
    w_->out.wait();
    return 7;
  }
  watched* w_;
  bool open_ = false;
};

TEST(abandoned_actor, answers_the_call_that_was_stashed_and_handles_nothing_more) {
  late::watched w;
  {
    runtime rt{{.workers = 2, .stall_after = 10ms, .level = log_level::off}};
    const auto a = spawn_actor(rt, props<late>(std::ref(w)));
    result<long> answer = 0;
    std::thread first{[&] { answer = rt.call(a.call<number>()); }};
    w.stashed.wait();
    for (int i = 0; i < 5; ++i) rt.send(a.id(), number{});
    rt.cast<late::open>(a);
    w.in.wait();
    while (!rt.abandon(a.id())) std::this_thread::yield();
    first.join();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), errc::exited) << answer.error();
    w.out.count_down();
  }
  EXPECT_EQ(w.handled, 1);
}

TEST(abandoned_actor, runs_no_more_continuations) {
  late::watched w;
  {
    runtime rt{{.workers = 2, .stall_after = 10ms, .level = log_level::off}};
    const auto a = spawn_actor(rt, props<late>(std::ref(w)));
    rt.cast<late::go_on>(a);
    w.in.wait();
    while (!rt.abandon(a.id())) std::this_thread::yield();
    w.out.count_down();
  }
  EXPECT_EQ(w.handled, 1);
}

/// Answers two calls after the same future, and is stuck in the first of these continuations.
class two_after_one {
 public:
  struct watched {
    std::latch asked{2};
    std::latch in{1};
    std::latch out{1};
  };
  using protocol = coppice::protocol<number>;
  explicit two_after_one(watched& w) : w_{&w} {}
  void handle(number, context& me) {
    if (!both_asked_) both_asked_ = me.blocking([w = w_] { w->asked.wait(); });
    me.reenter_after(*both_asked_, [w = w_](const result<void>&, context&) {
      w->in.count_down();
      w->out.wait();
    });
    w_->asked.count_down();
  }

 private:
  watched* w_;
  std::optional<future<void>> both_asked_;
};

TEST(abandoned_actor, answers_the_calls_of_its_continuations_while_it_is_stuck_in_the_first_of_them) {
  two_after_one::watched w;
  std::array<result<long>, 2> answers{0, 0};
  {
    runtime rt{{.workers = 2, .stall_after = 10ms, .level = log_level::off}};
    const auto a = spawn_actor(rt, props<two_after_one>(std::ref(w)));
    std::thread first{[&] { answers[0] = rt.call(a.call<number>().within(forever)); }};
    std::thread second{[&] { answers[1] = rt.call(a.call<number>().within(forever)); }};
    w.in.wait();
    while (!rt.abandon(a.id())) std::this_thread::yield();
    first.join();
    second.join();
    w.out.count_down();
  }
  for (const result<long>& answer : answers) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), errc::exited) << answer.error();
  }
}

TEST(abandoned_actor, answers_as_a_server_does) {
  std::latch in{1};
  std::latch out{1};
  runtime rt{{.workers = 2, .stall_after = 10ms, .level = log_level::off}};
  expect_answer_of_stuck(rt, rt.spawn<stuck_actor>(std::ref(in), std::ref(out)), in, out);
}

}  // namespace
