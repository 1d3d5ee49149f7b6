#pragma once
/// Processes that wait for one thing each, which comes after a second, and write down when it was handled.
#include <gtest/gtest.h>

#include <array>

#include "people.hpp"

namespace coppice::sim::people {

inline task<> sleeps(self& me, time_point* woken) {
  co_await me.sleep(1s);
  *woken = me.now();
}
inline task<> waits_in_vain(self& me, time_point* woken) {
  const auto m = co_await me.receive<number>(1s);
  EXPECT_TRUE(std::holds_alternative<timed_out>(m));
  *woken = me.now();
}
inline task<> waits_for_its_timer(self& me, time_point* woken) {
  const timer_ref mine = me.start_timer(1s);
  const timer_fired t = co_await me.receive<timer_fired>();
  EXPECT_EQ(t.ref, mine);
  *woken = me.now();
}
inline task<> answers_late(self& me) {
  request<ask> r = co_await me.receive<request<ask>>();
  co_await me.sleep(1s);
  r.reply(42);
}
inline task<> waits_for_an_answer(self& me, time_point* woken) {
  const pid clerk = me.spawn(answers_late);
  const result<int> got = co_await call<ask>(clerk).within(forever);
  EXPECT_EQ(got, result<int>{42});
  *woken = me.now();
}
inline task<> gives_up_a_call(self& me, time_point* woken) {
  const pid nobody = me.spawn(idler);
  const result<int> got = co_await call<ask>(nobody).within(1s);
  EXPECT_EQ(got.error().code(), errc::timeout);
  *woken = me.now();
}
inline task<> ends_soon(self& me) { co_await me.sleep(1s); }
inline task<> waits_for_an_end(self& me, time_point* woken) {
  me.spawn_monitor(ends_soon);
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.reason, exit_reason::normal());
  *woken = me.now();
}
inline int twice(int n) { return 2 * n; }
inline task<> waits_for_blocking_work(self& me, time_point* woken) {
  co_await me.sleep(1s);
  const int got = co_await me.blocking(twice, 21);
  EXPECT_EQ(got, 42);
  *woken = me.now();
}

inline constexpr std::array all_waits{sleeps,          waits_in_vain,    waits_for_its_timer,    waits_for_an_answer,
                                      gives_up_a_call, waits_for_an_end, waits_for_blocking_work};

}  // namespace coppice::sim::people
