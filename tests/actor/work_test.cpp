// How much work failures and full mailboxes make: so much for each, however long the queue is.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

struct work {
  std::uint64_t signals;  // handled, or looked at before their turn
  std::uint64_t steps;
};
std::uint64_t signals_of(stage& s) {
  const runtime_counters all = s.rt.counters();
  return all.handled + all.looked_ahead;
}
template <class F>
work of(stage& s, F what) {
  const std::uint64_t signals = signals_of(s);
  const std::uint64_t steps = s.world.steps();
  what();
  s.world.settle();
  return {signals_of(s) - signals, s.world.steps() - steps};
}

/// For twice as much, hardly more than twice the work.
template <class F>
void expect_linear(F work_for) {
  const work one = work_for(400);
  const work two = work_for(800);
  ASSERT_GE(one.signals, 400U) << "it has done something";
  EXPECT_LT(two.signals, 3 * one.signals);
  EXPECT_LT(two.steps, 3 * one.steps);
}

actor_options always(directive what) {
  return {.guardian = one_for_one({.limit = unlimited, .decide = [what](const child_failure&) { return what; }})};
}

/// All of it waits when the first is handled.
template <class F>
void queue_up(stage& s, pid who, int n, F send) {
  s.world.nodes().front().stick(who, 1s);
  for (int i = 0; i < n; ++i) send(i);
  s.pass(2s);
}

TEST(work, of_failures_does_not_grow_with_the_mail_that_waits) {
  for (const directive what : {directive::resume, directive::restart})
    expect_linear([what](int n) {
      stage s;
      const auto a = s.enter("a", always(what));
      int failures = 0;
      const work done = of(s, [&] {
        queue_up(s, a.id(), n, [&](int) {
          s.rt.cast<act>(a, [&failures](context&) {
            ++failures;
            throw std::runtime_error{"no luck"};
          });
        });
      });
      EXPECT_EQ(failures, n) << to_string(what);
      return done;
    });
}

TEST(work, of_failures_of_a_child_does_not_grow_with_the_mail_that_waits) {
  expect_linear([](int n) {
    stage s;
    const auto p =
        s.enter("p", {.strategy = one_for_one({.decide = [](const child_failure&) { return directive::resume; }})});
    player_ref c;
    s.in(p, [&](context& me) { c = me.spawn(s.role("c")); });
    int failures = 0;
    const work done = of(s, [&] {
      queue_up(s, c.id(), n, [&](int) {
        s.rt.cast<act>(c, [&failures](context& me) {
          ++failures;
          me.fail(exit_reason::error("no luck"));
        });
      });
    });
    EXPECT_EQ(failures, n);
    return done;
  });
}

TEST(work, of_failures_of_children_does_not_grow_with_the_mail_of_their_parent) {
  expect_linear([](int n) {
    stage s;
    int decisions = 0;
    int waited = 0;
    const auto p = s.enter("p", {.strategy = one_for_one({.decide = [&](const child_failure&) {
                                   ++decisions;
                                   return directive::resume;
                                 }})});
    std::vector<player_ref> children(40);
    s.in(p, [&](context& me) { std::ranges::generate(children, [&] { return me.spawn(s.role("c")); }); });
    const work done = of(s, [&] {
      queue_up(s, p.id(), n, [&](int i) {
        s.rt.cast<act>(p, [&, i](context& me) {
          waited += decisions > i / 2 ? 1 : 0;
          me.cast<act>(children[static_cast<std::size_t>(i) % children.size()],
                       [](context& it) { it.fail(exit_reason::error("no luck")); });
        });
      });
    });
    EXPECT_EQ(decisions, n);
    EXPECT_GT(waited, n / 4) << "mail waits while it decides";
    return done;
  });
}

TEST(work, of_a_sender_that_waits_for_room_does_not_grow_with_its_own_mail) {
  expect_linear([](int n) {
    stage s;
    const auto full = s.enter("b", {.mailbox = mailbox{.capacity = 1, .when_full = when_full::sender_waits}});
    const auto a = s.enter("a");
    (void)s.heard();
    const work done = of(s, [&] {
      queue_up(s, a.id(), n,
               [&](int i) { s.rt.cast<act>(a, [full, i](context& me) { me.cast<note>(full, std::to_string(i)); }); });
    });
    lines all;
    for (int i = 0; i < n; ++i) all.push_back("b: " + std::to_string(i));
    EXPECT_EQ(s.heard(), all);
    EXPECT_EQ(s.rt.counters().timers, 0U) << "that it has waited is over";
    return done;
  });
}

}  // namespace
