// What a plain thread, such as that of main, can ask of a runtime beside its calls.
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;

struct go {};
struct weather {
  std::string text;
};

task<> returns(self&) { co_return; }
task<> fails(self&, std::string text) {
  throw std::runtime_error{text};
  co_return;
}
task<> adds_up(self& me, std::unique_ptr<int> a, int b, int* sum) {
  co_await me.yield();
  *sum = *a + b;
  co_await me.exit(exit_reason::shutdown("done"));
}

TEST(run, gives_the_true_reason_of_a_process_however_early_it_ends) {
  runtime rt{quiet()};
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(rt.run(returns), exit_reason::normal());
    EXPECT_EQ(rt.run(fails, "too early"), exit_reason::error("std::runtime_error", "too early", ""));
  }
}

TEST(run, gives_the_body_its_arguments_and_waits_for_its_end) {
  runtime rt{quiet()};
  int sum = 0;
  EXPECT_EQ(rt.run(adds_up, std::make_unique<int>(3), 4, &sum), exit_reason::shutdown("done"));
  EXPECT_EQ(sum, 7);
  const auto lambda = [](self& me, int* into) -> task<> {
    co_await me.yield();
    *into = 9;
  };
  EXPECT_EQ(rt.run(lambda, &sum), exit_reason::normal());
  EXPECT_EQ(sum, 9);
}

task<> waits(self& me, pid* into, std::latch* begun) {
  *into = me.id();
  begun->count_down();
  co_await me.receive<go>();
}
TEST(run, gives_killed_for_a_process_that_was_killed) {
  runtime rt{quiet()};
  pid running;
  std::latch begun{1};
  std::jthread kills{[&] {
    begun.wait();
    rt.kill(running);
  }};
  EXPECT_EQ(rt.run(waits, &running, &begun), exit_reason::killed());
}

task<> runs_within(self&, runtime* rt) {
  EXPECT_THROW((void)rt->run(returns), std::logic_error);
  co_return;
}
TEST(run, inside_a_process_is_refused) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.run(runs_within, &rt), exit_reason::normal());
}

task<> notes_weather(self& me, std::vector<std::string>* into) {
  for (;;) {
    auto m = co_await me.receive<weather, go>();
    if (std::holds_alternative<go>(m)) break;
    into->push_back(std::get<weather>(m).text);
  }
}
TEST(runtime_send, by_name_reaches_who_has_it_and_is_a_dead_letter_when_nobody_has) {
  runtime rt{quiet()};
  std::vector<std::string> seen;
  rt.send("station", weather{"fog"});
  EXPECT_EQ(rt.counters().dead_letters, 1U);
  const auto p = rt.spawn({.name = "station"}, notes_weather, &seen);
  ASSERT_TRUE(p);
  rt.send("station", weather{"rain"});
  const weather kept{"snow"};
  rt.send("station", kept);
  rt.send("station", go{});
  rt.wait(*p);
  rt.send("station", weather{"sun"});
  EXPECT_EQ(rt.counters().dead_letters, 2U);
  EXPECT_EQ(kept.text, "snow");
  EXPECT_EQ(seen, (std::vector<std::string>{"rain", "snow"}));
}

TEST(runtime_unsubscribe, ends_the_events_of_that_type_and_says_whether_there_were_any) {
  runtime rt{quiet()};
  std::vector<std::string> seen;
  const pid p = rt.spawn(notes_weather, &seen);
  EXPECT_FALSE(rt.unsubscribe<weather>(p));
  rt.subscribe<weather>(p);
  rt.publish(weather{"rain"});
  EXPECT_FALSE(rt.unsubscribe<go>(p)) << "of another type";
  EXPECT_TRUE(rt.unsubscribe<weather>(p));
  rt.publish(weather{"sun"});
  EXPECT_FALSE(rt.unsubscribe<weather>(p));
  rt.send(p, go{});
  rt.wait(p);
  EXPECT_EQ(seen, std::vector<std::string>{"rain"});
}

}  // namespace
