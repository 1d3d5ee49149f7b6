// Handles, by which other threads use a runtime that may end at any moment.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct counter {
  struct bump {
    using reply = int;
    int by = 1;
  };
  struct reset {};
  using protocol = coppice::protocol<bump, reset>;
  int handle(bump m) { return value += m.by; }
  void handle(reset) { value = 0; }
  int value = 0;
};

TEST(runtime_handle, sends_casts_and_calls_like_the_runtime) {
  runtime rt{quiet()};
  const runtime_handle to = rt.handle();
  const auto c = *rt.spawn<counter>({.name = "counter"});
  EXPECT_TRUE(to.running());
  EXPECT_TRUE(to.alive(c.id()));
  EXPECT_EQ(to.where("counter"), c.id());
  EXPECT_TRUE(to.cast<counter::reset>(c));
  EXPECT_TRUE(to.send(c.id(), counter::reset{}));
  EXPECT_TRUE(to.send("counter", counter::reset{}));
  std::latch answered{1};
  to.call(c.call<counter::bump>(3), [&](const result<int>& n) {
    EXPECT_EQ(n, 3);
    answered.count_down();
  });
  answered.wait();
  EXPECT_TRUE(to.kill(c.id()));
  rt.wait(c.id());
}

task<> hands_out(self& me, runtime_handle* into) {
  *into = me.handle();
  co_return;
}
TEST(runtime_handle, is_handed_out_by_a_process) {
  runtime rt{quiet()};
  runtime_handle from_process;
  rt.run(hands_out, &from_process);
  const auto c = rt.spawn<counter>();
  EXPECT_TRUE(from_process.cast<counter::reset>(c));
}

TEST(runtime_handle, completes_a_call_for_which_there_is_no_process_with_an_error) {
  runtime rt{{.workers = 1, .processes = 1, .level = log_level::off}};
  const auto c = rt.spawn<counter>();  // the table has no room for the process that would wait for the answer
  int completed = 0;
  rt.handle().call(c.call<counter::bump>(3), [&](const result<int>& n) {
    ++completed;
    ASSERT_FALSE(n.has_value());
    EXPECT_EQ(n.error().code(), errc::capacity);
  });
  EXPECT_EQ(completed, 1) << "on this thread, before the call returns";
}

TEST(runtime_handle, says_no_after_the_end_of_the_runtime) {
  std::optional<runtime> rt{std::in_place, quiet()};
  const runtime_handle to = rt->handle();
  const auto c = rt->spawn<counter>();
  rt.reset();
  EXPECT_FALSE(to.running());
  EXPECT_FALSE(to.alive(c.id()));
  EXPECT_FALSE(to.where("counter"));
  EXPECT_FALSE(to.send(c.id(), counter::reset{}));
  EXPECT_FALSE(to.cast<counter::reset>(c));
  EXPECT_FALSE(to.kill(c.id()));
  std::optional<result<int>> got;
  to.call(c.call<counter::bump>(1), [&](result<int> n) { got = std::move(n); });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code(), errc::stopped);
  const runtime_handle none;
  EXPECT_FALSE(none.send(c.id(), 1));
}

struct mute {
  struct ask {
    using reply = int;
  };
  void handle(ask, reply_to<int> to) { unanswered.push_back(std::move(to)); }
  std::vector<reply_to<int>> unanswered;
};
TEST(runtime_handle, completes_a_call_that_the_end_of_the_runtime_interrupts) {
  std::atomic<int> completed{0};
  {
    runtime rt{quiet()};
    const auto m = rt.spawn<mute>();
    for (int i = 0; i < 10; ++i)
      rt.handle().call(m.call<mute::ask>().within(1h), [&](const result<int>& n) {
        EXPECT_FALSE(n);
        ++completed;
      });
  }
  EXPECT_EQ(completed, 10);
}

TEST(runtime_handle, may_be_used_by_threads_while_the_runtime_is_destroyed) {
  for (int round = 0; round < 20; ++round) {
    std::optional<runtime> rt{std::in_place, quiet()};
    const runtime_handle to = rt->handle();
    const auto c = rt->spawn<counter>();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> asked{0};
    std::atomic<std::uint64_t> answered{0};
    std::latch begun{3};
    std::vector<std::jthread> others;
    for (int i = 0; i < 3; ++i)
      others.emplace_back([&] {
        begun.count_down();
        while (!stop) {
          to.cast<counter::bump>(c, 1);
          to.send(c.id(), counter::reset{});
          ++asked;
          to.call(c.call<counter::bump>(1), [&](const result<int>&) { ++answered; });
        }
      });
    begun.wait();
    rt.reset();
    EXPECT_FALSE(to.send(c.id(), counter::reset{}));
    stop = true;
    others.clear();
    EXPECT_EQ(asked, answered);
  }
}

}  // namespace
