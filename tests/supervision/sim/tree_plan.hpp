#pragma once
/// Random trees.
#include "tree_people.hpp"

namespace coppice::random_trees {

/// How rough it is: of what a seed is made.
struct climate {
  std::size_t depth = 4;
  std::size_t most = 24;  // members
  double backoffs = 0.25;
  double limits_low = 0.3;  // the share of supervisors that soon give up
  double significant = 0.4;
  double minute = 0.1;  // the share of trees whose limits are about nanoseconds
};

class gardener {
 public:
  gardener(sim::dice& d, const climate& c) : dice_{d}, climate_{c}, minute_{d.chance(c.minute)} {}

  [[nodiscard]] plan root() { return supervisor_plan(1); }
  /// One more for a supervisor that has `when`.
  [[nodiscard]] plan worker_plan(auto_shutdown when) {
    ++made_;
    plant p;
    p.id = "w" + std::to_string(++numbers_);
    constexpr std::array kinds{plant::kind::server, plant::kind::server, plant::kind::body, plant::kind::own_start};
    p.what = kinds.at(dice_.below(kinds.size()));
    p.traps = dice_.chance(0.6);
    if (dice_.chance(0.2)) p.lingers = dice_.between(1ms, 3s);
    p.ignores_exits = p.what != plant::kind::server && p.traps && dice_.chance(0.2);
    // One that is left over keeps its name, and its successor is tried again and again meanwhile: without end
    // when the window is shorter than a try.
    p.named = !minute_ && p.what != plant::kind::own_start && !p.ignores_exits && dice_.chance(0.1);
    options(p, when);
    if (dice_.chance(0.6))
      p.how.shutdown = pick({shutdown::brutal_kill(), shutdown{0ns}, shutdown{50ms}, shutdown{2s}});
    else if (!p.ignores_exits && dice_.chance(0.3))
      p.how.shutdown = shutdown::infinity();
    if (p.what == plant::kind::server && dice_.chance(0.2)) p.how.start_within = dice_.between(100us, 1s);
    return std::make_shared<const plant>(std::move(p));
  }
  /// The same child with other settings.
  [[nodiscard]] plan changed(const plan& old, auto_shutdown when) {
    plant p = *old;
    p.how.backoff.reset();
    p.how.significant.reset();
    options(p, when);
    return std::make_shared<const plant>(std::move(p));
  }
  [[nodiscard]] supervisor_spec flags() {
    supervisor_spec f;
    f.strategy = pick({strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one});
    f.limit.restarts = static_cast<int>(dice_.chance(climate_.limits_low) ? dice_.below(4) : 4 + dice_.below(30));
    f.limit.within = dice_.chance(0.5) ? dice_.between(1ms, 500ms) : dice_.between(1s, 20s);
    if (minute_) f.limit.within = (1 + dice_.below(40)) * 100ns;  // a turn takes 100 ns: it is just in, or just out
    f.auto_shutdown = pick(
        {auto_shutdown::never, auto_shutdown::never, auto_shutdown::any_significant, auto_shutdown::all_significant});
    if (dice_.chance(0.5)) f.abandon_after = dice_.between(1ms, 200ms);
    return f;
  }

 private:
  template <class T>
  [[nodiscard]] T pick(std::initializer_list<T> of) {
    return *(of.begin() + dice_.below(of.size()));
  }
  void options(plant& p, auto_shutdown when) {
    p.how.restart = pick({restart::permanent, restart::permanent, restart::transient, restart::temporary});
    if (p.how.restart != restart::permanent && when != auto_shutdown::never)
      p.how.significant = dice_.chance(climate_.significant);
    if (p.how.restart == restart::temporary || !dice_.chance(climate_.backoffs)) return;
    backoff b;
    b.curve =
        pick({backoff_curve::constant, backoff_curve::linear, backoff_curve::exponential, backoff_curve::fibonacci});
    b.first = dice_.between(1us, 500ms);
    b.cap = b.first * static_cast<int>(1 + dice_.below(20));
    b.jitter = pick({0.0, 0.2, 1.0});
    b.reset_after = dice_.between(10ms, 10s);
    p.how.backoff = b;
  }
  [[nodiscard]] plan supervisor_plan(std::size_t level) {
    ++made_;
    plant p;
    p.what = plant::kind::supervisor;
    p.id = "s" + std::to_string(++numbers_);
    p.flags = flags();
    if (level == 1 && dice_.chance(0.7)) {  // when the root ends, the rest of the run is of no interest
      p.flags.limit.restarts += 100;
      p.flags.auto_shutdown = auto_shutdown::never;
    }
    const std::size_t children = dice_.below(6) + (level == 1 ? 1 : 0);
    for (std::size_t i = 0; i < children && made_ < climate_.most; ++i) {
      const bool deeper = level < climate_.depth && dice_.chance(0.35);
      p.children.push_back(deeper ? child_supervisor(level + 1, p.flags.auto_shutdown)
                                  : worker_plan(p.flags.auto_shutdown));
    }
    return std::make_shared<const plant>(std::move(p));
  }
  [[nodiscard]] plan child_supervisor(std::size_t level, auto_shutdown when) {
    plant p = *supervisor_plan(level);
    options(p, when);
    if (dice_.chance(0.15)) p.how.shutdown = pick({shutdown::brutal_kill(), shutdown{10ms}, shutdown{1s}});
    if (dice_.chance(0.05)) p.how.start_within = dice_.between(1ms, 5s);
    return std::make_shared<const plant>(std::move(p));
  }

  sim::dice& dice_;
  climate climate_;
  bool minute_;  // the windows of the limits
  std::size_t made_ = 0;
  std::size_t numbers_ = 0;
};

}  // namespace coppice::random_trees
