#pragma once
/// Random hierarchies, and how their plans become actors.
#include "actor_member.hpp"

namespace coppice::random_actors {

/// What the hierarchies of a test are like.
struct climate {
  std::size_t depth = 4;
  std::size_t most_children = 3;
  double policies = 0.25;
  double keeps = 0.3;
  double waits = 0.3;
  double low_limits = 0.3;
  std::optional<rules::kind> strategy{};  // else all kinds
  std::array<std::uint64_t, 4> weights{2, 4, 1, 2};
};

class gardener {
 public:
  gardener(sim::dice& d, const climate& c) : dice_{d}, climate_{c} {}

  [[nodiscard]] rules some_rules(bool guardian) {
    rules r{.weights = climate_.weights};
    using kind = rules::kind;
    constexpr std::array kinds{kind::one,         kind::one,         kind::all,
                               kind::all,         kind::backing_off, kind::always_restart,
                               kind::always_stop, kind::custom};
    r.what = climate_.strategy && !guardian ? *climate_.strategy : kinds.at(dice_.below(kinds.size()));
    if (guardian && r.what == kind::all) r.what = kind::one;
    r.asks = r.what == kind::one || r.what == kind::all;
    if (dice_.chance(0.3)) r.weights = {0, 1, 0, 0};
    r.all = r.what == kind::custom && !guardian && dice_.chance(0.5);
    const bool waits =
        r.what == kind::backing_off || ((r.what == kind::one || r.what == kind::all) && dice_.chance(climate_.waits));
    if (waits)
      r.wait = backoff{
          .first = dice_.between(1us, 100ms), .cap = dice_.between(100ms, 1s), .reset_after = dice_.between(1ms, 2s)};
    if (dice_.chance(climate_.low_limits))
      r.limit = {.restarts = static_cast<int>(dice_.below(4)),
                 .within = dice_.chance(0.3) ? forever : dice_.between(1us, 1s)};
    if (r.what == kind::always_restart || r.what == kind::custom || (r.what == kind::backing_off && dice_.chance(0.5)))
      r.limit = unlimited;
    if (r.what == kind::always_stop) r.limit = {.restarts = 10, .within = 10s};
    if (r.what == kind::backing_off && r.limit != unlimited) r.limit.within = forever;  // when it decides is not known
    return r;
  }
  [[nodiscard]] plan some_plan(std::size_t depth) {
    plant one{.strategy = some_rules(false)};
    if (dice_.chance(climate_.policies)) one.mailbox = some_mailbox();
    one.keeps_children = dice_.chance(climate_.keeps);
    one.middleware = dice_.chance(0.1);
    one.decides = one.strategy.what != rules::kind::custom && dice_.chance(0.15);
    if (one.decides) one.strategy.asks = true;
    if (depth > 1)
      for (std::uint64_t n = dice_.below(climate_.most_children + 1); n > 0; --n)
        one.children.push_back(some_plan(depth - 1));
    return std::make_shared<const plant>(std::move(one));
  }
  [[nodiscard]] plan root() {
    plant one = *some_plan(climate_.depth);
    if (one.children.empty()) one.children.push_back(some_plan(climate_.depth - 1));
    if (dice_.chance(0.6)) one.guardian = some_rules(true);
    return std::make_shared<const plant>(std::move(one));
  }

 private:
  [[nodiscard]] actor::mailbox some_mailbox() {
    actor::mailbox box{.by_priority = dice_.chance(0.4)};
    if (!box.by_priority || dice_.chance(0.5)) {
      box.capacity = 1 + dice_.below(4);
      box.when_full = static_cast<when_full>(dice_.below(3));
      box.waits_at_most = dice_.between(1us, 1s);
    }
    return box;
  }
  sim::dice& dice_;
  climate climate_;
};

/// `decider` gives who decides, from who has failed: the parent, or itself.
inline actor_strategy strategy_of(program& p, const rules& by, bool guardian) {
  const auto asked = [p = &p, by, guardian](const child_failure& f) {
    const pid who = guardian ? f.child : p->lives.at(f.child).parent;
    return decide(*p, by, who, f);
  };
  strategy_options options{.limit = by.limit, .wait = by.wait};
  if (by.asks) options.decide = [asked](const child_failure& f) { return asked(f).what; };
  switch (by.what) {
    case rules::kind::one: return one_for_one(options);
    case rules::kind::all: return all_for_one(options);
    case rules::kind::backing_off: return by.asks ? one_for_one(options) : exponential_backoff(*by.wait, by.limit);
    case rules::kind::always_restart: return always_restart();
    case rules::kind::always_stop: return always_stop();
    case rules::kind::custom: break;
  }
  return custom_strategy(asked);
}

inline actor_options options_of(program& p, const plan& what) {
  actor_options o{.strategy = strategy_of(p, what->strategy, false),
                  .mailbox = what->mailbox,
                  .keep_children = what->keeps_children};
  if (what->guardian) o.guardian = strategy_of(p, *what->guardian, true);
  if (what->middleware)
    o.on_receive.push_back([](context&, const message_view&, const std::function<void()>& next) { next(); });
  return o;
}

inline pid spawn_child(program& p, context& me, const plan& what) {
  --p.spawns_left;
  const actor_options o = options_of(p, what);
  const pid who = what->decides        ? me.spawn(props<deciding>(&p, what).with(o)).id()
                  : p.dice.chance(0.2) ? me.spawn({.prefix = "child"}, props<member>(&p, what).with(o)).value().id()
                                       : me.spawn(props<member>(&p, what).with(o)).id();
  p.spawned(who, me.id(), what);
  return who;
}
inline pid spawn_root(program& p, const plan& what) {
  const actor_options o = options_of(p, what);
  const pid who = what->decides ? spawn_actor(*p.rt, props<deciding>(&p, what).with(o)).id()
                                : spawn_actor(*p.rt, props<member>(&p, what).with(o)).id();
  p.spawned(who, {}, what);
  return who;
}

}  // namespace coppice::random_actors
