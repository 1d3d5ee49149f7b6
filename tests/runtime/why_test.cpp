// What a process waits for, and why it makes no progress. The rule for each way to be stuck is tested on one process
// that is stuck in that way.
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is not in <csignal>

#include <atomic>
#include <future>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

#include <coppice/runtime/freeze.hpp>
#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct never {};
struct other {
  int n = 0;
};
struct ask {
  using reply = int;
};

/// Once the process waits for that.
process_info info_when(runtime& rt, pid who, wait_kind kind) {
  for (;;) {
    const auto seen = rt.info(who);
    if (seen && seen->state == process_state::waiting && seen->waits.kind == kind) return *seen;
    std::this_thread::yield();
  }
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// ---- a message that does not come

task<> receives_never(self& me) { co_await me.receive<never>(); }

TEST(why, names_the_types_that_a_receive_waits_for) {
  runtime rt{quiet()};
  const pid p = rt.spawn(receives_never);
  const process_info seen = info_when(rt, p, wait_kind::message);
  ASSERT_EQ(seen.waits.types.size(), 1U);
  EXPECT_TRUE(contains(std::string{seen.waits.types[0]}, "never"));
  EXPECT_TRUE(contains(rt.why(p), "for a message of type ")) << rt.why(p);
  EXPECT_TRUE(contains(rt.why(p), "never")) << rt.why(p);
}

TEST(why, counts_the_messages_of_other_types_that_a_receive_leaves_in_the_mailbox) {
  runtime rt{quiet()};
  const pid p = rt.spawn(receives_never);
  for (int i = 0; i < 3; ++i) rt.send(p, other{i});
  rt.send(p, std::string{"one more"});
  while (info_when(rt, p, wait_kind::message).mailbox != 4) std::this_thread::yield();
  const process_info seen = info_when(rt, p, wait_kind::message);
  ASSERT_EQ(seen.mail.size(), 2U);
  EXPECT_TRUE(contains(std::string{seen.mail[0].type}, "other"));
  EXPECT_EQ(seen.mail[0].count, 3U);
  EXPECT_EQ(seen.mail[1].count, 1U);
  EXPECT_TRUE(contains(rt.why(p), "; 4 messages wait: 3 ")) << rt.why(p);
}

// ---- calls

task<> calls(self&, pid whom) { (void)co_await call<ask>(whom).within(forever); }

TEST(why, follows_a_call_to_who_does_not_answer) {
  runtime rt{quiet()};
  const pid silent = *rt.spawn({.name = "silent"}, receives_never);
  (void)info_when(rt, silent, wait_kind::message);
  const pid p = rt.spawn(calls, silent);
  const process_info seen = info_when(rt, p, wait_kind::answer);
  EXPECT_EQ(seen.waits.whom, silent);
  EXPECT_TRUE(contains(std::string{seen.waits.types.at(0)}, "ask"));
  while (info_when(rt, silent, wait_kind::message).mailbox == 0) std::this_thread::yield();  // the request
  const std::string text = rt.why(p);
  EXPECT_TRUE(contains(text, "for an answer from " + to_string(silent) + " to ")) << text;
  EXPECT_TRUE(contains(text, to_string(silent) + " (silent) has waited")) << text;
}

struct introduction {
  pid other;
};
task<> calls_who_is_introduced(self& me) {
  const auto to = co_await me.receive<introduction>();
  (void)co_await call<ask>(to.other).within(forever);
}

TEST(why, finds_processes_that_wait_for_each_other) {
  runtime rt{quiet()};
  const pid a = rt.spawn(calls_who_is_introduced);
  const pid b = rt.spawn(calls_who_is_introduced);
  const pid c = rt.spawn(calls_who_is_introduced);
  const pid outside = rt.spawn(calls_who_is_introduced);
  rt.send(outside, introduction{a});
  rt.send(a, introduction{b});
  rt.send(b, introduction{c});
  rt.send(c, introduction{a});
  // A process that is putting a request aside does not seem to wait.
  for (const auto& [p, requests] : {std::pair{a, 2U}, {b, 1U}, {c, 1U}, {outside, 0U}})
    while (info_when(rt, p, wait_kind::answer).mailbox != requests) std::this_thread::yield();
  const auto cycles = rt.call_cycles();
  ASSERT_EQ(cycles.size(), 1U);
  EXPECT_EQ(cycles[0], (std::vector<pid>{a, b, c}));
  EXPECT_TRUE(contains(rt.why(outside), "none can continue")) << rt.why(outside);
}

TEST(why, says_that_a_process_is_not_alive) {
  runtime rt{quiet()};
  const pid gone = rt.spawn(receives_never);
  rt.kill(gone);
  rt.wait(gone);
  EXPECT_EQ(rt.why(gone), to_string(gone) + " is not alive");
}

// ---- time

task<> sleeps(self& me) { co_await me.sleep(1h); }

TEST(why, says_how_long_a_sleep_lasts) {
  runtime rt{quiet()};
  const pid p = rt.spawn(sleeps);
  const process_info seen = info_when(rt, p, wait_kind::time);
  ASSERT_TRUE(seen.waits.left.has_value());
  EXPECT_GT(*seen.waits.left, 50min);
  EXPECT_LE(*seen.waits.left, 1h);
  EXPECT_TRUE(contains(rt.why(p), "for its sleep to end, at most ")) << rt.why(p);
}

// ---- the world outside

struct hung_work {
  std::binary_semaphore* until;
  void operator()() const { until->acquire(); }
};
task<> blocks(self& me, std::binary_semaphore* until) {
  hung_work work{until};
  co_await me.blocking(work);
}

TEST(why, names_blocking_work) {
  std::binary_semaphore until{0};
  runtime rt{quiet()};
  const pid p = rt.spawn(blocks, &until);
  const process_info seen = info_when(rt, p, wait_kind::blocking);
  EXPECT_TRUE(contains(seen.waits.what, "hung_work"));
  EXPECT_TRUE(contains(rt.why(p), "for blocking work ")) << rt.why(p);
  until.release();
  rt.wait(p);
}

task<> works_in_lane(self&, lane* where, std::binary_semaphore* until) {
  auto work = in_lane(*where, hung_work{until});
  (void)co_await std::move(work);
}

TEST(why, names_a_lane_that_was_destroyed_meanwhile) {
  std::binary_semaphore until{0};
  auto where = real_environment()->lanes().open("database");
  runtime rt{quiet()};
  const pid p = rt.spawn(works_in_lane, where.get(), &until);
  while (!where->status().running_since) std::this_thread::yield();
  (void)info_when(rt, p, wait_kind::lane);
  where.reset();  // its job goes on
  EXPECT_EQ(rt.info(p)->waits.what, "database");
  until.release();
  rt.wait(p);
}

TEST(why, names_the_lane) {
  std::binary_semaphore until{0};
  const auto where = real_environment()->lanes().open("database");
  runtime rt{quiet()};
  const pid p = rt.spawn(works_in_lane, where.get(), &until);
  EXPECT_EQ(info_when(rt, p, wait_kind::lane).waits.what, "database");
  EXPECT_TRUE(contains(rt.why(p), "for work in the lane database")) << rt.why(p);
  until.release();
  rt.wait(p);
}

struct keeps_its_promise {
  std::optional<promise<int>>* kept;
  void operator()(promise<int> p) const { kept->emplace(std::move(p)); }
};
task<> performs(self& me, std::optional<promise<int>>* kept) {
  auto work = me.perform<int>(keeps_its_promise{kept});
  (void)co_await std::move(work);
}

TEST(why, names_an_operation_of_another_library) {
  std::optional<promise<int>> kept;
  runtime rt{quiet()};
  const pid p = rt.spawn(performs, &kept);
  EXPECT_TRUE(contains(info_when(rt, p, wait_kind::operation).waits.what, "keeps_its_promise"));
  EXPECT_TRUE(contains(rt.why(p), "for the operation ")) << rt.why(p);
  kept->complete(1);
  rt.wait(p);
}

task<> awaits_a_promise(self& me, std::optional<promise<int>>* kept) {
  auto [to_keep, to_await] = make_promise<int>(me);
  kept->emplace(std::move(to_keep));
  (void)co_await to_await;
}

TEST(why, names_a_promise_that_nobody_has_completed) {
  std::optional<promise<int>> kept;
  runtime rt{quiet()};
  const pid p = rt.spawn(awaits_a_promise, &kept);
  EXPECT_EQ(info_when(rt, p, wait_kind::promise).waits.types, std::vector<std::string_view>{"int"});
  EXPECT_TRUE(contains(rt.why(p), "for a promise of type int")) << rt.why(p);
  kept->complete(1);
  rt.wait(p);
}

// ---- frozen

TEST(why, says_that_a_process_is_frozen) {
  runtime rt{quiet()};
  const pid p = rt.spawn(receives_never);
  (void)info_when(rt, p, wait_kind::message);
  ASSERT_TRUE(rt.freeze(p).has_value());
  EXPECT_TRUE(contains(rt.why(p), " is frozen")) << rt.why(p);
  EXPECT_TRUE(rt.thaw(p));
}

// ---- code that does not return, and nobody to run it

struct slow_server {
  std::binary_semaphore* inside;
  std::binary_semaphore* until;
  [[gnu::noinline]] void handle(other) const {
    inside->release();
    until->acquire();
  }
};

TEST(why, names_the_message_whose_handler_does_not_return_and_counts_the_mail_behind_it) {
  std::binary_semaphore inside{0};
  std::binary_semaphore until{0};
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  const ref<slow_server> p = rt.spawn<slow_server>(&inside, &until);
  rt.cast<other>(p);
  inside.acquire();
  for (int i = 0; i < 5; ++i) rt.cast<other>(p);
  const auto seen = rt.info(p.id());
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->state, process_state::running);
  EXPECT_TRUE(seen->complete);
  EXPECT_TRUE(contains(std::string{seen->handling}, "other"));
  EXPECT_TRUE(contains(seen->type, "slow_server"));
  EXPECT_EQ(seen->mailbox, 5U) << "right at the first look";
  EXPECT_TRUE(contains(rt.why(p.id()), " has handled ")) << rt.why(p.id());
  for (int i = 0; i < 6; ++i) {
    until.release();
    if (i < 5) inside.acquire();
  }
}

TEST(why, says_that_a_process_with_mail_waits_for_a_worker) {
  std::binary_semaphore inside{0};
  std::binary_semaphore until{0};
  runtime rt{{.workers = 1, .stall_after = 0ms, .level = log_level::off}};
  const pid p = rt.spawn(receives_never);
  (void)info_when(rt, p, wait_kind::message);
  const ref<slow_server> busy = rt.spawn<slow_server>(&inside, &until);
  rt.cast<other>(busy);
  inside.acquire();
  rt.send(p, other{1});
  EXPECT_TRUE(contains(rt.why(p), " has mail and waits")) << rt.why(p);
  until.release();
}

// ---- idle, and what a process is

struct idle_server {
  void handle(other) const {}
};

TEST(why, says_that_a_server_waits_for_the_next_message) {
  runtime rt{quiet()};
  const ref<idle_server> p = rt.spawn<idle_server>();
  const process_info seen = info_when(rt, p.id(), wait_kind::mail);
  EXPECT_TRUE(contains(seen.type, "idle_server"));
  EXPECT_EQ(seen.label, seen.type) << "the default label";
  EXPECT_TRUE(contains(rt.why(p.id()), "for the next message")) << rt.why(p.id());
}

task<> waits_deep_inside(self& me) { co_await me.receive<never>(); }
task<> calls_another_function(self& me) { co_await waits_deep_inside(me); }

TEST(why, shows_the_functions_that_wait) {
  runtime rt{quiet()};
  const pid p = rt.spawn(calls_another_function);
  const process_info seen = info_when(rt, p, wait_kind::message);
  EXPECT_TRUE(seen.type.ends_with("calls_another_function")) << seen.type;
  ASSERT_EQ(seen.frames.size(), 2U);
  EXPECT_TRUE(seen.frames[0].ends_with("waits_deep_inside")) << seen.frames[0];
  EXPECT_TRUE(seen.frames[1].ends_with("calls_another_function")) << seen.frames[1];
}

struct waiting_server {
  using protocol = coppice::protocol<introduction>;
  task<> handle(introduction i) const {  // NOLINT(readability-convert-member-functions-to-static)
    (void)co_await call<ask>(i.other).within(forever);
  }
};

TEST(why, names_the_message_whose_handler_waits) {
  runtime rt{quiet()};
  const pid silent = rt.spawn(receives_never);
  const ref<waiting_server> p = rt.spawn<waiting_server>();
  EXPECT_TRUE(contains(info_when(rt, p.id(), wait_kind::mail).type, "waiting_server"));
  rt.cast<introduction>(p, silent);
  const process_info seen = info_when(rt, p.id(), wait_kind::answer);
  EXPECT_TRUE(contains(std::string{seen.handling}, "introduction"));
  EXPECT_TRUE(contains(rt.why(p.id()), ", handling ")) << rt.why(p.id());
}

// ---- what it says in a simulation, where time can be given

TEST(lasting, is_the_time_since_the_process_has_handled_a_signal) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(receives_never);
  w.run_for(5s);
  EXPECT_EQ(rt.info(p)->lasting, 5s);
  EXPECT_TRUE(contains(rt.why(p), " has waited 5s for a message of type ")) << rt.why(p);
  rt.send(p, other{1});
  w.run_for(2s);
  EXPECT_EQ(rt.info(p)->lasting, 2s) << "it has put a message aside";
}

TEST(lasting, of_code_that_runs_is_the_time_since_that_was_seen) {
  std::binary_semaphore inside{0};
  std::binary_semaphore until{0};
  const auto machine = real_environment();
  const time_point before = machine->clock().now();
  runtime rt{machine, {.workers = 2, .stall_after = 20ms, .level = log_level::off}};
  const ref<slow_server> p = rt.spawn<slow_server>(&inside, &until);
  rt.cast<other>(p);
  inside.acquire();
  std::chrono::milliseconds lasting{0};
  while (lasting < 5ms) lasting = rt.info(p.id())->lasting;
  EXPECT_LE(lasting, machine->clock().now() - before);
  until.release();
}

task<> freezes(self&, pid whom) {
  const result<frozen> held = co_await freeze(whom, 1h);
  (void)held;
}
task<> gives_way(self& me) {
  for (;;) co_await me.yield();
}

TEST(why, names_a_freeze_that_is_not_done) {
  std::binary_semaphore inside{0};
  std::binary_semaphore until{0};
  runtime rt{{.workers = 2, .stall_after = 20ms, .level = log_level::off}};
  const ref<slow_server> stuck = rt.spawn<slow_server>(&inside, &until);
  rt.cast<other>(stuck);
  inside.acquire();
  const pid p = rt.spawn(freezes, stuck.id());
  EXPECT_EQ(info_when(rt, p, wait_kind::freeze).waits.whom, stuck.id());
  EXPECT_TRUE(contains(rt.why(p), "for the freeze of " + to_string(stuck.id()))) << rt.why(p);
  until.release();
  rt.wait(p);
  EXPECT_TRUE(rt.thaw(stuck.id()));
}

TEST(why, says_that_a_process_that_gives_way_waits_for_a_worker) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(gives_way);
  for (int i = 0; i < 5; ++i) w.step();
  EXPECT_TRUE(contains(rt.why(p), " has mail and waits for a worker")) << rt.why(p);
  rt.kill(p);
}

// ---- stalls

struct stall_listener {
  using protocol = coppice::protocol<process_stalled>;
  std::promise<process_stalled>* to;
  bool done = false;
  void handle(process_stalled s) {
    if (!std::exchange(done, true)) to->set_value(std::move(s));
  }
};

TEST(stall, names_the_message_and_the_functions_of_the_stuck_thread) {
  std::binary_semaphore inside{0};
  std::binary_semaphore until{0};
  runtime rt{{.workers = 2, .stall_after = 20ms, .level = log_level::off}};
  std::promise<process_stalled> reported;
  const ref<stall_listener> l = rt.spawn<stall_listener>(&reported);
  rt.subscribe<process_stalled>(l.id());
  const ref<slow_server> p = rt.spawn<slow_server>(&inside, &until);
  rt.cast<other>(p);
  inside.acquire();
  const process_stalled s = reported.get_future().get();
  EXPECT_EQ(s.who, p.id());
  EXPECT_TRUE(contains(std::string{s.handling}, "other"));
  std::string all;
  for (const std::string& f : s.backtrace) all += f + '\n';
#ifndef __SANITIZE_THREAD__  // which holds signals back until the thread calls a function that it knows to block
  EXPECT_TRUE(contains(all, "slow_server::handle")) << all;
#endif
  until.release();
}

struct server_that_waited {
  using protocol = coppice::protocol<other>;
  std::binary_semaphore* inside;
  std::binary_semaphore* until;
  task<> handle(other, self& me) const {  // NOLINT(readability-convert-member-functions-to-static)
    co_await me.sleep(1us);
    inside->release();
    until->acquire();
  }
};

TEST(why, names_the_message_of_a_handler_that_has_waited_and_then_does_not_return) {
  std::binary_semaphore inside{0};
  std::binary_semaphore until{0};
  runtime rt{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
  const ref<server_that_waited> p = rt.spawn<server_that_waited>(&inside, &until);
  rt.cast<other>(p);
  inside.acquire();
  const auto seen = rt.info(p.id());
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->state, process_state::running);
  EXPECT_TRUE(contains(std::string{seen->handling}, "other")) << seen->handling;
  until.release();
}

std::atomic<int> urgent_signals{0};
/// As a program that uses the signal for out-of-band data.
class own_signal_handler {
 public:
  own_signal_handler() {
    struct sigaction own{};
    own.sa_handler = [](int) { ++urgent_signals; };
    ::sigaction(SIGURG, &own, &before_);
  }
  ~own_signal_handler() { ::sigaction(SIGURG, &before_, nullptr); }
  own_signal_handler(const own_signal_handler&) = delete;
  own_signal_handler& operator=(const own_signal_handler&) = delete;

 private:
  struct sigaction before_{};
};

TEST(stall, is_reported_without_functions_where_the_program_handles_the_signal_itself) {
  const own_signal_handler handler;
  std::binary_semaphore inside{0};
  std::binary_semaphore until{0};
  runtime rt{{.workers = 2, .stall_after = 20ms, .level = log_level::off}};
  std::promise<process_stalled> reported;
  const ref<stall_listener> l = rt.spawn<stall_listener>(&reported);
  rt.subscribe<process_stalled>(l.id());
  const ref<slow_server> p = rt.spawn<slow_server>(&inside, &until);
  rt.cast<other>(p);
  inside.acquire();
  EXPECT_TRUE(reported.get_future().get().backtrace.empty());
  EXPECT_EQ(urgent_signals, 0);
  until.release();
}

}  // namespace
