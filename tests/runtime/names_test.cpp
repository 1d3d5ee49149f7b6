// Names of processes: one owner at a time, free when the owner has ended.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;

struct go {};

task<> wait_for_go(self& me) { co_await me.receive<go>(); }

void end(runtime& rt, pid p) {
  rt.kill(p);
  rt.wait(p);
}

TEST(name, leads_to_the_process_that_has_it) {
  runtime rt{quiet()};
  const pid p = rt.spawn(wait_for_go);
  EXPECT_EQ(rt.where("db"), pid{});
  EXPECT_TRUE(rt.register_name("db", p));
  EXPECT_EQ(rt.where("db"), p);
}

TEST(name, that_is_taken_is_refused_and_stays_with_its_owner) {
  runtime rt{quiet()};
  const pid p = rt.spawn(wait_for_go);
  const pid q = rt.spawn(wait_for_go);
  ASSERT_TRUE(rt.register_name("db", p));
  const auto refused = rt.register_name("db", q);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::name_taken);
  EXPECT_NE(refused.error().text().find(to_string(p)), std::string_view::npos) << refused.error();
  EXPECT_EQ(rt.where("db"), p);
  EXPECT_EQ(rt.register_name("db", p).error().code(), errc::name_taken);
}

TEST(name, a_process_has_one_at_most) {
  runtime rt{quiet()};
  const pid p = rt.spawn(wait_for_go);
  ASSERT_TRUE(rt.register_name("first", p));
  EXPECT_EQ(rt.register_name("second", p).error().code(), errc::invalid);
  EXPECT_EQ(rt.where("second"), pid{});
  EXPECT_TRUE(rt.unregister_name("first"));
  EXPECT_TRUE(rt.register_name("second", p));
}

TEST(name, must_not_be_empty) {
  runtime rt{quiet()};
  EXPECT_EQ(rt.register_name("", rt.spawn(wait_for_go)).error().code(), errc::invalid);
}

TEST(name, is_given_to_live_processes_only) {
  runtime rt{quiet()};
  const pid p = rt.spawn(wait_for_go);
  end(rt, p);
  EXPECT_EQ(rt.register_name("db", p).error().code(), errc::noproc);
  EXPECT_EQ(rt.register_name("db", pid{}).error().code(), errc::noproc);
  EXPECT_EQ(rt.where("db"), pid{});
}

TEST(name, is_free_again_once_it_is_given_back) {
  runtime rt{quiet()};
  const pid p = rt.spawn(wait_for_go);
  const pid q = rt.spawn(wait_for_go);
  ASSERT_TRUE(rt.register_name("db", p));
  EXPECT_TRUE(rt.unregister_name("db"));
  EXPECT_FALSE(rt.unregister_name("db"));
  EXPECT_TRUE(rt.register_name("db", q));
  end(rt, p);  // had the name, has it no more
  EXPECT_EQ(rt.where("db"), q);
}

TEST(name, is_free_again_when_its_process_has_ended) {
  runtime rt{quiet()};
  for (int i = 0; i < 300; ++i) {
    const pid p = rt.spawn(wait_for_go);
    ASSERT_TRUE(rt.register_name("db", p)) << i;
    end(rt, p);
    ASSERT_EQ(rt.where("db"), pid{}) << i;
  }
}

task<> names_itself(self& me, std::vector<bool>* seen) {
  const auto first = me.register_as("me");
  const auto second = me.register_as("me");
  seen->push_back(first.has_value());
  seen->push_back(second.has_value());
  seen->push_back(me.where("me") == me.id());
  me.send("me", go{});
  co_await me.receive<go>();
  seen->push_back(me.unregister("me"));
  seen->push_back(me.where("me") == pid{});
  me.send("me", go{});  // nobody has it: a dead letter
}
TEST(name, a_process_names_itself_and_is_reached_by_that_name) {
  runtime rt{quiet()};
  std::vector<bool> seen;
  rt.wait(rt.spawn(names_itself, &seen));
  EXPECT_EQ(seen, (std::vector<bool>{true, false, true, true, true}));
  EXPECT_EQ(rt.counters().dead_letters, 1U);
}

// ---- spawn with options

task<> knows_its_name(self& me, bool* was_there) {
  *was_there = me.where("server") == me.id();
  co_await me.receive<go>();
}
TEST(spawn_with_options, a_name_is_there_before_the_first_line_runs) {
  runtime rt{quiet()};
  bool was_there = false;
  const auto p = rt.spawn({.name = "server"}, knows_its_name, &was_there);
  ASSERT_TRUE(p);
  EXPECT_EQ(rt.where("server"), *p);
  rt.send(*p, go{});
  rt.wait(*p);
  EXPECT_TRUE(was_there);
}

task<> runs(self&, std::atomic<int>* count) {
  ++*count;
  co_return;
}
struct counted {
  explicit counted(std::atomic<int>* n) { ++*n; }
  void handle(go) {}
};
TEST(spawn_with_options, a_name_that_is_taken_starts_nothing) {
  std::atomic<int> started{0};
  {
    runtime rt{quiet()};
    const auto first = rt.spawn({.name = "server"}, wait_for_go);
    ASSERT_TRUE(first);
    const auto body = rt.spawn({.name = "server"}, runs, &started);
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().code(), errc::name_taken);
    const auto object = rt.spawn<counted>({.name = "server"}, &started);
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().code(), errc::name_taken);
    EXPECT_EQ(rt.where("server"), *first);
    EXPECT_EQ(rt.counters().spawned, 1U);
  }
  EXPECT_EQ(started, 0);
}

task<> spawns_a_taken_name(self& me, std::vector<error_code>* codes) {
  spawn_options options{.name = "server", .link = true};
  const auto first = me.spawn(options, wait_for_go);
  const auto second = me.spawn(options, wait_for_go);
  if (!second) codes->push_back(second.error().code());
  co_await me.yield();  // and nothing came over the link that was never made
}
TEST(spawn_with_options, a_taken_name_does_not_harm_a_linked_parent) {
  runtime rt{quiet()};
  std::vector<error_code> codes;
  rt.wait(rt.spawn(spawns_a_taken_name, &codes));
  EXPECT_EQ(codes, std::vector<error_code>{errc::name_taken});
}

TEST(spawn_with_options, an_object_may_have_a_name_and_a_label) {
  runtime rt{quiet()};
  std::atomic<int> started{0};
  const auto p = rt.spawn<counted>({.name = "counter", .label = "for tests"}, &started);
  ASSERT_TRUE(p);
  EXPECT_EQ(rt.where("counter"), p->id());
}

// ---- races

TEST(name, of_many_threads_that_want_one_name_exactly_one_gets_it) {
  runtime rt{quiet()};
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> winners{0};
    std::latch begin{4};
    std::vector<pid> all;
    for (int i = 0; i < 4; ++i) all.push_back(rt.spawn(wait_for_go));
    {
      std::vector<std::jthread> threads;
      for (const pid p : all)
        threads.emplace_back([&, p] {
          begin.arrive_and_wait();
          if (rt.register_name("the one", p)) ++winners;
        });
    }
    EXPECT_EQ(winners, 1);
    for (const pid p : all) end(rt, p);
    EXPECT_EQ(rt.where("the one"), pid{});
  }
}

TEST(name, given_to_a_process_that_is_ending_is_never_left_behind) {
  runtime rt{quiet()};
  for (int round = 0; round < 300; ++round) {
    const pid p = rt.spawn(wait_for_go);
    std::jthread giver{[&] { (void)rt.register_name("late", p); }};
    end(rt, p);
    giver.join();
    ASSERT_EQ(rt.where("late"), pid{}) << round;
  }
}

task<> ends_when_found(self& me) { co_await me.receive<go>(); }
TEST(spawn_with_options, whoever_finds_the_name_reaches_the_process) {
  runtime rt{{.workers = 1, .level = log_level::off}};
  std::atomic<bool> enough{false};
  std::jthread looks{[&] {
    pid last;
    while (!enough) {
      const pid found = rt.where("new");
      if (!found || found == last) continue;
      last = found;
      rt.send(found, go{});  // as soon as it can be found
    }
  }};
  for (int i = 0; i < 2'000 && rt.counters().dead_letters == 0; ++i) {
    const auto p = rt.spawn({.name = "new"}, ends_when_found);
    while (p && rt.alive(*p) && rt.counters().dead_letters == 0) std::this_thread::yield();
  }
  EXPECT_EQ(rt.counters().dead_letters, 0U) << "it was found before it could be reached";
  enough = true;
}

struct ask {
  using reply = int;
};
/// Its destructor keeps the process from ending altogether until the caller has had its try.
struct waits_at_its_end {
  explicit waits_at_its_end(std::latch* l) : tried{l} {}
  waits_at_its_end(const waits_at_its_end&) = delete;
  waits_at_its_end& operator=(const waits_at_its_end&) = delete;
  ~waits_at_its_end() { tried->wait(); }
  std::latch* tried;
};
task<> takes_a_request_and_waits(self& me, std::latch* taken, std::latch* tried) {
  const waits_at_its_end last{tried};
  const auto open = co_await me.receive<request<ask>>();
  taken->count_down();
  co_await me.receive<go>();
}
task<> wants_the_name(self& me, pid owner, std::latch* tried, error_code* heard, bool* got_it) {
  const auto answer = co_await call<ask>(owner).within(forever);
  *heard = answer.error().code();
  *got_it = me.register_as("db").has_value();
  tried->count_down();
}
TEST(name, is_free_before_the_callers_of_its_process_are_told_of_its_end) {
  std::latch taken{1};
  std::latch tried{1};
  error_code heard = errc::invalid;
  bool got_it = false;
  runtime rt{{.workers = 2, .stall_after = std::chrono::milliseconds{0}, .level = log_level::off}};
  const auto owner = rt.spawn({.name = "db"}, takes_a_request_and_waits, &taken, &tried);
  ASSERT_TRUE(owner);
  const pid caller = rt.spawn(wants_the_name, *owner, &tried, &heard, &got_it);
  taken.wait();
  rt.kill(*owner);
  rt.wait(caller);
  EXPECT_EQ(heard, errc::exited);
  EXPECT_TRUE(got_it);
}

}  // namespace
