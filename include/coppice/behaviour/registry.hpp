#pragma once
/// A registry: finds processes by keys of your own type, with a value for each entry.
///
///     using players = registry<std::string, int>;      // a key belongs to one process at a time
///     const players all = players::spawn_link(me);     // a value: all copies are the same registry
///     ...
///     const result<void> mine = all.register_as(me, "anna", 1500);
///     me.send(all.via("anna"), challenge{});            // wherever a pid is wanted
///
/// An entry belongs to the process that registered it and is not found any more when that process ends. The keeper, a
/// process, removes such entries. A process that registers is linked to the keeper: all entries are lost when the
/// keeper ends, and the link ends the registered processes too, unless they trap exits or the keeper ends with
/// `normal`. A look-up does not involve the keeper; see detail/registry_table.hpp.
///
/// A registry may exist before its keeper, so that a supervisor can start and restart the keeper:
/// `child<players::keeper>(all)`. Without a keeper, nothing can be registered and nothing is found.
#include <algorithm>
#include <deque>
#include <map>

#include <coppice/behaviour/detail/registry_table.hpp>
#include <coppice/runtime/no_such_process.hpp>

namespace coppice {

enum class registry_keys : std::uint8_t {
  unique,     ///< a key belongs to one process at a time
  duplicate,  ///< any number of entries for a key, also of one process
};

/// For registries that need no values.
struct no_value {
  friend bool operator==(no_value, no_value) = default;
};

/// `Key` needs `std::hash` and `==`; keys and values are copied, also to processes that look them up.
/// Thread safety: any thread; the functions that take `self&` are for that process.
template <class Key = std::string, class Value = no_value, registry_keys Kind = registry_keys::unique>
class registry {
  using table = detail::registry_table<Key, Value>;
  static constexpr bool unique = Kind == registry_keys::unique;

 public:
  using entry = typename table::entry;  ///< `who`, `value`
  using row = typename table::row;      ///< `key`, `who`, `value`
  class keeper;
  class via_key;
  class lock_guard;

  /// Sent to listeners. Nothing is sent when entries are removed because their process has ended: monitor the process.
  struct registered {
    registry in;
    Key key;
    pid who;
    Value value;
  };
  struct unregistered {
    registry in;
    Key key;
    pid who;
  };

  /// A new registry, without a keeper.
  registry() : table_{std::make_shared<table>()} {}
  /// A new registry whose keeper is spawned here and linked to `me`.
  [[nodiscard]] static registry spawn_link(self& me) {
    const registry made;
    made.table_->attach(me.host(), me.spawn_link<keeper>(made).id(), me.id());
    return made;
  }
  [[nodiscard]] static registry spawn(runtime& rt) {
    const registry made;
    made.table_->attach(rt.host(), rt.spawn<keeper>(made).id(), pid{});
    return made;
  }
  /// The keeper; nobody when there is none.
  [[nodiscard]] pid kept_by() const { return table_->kept_by().keeper; }
  friend bool operator==(const registry&, const registry&) = default;

  // -- for the process that registers

  /// Errors: `name_taken` if a live process has the unique key, even `me` itself; `noproc` without a keeper; `invalid`
  /// if the keeper belongs to another runtime or is just ending.
  result<void> register_as(self& me, Key key, Value value = {}) const {
    const auto done = table_->add(me.host(), me.id(), key, value, unique);
    if (done.what == table::added::taken)
      return fail(errc::name_taken, "registered by " + to_string(done.who) + " already");
    if (done.what == table::added::unkept) return not_kept();
    if (!link_to(me, done.who)) {
      table_->forget(me.id());
      return not_kept();
    }
    tell(me, [&] { return registered{*this, key, me.id(), value}; });
    return {};
  }
  /// Removes all entries of this process under the key; returns their number.
  std::size_t unregister(self& me, const Key& key) const {
    return unregister_if(me, key, [](const Value&) { return true; });
  }
  /// Removes those entries of this process under the key for which `unwanted(value)` is true; returns their number.
  template <class Unwanted>
  std::size_t unregister_if(self& me, const Key& key, Unwanted unwanted) const {
    std::vector<Value> mine;
    for (entry& e : table_->find(key))
      if (e.who == me.id()) mine.push_back(std::move(e.value));
    std::vector<bool> which;
    for (const Value& v : mine) which.push_back(unwanted(v));
    // Meanwhile the entries of this process can only be removed all at once, when the keeper ends: same order as found.
    std::size_t at = 0;
    const auto done = table_->remove(me.id(), key, [&](const entry&) {
      const std::size_t this_one = at;
      ++at;
      return this_one < which.size() && which[this_one];
    });
    if (done.count != 0) tell(me, [&] { return unregistered{*this, key, me.id()}; });
    if (const auto now = table_->kept_by(); done.last && now.parent != me.id()) me.unlink(now.keeper);
    return done.count;
  }
  struct updated {
    Value now;
    Value before;
  };
  /// Replaces the value of an entry of this process by `change(value)`; nothing if it has no such entry.
  template <class Change>
    requires unique
  std::optional<updated> update_value(self& me, const Key& key, Change change) const {
    auto found = table_->find(key);
    if (found.empty() || found.front().who != me.id()) return {};
    Value before = std::move(found.front().value);
    Value now = change(std::as_const(before));
    if (!table_->replace(me.id(), key, now)) return {};
    return updated{std::move(now), std::move(before)};
  }

  // -- for everybody

  /// The process that has the key, or nobody.
  [[nodiscard]] pid where(const Key& key) const
    requires unique
  {
    return table_->first(key);
  }
  /// A value that converts to a pid. Each conversion looks the key up, so it finds the process that has the key then.
  [[nodiscard]] via_key via(Key key) const
    requires unique
  {
    return via_key{*this, std::move(key)};
  }
  [[nodiscard]] std::vector<entry> lookup(const Key& key) const { return table_->find(key); }
  /// The keys of a process, each once, however many entries it has under a key; `values` has them all. None if the
  /// process has ended, even if the keeper has not removed its entries yet.
  [[nodiscard]] std::vector<Key> keys_of(pid who) const {
    const auto kept = table_->kept_by();
    if (kept.host == nullptr || !kept.host->alive(who)) return {};
    return table_->keys_of(who);
  }
  /// The values of one process under one key.
  [[nodiscard]] std::vector<Value> values(const Key& key, pid who) const {
    std::vector<Value> found;
    for (entry& e : table_->find(key))
      if (e.who == who) found.push_back(std::move(e.value));
    return found;
  }
  [[nodiscard]] std::size_t count() const { return table_->size(); }
  [[nodiscard]] std::size_t count(const Key& key) const { return table_->find(key).size(); }
  /// All entries for which `wanted(row)` is true. Costs a copy of the whole registry.
  template <class Wanted>
  [[nodiscard]] std::vector<row> select(Wanted wanted) const {
    auto all = table_->rows();
    std::erase_if(all, [&](const row& r) { return !wanted(r); });
    return all;
  }
  /// Calls `f(entries)` with all entries of the key, in the caller; does not call it when there are none.
  template <class F>
  void dispatch(const Key& key, F f) const {
    const std::vector<entry> all = table_->find(key);
    if (!all.empty()) f(all);
  }
  /// From now on `who` receives `registered` and `unregistered` as messages.
  void add_listener(pid who) const { table_->add_listener(who); }
  void remove_listener(pid who) const { table_->remove_listener(who); }

  /// Locks `key`: `auto held = co_await names.lock("x");`. One process holds the lock at a time; the others wait, first
  /// come, first served. It is released when the guard is destroyed or the process that locked it ends. Locks are
  /// independent of entries: the key need not be registered. Not recursive. Errors: `noproc` if there is no keeper,
  /// `exited` if the keeper ends during the wait, `timeout`.
  [[nodiscard]] task<result<lock_guard>> lock(Key key, std::chrono::nanoseconds timeout = forever) const {
    return acquire_lock(ref<keeper>{kept_by()}, std::move(key), table_->new_ticket(), timeout);
  }

 private:
  friend class keeper;
  static task<result<lock_guard>> acquire_lock(ref<keeper> from, Key key, std::uint64_t ticket,
                                               std::chrono::nanoseconds timeout) {
    const result<void> got = co_await from.template call<typename keeper::acquire>(key, ticket).within(timeout);
    if (!got && got.error().code() != errc::timeout) co_return std::unexpected{got.error()};
    lock_guard held{from, key, ticket};  // after a timeout, its destructor withdraws the request or releases the lock
    if (!got) co_return std::unexpected{got.error()};
    co_return std::move(held);
  }
  [[nodiscard]] std::unexpected<error> not_kept() const {
    if (kept_by()) return fail(errc::invalid, "the registry belongs to another runtime, or its keeper has just ended");
    return fail(errc::noproc, "the registry has no keeper; start a registry::keeper");
  }
  /// False: the keeper has ended, and `me` is not linked to it; the caller must remove its entries.
  static bool link_to(self& me, pid keeper) {
    if (!me.alive(keeper)) return false;
    try {
      me.link(keeper);
    } catch (const no_such_process&) {
      return false;
    }
    return true;
  }
  template <class Make>
  void tell(self& me, Make message) const {
    for (const pid who : table_->listeners(me.host())) me.send(who, message());
  }

  std::shared_ptr<table> table_;
};

/// Converts to the pid of the process that has the key at that moment, or to nobody.
template <class Key, class Value, registry_keys Kind>
class registry<Key, Value, Kind>::via_key {
 public:
  via_key(registry in, Key key) : in_{std::move(in)}, key_{std::move(key)} {}
  operator pid() const { return in_.where(key_); }  // NOLINT(google-explicit-constructor): that is its purpose

 private:
  registry in_;
  Key key_;
};

/// The process that removes entries of processes that have ended, and grants locks.
template <class Key, class Value, registry_keys Kind>
class registry<Key, Value, Kind>::keeper {
 public:
  struct acquire {
    using reply = void;
    Key key;
    std::uint64_t ticket;
  };
  struct release {
    Key key;
    std::uint64_t ticket;
  };

  /// Throws `std::logic_error` when the registry has another keeper that is alive.
  keeper(self& me, registry what) : table_{std::move(what.table_)}, me_{me.id()} {
    me.trap_exits();
    table_->attach(me.host(), me_, me.parent());
  }
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;
  ~keeper() { table_->detach(me_); }

  void handle(const exited& x, self& me) {
    if (x.linked && x.from != me.parent())
      table_->forget(x.from);
    else if (x.signalled)
      me.stop(x.reason);
  }
  void handle(acquire m, reply_to<void> to, self& me) {
    auto& line = locks_[m.key];
    const monitor_ref watched = me.monitor(to.caller());
    watched_.emplace(watched, std::pair{m.key, m.ticket});
    line.push_back({m.ticket, watched, std::move(to)});
    if (line.size() == 1) line.front().to.reply();
  }
  void handle(const release& m, self& me) { leave(m.key, m.ticket, me); }
  void handle(const down& d, self& me) {
    const auto found = watched_.find(d.ref);
    if (found == watched_.end()) return;
    const auto [key, ticket] = found->second;
    leave(key, ticket, me);
  }

 private:
  struct place {
    std::uint64_t ticket = 0;
    monitor_ref watched;
    reply_to<void> to;
  };
  void leave(const Key& key, std::uint64_t ticket, self& me) {
    const auto found = locks_.find(key);
    if (found == locks_.end()) return;
    auto& line = found->second;
    const auto at = std::ranges::find(line, ticket, &place::ticket);
    if (at == line.end()) return;
    const bool had_it = at == line.begin();
    me.demonitor(at->watched);
    watched_.erase(at->watched);
    line.erase(at);
    if (line.empty())
      locks_.erase(found);
    else if (had_it)
      line.front().to.reply();
  }

  std::shared_ptr<table> table_;
  pid me_;
  std::unordered_map<Key, std::deque<place>> locks_;  // the process that holds the lock first, then those that wait
  std::map<monitor_ref, std::pair<Key, std::uint64_t>> watched_;
};

/// Holds a lock until it is destroyed.
template <class Key, class Value, registry_keys Kind>
class [[nodiscard]] registry<Key, Value, Kind>::lock_guard {
 public:
  lock_guard(ref<keeper> from, Key key, std::uint64_t ticket) : from_{from}, key_{std::move(key)}, ticket_{ticket} {}
  lock_guard(lock_guard&& other) noexcept
      : from_{other.from_}, key_{std::move(other.key_)}, ticket_{std::exchange(other.ticket_, 0)} {}
  lock_guard& operator=(lock_guard&& other) noexcept {
    std::swap(from_, other.from_);
    std::swap(key_, other.key_);
    std::swap(ticket_, other.ticket_);
    return *this;
  }
  /// Outside of a process no release is sent; the lock is then released when the process that locked it ends.
  ~lock_guard() {
    if (ticket_ != 0 && detail::turn_here() != nullptr)
      from_.template cast<typename keeper::release>(std::move(key_), ticket_);
  }

 private:
  ref<keeper> from_;
  Key key_;
  std::uint64_t ticket_;  // 0: moved from
};

}  // namespace coppice
