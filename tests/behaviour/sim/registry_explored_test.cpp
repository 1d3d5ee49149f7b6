// A registry over many seeds: processes register, unregister, lock and are killed at any moment, the keeper as well.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include <coppice/behaviour/registry.hpp>

#include "seeds.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

using names = registry<int, int>;
using groups = registry<int, int, registry_keys::duplicate>;

/// What the processes know of themselves: the registry must say the same.
struct ledger {
  std::map<pid, std::multiset<int>> keys;
  std::map<int, pid> locks;
  std::string wrong;
  void expect(bool holds, const char* what) {
    if (!holds && wrong.empty()) wrong = what;
  }
};
using book = std::shared_ptr<ledger>;

class locked {
 public:
  locked(self& me, int key, book b) : key_{key}, book_{std::move(b)} {
    book_->expect(!book_->locks.contains(key_), "two have the lock");
    book_->locks[key_] = me.id();
  }
  ~locked() { book_->locks.erase(key_); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;

 private:
  int key_;
  book book_;
};

template <class Registry>
task<> lock_once(self& me, Registry in, int key, book b) {
  const bool patient = me.random() % 2 == 0;
  const auto held = co_await in.lock(key, patient ? forever : 1ms);
  if (!held) co_return;
  const locked mine{me, key, b};
  const std::chrono::microseconds pause{me.random() % 1000};
  co_await me.sleep(pause);
}

template <class Registry>
void do_something(self& me, const Registry& in, int key, ledger& b) {
  auto& mine = b.keys[me.id()];
  if (me.random() % 3 != 0) {
    const auto done = in.register_as(me, key, key * 10);
    if (done) mine.insert(key);
    if constexpr (std::is_same_v<Registry, names>) {
      b.expect(done || done.error().code() != errc::name_taken || in.where(key), "taken by nobody");
      b.expect(!done || in.where(key) == me.id(), "it registered, and another one has it");
    }
  } else {
    const std::size_t n = in.unregister(me, key);
    b.expect(n == mine.count(key), "unregister took away too much or too little");
    mine.erase(key);
  }
  b.expect(in.values(key, me.id()) == std::vector<int>(mine.count(key), key * 10),
           "values are not what was registered");
}

template <class Registry>
task<> citizen(self& me, Registry in, book b) {
  const pid keeper = in.kept_by();
  for (int i = 0; i < 30; ++i) {
    const auto key = static_cast<int>(me.random() % 5);
    if (!me.alive(keeper)) break;  // the end of this one is on its way
    do_something(me, in, key, *b);
    const std::chrono::microseconds pause{me.random() % 3000};
    if (me.random() % 4 == 0)
      co_await lock_once(me, in, key, b);
    else
      co_await me.sleep(pause);
  }
  struct never {};
  const never n = co_await me.receive<never>();
  (void)n;
}

template <class Registry>
void compare(runtime& rt, const Registry& in, const ledger& b) {
  std::size_t live = 0;
  for (const auto& [who, keys] : b.keys) {
    const bool alive = rt.alive(who);
    const std::set<int> different{keys.begin(), keys.end()};
    const auto said = in.keys_of(who);
    sim::require(std::set<int>(said.begin(), said.end()) == (alive ? different : std::set<int>{}),
                 "the keys of a process are not what it registered");
    live += alive ? keys.size() : 0;
    if (!alive) continue;
    const auto links = rt.info(who)->links;
    sim::require(links == (keys.empty() ? std::vector<pid>{} : std::vector{in.kept_by()}),
                 "linked to the keeper without a key, or the other way round");
  }
  sim::require(in.count() == live, "entries are left of the dead, or lost of the living");
}

template <class Registry>
void property(sim::world& w) {
  const auto b = std::make_shared<ledger>();
  sim::node& n = w.add_node();
  runtime& rt = n.rt();
  const Registry in = Registry::spawn(rt);
  std::vector<pid> all;
  for (int i = 0; i < 6; ++i) all.push_back(rt.spawn(citizen<Registry>, in, b));
  const bool keeper_ends = w.chance().below(4) == 0;
  for (int i = 0; i < 6; ++i) {
    w.run_for(w.chance().between(0ns, 15ms));
    sim::require(b->wrong.empty(), b->wrong);
    if (i == 4 && keeper_ends) rt.kill(in.kept_by());
    const pid victim = all[w.chance().below(all.size())];
    if (w.chance().below(2) == 0) rt.kill(victim);
  }
  if (w.chance().below(10) == 0) {
    n.crash();
    sim::require(in.count() == 0 && b->locks.empty(), "a crash has left entries or locks");
    return;
  }
  w.run();
  sim::require(b->wrong.empty(), b->wrong);
  sim::require(b->locks.empty(), "a lock is held by nobody");
  if (keeper_ends) {
    sim::require(in.count() == 0, "entries without a keeper");
    for (const auto& [who, keys] : b->keys)
      sim::require(!rt.alive(who) || keys.empty(), "a registered process has outlived the keeper");
    return;
  }
  compare(rt, in, *b);
}

TEST(registry_explored, unique_entries_are_those_of_the_living) { seeds::hold(500, property<names>); }
TEST(registry_explored, duplicate_entries_are_those_of_the_living) { seeds::hold(500, property<groups>); }

}  // namespace
