// Links: how they are made and removed, and what each end is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <coppice/runtime/no_such_process.hpp>
#include <coppice/runtime/runtime.hpp>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct end_now {
  exit_reason why;
};
struct link_to {
  pid who;
};
struct unlink_from {
  pid who;
};
struct done {};

/// Links, unlinks and ends as it is told, and says when it has.
task<> obedient(self& me, pid boss) {
  for (;;) {
    auto m = co_await me.receive<end_now, link_to, unlink_from>();
    if (auto* l = std::get_if<link_to>(&m)) me.link(l->who);
    if (auto* u = std::get_if<unlink_from>(&m)) me.unlink(u->who);
    if (auto* e = std::get_if<end_now>(&m)) throw exit_with{e->why};
    me.send(boss, done{});
  }
}
task<> ends_with(self&, exit_reason why) {
  throw exit_with{std::move(why)};
  co_return;
}
/// Tells `who` to end, waits until it has, and counts the `exited` that have come by then.
task<int> exits_after_the_end_of(self& me, pid who, exit_reason why) {
  const monitor_ref ref = me.monitor(who);
  end_now order{std::move(why)};
  me.send(who, std::move(order));
  int count = 0;
  for (bool ended = false; !ended;) {
    auto m = co_await me.receive<exited, down>();
    if (auto* x = std::get_if<exited>(&m)) count += x->from == who ? 1 : 0;
    if (auto* d = std::get_if<down>(&m)) ended = d->ref == ref;
  }
  for (;;) {
    auto m = co_await me.receive<exited>(0ns);
    if (std::holds_alternative<timed_out>(m)) co_return count;
    ++count;
  }
}

// ---- both ends

task<> links_twice(self& me) {
  me.trap_exits();
  const pid other = me.spawn(obedient, me.id());
  me.link(other);
  me.link(other);
  me.send(other, link_to{me.id()});
  co_await me.receive<done>();
  const int count = co_await exits_after_the_end_of(me, other, exit_reason::error("x"));
  EXPECT_EQ(count, 1);
}
TEST(link, linking_twice_from_either_side_is_linking_once) { EXPECT_EQ(run(links_twice), exit_reason::normal()); }

task<> other_side_links(self& me) {
  me.trap_exits();
  const pid other = me.spawn(obedient, me.id());
  me.send(other, link_to{me.id()});
  co_await me.receive<done>();
  const int count = co_await exits_after_the_end_of(me, other, exit_reason::shutdown());
  EXPECT_EQ(count, 1);
}
TEST(link, either_side_may_make_it) { EXPECT_EQ(run(other_side_links), exit_reason::normal()); }

task<> other_side_unlinks(self& me) {
  me.trap_exits();
  const pid other = me.spawn(obedient, me.id());
  me.link(other);
  me.send(other, unlink_from{me.id()});
  co_await me.receive<done>();
  const int count = co_await exits_after_the_end_of(me, other, exit_reason::error("x"));
  EXPECT_EQ(count, 0);
}
TEST(link, either_side_may_remove_it) { EXPECT_EQ(run(other_side_unlinks), exit_reason::normal()); }

task<> links_to_itself(self& me) {
  me.link(me.id());
  me.unlink(me.id());
  co_return;
}
TEST(link, to_oneself_is_nothing) { EXPECT_EQ(run(links_to_itself), exit_reason::normal()); }

task<> spawns_the_short_lived(self& me) {
  me.trap_exits();
  for (int i = 0; i < 2000; ++i) {
    const pid child = me.spawn_link(ends_with, exit_reason::shutdown(std::to_string(i)));
    const exited x = co_await me.receive<exited>();
    EXPECT_EQ(x.from, child);
    EXPECT_EQ(x.reason, exit_reason::shutdown(std::to_string(i)));
    EXPECT_TRUE(x.linked);
  }
}
TEST(spawn_link, no_child_ends_too_early_for_its_reason_to_be_told) {
  EXPECT_EQ(run(spawns_the_short_lived), exit_reason::normal());
}

struct counts_its_end {
  explicit counts_its_end(std::atomic<int>* n) : ended{n} {}
  counts_its_end(const counts_its_end&) = delete;
  counts_its_end& operator=(const counts_its_end&) = delete;
  ~counts_its_end() { ++*ended; }
  std::atomic<int>* ended;
};
task<> child_that_waits(self& me, std::atomic<int>* ended, pid boss) {
  const counts_its_end at_the_end{ended};
  me.send(boss, done{});
  co_await me.receive<end_now>();
}
task<> parent_of(self& me, std::atomic<int>* ended, pid boss) {
  for (int i = 0; i < 10; ++i) me.spawn_link(child_that_waits, ended, boss);
  co_await me.receive<end_now>();
}
task<> kills_a_parent(self& me, std::atomic<int>* ended, exit_reason how) {
  const auto [parent, ref] = me.spawn_monitor(parent_of, ended, me.id());
  for (int i = 0; i < 10; ++i) co_await me.receive<done>();
  me.exit(parent, how);
  co_await me.receive<down>();
}
TEST(spawn_link, the_end_of_the_parent_ends_its_children) {
  std::atomic<int> ended{0};
  {
    runtime rt{{.workers = 2, .level = log_level::off}};
    rt.wait(rt.spawn(kills_a_parent, &ended, exit_reason::error("x")));
    // A process leaves the snapshot before the destructors of its frames run: the end of the runtime waits for those.
    while (!rt.snapshot().empty()) std::this_thread::yield();
  }
  EXPECT_EQ(ended, 10);
}

task<> survives_a_normal_child(self& me) {
  me.spawn_link(ends_with, exit_reason::normal());
  const auto m = co_await me.receive<exited>(5ms);
  EXPECT_TRUE(std::holds_alternative<timed_out>(m));
}
TEST(spawn_link, a_child_that_ends_normally_does_not_harm_its_parent) {
  EXPECT_EQ(run(survives_a_normal_child), exit_reason::normal());
}

// ---- chains

task<> link_of_a_chain(self& me, int length, pid boss) {
  if (length > 0) me.spawn_link(link_of_a_chain, length - 1, boss);
  if (length == 0) me.send(boss, me.id());
  me.send(boss, done{});
  co_await me.receive<end_now>();
}
task<> breaks_a_chain(self& me) {
  me.spawn_monitor(link_of_a_chain, 50, me.id());
  for (int i = 0; i <= 50; ++i) co_await me.receive<done>();
  const pid last = co_await me.receive<pid>();
  me.exit(last, exit_reason::error("the last one"));
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.reason, exit_reason::error("the last one"));
}
TEST(link, a_failure_goes_through_a_chain_of_links_with_its_reason) {
  EXPECT_EQ(run(breaks_a_chain), exit_reason::normal());
}

// ---- unlinking

task<> links_anew(self& me) {
  me.trap_exits();
  for (int i = 0; i < 200; ++i) {
    const pid other = me.spawn(obedient, me.id());
    me.link(other);
    me.unlink(other);
    me.link(other);  // before the other side has confirmed
    if (i % 3 == 0) me.unlink(other);
    if (i % 3 == 0) me.link(other);
    const int count = co_await exits_after_the_end_of(me, other, exit_reason::error("x"));
    EXPECT_EQ(count, 1) << i;
  }
}
TEST(link, made_anew_right_behind_an_unlink_holds) { EXPECT_EQ(run(links_anew), exit_reason::normal()); }

task<> unlinks_in_a_race(self& me) {
  me.trap_exits();
  for (int i = 0; i < 500; ++i) {
    const pid other = me.spawn_link(ends_with, exit_reason::error("x"));
    me.unlink(other);
    me.monitor(other);
    co_await me.receive<down>();
    const auto m = co_await me.receive<exited>(0ns);
    EXPECT_TRUE(std::holds_alternative<timed_out>(m)) << i;
  }
}
TEST(link, once_it_is_removed_no_new_exit_can_appear) { EXPECT_EQ(run(unlinks_in_a_race), exit_reason::normal()); }

task<> unlinks_too_late(self& me) {
  me.trap_exits();
  const pid other = me.spawn_link(obedient, me.id());
  me.monitor(other);
  end_now order{exit_reason::error("x")};
  me.send(other, std::move(order));
  co_await me.receive<down>();  // the exit came before it and was put aside
  me.unlink(other);
  const auto m = co_await me.receive<exited>(0ns);
  EXPECT_TRUE(std::holds_alternative<exited>(m));
}
TEST(link, an_exit_that_was_put_aside_before_the_unlink_is_still_received) {
  EXPECT_EQ(run(unlinks_too_late), exit_reason::normal());
}

task<> child_leaves_home(self& me, pid parent) {
  me.unlink(parent);
  me.send(parent, done{});
  co_await me.receive<end_now>();
  throw std::runtime_error{"far away"};
}
task<> lets_a_child_go(self& me) {
  const pid child = me.spawn_link(child_leaves_home, me.id());
  co_await me.receive<done>();
  me.monitor(child);
  end_now order{exit_reason::normal()};
  me.send(child, std::move(order));
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.reason.text(), "far away");
  const auto m = co_await me.receive<done>(5ms);  // and nothing kills us meanwhile
  EXPECT_TRUE(std::holds_alternative<timed_out>(m));
}
TEST(link, a_child_may_unlink_from_its_parent) { EXPECT_EQ(run(lets_a_child_go), exit_reason::normal()); }

task<> unlinks_strangers(self& me) {
  const pid other = me.spawn(obedient, me.id());
  me.unlink(other);
  me.unlink(other);
  me.unlink(pid{});
  me.link(other);
  me.unlink(other);
  me.unlink(other);
  co_return;
}
TEST(link, unlinking_from_who_is_not_linked_is_nothing) { EXPECT_EQ(run(unlinks_strangers), exit_reason::normal()); }

// ---- links to processes that have ended

task<pid> make_a_dead_one(self& me) {
  const auto [who, ref] = me.spawn_monitor(ends_with, exit_reason::normal());
  co_await me.receive<down>();
  co_return who;
}
task<> links_to_the_dead_trapping(self& me) {
  me.trap_exits();
  const pid dead = co_await make_a_dead_one(me);
  me.link(dead);
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.from, dead);
  EXPECT_EQ(x.reason, exit_reason::noproc());
}
TEST(link, to_the_dead_gives_a_trapping_process_noproc_as_a_message) {
  EXPECT_EQ(run(links_to_the_dead_trapping), exit_reason::normal());
}

task<> links_to_the_dead(self& me) {
  const pid dead = co_await make_a_dead_one(me);
  try {
    me.link(dead);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const no_such_process& thrown) {
    EXPECT_EQ(thrown.who(), dead);
  }
}
TEST(link, to_the_dead_throws_in_a_process_that_does_not_trap) {
  EXPECT_EQ(run(links_to_the_dead), exit_reason::normal());
}

task<> links_to_nobody(self& me) {
  EXPECT_THROW(me.link(pid{}), no_such_process);
  me.trap_exits();
  me.link(pid{});
  const exited x = co_await me.receive<exited>();
  EXPECT_EQ(x.reason, exit_reason::noproc());
}
TEST(link, to_nobody_is_as_to_the_dead) { EXPECT_EQ(run(links_to_nobody), exit_reason::normal()); }

// ---- names

task<> takes_a_name_and_ends(self& me) {
  const auto taken = me.register_as("the name");
  EXPECT_TRUE(taken);
  co_return;
}
task<> reuses_the_name(self& me) {
  me.trap_exits();
  for (int i = 0; i < 500; ++i) {
    const pid child = me.spawn_link(takes_a_name_and_ends);
    co_await me.receive<exited>();
    EXPECT_FALSE(me.alive(child));
    EXPECT_EQ(me.where("the name"), pid{}) << i;
  }
}
TEST(link, whoever_receives_an_exit_can_use_the_name_of_the_dead_at_once) {
  EXPECT_EQ(run(reuses_the_name), exit_reason::normal());
}

// ---- many

task<> hub(self& me, int count, pid boss) {
  me.trap_exits();
  for (int i = 0; i < count; ++i) me.send(boss, me.spawn_link(obedient, boss));
  for (int i = 0; i < count; ++i) co_await me.receive<exited>();
}
task<> ends_all_of_a_hub(self& me, int count) {
  me.spawn_monitor(hub, count, me.id());
  for (int i = 0; i < count; ++i) {
    const pid child = co_await me.receive<pid>();
    me.exit(child, exit_reason::shutdown());
  }
  const down d = co_await me.receive<down>();
  EXPECT_EQ(d.reason, exit_reason::normal());
}
TEST(link, a_process_may_have_many) { EXPECT_EQ(run(ends_all_of_a_hub, 3000), exit_reason::normal()); }

// ---- made by what has ended

struct spawns_at_its_end {
  spawns_at_its_end(self& s, std::latch* l, exited* t, pid* p) : me{&s}, told{l}, into{t}, untrapped{p} {}
  spawns_at_its_end(const spawns_at_its_end&) = delete;
  spawns_at_its_end& operator=(const spawns_at_its_end&) = delete;
  ~spawns_at_its_end() {
    const auto traps = [](self& child, std::latch* l, exited* seen) -> task<> {
      child.trap_exits();
      *seen = co_await child.receive<exited>();
      l->count_down();
    };
    const auto idles = [](self& child) -> task<> { co_await child.receive<int>(); };
    *untrapped = me->spawn_link(idles);
    me->spawn_link(traps, told, into);
  }
  self* me;
  std::latch* told;
  exited* into;
  pid* untrapped;
};
task<> leaves_children(self& me, std::latch* told, exited* into, pid* untrapped) {
  const spawns_at_its_end last{me, told, into, untrapped};
  co_await me.exit(exit_reason::error("boom"));
}
TEST(spawn_link, by_a_destructor_at_the_end_of_the_parent_tells_the_child_that_the_parent_has_ended) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  std::latch told{1};
  exited seen;
  pid untrapped;
  const pid parent = rt.spawn(leaves_children, &told, &seen, &untrapped);
  told.wait();
  EXPECT_EQ(seen.from, parent);
  EXPECT_TRUE(seen.linked);
  EXPECT_TRUE(seen.reason.abnormal()) << seen.reason;
  rt.wait(untrapped);
  EXPECT_FALSE(rt.alive(untrapped));
}

}  // namespace
