// Runtimes side by side in one program: they know nothing of each other.
#include <gtest/gtest.h>

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

struct go {};
struct echo {
  using reply = int;
  int n = 0;
};
struct parrot {
  using protocol = coppice::protocol<echo>;
  int handle(echo m) {
    ++calls;
    return m.n;
  }
  int calls = 0;
};

task<> idles(self& me) { co_await me.receive<go>(); }

TEST(two_runtimes, have_different_nodes_and_no_common_names) {
  runtime one{quiet()};
  runtime other{quiet()};
  EXPECT_NE(one.node(), other.node());
  const pid p = one.spawn(idles);
  const pid q = other.spawn(idles);
  EXPECT_NE(p, q);
  EXPECT_TRUE(one.register_name("same", p));
  EXPECT_TRUE(other.register_name("same", q));
  EXPECT_EQ(one.where("same"), p);
  EXPECT_EQ(other.where("same"), q);
}

TEST(two_runtimes, a_node_number_can_be_given) {
  runtime rt{{.workers = 1, .level = log_level::off, .node = node_id{77}}};
  EXPECT_EQ(rt.node(), node_id{77});
  EXPECT_EQ(rt.spawn(idles).node(), node_id{77});
}

TEST(two_runtimes, a_pid_of_one_is_a_stranger_to_the_other) {
  runtime one{quiet()};
  runtime other{quiet()};
  const ref<parrot> p = one.spawn<parrot>();
  EXPECT_TRUE(one.alive(p.id()));
  EXPECT_FALSE(other.alive(p.id()));
  EXPECT_EQ(other.info(p.id()), std::nullopt);
  EXPECT_FALSE(other.abandon(p.id()));
  EXPECT_EQ(other.register_name("x", p.id()).error().code(), errc::noproc);
  EXPECT_EQ(other.wait(p.id()), exit_reason::noconnection());
  EXPECT_EQ(other.call(p.call<echo>(1)).error().code(), errc::noconnection);
  EXPECT_EQ(other.call(call<echo>(p.id(), 1)).error().code(), errc::noconnection);
  other.send(p.id(), go{});
  other.kill(p.id());
  EXPECT_EQ(other.counters().dead_letters, 1U);
  EXPECT_EQ(one.call(p.call<echo>(5)), 5) << "the kill has reached it";
}

task<> links_to_a_stranger(self& me, pid who, exit_reason* into) {
  me.trap_exits();
  me.link(who);
  const exited x = co_await me.receive<exited>();
  *into = x.reason;
}
task<> links_without_trapping(self& me, pid who, std::atomic<bool>* went_on) {
  me.link(who);
  co_await me.receive<go>();
  *went_on = true;
}
TEST(two_runtimes, a_link_to_a_process_of_the_other_breaks_at_once) {
  runtime one{quiet()};
  runtime other{quiet()};
  const pid p = one.spawn(idles);
  exit_reason seen;
  other.wait(other.spawn(links_to_a_stranger, p, &seen));
  EXPECT_EQ(seen, exit_reason::noconnection());
  std::atomic<bool> went_on{false};
  other.wait(other.spawn(links_without_trapping, p, &went_on));
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(one.alive(p));
}

task<> uses_the_other(self& me, runtime* other, ref<parrot> there, pid mine) {
  other->send(there.id(), echo{1});
  other->cast<echo>(there, 1);
  EXPECT_THROW((void)other->call(there.call<echo>(1)), std::logic_error);
  const pid spawned = other->spawn(idles);
  EXPECT_EQ(spawned.node(), other->node());
  other->send_after(1ms, spawned, go{});
  other->kill(mine);  // a stranger there
  co_await me.yield();
}
TEST(two_runtimes, processes_of_one_may_send_spawn_and_arm_timers_in_the_other) {
  runtime one{quiet()};
  runtime other{quiet()};
  const ref<parrot> p = other.spawn<parrot>();
  const pid bystander = one.spawn(idles);
  one.wait(one.spawn(uses_the_other, &other, p, bystander));
  EXPECT_EQ(other.call(p.call<echo>(3)), 3);
  while (other.counters().ended < 2) std::this_thread::yield();
  EXPECT_TRUE(one.alive(bystander));
}

struct chats {
  struct hear {
    int left;
  };
  chats(runtime* r, std::latch* l) : there{r}, over{l} {}
  void handle(hear m) {
    if (m.left == 0) return over->count_down();
    there->cast<hear>(friend_there, m.left - 1);
  }
  struct meet {
    ref<chats> who;
  };
  void handle(meet m) { friend_there = m.who; }
  struct rest {
    using reply = void;
  };
  static void handle(rest) {}
  runtime* there;
  std::latch* over;
  ref<chats> friend_there{};
};
TEST(two_runtimes, may_keep_up_a_conversation_through_each_other) {
  runtime one{quiet()};
  runtime other{quiet()};
  std::latch over{1};
  const ref<chats> p = one.spawn<chats>(&other, &over);
  const ref<chats> q = other.spawn<chats>(&one, &over);
  one.cast<chats::meet>(p, q);
  other.cast<chats::meet>(q, p);
  one.cast<chats::hear>(p, 10'001);
  over.wait();
  EXPECT_TRUE(one.call(p.call<chats::rest>()));  // neither is still inside the other when that one ends
  EXPECT_TRUE(other.call(q.call<chats::rest>()));
}

TEST(two_runtimes, the_end_of_one_does_not_touch_the_other) {
  runtime one{quiet()};
  const ref<parrot> p = one.spawn<parrot>();
  pid gone;
  {
    runtime other{quiet()};
    gone = other.spawn(idles);
    EXPECT_EQ(one.call(p.call<echo>(1)), 1);
  }
  EXPECT_EQ(one.call(p.call<echo>(2)), 2);
  one.send(gone, go{});
  EXPECT_EQ(one.wait(gone), exit_reason::noconnection());
}

TEST(two_runtimes, many_live_and_end_side_by_side) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 20; ++i) {
        runtime rt{quiet()};
        const ref<parrot> p = rt.spawn<parrot>();
        EXPECT_EQ(rt.call(p.call<echo>(i)), i);
      }
    });
}

// ---- what is held back for a moment belongs to one of them

struct hub {
  struct message {};
  hub(node_id n, std::atomic<bool>* g, std::atomic<int>* all, std::atomic<int>* wrong)
      : home{n}, gate{g}, count{all}, strangers{wrong} {}
  void handle(message, self& me) const {
    while (!*gate) std::this_thread::yield();
    if (me.id().node() != home) ++*strangers;
    ++*count;
  }
  node_id home;
  std::atomic<bool>* gate;
  std::atomic<int>* count;
  std::atomic<int>* strangers;
};
struct floods {
  struct job {
    runtime* mine;
    ref<hub> to;
    std::atomic<bool>* gate;
    runtime* other;
    pid there;
    bool kills;
  };
  static void handle(job m) {
    for (int i = 0; i < 100; ++i) m.to.cast<hub::message>();  // the last of them are held back
    *m.gate = true;
    while (m.mine->info(m.to.id())->state != process_state::waiting) std::this_thread::yield();
    if (m.kills)
      m.other->kill(m.there);
    else
      m.other->send(m.there, go{});
  }
};
TEST(two_runtimes, a_process_that_floods_one_of_its_own_and_then_signals_the_other_mixes_nothing_up) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> gate{false};
    std::atomic<int> count{0};
    std::atomic<int> strangers{0};
    runtime one{{.workers = 2, .stall_after = 0ms, .level = log_level::off}};
    runtime other{quiet()};
    const pid there = other.spawn(idles);
    const ref<hub> to = one.spawn<hub>(one.node(), &gate, &count, &strangers);
    const ref<floods> from = one.spawn<floods>();
    one.cast<hub::message>(to);  // keeps it busy until the gate is open
    one.cast<floods::job>(from, &one, to, &gate, &other, there, round % 2 == 0);
    while (count < 101 || other.alive(there)) std::this_thread::yield();
    while (other.counters().handled < 2) std::this_thread::yield();
    // The process of `one` may still be inside a function of `other`, which ends first.
    while (one.info(from.id())->state != process_state::waiting) std::this_thread::yield();
    EXPECT_EQ(strangers, 0) << "the other runtime has run a process that is not its own";
    EXPECT_EQ(other.counters().handled, 2U) << "a start and what was sent to it";
  }
}

}  // namespace
