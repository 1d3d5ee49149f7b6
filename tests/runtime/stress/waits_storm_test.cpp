// Every kind of wait at once, on real threads, while processes are killed and frozen at any point: threads outside of
// the runtime complete promises and write into the frames of processes, lanes and blocking work come back late, and one
// process must be notified of every end exactly once.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

using dice = std::minstd_rand;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int mortals_in_all = 4'000;
#else
constexpr int mortals_in_all = 12'000;
#endif
constexpr int mortals_at_once = 60;

struct note {};
struct ask {
  using reply = int;
};

/// An operation of another library: it writes into memory of the frame that waits, also after a kill of its process.
struct operation {
  promise<int> done;
  std::array<int, 16>* into = nullptr;  // null: only the promise has to be completed
};

class storm {
 public:
  explicit storm(unsigned seed) : dice_{seed} {
    for (auto& each : lanes) each = real_environment()->lanes().open("storm");
  }
  [[nodiscard]] unsigned random() {
    const std::scoped_lock lock{mutex_};
    return static_cast<unsigned>(dice_());
  }
  void put(operation o) {
    const std::scoped_lock lock{mutex_};
    open_.push_back(std::move(o));
  }
  [[nodiscard]] std::vector<operation> take_all() {
    const std::scoped_lock lock{mutex_};
    return std::exchange(open_, {});
  }
  void enter(pid who) {
    const std::scoped_lock lock{mutex_};
    people_[static_cast<unsigned>(dice_()) % people_.size()] = who;
  }
  [[nodiscard]] pid meet() {
    const std::scoped_lock lock{mutex_};
    return people_[static_cast<unsigned>(dice_()) % people_.size()];
  }

  std::array<std::unique_ptr<lane>, 3> lanes;
  std::atomic<int> frames{0};  // live
  std::atomic<bool> over{false};
  std::array<std::atomic<int>, 12> waits{};  // that came to their end, by kind

 private:
  std::mutex mutex_;
  dice dice_;
  std::vector<operation> open_;
  std::array<pid, mortals_at_once> people_{};
};

class live {
 public:
  explicit live(storm& s) : storm_{s} { ++storm_.frames; }
  ~live() { --storm_.frames; }
  live(const live&) = delete;
  live& operator=(const live&) = delete;

 private:
  storm& storm_;
};

struct short_work {
  std::shared_ptr<int> held = std::make_shared<int>(1);
  int operator()() const { return *held; }
};

task<> performs(self& me, storm* s) {
  const live here{*s};
  std::array<int, 16> buffer{};
  const auto start = [&](promise<int> done) { s->put({std::move(done), &buffer}); };
  const result<int> got = co_await me.perform<int>(start);
  if (got && buffer[15] != *got) throw std::logic_error{"the buffer was not written"};
}

task<> awaits_promise(self& me, storm* s) {
  const live here{*s};
  promised<int> made = make_promise<int>(me);
  s->put({std::move(made.promise)});
  const result<int> got = co_await made.future.within(10ms);
  (void)got;
}

task<> freezes(self&, storm* s) {
  const live here{*s};
  const pid other = s->meet();
  const result<frozen> held = co_await freeze(other, 200us);
  if (held) thaw(other);
}

task<> child(self& me, storm* s) {
  const live here{*s};
  co_await me.sleep(100us);
}

task<> waits_for_child(self& me, storm* s) {
  const live here{*s};
  const monitored made = me.spawn_monitor(child, s);
  (void)made;
  const auto end = co_await me.receive<down>(20ms);
  (void)end;
}

task<> waits(self& me, storm* s, unsigned kind) {
  const live here{*s};
  const short_work work;
  switch (kind) {
    case 0: co_await me.receive<note>(300us); break;
    case 1: {
      const result<int> answer = co_await call<ask>(s->meet()).within(200us);
      (void)answer;
      break;
    }
    case 2: co_await me.sleep(50us); break;
    case 3: co_await me.blocking(work); break;
    case 4: {
      const result<int> done = co_await me.blocking(work).within(20us);
      (void)done;
      break;
    }
    case 5: {
      const result<int> done = co_await in_lane(*s->lanes.at(s->random() % 3), work);
      (void)done;
      break;
    }
    case 6: {
      const result<int> done = co_await in_lane(*s->lanes.at(s->random() % 3), work).within(30us);
      (void)done;
      break;
    }
    case 7: co_await awaits_promise(me, s); break;
    case 8: co_await performs(me, s); break;
    case 9: co_await freezes(me, s); break;
    case 10: co_await waits_for_child(me, s); break;
    default: co_await me.yield();
  }
  ++s->waits.at(kind);
}

task<> mortal(self& me, storm* s) {
  const live here{*s};
  s->enter(me.id());
  for (int i = 0; i < 8; ++i) {
    const unsigned kind = s->random() % 12;
    co_await waits(me, s, kind);
  }
}

/// Keeps a number of mortals alive, and is notified of each end once. Nobody kills it. A mortal that was killed between
/// a freeze and its thaw leaves another one frozen, which nothing but a kill can end: so when nothing happens, it
/// kills.
task<> keeper(self& me, storm* s, int* ended) {
  std::map<monitor_ref, pid> alive;
  int quiet = 0;
  for (int spawned = 0; spawned < mortals_in_all || !alive.empty();) {
    for (; spawned < mortals_in_all && alive.size() < mortals_at_once; ++spawned) {
      const monitored made = me.spawn_monitor(mortal, s);
      alive.emplace(made.ref, made.who);
    }
    const auto news = co_await me.receive<down>(50ms);
    if (const auto* gone = std::get_if<down>(&news)) {
      if (alive.erase(gone->ref) == 0) throw std::logic_error{"told twice of an end"};
      if (gone->reason.what() == exit_reason::kind::error) throw std::logic_error{gone->reason.to_string()};
      ++*ended;
      quiet = 0;
    } else {
      if (++quiet == 1200) throw std::logic_error{"not told of an end"};
      for (const auto& [ref, who] : alive) me.kill(who);
    }
  }
}

/// Completes operations, some of them with an error, from a thread of its own.
void completes(storm& s, unsigned seed) {
  dice d{seed};
  for (bool last = false; !last;) {
    last = s.over;
    for (operation& o : s.take_all()) {
      if (d() % 8 == 0) std::this_thread::yield();
      const int value = static_cast<int>(d() % 100);
      if (o.into != nullptr) o.into->fill(value);
      if (d() % 8 != 0) o.done.complete(value);  // otherwise it is dropped, which is an error for the future
    }
    std::this_thread::yield();
  }
}

void disturbs(const runtime_handle& to, storm& s, unsigned seed) {
  dice d{seed};
  while (!s.over) {
    const pid other = s.meet();
    switch (d() % 4) {
      case 0: (void)to.kill(other); break;
      case 1: (void)to.send(other, ask{}); break;  // put aside for ever
      default: (void)to.send(other, note{});
    }
    std::this_thread::yield();
  }
}

void rage(unsigned workers, unsigned seed) {
  storm s{seed};
  int ended = 0;
  {
    std::vector<std::jthread> outside;
    runtime rt{{.workers = workers, .level = log_level::off}};
    for (unsigned i = 0; i < 2; ++i) outside.emplace_back([&s, i, seed] { completes(s, seed + i); });
    for (unsigned i = 0; i < 2; ++i)
      outside.emplace_back([to = rt.handle(), &s, i, seed] { disturbs(to, s, seed + 10 + i); });
    EXPECT_EQ(rt.run(keeper, &s, &ended), exit_reason::normal());
    s.over = true;
    outside.clear();
  }
  for (operation& o : s.take_all()) o.done.complete(0);
  EXPECT_EQ(ended, mortals_in_all);
  EXPECT_EQ(s.frames, 0) << "a frame was not destroyed";
  for (std::size_t i = 0; i < s.waits.size(); ++i) EXPECT_GT(s.waits[i], 0) << "no wait of kind " << i << " has ended";
}

TEST(waits_storm, leaves_nothing_behind) { rage(2, 1); }
TEST(waits_storm, leaves_nothing_behind_on_sixteen_threads) { rage(16, 2); }

}  // namespace
