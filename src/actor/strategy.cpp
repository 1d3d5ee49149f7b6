#include <stdexcept>
#include <utility>

#include <coppice/actor/strategy.hpp>

namespace coppice::actor {

std::string_view to_string(directive d) noexcept {
  switch (d) {
    case directive::resume: return "resume";
    case directive::restart: return "restart";
    case directive::stop: return "stop";
    case directive::escalate: return "escalate";
  }
  return "unknown";
}

namespace {

void check(const strategy_options& o) {
  if (o.limit.restarts < 0)
    throw std::invalid_argument{"strategy: limit.restarts is " + std::to_string(o.limit.restarts) +
                                "; it must be 0 (never restart) or more, or `unlimited`"};
  if (o.limit.within.count() <= 0)
    throw std::invalid_argument{"strategy: limit.within must be positive; `forever` counts over the whole life"};
  if (o.wait)
    if (const auto wrong = o.wait->check(); !wrong)
      throw std::invalid_argument{"strategy: wait: " + wrong.error().to_string()};
}

actor_strategy checked(strategy_options options, bool all) {
  check(options);
  return actor_strategy{{.options = std::move(options), .all = all}};
}

decider always(directive d) {
  return [d](const child_failure&) { return d; };
}

}  // namespace

actor_strategy::actor_strategy() {
  static const auto usual = std::make_shared<const rules>();
  rules_ = usual;
}
actor_strategy::actor_strategy(rules r) : rules_{std::make_shared<const rules>(std::move(r))} {}

actor_strategy one_for_one(strategy_options options) { return checked(std::move(options), false); }
actor_strategy all_for_one(strategy_options options) { return checked(std::move(options), true); }
actor_strategy exponential_backoff(backoff wait, restart_limit limit) {
  wait.curve = backoff_curve::exponential;
  return checked({.limit = limit, .wait = wait}, false);
}
actor_strategy always_restart() { return checked({.limit = unlimited}, false); }
actor_strategy always_stop() { return checked({.decide = always(directive::stop)}, false); }
actor_strategy custom_strategy(std::function<judgement(const child_failure&)> judge) {
  if (!judge) throw std::invalid_argument{"custom_strategy: the function is empty"};
  return actor_strategy{{.custom = std::move(judge)}};
}

}  // namespace coppice::actor
