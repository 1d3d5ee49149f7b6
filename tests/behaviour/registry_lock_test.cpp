// Locks of a registry.
#include <stdexcept>

#include <coppice/behaviour/registry.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace test;

using names = registry<std::string>;

struct has_it {
  pid who;
};
struct go_on {};
struct fail_now {};

task<> locks(self& me, names in, std::string key, pid boss) {
  const auto held = co_await in.lock(key);
  if (!held) throw std::runtime_error{held.error().to_string()};
  me.send(boss, has_it{me.id()});
  const auto m = co_await me.receive<go_on, fail_now>();
  if (std::holds_alternative<fail_now>(m)) throw std::runtime_error{"while it has the lock"};
}
task<bool> somebody_has_it(self& me) {
  const auto m = co_await me.receive<has_it>(1s);
  co_return std::holds_alternative<has_it>(m);
}

task<> different_keys(self& me) {
  const names in = names::spawn_link(me);
  me.spawn(locks, in, "a", me.id());
  me.spawn(locks, in, "b", me.id());
  const bool first = co_await somebody_has_it(me);
  const bool second = co_await somebody_has_it(me);
  EXPECT_TRUE(first && second);
}
TEST(registry_lock, different_keys_do_not_wait_for_each_other) {
  EXPECT_EQ(in_the_world(different_keys), exit_reason::normal());
}

enum class end : std::uint8_t { normally, by_failing, by_a_kill };
task<> same_key(self& me, end how) {
  const names in = names::spawn_link(me);
  std::vector<pid> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(me.spawn(locks, in, "a", me.id()));
    co_await me.sleep(1ms);
  }
  for (int i = 0; i < 5; ++i) {
    const has_it h = co_await me.receive<has_it>();
    EXPECT_EQ(h.who, all[static_cast<std::size_t>(i)]) << "first come, first served";
    const bool another = co_await somebody_has_it(me);
    EXPECT_FALSE(another);
    if (how == end::normally) me.send(h.who, go_on{});
    if (how == end::by_failing) me.send(h.who, fail_now{});
    if (how == end::by_a_kill) me.kill(h.who);
  }
}
TEST(registry_lock, the_same_key_is_held_by_one_after_the_other) {
  EXPECT_EQ(in_the_world(same_key, end::normally), exit_reason::normal());
}
TEST(registry_lock, a_holder_that_fails_or_is_killed_releases_it) {
  EXPECT_EQ(in_the_world(same_key, end::by_failing), exit_reason::normal());
  EXPECT_EQ(in_the_world(same_key, end::by_a_kill), exit_reason::normal());
}

task<> waiter_ends(self& me) {
  const names in = names::spawn_link(me);
  const pid first = me.spawn(locks, in, "a", me.id());
  co_await me.sleep(1ms);
  const pid second = me.spawn(locks, in, "a", me.id());
  co_await me.sleep(1ms);
  const pid third = me.spawn(locks, in, "a", me.id());
  co_await me.sleep(1ms);
  const has_it one = co_await me.receive<has_it>();
  EXPECT_EQ(one.who, first);
  me.kill(second);
  me.send(first, go_on{});
  const has_it next = co_await me.receive<has_it>();
  EXPECT_EQ(next.who, third);
}
TEST(registry_lock, who_ends_while_it_waits_is_passed_over) {
  EXPECT_EQ(in_the_world(waiter_ends), exit_reason::normal());
}

task<> gives_up(self& me) {
  const names in = names::spawn_link(me);
  const pid first = me.spawn(locks, in, "a", me.id());
  const has_it one = co_await me.receive<has_it>();
  (void)one;
  const auto in_vain = co_await in.lock("a", 1s);
  EXPECT_EQ(in_vain.error().code(), errc::timeout);
  me.send(first, go_on{});
  me.spawn(locks, in, "a", me.id());
  const bool somebody = co_await somebody_has_it(me);
  EXPECT_TRUE(somebody) << "who gave up does not get it any more";
}
TEST(registry_lock, who_gives_up_in_time_leaves_the_line) { EXPECT_EQ(in_the_world(gives_up), exit_reason::normal()); }

task<> holds_for_a_scope(self& me) {
  const names in = names::spawn_link(me);
  {
    auto held = co_await in.lock("a");
    EXPECT_TRUE(held.has_value());
    const names::lock_guard moved = std::move(*held);
    const auto twice = co_await in.lock("a", 1s);
    EXPECT_EQ(twice.error().code(), errc::timeout) << "it is no recursive lock";
  }
  const auto again = co_await in.lock("a", 1s);
  EXPECT_TRUE(again.has_value());
  const names unkept;
  const auto nobody = co_await unkept.lock("a");
  EXPECT_EQ(nobody.error().code(), errc::noproc);
}
TEST(registry_lock, is_held_as_long_as_its_guard_lives) {
  EXPECT_EQ(in_the_world(holds_for_a_scope), exit_reason::normal());
}

task<> increments(self&, names in, int* counter, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const auto held = co_await in.lock("counter");
    ++*counter;  // a data race, if the lock were none
  }
}
task<> counts_together(self& me) {
  const names in = names::spawn_link(me);
  int counter = 0;
  for (int i = 0; i < 4; ++i) me.spawn_monitor(increments, in, &counter, 500);
  for (int i = 0; i < 4; ++i) {
    const down d = co_await me.receive<down>();
    EXPECT_EQ(d.reason, exit_reason::normal());
  }
  EXPECT_EQ(counter, 2000);
}
TEST(registry_lock, serialises_processes_on_threads) { EXPECT_EQ(on_threads(counts_together), exit_reason::normal()); }

}  // namespace
