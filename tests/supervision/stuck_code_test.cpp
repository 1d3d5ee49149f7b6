// User code that blocks inside a supervisor: destructors, copies of arguments; and children that it has abandoned.
#include <gtest/gtest.h>
#include <runtime/support.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

struct nothing {};

/// Its destructor does not come back before the test lets it.
struct holds_on {
  explicit holds_on(trap_door* d) : door{d} {}
  ~holds_on() { door->fall_in(); }
  holds_on(const holds_on&) = delete;
  holds_on& operator=(const holds_on&) = delete;
  static void handle(nothing) {}
  trap_door* door;
};

TEST(blocking_destructor, of_a_child_does_not_hold_up_those_above_its_supervisor) {
  trap_door door;
  runtime rt{{.workers = 3, .level = log_level::off}};
  const child_options soon{.shutdown = 50ms};
  const supervisor_spec branch{.children = {child<holds_on>(&door).with({.id = "c"}).with(soon)},
                               .abandon_after = 50ms};
  const auto top = start_supervisor(
      rt, {.children = {child<supervisor>(branch).with({.id = "branch"}).with(soon)}, .abandon_after = 50ms});
  ASSERT_TRUE(top);
  EXPECT_TRUE(rt.call(terminate_child(*top, "branch")));
  EXPECT_EQ(rt.call(which_child(*top, "branch"))->state, child_state::undefined);
  door.open();
}

/// An argument of a child. Copies fall through the door once it is there.
struct argument {
  explicit argument(std::atomic<trap_door*>* d) : door{d} {}
  argument(const argument& other) : door{other.door} {
    if (trap_door* open = *door) open->fall_in();
  }
  argument(argument&&) noexcept = default;
  argument& operator=(const argument&) = delete;
  argument& operator=(argument&&) = delete;
  ~argument() = default;
  std::atomic<trap_door*>* door;
};
struct counted {
  counted(const argument&, std::atomic<int>* n) : living{n} { ++*living; }
  ~counted() { --*living; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  static void handle(nothing) {}
  std::atomic<int>* living;
};

TEST(abandoned_supervisor, leaves_no_orphan_behind_when_its_code_comes_back) {
  trap_door door;
  std::atomic<trap_door*> way_in{nullptr};
  std::atomic<int> living{0};
  runtime rt{{.workers = 3, .level = log_level::off}};
  const supervisor_spec branch{.children = {child<counted>(argument{&way_in}, &living).with({.id = "c"})}};
  const auto top = start_supervisor(
      rt, {.children = {child<supervisor>(branch).with({.id = "branch", .shutdown = 50ms})}, .abandon_after = 50ms});
  ASSERT_TRUE(top);
  const pid sup = rt.call(which_child(*top, "branch"))->who;
  const pid first = rt.call(which_child(ref<supervisor>{sup}, "c"))->who;
  way_in = &door;
  rt.kill(first);
  door.wait_until_inside();  // its supervisor is stuck as it copies the argument
  EXPECT_TRUE(rt.call(terminate_child(*top, "branch")));
  EXPECT_FALSE(rt.alive(sup));
  door.open();
  const auto processes = [&] { return rt.counters().spawned - rt.counters().ended; };
  while (processes() > 1) std::this_thread::yield();  // only the top remains
  EXPECT_EQ(living, 0);
}

struct go {};
task<> ends_when_told(self& me) {
  me.trap_exits();  // or it would look ahead for exits, and find that it is not linked any more
  co_await me.receive<go>();
}
task<start_result> starts_and_unlinks(self& me, pid* made) {
  *made = me.spawn_link(ends_when_told);
  co_await me.receive<go>();
  me.unlink(*made);
  co_return start_result{*made};
}

TEST(unlinked_child, that_its_supervisor_has_unlinked_is_stopped_all_the_same) {
  family f;
  ASSERT_TRUE(f.start({}));
  pid made;
  const auto started = f.begin(start_child(f.tree, child(starts_and_unlinks, &made).with({.id = "x"})));
  f.settle();
  f.node().stick(made, 1s);
  f.rt().send(made, go{});  // it will end as soon as it comes back, before it learns that it is no longer linked
  f.settle();
  f.rt().send(f.tree.id(), go{});
  f.settle();
  ASSERT_TRUE(*started);
  const auto stopped = f.begin(terminate_child(f.tree, "x"));
  f.pass(2s);
  ASSERT_TRUE(*stopped);
  EXPECT_TRUE(**stopped);
}

}  // namespace
