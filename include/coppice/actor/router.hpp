#pragma once
/// A router is an actor that forwards each message, with its sender and its call, to one of its routees or to all of
/// them.
///
///     const auto workers = me.spawn(pool_of(props<worker>(), {.how = routing::round_robin, .size = 4}));
///     me.cast<job>(actor_ref<worker>{workers.id()}, 1);        // as to one worker
///     const auto all = me.spawn(group_of({a.id(), b.id()}, {.how = routing::broadcast}));
///
/// The routees of a pool are children of the router, which supervises them by the strategy of its own props. The
/// routees of a group are any actors. A routee that has ended is removed and not replaced. Without routees, messages
/// become dead letters.
#include <coppice/actor/actor.hpp>

namespace coppice::actor {

enum class routing : std::uint8_t {
  round_robin,
  random,
  /// A copy to each routee; the first answer to a call counts. For messages that are trivially copyable or have `static
  /// constexpr bool can_be_broadcast = true;`. Others become dead letters.
  broadcast,
  /// By the member function `routing_key()` of the message, which returns a text or a number. The same key goes to the
  /// same routee; when a routee is added or removed, only its own keys move. Messages without a key become dead
  /// letters.
  consistent_hash,
};
[[nodiscard]] std::string_view to_string(routing how) noexcept;

struct group_options {
  routing how = routing::round_robin;
};
struct pool_options {
  routing how = routing::round_robin;
  std::size_t size = 1;
};

// Messages that a router itself handles:

/// Adds a routee. Has no effect if `who` is a routee already.
struct add_routee {
  pid who;
};
/// Removes a routee. A pool also poisons it: the routee handles its mail before it stops.
struct remove_routee {
  pid who;
};
struct get_routees {
  using reply = std::vector<pid>;
};
/// Changes the size of a pool: routees are spawned, or those added last are removed. The smallest size is 1.
struct resize_pool {
  std::size_t size;
};
/// Sends a message to all routees, whatever the routing: see `broadcast_of`.
struct to_all_routees {
  std::function<void(context&, pid)> send;
};
template <class M>
[[nodiscard]] to_all_routees broadcast_of(M message) {
  return {[message = std::move(message)](context& me, pid to) {
    if (me.sender())
      me.send_from(me.sender(), to, M(message));
    else
      me.send(to, M(message));
  }};
}

class router {
 public:
  using protocol = coppice::protocol<add_routee, remove_routee, get_routees, resize_pool, to_all_routees>;
  using spawn_one = std::function<pid(context&)>;
  router(routing how, std::vector<pid> group) : how_{how}, routees_{std::move(group)} {}
  router(routing how, std::size_t size, spawn_one spawn) : how_{how}, size_{size}, spawn_{std::move(spawn)} {}

  void handle(started, context& me);
  void handle(const terminated& gone);
  void handle(add_routee m, context& me);
  void handle(remove_routee m, context& me);
  [[nodiscard]] std::vector<pid> handle(get_routees) const { return routees_; }
  void handle(resize_pool m, context& me);
  void handle(const to_all_routees& m, context& me);
  void handle(any_message m, context& me);

 private:
  void resize(std::size_t size, context& me);
  void remove(pid who, context& me);
  [[nodiscard]] pid choose(const detail::envelope& mail, context& me);

  routing how_;
  std::size_t size_ = 0;
  spawn_one spawn_;
  std::vector<pid> routees_;
  std::size_t next_ = 0;
};

/// Throws `std::invalid_argument` for a size of 0.
template <class A>
[[nodiscard]] props<router> pool_of(const props<A>& routee, pool_options options) {
  if (options.size == 0) throw std::invalid_argument{"pool_of: the size must be at least 1"};
  return props<router>(options.how, options.size,
                       router::spawn_one{[routee](context& me) { return me.spawn(routee).id(); }});
}
[[nodiscard]] props<router> group_of(std::vector<pid> routees, group_options options = {});
template <class A>
[[nodiscard]] props<router> group_of(std::initializer_list<actor_ref<A>> routees, group_options options = {}) {
  std::vector<pid> pids;
  for (const actor_ref<A>& r : routees) pids.push_back(r.id());
  return group_of(std::move(pids), options);
}

}  // namespace coppice::actor
