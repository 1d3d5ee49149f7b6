#pragma once
/// The entries of a registry.
///
/// The table consists of several parts, each with a lock. A look-up runs in the thread of its caller and holds the lock
/// of one part while it finds and copies the entries of a key. To ask the keeper instead would cost two messages, and
/// all callers would wait for one process. Under a lock, keys and values are hashed, compared, copied, moved and
/// destroyed; no other user code runs. No thread holds two locks at a time.
#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include <coppice/runtime/runtime.hpp>

namespace coppice::detail {

template <class Key, class Value>
class registry_table {
 public:
  struct entry {
    pid who;
    Value value;
  };
  struct row {
    Key key;
    pid who;
    Value value;
  };

  // -- the keeper

  /// Makes `keeper` the keeper of the table, and removes all entries. Does nothing if it is the keeper already. Throws
  /// `std::logic_error` if another process that is alive is the keeper.
  void attach(kernel& host, pid keeper, pid parent) {
    for (part& p : parts_) {
      const std::scoped_lock lock{p.mutex};
      if (p.keeper == keeper) return;
      if (p.keeper && p.host->alive(p.keeper))
        throw std::logic_error{"this registry has a keeper already: " + to_string(p.keeper)};
      p.entries.clear();
      p.host = &host;
      p.keeper = keeper;
      p.parent = parent;
    }
    forget_owners();
  }
  /// Removes the keeper and all entries. Called when the keeper ends, before its end is reported to other processes.
  void detach(pid keeper) {
    for (part& p : parts_) {
      const std::scoped_lock lock{p.mutex};
      if (p.keeper != keeper) return;
      p.entries.clear();
      p.host = nullptr;
      p.keeper = {};
    }
    forget_owners();
  }
  struct caretaker {
    kernel* host = nullptr;
    pid keeper;
    pid parent;
  };
  [[nodiscard]] caretaker kept_by() {
    const std::scoped_lock lock{parts_[0].mutex};
    return {parts_[0].host, parts_[0].keeper, parts_[0].parent};
  }

  // -- writing: by the process that registers, or by the keeper for a process that has ended

  enum class added : std::uint8_t { yes, taken, unkept };
  struct addition {
    added what = added::unkept;
    pid who;  // yes: the keeper; taken: the process that has the key
  };
  [[nodiscard]] addition add(kernel& host, pid who, const Key& key, Value value, bool unique) {
    addition done;
    {
      part& p = part_of(key);
      const std::scoped_lock lock{p.mutex};
      if (p.host != &host) return done;
      auto& there = p.entries[key];
      // Entries of processes that have ended may be replaced before the keeper has removed them.
      std::erase_if(there, [&](const entry& e) { return !host.alive(e.who); });
      if (unique && !there.empty()) return {added::taken, there.front().who};
      there.push_back({who, std::move(value)});
      done = {added::yes, p.keeper};
    }
    owner_part& o = owner_part_of(who);
    const std::scoped_lock lock{o.mutex};
    o.keys[who].insert(key);
    return done;
  }
  struct removal {
    std::size_t count = 0;
    bool last = false;  // the process has no key left
  };
  template <class Unwanted>
  removal remove(pid who, const Key& key, Unwanted unwanted) {
    removal done;
    bool some_left = false;
    {
      part& p = part_of(key);
      const std::scoped_lock lock{p.mutex};
      const auto found = p.entries.find(key);
      if (found == p.entries.end()) return done;
      done.count = std::erase_if(found->second, [&](const entry& e) { return e.who == who && unwanted(e); });
      for (const entry& e : found->second) some_left = some_left || e.who == who;
      if (found->second.empty()) p.entries.erase(found);
    }
    if (done.count == 0 || some_left) return done;
    owner_part& o = owner_part_of(who);
    const std::scoped_lock lock{o.mutex};
    const auto keys = o.keys.find(who);
    if (keys == o.keys.end()) return done;
    keys->second.erase(key);
    done.last = keys->second.empty();
    if (done.last) o.keys.erase(keys);
    return done;
  }
  /// Removes all entries of a process.
  void forget(pid who) {
    for (const Key& key : take_keys(who)) remove(who, key, [](const entry&) { return true; });
  }
  /// Replaces the value of `who` under the key. False: `who` has no entry there.
  bool replace(pid who, const Key& key, Value value) {
    part& p = part_of(key);
    const std::scoped_lock lock{p.mutex};
    const auto found = p.entries.find(key);
    if (found == p.entries.end()) return false;
    for (entry& e : found->second)
      if (e.who == who) return e.value = std::move(value), true;
    return false;
  }

  // -- reading: entries of processes that have ended are left out, except by `keys_of`

  [[nodiscard]] std::vector<entry> find(const Key& key) {
    part& p = part_of(key);
    const std::scoped_lock lock{p.mutex};
    std::vector<entry> live;
    if (const auto found = p.entries.find(key); found != p.entries.end())
      for (const entry& e : found->second)
        if (p.host->alive(e.who)) live.push_back(e);
    return live;
  }
  [[nodiscard]] pid first(const Key& key) {
    part& p = part_of(key);
    const std::scoped_lock lock{p.mutex};
    if (const auto found = p.entries.find(key); found != p.entries.end())
      for (const entry& e : found->second)
        if (p.host->alive(e.who)) return e.who;
    return {};
  }
  [[nodiscard]] std::vector<Key> keys_of(pid who) {
    owner_part& o = owner_part_of(who);
    const std::scoped_lock lock{o.mutex};
    const auto found = o.keys.find(who);
    if (found == o.keys.end()) return {};
    return {found->second.begin(), found->second.end()};
  }
  [[nodiscard]] std::size_t size() {
    std::size_t n = 0;
    for (part& p : parts_) {
      const std::scoped_lock lock{p.mutex};
      for (const auto& [key, those] : p.entries)
        n += static_cast<std::size_t>(
            std::ranges::count_if(those, [&](const entry& e) { return p.host->alive(e.who); }));
    }
    return n;
  }
  /// Copies one part of the table after the other, so the result is not a snapshot of one moment.
  [[nodiscard]] std::vector<row> rows() {
    std::vector<row> all;
    for (part& p : parts_) {
      const std::scoped_lock lock{p.mutex};
      for (const auto& [key, those] : p.entries)
        for (const entry& e : those)
          if (p.host->alive(e.who)) all.push_back({key, e.who, e.value});
    }
    return all;
  }

  // -- listeners
  void add_listener(pid who) {
    const std::scoped_lock lock{listeners_mutex_};
    if (std::ranges::find(listeners_, who) == listeners_.end()) listeners_.push_back(who);
  }
  void remove_listener(pid who) {
    const std::scoped_lock lock{listeners_mutex_};
    std::erase(listeners_, who);
  }
  /// Also removes listeners that have ended.
  [[nodiscard]] std::vector<pid> listeners(const kernel& host) {
    const std::scoped_lock lock{listeners_mutex_};
    std::erase_if(listeners_, [&](pid who) { return who.node() == host.node() && !host.alive(who); });
    return listeners_;
  }

  [[nodiscard]] std::uint64_t new_ticket() noexcept { return tickets_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  struct alignas(64) part {
    std::mutex mutex;
    kernel* host = nullptr;
    pid keeper;
    pid parent;  // of the keeper
    std::unordered_map<Key, std::vector<entry>> entries;
  };
  struct alignas(64) owner_part {
    std::mutex mutex;
    std::unordered_map<pid, std::unordered_set<Key>> keys;
  };
  static constexpr std::size_t parts = 16;

  [[nodiscard]] part& part_of(const Key& key) { return parts_[mix(std::hash<Key>{}(key)) % parts]; }
  [[nodiscard]] owner_part& owner_part_of(pid who) { return owners_[std::hash<pid>{}(who) % parts]; }
  [[nodiscard]] std::unordered_set<Key> take_keys(pid who) {
    owner_part& o = owner_part_of(who);
    const std::scoped_lock lock{o.mutex};
    const auto found = o.keys.find(who);
    if (found == o.keys.end()) return {};
    auto keys = std::move(found->second);
    o.keys.erase(found);
    return keys;
  }
  void forget_owners() {
    for (owner_part& o : owners_) {
      const std::scoped_lock lock{o.mutex};
      o.keys.clear();
    }
  }

  std::array<part, parts> parts_;
  std::array<owner_part, parts> owners_;
  std::mutex listeners_mutex_;
  std::vector<pid> listeners_;
  std::atomic<std::uint64_t> tickets_{0};
};

}  // namespace coppice::detail
