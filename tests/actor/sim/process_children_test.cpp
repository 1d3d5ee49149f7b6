// Actors with children that are not actors, which fail, wait for their restart, and are stopped meanwhile: every
// instance is made, told and unmade once, and no process is left over.
#include <gtest/gtest.h>

#include <coppice/actor/actor.hpp>

#include "seeds.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace std::chrono_literals;

constexpr std::uint64_t seed_count = 400;

struct tally {
  int made = 0;
  int unmade = 0;
  int begun = 0;
  int restarted = 0;
  int stopping = 0;
  int stopped = 0;
  int failures = 0;
};

task<> fickle(self& me, sim::dice* d) {
  co_await me.sleep(d->between(0ns, 50ms));
  if (d->chance(0.7)) throw std::runtime_error{"out of luck"};
  co_await me.sleep(1h);
}

struct fail_now {};

class parent {
 public:
  using protocol = coppice::protocol<fail_now>;
  parent(tally* t, sim::dice* d) : tally_{t}, dice_{d} { ++t->made; }
  ~parent() { ++tally_->unmade; }
  parent(const parent&) = delete;
  parent& operator=(const parent&) = delete;
  void handle(started, context& me) {
    ++tally_->begun;
    for (std::uint64_t n = dice_->below(3); n > 0; --n)
      (void)me.spawn(child(fickle, dice_).with({.id = "fickle" + std::to_string(n)}));
  }
  void handle(const restarting&) { ++tally_->restarted; }
  void handle(const stopping&) { ++tally_->stopping; }
  void handle(const stopped&, context& me) {
    ++tally_->stopped;
    if (!me.children().empty()) ++tally_->failures;
  }
  [[noreturn]] void handle(fail_now) { throw std::runtime_error{"told to fail"}; }

 private:
  tally* tally_;
  sim::dice* dice_;
};

void play(sim::world& w) {
  tally t;
  runtime& rt = w.add_node("processes", {.processes = 1U << 10U, .level = log_level::off}).rt();
  sim::dice& d = w.chance();
  const backoff wait{.first = 20ms, .cap = 40ms};
  strategy_options how{.limit = unlimited};
  if (d.chance(0.7)) how.wait = wait;
  const auto strategy = d.chance(0.5) ? one_for_one(how) : all_for_one(how);
  const auto top = spawn_actor(
      rt,
      props<parent>(&t, &d).with({.strategy = strategy, .guardian = always_restart(), .keep_children = d.chance(0.3)}));
  int told = 0;
  for (std::uint64_t n = d.below(6); n > 0; --n) {
    w.run_for(d.between(0ns, 60ms));
    rt.cast<fail_now>(top);
    ++told;
  }
  w.run_for(d.between(0ns, 60ms));
  d.chance(0.5) ? stop_actor(rt, top.id()) : poison_actor(rt, top.id());
  w.run_for(10s);
  sim::require(!rt.alive(top.id()), "it was told to stop, and lives");
  const runtime_counters all = rt.counters();
  sim::require(all.spawned == all.ended, "a process is left over");
  sim::require(t.made == t.unmade && t.made == t.begun, "an instance was not made, begun and unmade once");
  sim::require(t.made == t.restarted + 1 || t.made == t.restarted, "instances without a restart");
  sim::require(t.made <= told + 1, "more instances than failures");
  sim::require(t.stopped == t.stopping && t.stopped <= 1, "it stops more than once");
  sim::require(t.failures == 0, "it has stopped with children");
}

TEST(process_children, leave_nothing_behind) { seeds::hold(seed_count, play); }

class heir {
 public:
  using protocol = coppice::protocol<>;
  explicit heir(int* made) { ++*made; }
  [[noreturn]] static void handle(const exited&) { throw exit_with{exit_reason::shutdown("it was all for him")}; }
};
task<> links_and_fails(self& me, pid who) {
  me.link(who);
  co_await me.sleep(1ms);
  throw std::runtime_error{"out of luck"};
}
TEST(process_children, an_actor_may_end_itself_over_the_exit_of_another) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  int made = 0;
  const auto who = spawn_actor(rt, props<heir>(&made));
  rt.spawn(links_and_fails, who.id());
  w.run_for(1s);
  EXPECT_FALSE(rt.alive(who.id()));
  EXPECT_EQ(made, 1);
}

}  // namespace
