// How long the handlers of a measured process take.
#include <gtest/gtest.h>

#include <map>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct note {};
struct wanted {};

using counts = std::map<std::string, std::uint64_t>;
counts counts_of(const std::vector<handler_time>& times) {
  counts all;
  for (const handler_time& h : times) all[std::string{h.type.substr(h.type.rfind(':') + 1)}] = h.count;
  return all;
}

/// Waits until the process has handled so many signals and is idle. Before its first turn nothing is known of it.
process_info info_after(runtime& rt, pid who, std::uint32_t handled) {
  for (;;) {
    const auto seen = rt.info(who);
    if (seen && seen->handled >= handled && seen->state == process_state::waiting) return *seen;
    std::this_thread::yield();
  }
}

struct slow {
  using protocol = coppice::protocol<wanted, note>;
  void handle(wanted) {}
  void handle(note) {}
};

TEST(handler_times, count_the_messages_of_a_measured_process_by_type) {
  runtime rt{quiet()};
  const ref<slow> p = rt.spawn<slow>();
  const ref<slow> other = rt.spawn<slow>();
  rt.cast<wanted>(p);
  (void)info_after(rt, p.id(), 2);
  EXPECT_TRUE(rt.measure(p.id()));
  for (int i = 0; i < 3; ++i) rt.cast<note>(p);
  rt.cast<wanted>(p);
  rt.cast<wanted>(other);
  const auto times = info_after(rt, p.id(), 6).handlers;
  EXPECT_EQ(counts_of(times), (counts{{"note", 3}, {"wanted", 1}}));
  for (const handler_time& h : times) EXPECT_LE(h.longest, h.total);
  EXPECT_TRUE(info_after(rt, other.id(), 2).handlers.empty());
  EXPECT_TRUE(rt.measure(p.id(), false));
  rt.cast<note>(p);
  EXPECT_EQ(counts_of(info_after(rt, p.id(), 7).handlers), (counts{{"note", 3}, {"wanted", 1}}));
  EXPECT_FALSE(rt.measure(pid{}));
}

task<> takes_saved_mail_in_the_same_turn(self& me, trap_door* door) {
  co_await me.receive<wanted>();
  door->fall_in();
  co_await me.receive<note>();
  co_await me.receive<wanted>();
}

TEST(handler_times, do_not_contain_what_ran_before_measuring_began) {
  trap_door door;
  runtime rt{quiet()};
  const pid p = rt.spawn(takes_saved_mail_in_the_same_turn, &door);
  rt.send(p, note{});
  rt.send(p, wanted{});
  door.wait_until_inside();
  EXPECT_TRUE(rt.measure(p));
  door.open();
  const auto times = info_after(rt, p, 3).handlers;
  EXPECT_EQ(counts_of(times), (counts{{"note", 1}}));
  for (const handler_time& h : times) EXPECT_EQ(h.total, 0ns);
}

struct waits_in_handler {
  using protocol = coppice::protocol<note>;
  task<> handle(note, self& me) { co_await me.sleep(1h); }
};

TEST(handler_times, do_not_contain_the_waits_of_a_handler) {
  sim::world w{1};
  runtime& rt = w.add_node("a", {.processes = 1U << 10U, .level = log_level::off, .measure_handlers = true}).rt();
  const ref<waits_in_handler> p = rt.spawn<waits_in_handler>();
  rt.cast<note>(p);
  w.run();
  const auto times = rt.info(p.id())->handlers;
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times.front().count, 1U) << "also when it continues after the sleep";
  EXPECT_LT(times.front().total, 1s);
}

TEST(handler_times, count_messages_that_were_put_aside_or_waited_in_a_limited_mailbox) {
  sim::world w{1};
  runtime& rt = w.add_node("a", {.processes = 1U << 10U, .level = log_level::off, .measure_handlers = true}).rt();
  const ref<waits_in_handler> p = rt.spawn<waits_in_handler>();
  const ref<waits_in_handler> limited = *rt.spawn<waits_in_handler>({.mailbox = {.capacity = 5}});
  for (int i = 0; i < 3; ++i) {
    rt.cast<note>(p);
    rt.cast<note>(limited);
  }
  w.run();
  EXPECT_EQ(counts_of(rt.info(p.id())->handlers), (counts{{"note", 3}}));
  EXPECT_EQ(counts_of(rt.info(limited.id())->handlers), (counts{{"note", 3}}));
}

}  // namespace
