// Events that come as messages, and reports that go to the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "recorder.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
struct weather {
  std::string text;
};

task<> idles(self& me) { co_await me.receive<go>(); }

template <class E>
task<> collects(self& me, std::size_t count, std::latch* ready, std::vector<E>* into) {
  me.subscribe<E>();
  me.subscribe<E>();  // twice is once
  ready->count_down();
  while (into->size() < count) {
    auto event = co_await me.receive<E>();
    into->push_back(std::move(event));
  }
}
/// What a process collects while `act` is done.
template <class E, class F>
std::vector<E> events_during(runtime& rt, std::size_t count, F act) {
  std::vector<E> seen;
  std::latch ready{1};
  const pid p = rt.spawn(collects<E>, count, &ready, &seen);
  ready.wait();
  act();
  rt.wait(p);
  return seen;
}

TEST(events, a_message_to_the_dead_is_published_with_address_and_type) {
  runtime rt{quiet()};
  const pid dead = rt.spawn(idles);
  rt.kill(dead);
  rt.wait(dead);
  const auto seen = events_during<dead_letter>(rt, 2, [&] {
    rt.send(dead, weather{"rain"});
    rt.send(pid{}, go{});
  });
  ASSERT_EQ(seen.size(), 2U);
  std::map<pid, std::string> by_address;
  for (const dead_letter& d : seen) by_address[d.to] = d.message;
  EXPECT_EQ(by_address[dead], type_name<weather>());
  EXPECT_EQ(by_address[pid{}], type_name<go>());
  EXPECT_EQ(rt.counters().dead_letters, 2U);
}

TEST(events, mail_left_over_by_the_dead_is_published_whether_queued_or_put_aside) {
  runtime rt{quiet()};
  const pid p = rt.spawn(idles);
  rt.send(p, weather{"fog"});
  const auto seen = events_during<dead_letter>(rt, 2, [&] {
    rt.send(p, go{});
    rt.send(p, weather{"rain"});
  });
  for (const dead_letter& d : seen) {
    EXPECT_EQ(d.to, p);
    EXPECT_EQ(d.message, type_name<weather>());
  }
}

task<> fails(self&) {
  throw std::runtime_error{"out of luck"};
  co_return;
}
TEST(events, the_end_of_a_process_is_published_with_name_label_and_reason) {
  runtime rt{quiet()};
  pid p;
  const auto seen =
      events_during<process_ended>(rt, 1, [&] { p = *rt.spawn({.name = "loser", .label = "loses"}, fails); });
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].who, p);
  EXPECT_EQ(seen[0].name, "loser");
  EXPECT_EQ(seen[0].label, "loses");
  EXPECT_EQ(seen[0].reason, exit_reason::error("std::runtime_error", "out of luck", ""));
}

TEST(events, all_reasons_are_published) {
  runtime rt{quiet()};
  const auto seen = events_during<process_ended>(rt, 2, [&] {
    const pid p = rt.spawn(idles);
    const pid q = rt.spawn(idles);
    rt.send(p, go{});
    rt.kill(q);
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[0].reason == exit_reason::normal() || seen[1].reason == exit_reason::normal());
  EXPECT_TRUE(seen[0].reason == exit_reason::killed() || seen[1].reason == exit_reason::killed());
}

// ---- events of one's own

TEST(events, of_any_type_reach_every_subscriber_of_that_type) {
  runtime rt{quiet()};
  std::vector<weather> one;
  std::vector<weather> other;
  std::vector<int> numbers;
  std::latch ready{3};
  const pid p = rt.spawn(collects<weather>, std::size_t{2}, &ready, &one);
  const pid q = rt.spawn(collects<weather>, std::size_t{2}, &ready, &other);
  const pid r = rt.spawn(collects<int>, std::size_t{1}, &ready, &numbers);
  ready.wait();
  rt.publish(weather{"rain"});
  rt.publish(weather{"snow"});
  rt.publish(7);
  for (const pid each : {p, q, r}) rt.wait(each);
  EXPECT_EQ(one[0].text + one[1].text, "rainsnow");
  EXPECT_EQ(other[0].text + other[1].text, "rainsnow");
  EXPECT_EQ(numbers, std::vector<int>{7});
}

task<> unsubscribes(self& me, std::vector<std::string>* into) {
  me.subscribe<weather>();
  me.publish(weather{"rain"});
  EXPECT_TRUE(me.unsubscribe<weather>());
  EXPECT_FALSE(me.unsubscribe<weather>());
  me.publish(weather{"snow"});
  for (;;) {
    auto event = co_await me.receive<weather>(0ns);
    if (std::holds_alternative<timed_out>(event)) co_return;
    into->push_back(std::get<weather>(event).text);
  }
}
TEST(events, stop_when_they_are_no_longer_wanted) {
  runtime rt{quiet()};
  std::vector<std::string> seen;
  rt.wait(rt.spawn(unsubscribes, &seen));
  EXPECT_EQ(seen, std::vector<std::string>{"rain"});
}

TEST(events, a_process_may_be_subscribed_from_outside_and_is_forgotten_when_it_ends) {
  runtime rt{quiet()};
  const pid p = rt.spawn(idles);
  rt.subscribe<go>(p);
  rt.publish(go{});
  rt.wait(p);
  const auto before = rt.counters().dead_letters;
  for (int i = 0; i < 10; ++i) rt.publish(go{});
  EXPECT_EQ(rt.counters().dead_letters, before);
}

// ---- the log

TEST(log, gets_what_the_program_reports_with_its_fields) {
  const auto sink = std::make_shared<recorder>();
  runtime rt{{.workers = 2, .level = log_level::info, .log = sink}};
  rt.log(log_level::info, "started", {{"port", "8080"}, {"mode", "test"}});
  rt.log(log_level::debug, "below the level");
  const auto reports = [](self& me) -> task<> {
    me.log(log_level::error, "from inside", {{"who", to_string(me.id())}});
    co_return;
  };
  const pid p = rt.spawn(reports);
  rt.wait(p);
  const auto seen = sink->all();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].level, log_level::info);
  EXPECT_EQ(seen[0].text, "started");
  EXPECT_EQ(seen[0].fields, (std::map<std::string, std::string>{{"port", "8080"}, {"mode", "test"}}));
  EXPECT_EQ(seen[1].fields.at("who"), to_string(p));
  EXPECT_TRUE(sink->timed);
}

TEST(log, on_standard_error_is_one_line_a_record_whatever_it_says) {
  testing::internal::CaptureStderr();
  const log_field fields[] = {{"plain", "8080"}, {"blank", "a b"}, {"forged", "x\n2026 error  level=\"up\"\x01"}};
  stderr_sink()->write({.level = log_level::error, .text = "two\nlines", .fields = fields});
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_TRUE(
      line.ends_with("error  two\\nlines  plain=8080  blank=\"a b\"  "
                     "forged=\"x\\n2026 error  level=\\\"up\\\"\\x01\"\n"))
      << line;
}

TEST(log, gets_a_record_of_every_process_that_fails_and_of_no_other) {
  const auto sink = std::make_shared<recorder>();
  runtime rt{{.workers = 2, .log = sink}};
  const pid p = *rt.spawn({.name = "loser", .label = "loses"}, fails);
  const pid q = rt.spawn(idles);
  rt.send(q, go{});
  rt.wait(p);
  rt.wait(q);
  const auto seen = sink->all();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].level, log_level::error);
  EXPECT_EQ(seen[0].fields.at("pid"), to_string(p));
  EXPECT_EQ(seen[0].fields.at("name"), "loser");
  EXPECT_EQ(seen[0].fields.at("label"), "loses");
  EXPECT_EQ(seen[0].fields.at("reason"), "error: std::runtime_error: out of luck");
}

TEST(log, is_silent_when_it_is_off) {
  const auto sink = std::make_shared<recorder>();
  runtime rt{{.workers = 2, .level = log_level::off, .log = sink}};
  rt.log(log_level::error, "unheard");
  rt.wait(rt.spawn(fails));
  EXPECT_TRUE(sink->all().empty());
}

TEST(log, levels_have_names) {
  EXPECT_EQ(to_string(log_level::debug), "debug");
  EXPECT_EQ(to_string(log_level::info), "info");
  EXPECT_EQ(to_string(log_level::warning), "warning");
  EXPECT_EQ(to_string(log_level::error), "error");
  EXPECT_EQ(to_string(log_level::off), "off");
}

}  // namespace
