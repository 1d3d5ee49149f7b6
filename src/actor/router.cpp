#include <algorithm>

#include <coppice/actor/router.hpp>

namespace coppice::actor {

std::string_view to_string(routing how) noexcept {
  switch (how) {
    case routing::round_robin: return "round_robin";
    case routing::random: return "random";
    case routing::broadcast: return "broadcast";
    case routing::consistent_hash: return "consistent_hash";
  }
  return "unknown";
}

props<router> group_of(std::vector<pid> routees, group_options options) {
  return props<router>(options.how, std::move(routees));
}

void router::handle(started, context& me) {
  for (const pid who : std::exchange(routees_, {})) handle(add_routee{who}, me);
  resize(size_, me);
}

void router::handle(const terminated& gone) { std::erase(routees_, gone.who); }

void router::handle(add_routee m, context& me) {
  if (std::ranges::find(routees_, m.who) != routees_.end()) return;
  routees_.push_back(m.who);
  me.watch(m.who);
}

void router::handle(remove_routee m, context& me) { remove(m.who, me); }

void router::remove(pid who, context& me) {
  if (std::erase(routees_, who) == 0) return;
  me.unwatch(who);
  if (spawn_) me.poison(who);
}

void router::handle(resize_pool m, context& me) {
  if (spawn_) resize(std::max<std::size_t>(m.size, 1), me);
}

void router::resize(std::size_t size, context& me) {
  if (!spawn_) return;
  while (routees_.size() < size) handle(add_routee{spawn_(me)}, me);
  while (routees_.size() > size) remove(routees_.back(), me);
}

void router::handle(const to_all_routees& m, context& me) {
  for (const pid who : routees_) m.send(me, who);
}

pid router::choose(const detail::envelope& mail, context& me) {
  if (routees_.empty()) return {};
  switch (how_) {
    case routing::round_robin: return routees_[next_++ % routees_.size()];
    case routing::random: return routees_[me.random() % routees_.size()];
    case routing::broadcast: break;
    case routing::consistent_hash: {
      if (mail.type->routing.key == nullptr) return {};
      // Rendezvous hashing: the routee with the highest score for the key. Adding or removing a routee moves no key
      // between two others.
      const std::uint64_t key = mail.type->routing.key(mail);
      return *std::ranges::max_element(routees_, {}, [&](pid who) { return mix(key ^ detail::pid_hash{}(who)); });
    }
  }
  return {};
}

void router::handle(any_message m, context& me) {
  if (how_ != routing::broadcast) return me.forward(choose(m.content(), me), std::move(m));
  if (routees_.empty() || m.content().type->routing.copy == nullptr) return me.forward(pid{}, std::move(m));
  for (std::size_t i = 0; i + 1 < routees_.size(); ++i) me.forward_copy(routees_[i], m);
  me.forward(routees_.back(), std::move(m));
}

}  // namespace coppice::actor
