// Periodic work.
#include <coppice/behaviour/interval.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

constexpr std::chrono::milliseconds a_tick{10};

/// The next `timer_fired`, and how long after `begin` it came, in whole seconds.
task<std::chrono::seconds> next_beat(self& me, interval* beat, time_point begin) {
  const timer_fired t = co_await me.receive<timer_fired>();
  EXPECT_TRUE(beat->fired(me, t));
  const auto at = std::chrono::duration_cast<std::chrono::seconds>(me.now() - begin);
  EXPECT_LT(me.now() - begin - at, a_tick) << "no drift";
  co_return at;
}

task<> beats_on_time(self& me) {
  const time_point begin = me.now();
  interval beat{me, 2s};
  for (int i = 1; i <= 100; ++i) {
    const std::chrono::seconds at = co_await next_beat(me, &beat, begin);
    EXPECT_EQ(at, 2s * i);
  }
}
TEST(interval, fires_at_multiples_of_its_period) { EXPECT_EQ(in_the_world(beats_on_time), exit_reason::normal()); }

task<> is_late(self& me) {
  const time_point begin = me.now();
  interval beat{me, 2s};
  co_await me.sleep(9s);
  const timer_fired t = co_await me.receive<timer_fired>();
  EXPECT_TRUE(beat.fired(me, t));
  const int more = co_await mail_left(me);
  EXPECT_EQ(more, 0) << "one for all that were missed";
  const std::chrono::seconds at = co_await next_beat(me, &beat, begin);
  EXPECT_EQ(at, 10s) << "and the next one comes on time";
}
TEST(interval, skips_what_a_late_process_has_missed) { EXPECT_EQ(in_the_world(is_late), exit_reason::normal()); }

task<> cancels(self& me) {
  interval beat{me, 1s};
  co_await me.sleep(1500ms);  // one waits in the mailbox
  EXPECT_TRUE(beat.cancel(me));
  EXPECT_FALSE(beat.cancel(me));
  co_await me.sleep(1min);
  const int mail = co_await mail_left(me);
  EXPECT_EQ(mail, 0);
}
TEST(interval, that_is_cancelled_sends_nothing_more) { EXPECT_EQ(in_the_world(cancels), exit_reason::normal()); }

task<> has_two(self& me) {
  interval quick{me, 1s};
  interval slow{me, 3500ms};
  const timer_ref other = me.start_timer(1700ms);
  int quicks = 0;
  int slows = 0;
  int others = 0;
  for (int i = 0; i < 10; ++i) {
    const timer_fired t = co_await me.receive<timer_fired>();
    const bool is_quick = quick.fired(me, t);
    const bool is_slow = slow.fired(me, t);
    quicks += is_quick ? 1 : 0;
    slows += is_slow ? 1 : 0;
    others += t.ref == other ? 1 : 0;
  }
  EXPECT_EQ(quicks, 7);
  EXPECT_EQ(slows, 2);
  EXPECT_EQ(others, 1);
}
TEST(interval, knows_its_own_timer) { EXPECT_EQ(in_the_world(has_two), exit_reason::normal()); }

task<> has_no_period(self& me) {
  for (const std::chrono::nanoseconds wrong : {-1ns, 0ns, forever})
    EXPECT_THROW((interval{me, wrong}), std::invalid_argument);
  co_return;
}
TEST(interval, needs_a_positive_period) { EXPECT_EQ(in_the_world(has_no_period), exit_reason::normal()); }

}  // namespace
