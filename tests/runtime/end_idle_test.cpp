// How a parent ends an idle child without sending it a signal. Only supervisors use this.
#include <gtest/gtest.h>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct never {};

task<> idle(self& me) { (void)co_await me.receive<never>(); }
task<> idle_and_unlinked(self& me) {
  me.unlink(me.parent());
  (void)co_await me.receive<never>();
}
task<> idle_and_trapping(self& me) {
  me.trap_exits();
  (void)co_await me.receive<never>();
}
task<> parent_of_idle(self& me, pid* child) {
  *child = me.spawn_link(idle);
  (void)co_await me.receive<never>();
}

/// The simulation refuses every second attempt.
bool end_idle(self& me, pid who, const exit_reason& why) {
  for (int i = 0; i < 64; ++i)
    if (me.host().end_idle(me.process(), who, why)) return true;
  return false;
}

/// Runs the body in a world where nothing else happens.
template <class F>
void in_a_world(F body) {
  sim::world w{1};
  bool ended = false;
  w.add_node().rt().spawn(
      [](self& me, F what, bool* at_end) -> task<> {
        co_await what(me);
        *at_end = true;
      },
      body, &ended);
  w.run_for(1h);
  EXPECT_TRUE(ended);
}

TEST(end_idle, ends_a_linked_child_and_its_parent_is_not_notified) {
  in_a_world([](self& me) -> task<> {
    me.trap_exits();
    const pid child = me.spawn_link(idle);
    co_await me.sleep(1ms);
    EXPECT_TRUE(end_idle(me, child, exit_reason::shutdown()));
    EXPECT_FALSE(me.host().alive(child));
    const auto told = co_await me.receive<exited>(1s);
    EXPECT_TRUE(std::holds_alternative<timed_out>(told));
    EXPECT_FALSE(end_idle(me, child, exit_reason::shutdown())) << "it has ended";
  });
}

TEST(end_idle, does_nothing_to_a_child_that_is_not_linked) {
  in_a_world([](self& me) -> task<> {
    const pid never_linked = me.spawn(idle);
    const pid unlinked = me.spawn_link(idle_and_unlinked);
    co_await me.sleep(1ms);
    EXPECT_FALSE(end_idle(me, never_linked, exit_reason::kill()));
    EXPECT_FALSE(end_idle(me, unlinked, exit_reason::kill()));
    EXPECT_TRUE(me.host().alive(never_linked));
    EXPECT_TRUE(me.host().alive(unlinked));
  });
}

TEST(end_idle, does_nothing_to_a_linked_process_that_another_one_has_spawned) {
  in_a_world([](self& me) -> task<> {
    pid grandchild{};
    me.spawn(parent_of_idle, &grandchild);
    co_await me.sleep(1ms);
    me.link(grandchild);
    co_await me.sleep(1ms);
    EXPECT_FALSE(end_idle(me, grandchild, exit_reason::kill()));
    EXPECT_TRUE(me.host().alive(grandchild));
    me.unlink(grandchild);
  });
}

TEST(end_idle, does_nothing_to_a_child_that_the_signal_would_not_end) {
  in_a_world([](self& me) -> task<> {
    me.trap_exits();
    const pid child = me.spawn_link(idle_and_trapping);
    co_await me.sleep(1ms);
    EXPECT_FALSE(end_idle(me, child, exit_reason::shutdown()));
    EXPECT_TRUE(me.host().alive(child));
    EXPECT_TRUE(end_idle(me, child, exit_reason::kill()));
    EXPECT_FALSE(me.host().alive(child));
  });
}

TEST(end_idle, does_nothing_to_a_child_with_a_message_in_its_mailbox) {
  in_a_world([](self& me) -> task<> {
    const pid child = me.spawn_link(idle);
    co_await me.sleep(1ms);
    me.send(child, 7);
    EXPECT_FALSE(end_idle(me, child, exit_reason::shutdown()));
    co_await me.sleep(1ms);
    EXPECT_TRUE(end_idle(me, child, exit_reason::shutdown())) << "the message was put aside";
  });
}

}  // namespace
