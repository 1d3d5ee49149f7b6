// A day of coming and going leaves no trace in memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <map>
#include <optional>

#include <coppice/sim/world.hpp>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// NOLINTNEXTLINE(bugprone-reserved-identifier): its name; g++ comes without the header that declares it
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace {

using namespace coppice;
using namespace std::chrono_literals;

/// Bytes in use of the heap. The pools have memory of their own.
std::size_t allocated() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return __sanitizer_get_current_allocated_bytes();
#else
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

struct ask {
  using reply = int;
  unsigned how;
};

/// Lives as long as its node. Answers at once, later, or never.
class keeper {
 public:
  using protocol = coppice::protocol<ask>;
  explicit keeper(self& me) { me.trap_exits(); }
  void handle(ask m, reply_to<int> to) {
    if (m.how % 3 == 0)
      to.reply(1);
    else
      held_.insert_or_assign(m.how, std::move(to));  // the one before gets an error
  }
  void handle(exited) {}
  void handle(down) {}

 private:
  std::map<unsigned, reply_to<int>> held_;
};

struct plan {
  pid near;
  pid far;
};

task<> worker(self& me, plan where, unsigned how) {
  if (how % 2 == 0) me.trap_exits();
  const timer_ref long_one = me.start_timer(1h);
  me.send_after(10min, where.near, ask{0});  // an alarm that may find nobody
  const monitor_ref near = me.monitor(where.near);
  me.monitor(where.far);
  me.link(where.far);
  me.link(where.near);
  me.unlink(where.near);
  if (how % 3 == 0) me.unlink(where.far);
  if (how % 5 == 0) me.link(where.far);
  if (how % 4 == 0) me.cancel(long_one);
  if (how % 4 == 1) me.demonitor(near, self::flush::yes);
  (void)me.register_as("worker");
  me.label("worker " + std::to_string(how));
  const result<int> first = co_await call<ask>(where.near, how).within(10ms);
  (void)first;
  const result<int> second = co_await call<ask>(where.far, how + 1).within(how % 7 == 0 ? forever : 200ms);
  (void)second;
  const auto given = std::chrono::nanoseconds{48h};
  const auto got = co_await me.receive<exited, down, timer_fired>(how % 6 == 0 ? given : 20ms);
  (void)got;
  if (how % 2 != 0) throw std::runtime_error{"worker " + std::to_string(how) + " has had enough"};
}

/// One worker after the other; some are killed while they wait.
task<> shift(self& me, plan where) {
  me.trap_exits();
  for (unsigned n = 0;; ++n) {
    const pid child = me.spawn_link(worker, where, n % 420);
    co_await me.sleep(n % 3 == 0 ? 50ms : 1s);
    me.kill(child);
    const exited over = co_await me.receive<exited>();
    (void)over;
    const auto rest = co_await me.receive<exited, down>(0ms);
    (void)rest;
    co_await me.sleep(2s);
  }
}

/// What is there to be compared after an hour and after a day.
struct state {
  std::size_t bytes = 0;
  std::size_t pool_bytes = 0;
  std::size_t processes = 0;
  std::size_t process_memory = 0;
  std::uint64_t timers = 0;
  std::uint32_t monitored = 0;
};

class churn {
 public:
  churn() : a_{world_.add_node("a")}, b_{world_.add_node("b")} { open(); }

  void calm_hours(int n) { world_.run_for(std::chrono::hours{n}); }
  void bad_hours(int n) {
    for (int i = 0; i < 2 * n; ++i) {
      world_.run_for(9min);
      world_.partition(a_, b_);
      world_.run_for(1min);
      world_.heal();
      world_.run_for(9min);
      b_.restart();  // as a new node; the other one is notified in time
      world_.run_for(1min);
      open();
      world_.run_for(10min);
    }
  }
  [[nodiscard]] state look() {
    state s{.bytes = allocated(), .pool_bytes = detail::usage_of_pools().held};
    for (sim::node* n : {&a_, &b_}) {
      for (const process_info& p : n->rt().snapshot()) {
        ++s.processes;
        s.process_memory += p.memory;
        s.monitored += p.monitored;
      }
      s.timers += n->rt().counters().timers;
    }
    return s;
  }
  [[nodiscard]] std::uint64_t spawned() { return a_.rt().counters().spawned; }

 private:
  /// A keeper and a shift for each node; those of node a know the newest ones of b.
  void open() {
    for (const auto& old : a_.rt().snapshot())
      if (old.id != near_) a_.rt().kill(old.id);
    if (!near_) near_ = a_.rt().spawn<keeper>().id();
    const pid far = b_.rt().spawn<keeper>().id();
    a_.rt().spawn(shift, plan{near_, far});
    b_.rt().spawn(shift, plan{far, near_});
  }

  sim::world world_{1};
  sim::node& a_;
  sim::node& b_;
  pid near_;
};

void expect_no_growth(const state& before, const state& after) {
  EXPECT_LT(after.bytes, before.bytes + 64UL * 1024) << "grew by " << after.bytes - before.bytes << " bytes";
  EXPECT_LE(after.pool_bytes, before.pool_bytes + 256UL * 1024) << "four spans; a leak in the churn would be megabytes";
  EXPECT_LE(after.processes, before.processes + 2);
  EXPECT_LE(after.process_memory, before.process_memory + 4096);
  EXPECT_LE(after.timers, before.timers + 20);
  EXPECT_LE(after.monitored, before.monitored + 4) << "somebody is still monitored by who is long gone";
}

TEST(churn, a_day_of_it_leaves_memory_as_an_hour_did) {
  churn world;
  world.bad_hours(1);
  const state hour = world.look();
  const std::uint64_t spawned = world.spawned();
  world.calm_hours(11);
  expect_no_growth(hour, world.look());
  world.bad_hours(12);
  expect_no_growth(hour, world.look());
  EXPECT_GT(world.spawned(), 15 * spawned) << "there was no churn";
}

}  // namespace
