#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <coppice/actor/lifecycle.hpp>
#include <coppice/actor/props.hpp>

namespace coppice {

std::string_view to_string(directive d) noexcept {
  static constexpr std::array<std::string_view, 4> names = {"resume", "restart", "stop", "escalate"};
  return names.at(std::to_underlying(d));
}

std::string_view to_string(terminated::cause why) noexcept {
  static constexpr std::array<std::string_view, 3> names = {"stopped", "not_found", "node_gone"};
  return names.at(std::to_underlying(why));
}

namespace {

void check(const strategy_options& o) {
  if (o.limit.restarts < 0)
    throw std::invalid_argument{"strategy: limit.restarts is " + std::to_string(o.limit.restarts) +
                                "; 0 means never, `unlimited` without end"};
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
  if (!judge) throw std::invalid_argument{"custom_strategy: there is no function"};
  return actor_strategy{{.custom = std::move(judge)}};
}

void detail::change(actor_settings& s, const actor_options& by) {
  if (by.strategy) s.strategy = *by.strategy;
  if (by.guardian) {
    if (by.guardian->get().all)
      throw std::invalid_argument{"actor_options::guardian: all_for_one has no others to restart; use one_for_one"};
    s.guardian = by.guardian;
  }
  if (by.mailbox) {
    if (by.mailbox->waits_at_most.count() <= 0)
      throw std::invalid_argument{"actor_options::mailbox: waits_at_most must be positive"};
    if (by.mailbox->when_full == when_full::sender_waits && by.mailbox->capacity == 0)
      throw std::invalid_argument{"actor_options::mailbox: sender_waits needs a capacity"};
    s.mailbox = *by.mailbox;
  }
  s.on_receive.insert(s.on_receive.end(), by.on_receive.begin(), by.on_receive.end());
  s.on_send.insert(s.on_send.end(), by.on_send.begin(), by.on_send.end());
  s.on_init.insert(s.on_init.end(), by.on_init.begin(), by.on_init.end());
  if (by.keep_children) s.keep_children = *by.keep_children;
}

bool behaviour::handle(context& me, const detail::message_type& type, void* message) const {
  const auto kept = handlers_;  // it may be replaced by what it runs
  for (const handler& h : *kept)
    if (h.type == &type) return h.run(me, message), true;
  return false;
}

bool behaviour::handles_rest() const noexcept {
  return std::ranges::any_of(*handlers_, [](const handler& h) { return h.type == &detail::plain<any_message>; });
}

}  // namespace coppice
