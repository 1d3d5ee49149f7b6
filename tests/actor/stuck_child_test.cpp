// Children that do not stop: they are asked, killed and then abandoned, whether their parent stops, restarts or stops
// only them, and hold up neither its stop nor its restart for ever.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "line_keeper.hpp"
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

/// A parent and a child whose code does not return for a while.
struct family : stage {
  explicit family(std::chrono::nanoseconds stuck_for, const actor_options& how = {}) {
    root("p");
    child("p", "c", how);
    stick("c", stuck_for);
    tell("c", "this is never handled");
    settle();
    (void)book.take();
  }
};

/// A parent, a child and a grandchild whose code does not return for a while.
struct three_generations : stage {
  explicit three_generations(std::chrono::nanoseconds stuck_for) {
    root("p");
    child("p", "c");
    child("c", "g");
    stick("g", stuck_for);
  }
};

/// `me.stop(child)` in a handler of the parent.
[[nodiscard]] deed stops(pid child) {
  return [child](player&, context& me) { me.stop(child); };
}

TEST(stuck_child, is_killed_and_then_abandoned_when_its_parent_stops) {
  family s{24h};
  s.stop("p");
  s.pass(9900ms);
  EXPECT_EQ(s.end_of("c"), "lives") << "5 s until it is killed, and 5 s until it is abandoned";
  EXPECT_EQ(s.end_of("p"), "lives");
  s.pass(200ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(stuck_child, does_not_hold_up_the_restart_of_its_parent) {
  family s{24h};
  s.fail("p");
  EXPECT_EQ(s.said("p"), -1);
  s.pass(10100ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
  EXPECT_EQ(s.end_of("p"), "lives");
  EXPECT_EQ(s.said("p"), 0) << "a new instance takes mail";
}

TEST(stuck_child, that_returns_after_its_limit_ends_by_the_kill) {
  family s{7s};
  s.stop("p");
  s.pass(8s);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "killed");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(slow_child, is_not_killed_within_its_limit) {
  family s{4900ms};
  s.stop("p");
  s.pass(4999ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "shutdown");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(slow_child, has_the_limit_that_its_props_say) {
  family s{20s, {.shutdown = coppice::shutdown{30s}}};
  s.stop("p");
  s.pass(21s);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "shutdown");

  family without{1h, {.shutdown = coppice::shutdown::infinity()}};
  without.stop("p");
  without.pass(61min);
  without.settle();
  EXPECT_EQ(without.end_of("c"), "shutdown");

  family brutal{1s, {.shutdown = coppice::shutdown::brutal_kill()}};
  brutal.stop("p");
  brutal.pass(2s);
  brutal.settle();
  EXPECT_EQ(brutal.end_of("c"), "killed");
}

TEST(stuck_child, is_abandoned_after_the_time_that_the_props_of_its_parent_say) {
  stage s;
  s.root("p", {.abandon_after = 100ms});
  s.child("p", "c", {.shutdown = coppice::shutdown{200ms}});
  s.stick("c", 24h);
  s.stop("p");
  s.pass(290ms);
  EXPECT_EQ(s.end_of("p"), "lives");
  s.pass(200ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(stuck_grandchild, holds_up_nobody_and_only_it_is_killed) {
  stage s;
  s.root("p");
  s.child("p", "c");
  s.child("c", "g");
  s.child("g", "gg");
  s.stick("gg", 24h);
  s.stop("p");
  s.pass(10100ms);
  s.settle();
  EXPECT_EQ(s.end_of("gg"), "abandoned");
  EXPECT_EQ(s.end_of("g"), "shutdown") << "it has waited for 10 s, which its own limit does not include";
  EXPECT_EQ(s.end_of("c"), "shutdown");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(stuck_grandchild, extends_the_limit_of_a_child_that_was_stopping_before_its_parent) {
  three_generations s{24h};
  s.stop("c");
  s.pass(4s);
  s.stop("p");
  s.pass(5900ms);
  EXPECT_EQ(s.end_of("c"), "lives") << "the limit of 5 s does not run while it waits for its child";
  s.pass(200ms);
  s.settle();
  EXPECT_EQ(s.end_of("g"), "abandoned");
  EXPECT_EQ(s.end_of("c"), "normal");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(stopping_children, that_wait_for_their_own_report_to_their_grandparent_once) {
  constexpr int children = 1000;
  stage s;
  s.root("root");
  s.child("root", "p");
  s.act("p", [](player& p, context& me) {
    for (int i = 0; i < children; ++i) {
      const std::string name = "c" + std::to_string(i);
      p.book().next[name + " started"].push_back(spawns("g" + std::to_string(i)));
      spawns(name)(p, me);
    }
  });
  const auto handled = [&] { return s.rt().info(s.who("root"))->handled; };
  const auto before = handled();
  s.act("root", [p = s.who("p")](player&, context& me) { me.stop(p); });
  EXPECT_EQ(s.end_of("p"), "normal");
  EXPECT_LT(handled() - before, 10U) << "signals of p about its children, its end and a few others";
}

TEST(stuck_grandchild, extends_the_limit_of_its_grandparent_however_late_its_parent_begins_to_stop) {
  stage s;
  s.root("root");
  s.child("root", "p", {.shutdown = coppice::shutdown{100ms}});
  for (const char* c : {"c", "slow"}) s.child("p", c);
  s.child("c", "g");
  s.child("slow", "stuck");
  s.stick("g", 1s);
  s.stick("slow", 4900ms);
  s.tell("slow", "this takes its time");
  s.stick("stuck", 24h);
  s.tell("stuck", "this is never handled");
  s.settle();
  s.act("root", stops(s.who("p")));
  s.pass(15s);
  s.settle();
  EXPECT_EQ(s.end_of("stuck"), "abandoned");
  EXPECT_EQ(s.end_of("slow"), "shutdown");
  EXPECT_EQ(s.end_of("p"), "normal") << "its own limit does not include what its children need";
}

TEST(stuck_grandchild, does_not_hold_up_a_restart) {
  three_generations s{24h};
  s.fail("p");
  s.pass(10100ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "shutdown");
  EXPECT_EQ(s.said("p"), 0);
}

TEST(stuck_child, that_sticks_after_its_own_children_have_ended_has_a_limit_too) {
  three_generations s{2s};
  s.stop("p");
  s.stick("c", 24h);
  s.tell("c", "this is never handled");
  s.pass(20100ms);  // 10 s for that child at most, 5 s for itself, 5 s after the kill
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(poisoned_child, has_no_limit_until_its_parent_is_stopped) {
  family s{1h};
  poison_actor(s.rt(), s.who("p"));
  s.pass(30min);
  EXPECT_EQ(s.end_of("p"), "lives") << "a poisoned actor may take its time";
  s.stop("p");
  s.pass(10100ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
  EXPECT_EQ(s.end_of("p"), "normal");
}

// ---- stopped by a handler of its parent

TEST(stuck_child, that_its_parent_stops_is_killed_and_then_abandoned_and_the_parent_works_on) {
  family s{24h};
  s.act("p", stops(s.who("c")));
  s.pass(9900ms);
  EXPECT_EQ(s.end_of("c"), "lives") << "5 s until it is killed, and 5 s until it is abandoned";
  EXPECT_EQ(s.said("p"), 0);
  s.pass(200ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
  EXPECT_EQ(s.said("p"), 0);
  s.child("p", "d");
  EXPECT_EQ(s.said("d"), 0);
}

TEST(stuck_child, that_its_parent_stops_and_that_returns_after_its_limit_ends_by_the_kill) {
  family s{7s};
  s.act("p", stops(s.who("c")));
  s.pass(8s);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "killed");
}

TEST(slow_child, that_its_parent_stops_has_the_limit_that_its_props_say) {
  family s{20s, {.shutdown = coppice::shutdown{30s}}};
  s.act("p", stops(s.who("c")));
  s.pass(21s);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "normal");

  family brutal{1s, {.shutdown = coppice::shutdown::brutal_kill()}};
  brutal.act("p", stops(brutal.who("c")));
  brutal.pass(2s);
  brutal.settle();
  EXPECT_EQ(brutal.end_of("c"), "killed");
}

TEST(stuck_child, that_its_parent_stops_has_a_log_line_for_each_step) {
  const auto log = std::make_shared<line_keeper>("'c'");
  stage s{1, {.processes = 1U << 16U, .level = log_level::debug, .log = log}};
  s.root("p");
  s.child("p", "c");
  s.stick("c", 24h);
  s.tell("c", "this is never handled");
  s.settle();
  log->lines.clear();
  s.act("p", stops(s.who("c")));
  s.pass(10100ms);
  s.settle();
  EXPECT_EQ(log->lines,
            (lines{"debug child 'c' was asked to stop", "warning child 'c' did not stop within 5s and was killed",
                   "error child 'c' did not end within 5s after it was killed, because its code does not return; "
                   "it was abandoned"}));
}

TEST(stuck_child, that_is_stopped_twice_has_one_limit) {
  family s{24h};
  s.act("p", stops(s.who("c")));
  s.pass(4s);
  s.act("p", stops(s.who("c")));
  s.stop("p");
  s.pass(6100ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(stuck_grandchild, of_a_child_that_is_stopped_by_its_parent_does_not_cost_the_child_its_life) {
  three_generations s{24h};
  s.act("p", stops(s.who("c")));
  s.pass(10100ms);
  s.settle();
  EXPECT_EQ(s.end_of("g"), "abandoned");
  EXPECT_EQ(s.end_of("c"), "normal");
  EXPECT_EQ(s.end_of("p"), "lives");
}

TEST(stopped_child, takes_no_mail_that_its_parent_sends_after_the_stop) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("p");
    s.child("p", "c");
    s.act("p", [c = s.ref("c")](player&, context& me) {
      me.stop(c);
      me.cast<say>(c, "too late");
    });
    EXPECT_EQ(s.end_of("c"), "normal");
    EXPECT_EQ(std::ranges::count(s.book.log, "c: too late"), 0);
    EXPECT_EQ(s.dead_letters_to("c").size(), 1U);
  });
}

TEST(stopped_child, that_fails_meanwhile_is_neither_restarted_nor_left_behind) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("p");
    s.child("p", "c");
    s.tell("c", throws());
    s.tell("p", stops(s.who("c")));
    s.settle();
    EXPECT_EQ(s.end_of("c"), "normal");
    EXPECT_EQ(s.end_of("p"), "lives");
  });
}

TEST(stuck_actor, that_is_not_a_child_of_the_one_that_stops_it_has_no_limit) {
  family s{1h};
  s.root("other");
  s.act("other", stops(s.who("c")));
  s.pass(30min);
  EXPECT_EQ(s.end_of("c"), "lives");
  s.pass(31min);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "normal");
}

TEST(poisoned_child, has_no_limit_until_its_parent_stops_it) {
  family s{1h};
  s.act("p", [c = s.who("c")](player&, context& me) { me.poison(c); });
  s.pass(30min);
  EXPECT_EQ(s.end_of("c"), "lives");
  s.act("p", stops(s.who("c")));
  s.pass(10100ms);
  s.settle();
  EXPECT_EQ(s.end_of("c"), "abandoned");
}

TEST(stop_limits, that_make_no_sense_are_refused) {
  EXPECT_THROW((void)props<player>(nullptr, "a").with({.shutdown = coppice::shutdown{-1s}}), std::invalid_argument);
  EXPECT_THROW((void)props<player>(nullptr, "a").with({.abandon_after = 0s}), std::invalid_argument);
}

// ---- with real threads

struct hang {};
struct hangs {
  using protocol = coppice::protocol<hang>;
  hangs(std::latch& in, std::latch& out) : in_{&in}, out_{&out} {}
  void handle(hang) const {
    in_->count_down();
    out_->wait();
  }

 private:
  std::latch* in_;
  std::latch* out_;
};
struct parent_of_hanging {
  using protocol = coppice::protocol<>;
  parent_of_hanging(context& me, std::latch& in, std::latch& out) {
    const auto child = me.spawn(
        props<hangs>(std::ref(in), std::ref(out)).with({.shutdown = coppice::shutdown{std::chrono::milliseconds{20}}}));
    me.cast<hang>(child);
  }
};

TEST(stuck_child, does_not_hold_up_its_parent_on_real_threads) {
  std::latch in{1};
  std::latch out{1};
  runtime rt{{.workers = 2, .stall_after = 10ms, .level = log_level::off}};
  const auto parent =
      spawn_actor(rt, props<parent_of_hanging>(std::ref(in), std::ref(out)).with({.abandon_after = 20ms}));
  in.wait();
  stop_actor(rt, parent);
  while (rt.alive(parent.id())) std::this_thread::yield();  // never, if the child held it up
  out.count_down();
}

}  // namespace
