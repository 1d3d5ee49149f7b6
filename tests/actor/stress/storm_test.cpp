// Stress test on real threads. Actors fail, restart, spawn, stop, poison and call each other and wait for full
// mailboxes; plain threads send and kill. Witnesses are actors that nobody stops: each must be notified exactly once
// of every termination that it watches, and each of its calls must complete.
//
// The amount of work is fixed. COPPICE_STORM_SECONDS=60 makes it run for 60 seconds instead, for use under tsan.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <coppice/actor/actor.hpp>
#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace std::chrono_literals;

using dice = std::minstd_rand;
using token = std::shared_ptr<int>;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t work = 30'000;
#else
constexpr std::int64_t work = 100'000;
#endif
constexpr std::size_t outsiders = 3;
constexpr int most_people = 400;

/// The registry of live actors; `meet` picks one of them.
class square {
 public:
  void enter(const void* key, pid who) {
    const std::scoped_lock lock{mutex_};
    const auto [at, is_new] = places_.try_emplace(key, people_.size());
    if (is_new) people_.push_back({key, who});
  }
  void leave(const void* key) {
    const std::scoped_lock lock{mutex_};
    const auto found = places_.find(key);
    if (found == places_.end()) return;
    people_[found->second] = people_.back();
    places_[people_.back().key] = found->second;
    people_.pop_back();
    places_.erase(key);
  }
  [[nodiscard]] pid meet(unsigned at) {
    const std::scoped_lock lock{mutex_};
    return people_.empty() ? pid{} : people_[at % people_.size()].who;
  }

 private:
  struct person {
    const void* key;
    pid who;
  };
  std::mutex mutex_;
  std::vector<person> people_;
  std::unordered_map<const void*, std::size_t> places_;
};

struct storm {
  square people;
  std::atomic<std::int64_t> left{work};
  std::atomic<bool> over{false};
  std::atomic<int> population{0};
  std::atomic<int> wrong{0};
  std::atomic<std::uint64_t> restarts{0};
  std::atomic<std::uint64_t> asked{0};
  std::atomic<std::uint64_t> answered{0};
  std::atomic<std::uint64_t> news{0};
  std::atomic<unsigned> satisfied{0};
  token counted = std::make_shared<int>(0);
};

struct step {
  unsigned further = 0;
  token held;
};
struct numbered {
  std::size_t thread = 0;
  std::uint64_t number = 0;
};
struct ask {
  using reply = std::uint64_t;
  std::uint64_t number = 0;
  token held;
};
struct last_words {};

/// State shared by all instances of an actor. Only one instance exists at a time, so the members that are not atomic
/// need no lock.
struct record {
  unsigned seed = 0;
  int depth = 0;
  std::atomic<int> instances{0};
  std::uint64_t made = 0;
  std::array<std::uint64_t, outsiders> last{};
};

class mortal;
props<mortal> some_mortal(storm* s, unsigned seed, int depth, bool top);

class mortal {
 public:
  using protocol = coppice::protocol<step, numbered, ask>;
  mortal(context& me, storm* s, std::shared_ptr<record> r) : s_{s}, record_{std::move(r)}, held_{s->counted} {
    if (record_->instances.fetch_add(1) != 0) ++s->wrong;
    dice_.seed(record_->seed + static_cast<unsigned>(++record_->made));
    if (record_->made > 1) ++s->restarts;
    if (luck(40)) {
      --record_->instances;
      throw std::runtime_error{"not born"};
    }
    s->people.enter(record_.get(), me.id());
  }
  ~mortal() { --record_->instances; }
  mortal(const mortal&) = delete;
  mortal& operator=(const mortal&) = delete;

  void handle(started, context& me) {
    for (unsigned n = roll() % 3; n > 0; --n) spawn(me);
    maybe_fail(60);
  }
  void handle(const restarting&) { maybe_fail(10); }
  void handle(const stopping&) { maybe_fail(10); }
  void handle(const stopped&) { maybe_fail(10); }
  void handle(const terminated&) { maybe_fail(20); }
  void handle(numbered m) {
    std::uint64_t& last = record_->last.at(m.thread);
    if (m.number <= last) ++s_->wrong;
    last = m.number;
  }
  void handle(const ask& m, context& me) {
    if (luck(30)) return;
    if (luck(15)) return me.forward(s_->people.meet(roll()), m);
    maybe_fail(25);
    me.reply(m.number);
  }
  void handle(step m, context& me);

 private:
  [[nodiscard]] unsigned roll() { return static_cast<unsigned>(dice_()); }
  [[nodiscard]] bool luck(unsigned one_in) { return !s_->over.load(std::memory_order_relaxed) && roll() % one_in == 0; }
  void maybe_fail(unsigned one_in) {
    if (luck(one_in)) throw std::runtime_error{"out of luck"};
  }
  void spawn(context& me) {
    if (record_->depth >= 4 || s_->over || s_->population.load() > most_people) return;
    ++s_->population;
    const auto child = me.spawn(some_mortal(s_, roll(), record_->depth + 1, false));
    if (luck(3)) me.watch(child);
  }
  void ask_one(context& me, pid other) {
    const auto f = me.call(actor_ref<mortal>{other}
                               .call<ask>(roll(), s_->counted)
                               .within(luck(3) ? forever : std::chrono::microseconds{roll() % 3000}));
    me.reenter_after(f, [this, held = s_->counted](const result<std::uint64_t>&, context&) { maybe_fail(20); });
  }
  void act(context& me, pid other);

  storm* s_;
  std::shared_ptr<record> record_;
  token held_;
  dice dice_;
  bool stashes_ = false;
};

void mortal::act(context& me, pid other) {
  switch (roll() % 18) {
    case 0: me.watch(other); break;
    case 1: me.unwatch(other); break;
    case 2:
      if (luck(3)) me.stop(other);
      break;
    case 3:
      if (luck(3)) me.poison(other);
      break;
    case 4: (void)me.after(std::chrono::microseconds{roll() % 2000}, step{0, s_->counted}); break;
    case 5: me.unstash_all(); break;
    case 6: stashes_ = !stashes_; break;
    case 7: me.become(behaviour{[this](step m, context& them) { them.unbecome(), handle(std::move(m), them); }}); break;
    case 8: me.fail(exit_reason::error("softly")); break;
    case 9:
    case 10: ask_one(me, other); break;
    case 11:
    case 12: spawn(me); break;
    case 13: (void)me.stop_future(other, 1ms); break;
    case 14:
      if (luck(10)) throw exit_with{exit_reason::shutdown()};
      break;
    case 15: me.set_receive_timeout(std::chrono::microseconds{100 + roll() % 1000}); break;
    default: maybe_fail(3);
  }
}

void mortal::handle(step m, context& me) {
  s_->left.fetch_sub(1, std::memory_order_relaxed);
  if (s_->over.load(std::memory_order_relaxed)) return;
  if (stashes_ && me.stashed() < 5) return me.stash(std::move(m));
  const pid other = s_->people.meet(roll());
  if (m.further > 0) {
    for (unsigned n = roll() % 3; n > 0; --n) me.send(s_->people.meet(roll()), step{m.further - 1, s_->counted});
    me.send(me.id(), step{m.further - 1, s_->counted});
  }
  act(me, other);
}

directive some_directive(const child_failure& f, unsigned seed) {
  dice d{seed + static_cast<unsigned>(f.restarts) + f.child.index()};
  if (d() % 50 == 0) throw std::runtime_error{"can't decide"};
  constexpr std::array all{directive::resume,  directive::restart, directive::restart,
                           directive::restart, directive::stop,    directive::escalate};
  return all.at(d() % all.size());
}

actor_strategy some_strategy(unsigned seed) {
  const decider by = [seed](const child_failure& f) { return some_directive(f, seed); };
  const backoff wait{.first = 10us, .cap = 1ms, .jitter = 0.5};
  switch (seed % 8) {
    case 0: return one_for_one();
    case 1: return all_for_one({.limit = unlimited, .decide = by});
    case 2: return all_for_one({.limit = unlimited, .decide = by, .wait = wait});
    case 3: return exponential_backoff(wait);
    case 4: return always_restart();
    case 5: return always_stop();
    case 6:
      return custom_strategy([by, seed](const child_failure& f) {
        return judgement{.what = by(f), .all = seed % 3 == 0, .after = std::chrono::microseconds{seed % 500}};
      });
    default: return one_for_one({.limit = {.restarts = 2, .within = 10ms}, .decide = by, .wait = wait});
  }
}

props<mortal> some_mortal(storm* s, unsigned seed, int depth, bool top) {
  dice d{seed};
  auto r = std::make_shared<record>();
  r->seed = seed;
  r->depth = depth;
  // The deleter runs when the actor has ended and its props are freed.
  const std::shared_ptr<record> counted{r.get(), [r, s](record*) {
                                          if (r->instances != 0) ++s->wrong;
                                          s->people.leave(r.get());
                                          --s->population;
                                        }};
  actor_options how{.strategy = some_strategy(static_cast<unsigned>(d())), .keep_children = d() % 3 == 0};
  if (top) how.guardian = always_restart();
  if (d() % 4 == 0)
    how.mailbox = mailbox{.capacity = 1 + d() % 8, .when_full = when_full::sender_waits, .waits_at_most = 2ms};
  if (d() % 8 == 0) how.mailbox = mailbox{.by_priority = true};
  return props<mortal>(s, counted).with(how);
}

/// Never enters `storm::people`, so nobody stops or kills it.
class witness {
 public:
  using protocol = coppice::protocol<step, last_words>;
  witness(storm* s, unsigned seed) : s_{s}, dice_{seed} {}
  void handle(step, context& me) {
    if (s_->over) return;
    me.after(100us, step{0, s_->counted});
    const pid other = s_->people.meet(static_cast<unsigned>(dice_()));
    if (!other) return;
    me.watch(other);
    watching_.insert(other);
    if (dice_() % 8 == 0) {
      me.unwatch(*watching_.begin());
      watching_.erase(watching_.begin());
    }
    ++s_->asked;
    ++open_;
    const auto f =
        me.call(actor_ref<mortal>{other}.call<ask>(++number_, s_->counted).within(dice_() % 2 == 0 ? forever : 1ms));
    me.reenter_after(f, [this, n = number_](const result<std::uint64_t>& got, context& them) {
      if (got && *got != n) ++s_->wrong;
      ++s_->answered;
      --open_;
      look(them);
    });
  }
  void handle(const terminated& e, context& me) {
    if (watching_.erase(e.who) != 1) ++s_->wrong;
    ++s_->news;
    look(me);
  }
  void handle(last_words, context& me) {
    leaving_ = true;
    look(me);
  }

 private:
  /// Stops the witness once all it watches has terminated and all its calls have completed.
  void look(context& me) {
    if (!leaving_ || !watching_.empty() || open_ != 0) return;
    leaving_ = false;
    ++s_->satisfied;
    me.stop();
  }
  storm* s_;
  dice dice_;
  std::set<pid> watching_;
  std::uint64_t number_ = 0;
  int open_ = 0;
  bool leaving_ = false;
};

void outsider(runtime& rt, storm& s, std::size_t which, unsigned seed) {
  dice d{seed};
  std::uint64_t number = 0;
  while (!s.over) {
    const pid other = s.people.meet(static_cast<unsigned>(d()));
    switch (d() % 16) {
      case 0:
        if (d() % 6 == 0) rt.kill(other);
        break;
      case 1:
        if (d() % 6 == 0) stop_actor(rt, other);
        break;
      case 2:
        if (d() % 6 == 0) poison_actor(rt, other);
        break;
      case 3: (void)rt.info(other); break;
      case 4:
        if (s.population < most_people) {
          ++s.population;
          spawn_actor(rt, some_mortal(&s, static_cast<unsigned>(d()), 0, true));
        }
        break;
      case 5: (void)rt.call(actor_ref<mortal>{other}.call<ask>(7U, s.counted).within(1ms)); break;
      case 6:
      case 7:
      case 8:
      case 9: rt.cast<numbered>(actor_ref<mortal>{other}, which, ++number); break;
      default: rt.send(other, step{static_cast<unsigned>(d() % 6), s.counted}); break;
    }
    if (d() % 8 == 0) std::this_thread::yield();
  }
}

/// Waits until the work is done or, if it is set, for COPPICE_STORM_SECONDS.
void wait_for_the_end(storm& s) {
  const char* seconds = std::getenv("COPPICE_STORM_SECONDS");  // NOLINT(concurrency-mt-unsafe): no thread calls setenv
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds{seconds != nullptr ? std::stoi(seconds) : 0};
  while (seconds != nullptr ? std::chrono::steady_clock::now() < until : s.left.load() > 0) std::this_thread::yield();
  s.over = true;
}

/// Stops every process without a parent, except `spared`; their descendants stop with them.
void stop_everybody(runtime& rt, storm& s, const std::set<pid>& spared) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (s.population > 0 && std::chrono::steady_clock::now() < deadline) {
    for (const process_info& p : rt.snapshot())
      if (!p.parent && !spared.contains(p.id)) stop_actor(rt, p.id);
    std::this_thread::yield();
  }
  if (s.population == 0) return;
  std::string left;
  for (const process_info& p : rt.snapshot())
    left += to_string(p.id) + " of " + to_string(p.parent) + ", mail " + std::to_string(p.mailbox) + ", handled " +
            std::to_string(p.handled) + ", links " + std::to_string(p.links.size()) + "\n";
  FAIL() << s.population << " actors did not stop; processes left:\n" << left;
}

void rage(unsigned workers, unsigned seed) {
  storm s;
  {
    runtime rt{{.workers = workers, .level = log_level::off}};
    std::set<pid> witnesses;
    for (unsigned i = 0; i < 4; ++i) {
      const auto one = spawn_actor(rt, props<witness>(&s, seed + i));
      witnesses.insert(one.id());
      rt.cast<step>(one, 0U, s.counted);
    }
    {
      std::vector<std::jthread> outside;
      for (std::size_t i = 0; i < outsiders; ++i)
        outside.emplace_back([&rt, &s, i, seed] { outsider(rt, s, i, seed + 1000 + static_cast<unsigned>(i)); });
      wait_for_the_end(s);
    }
    stop_everybody(rt, s, witnesses);
    for (const pid w : witnesses) rt.cast<last_words>(actor_ref<witness>{w});
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (s.satisfied < witnesses.size() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(s.satisfied, witnesses.size()) << "a witness lacks an answer or a termination notice";
    EXPECT_EQ(s.asked, s.answered);
    while (s.satisfied == witnesses.size() && std::chrono::steady_clock::now() < deadline) {
      const runtime_counters now = rt.counters();
      if (now.ended == now.spawned && now.timers == 0) break;
      std::this_thread::yield();
    }
    const runtime_counters now = rt.counters();
    EXPECT_EQ(now.ended, now.spawned);
  }
  EXPECT_EQ(s.wrong, 0);
  EXPECT_GT(s.restarts, 100U);
  EXPECT_GT(s.news, 20U);
  EXPECT_EQ(s.counted.use_count(), 1) << "a message or an instance was leaked";
}

TEST(actor_storm, with_two_workers) { rage(2, 1); }
TEST(actor_storm, with_eight_workers) { rage(8, 2); }
TEST(actor_storm, with_one_worker) { rage(1, 3); }

}  // namespace
