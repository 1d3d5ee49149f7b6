// Everything at once, on real threads: mortals that spawn, link, monitor, call, throw and kill each other, plain
// threads that join in, and witnesses that nobody can kill, who must be notified of every end exactly once.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

using dice = std::minstd_rand;
using token = std::shared_ptr<int>;

#if defined(__SANITIZE_THREAD__)
constexpr int mortals_in_all = 30'000;
#else
constexpr int mortals_in_all = 60'000;
#endif

struct note {
  token held;
};
struct long_note {
  token held;
  std::array<std::uint64_t, 40> padding{};
};
struct ask {
  using reply = std::uint64_t;
  token held;
  std::uint64_t n = 0;
};

/// Whom one may meet. In many parts, so that the locks order as little as possible of what happens around them.
class square {
 public:
  void enter(pid who, unsigned at) {
    part& p = parts_[at % parts_.size()];
    const std::scoped_lock lock{p.mutex};
    p.people[at / parts_.size() % p.people.size()] = who;
  }
  [[nodiscard]] pid meet(unsigned at) {
    part& p = parts_[at % parts_.size()];
    const std::scoped_lock lock{p.mutex};
    return p.people[at / parts_.size() % p.people.size()];
  }

 private:
  struct part {
    std::mutex mutex;
    std::array<pid, 8> people{};
  };
  std::array<part, 16> parts_{};
};

struct storm {
  square people;
  std::atomic<int> left{mortals_in_all};
  token counted = std::make_shared<int>(0);
};

/// Answers what it is asked, until it is told to end.
struct server {
  token held;
  std::uint64_t handle(const ask& m, self& me) const {
    if (m.n % 17 == 0) me.stop(exit_reason::shutdown());
    if (m.n % 19 == 0) throw std::runtime_error{"asked too much"};
    return m.n;
  }
};

task<> mortal(self& me, storm* s, unsigned seed);

void spawn_another(self& me, storm& s, dice& d) {
  if (s.left.fetch_sub(1) <= 0) return;
  const auto seed = static_cast<unsigned>(d());
  switch (d() % 4) {
    case 0: me.spawn_link(mortal, &s, seed); break;
    case 1: (void)me.spawn_monitor(mortal, &s, seed); break;
    case 2:
      (void)me.spawn({.name = "name" + std::to_string(seed % 50), .label = "of the storm"}, mortal, &s, seed);
      break;
    default: me.spawn(mortal, &s, seed); break;
  }
}

void act_on(self& me, storm& s, dice& d, pid other) {
  switch (d() % 12) {
    case 0: me.send(other, note{s.counted}); break;
    case 1: me.send(other, long_note{s.counted}); break;
    case 2:
      if (other && me.alive(other)) me.exit(other, exit_reason::shutdown());
      break;
    case 3: me.kill(other); break;
    case 4: me.unlink(other); break;
    case 5: (void)me.monitor(other); break;
    case 6: (void)me.demonitor(me.monitor(other), self::flush::yes); break;
    case 7: me.send_after(std::chrono::microseconds{d() % 3000}, other, note{s.counted}); break;
    case 8: (void)me.cancel(me.start_timer(std::chrono::microseconds{d() % 2000})); break;
    case 9: me.start_timer(std::chrono::microseconds{d() % 2000}); break;
    case 10: (void)me.register_as("name" + std::to_string(d() % 50)); break;
    default: me.send("name" + std::to_string(d() % 50), note{s.counted}); break;
  }
}

task<> mortal(self& me, storm* s, unsigned seed) {
  dice d{seed};
  const token held = s->counted;
  if (d() % 3 == 0) me.trap_exits();
  s->people.enter(me.id(), static_cast<unsigned>(d()));
  const int actions = static_cast<int>(d() % 40);
  for (int i = 0; i < actions; ++i) {
    const pid other = s->people.meet(static_cast<unsigned>(d()));
    act_on(me, *s, d, other);
    if (d() % 8 == 0) spawn_another(me, *s, d);
    if (d() % 6 == 0) {
      try {
        me.link(other);
      } catch (const no_such_process&) {
        i += 3;  // a disappointment
      }
    }
    const std::chrono::microseconds patience{d() % 500};
    if (d() % 5 == 0) (void)co_await me.receive<note, exited>(patience);
    if (d() % 9 == 0) co_await me.yield();
    if (d() % 11 == 0) (void)co_await call<ask>(other, s->counted, 1U).within(1ms);
    if (d() % 150 == 0) throw std::runtime_error{"out of luck"};
  }
  spawn_another(me, *s, d);
  spawn_another(me, *s, d);
}

struct testimony {
  std::atomic<int> news{0};
  std::atomic<unsigned> satisfied{0};
};

/// Monitors and links with whom it meets, and counts the ends it must be notified of.
task<> witness(self& me, storm* s, unsigned seed, testimony* heard) {
  me.trap_exits();
  dice d{seed};
  std::set<monitor_ref> monitors;
  std::set<pid> links;
  for (;;) {
    const bool over = s->left.load() <= 0;
    if (over && monitors.empty() && links.empty()) break;
    for (int i = 0; i < 4 && !over; ++i) {
      const pid other = s->people.meet(static_cast<unsigned>(d()));
      if (!other) continue;
      if (d() % 2 == 0) monitors.insert(me.monitor(other));
      if (d() % 2 == 0 && links.insert(other).second) me.link(other);
      if (d() % 4 == 0 && links.erase(other) == 1) me.unlink(other);
      if (d() % 4 == 0 && !monitors.empty() && me.demonitor(*monitors.begin())) monitors.erase(monitors.begin());
    }
    auto news = co_await me.receive<down, exited>(over ? 60s : 200us);
    if (const auto* x = std::get_if<exited>(&news)) {
      if (!x->linked) continue;
      // After an unlink one that was on its way may still come; no other is told of twice.
      if (links.erase(x->from) == 1) ++heard->news;
    } else if (const auto* gone = std::get_if<down>(&news)) {
      if (monitors.erase(gone->ref) == 0) throw std::logic_error{"told of an end that it does not watch (any more)"};
      ++heard->news;
    } else if (over) {
      throw std::logic_error{"not told of " + std::to_string(monitors.size()) + " ends and " +
                             std::to_string(links.size()) + " links"};
    }
  }
  ++heard->satisfied;
}

/// A plain thread that joins in.
void outsider(runtime& rt, storm& s, unsigned seed) {
  dice d{seed};
  while (s.left.load() > 0) {
    const ref<server> one = rt.spawn<server>(s.counted);
    for (unsigned i = 0; i < 5; ++i) (void)rt.call(one.call<ask>(s.counted, d() % 100).within(1s));
    const pid other = s.people.meet(static_cast<unsigned>(d()));
    rt.send(other, note{s.counted});
    rt.kill(other);
    (void)rt.info(other);
    if (d() % 16 == 0) (void)rt.snapshot();
    rt.kill(one.id());
    if (s.left.fetch_sub(1) > 0) rt.spawn(mortal, &s, static_cast<unsigned>(d()));
  }
}

void rage(unsigned workers, unsigned seed) {
  storm s;
  testimony heard;
  {
    runtime rt{{.workers = workers, .level = log_level::off}};
    std::vector<pid> witnesses;
    for (unsigned i = 0; i < 8; ++i) witnesses.push_back(rt.spawn(witness, &s, seed + i, &heard));
    for (unsigned i = 0; i < 50; ++i) rt.spawn(mortal, &s, seed + 100 + i);
    {
      std::vector<std::jthread> outside;
      for (unsigned i = 0; i < 3; ++i) outside.emplace_back([&rt, &s, i, seed] { outsider(rt, s, seed + 1000 + i); });
    }
    for (const pid w : witnesses) rt.wait(w);
    EXPECT_EQ(heard.satisfied, witnesses.size());
    // Mortals act a limited number of times, so all of them end.
    for (runtime_counters now = rt.counters(); now.ended < now.spawned || now.timers > 0; now = rt.counters())
      std::this_thread::yield();
  }
  EXPECT_GT(heard.news, 100);
  EXPECT_EQ(s.counted.use_count(), 1) << "somebody still holds a message";
}

TEST(storm, every_end_is_told_exactly_once_and_nothing_is_left) { rage(2, 1); }
TEST(storm, with_more_workers_than_cores) { rage(8, 2); }
TEST(storm, with_one_worker) { rage(1, 3); }

}  // namespace
