#include "internal/links.hpp"

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/no_such_process.hpp>

#include "internal/claim.hpp"
#include "internal/kernel_parts.hpp"

namespace coppice::detail {

links::links(kernel& k, remote& r) noexcept : kernel_{k}, table_{k.table()}, remote_{r}, faults_{k.env().faults()} {}

/// Sends a signal that is not a message. When the receiver is idle there is nothing that this signal could overtake, so
/// the sender claims the process for a moment and applies the signal: no allocation, and nothing is scheduled.
template <signal s, class Content>
[[gnu::always_inline]] inline void links::send_small(pid to, const Content& content) {
  kernel_.flush_burst();
  const bool detour = faults_ != nullptr && faults_->fails("signal.direct");
  if (table_.covers(to) && !detour) {
    slot& p = table_[to.index()];
    if (const claim mine{kernel_, p}) [[likely]] {
      if (p.serial() == to.serial() && p.process != nullptr) [[likely]] {
        if constexpr (s == signal::unlink_ack)
          receive_ack(p, content);
        else if constexpr (s == signal::demonitor)
          receive_removal(p, content);
        else
          receive(p, content);
      } else {
        letter<Content> unread{&plain<Content>, content};
        unread.tag = envelope::tag_of(to.serial(), s);
        remote_.bounce(to, unread, exit_reason::noproc());
      }
      return;
    }
  }
  kernel_.send(to, s, make_letter<Content>(plain<Content>, content));
}

void release_claim(kernel& k, slot& p, envelope& mine) {
  envelope* n = nullptr;
  mailbox::step step = p.mail.advance(&mine, n);
  while (step == mailbox::step::hidden) step = p.mail.advance(&mine, n);
  if (step == mailbox::step::idle) return;
  p.mail.head = n;
  k.schedule(p);
}

// ---- links

void links::link(slot& me, pid other) {
  const pid mine = table_.pid_of(me);
  if (other == mine) return;
  if (table_.is_linked_parent(me, other)) return;
  const bool known_dead = !other || (!elsewhere(other) && !table_.alive(other));
  if (known_dead && !me.is(slot::traps_exits)) throw no_such_process{other};
  side_block& side = side_of(table_, me);
  const link_state fresh{.over = remote_.connection_to(other)};
  const tie lost_with{.local = mine, .remote = other, .what = tie::kind::link, .over = fresh.over};
  if (link_state* known = side.links.find(other)) {
    if (known->unlinking == 0) return;
    if (known->over != fresh.over) {
      remote_.untie({.local = mine, .remote = other, .what = tie::kind::link, .over = known->over});
      if (fresh.over != 0) remote_.tie_over(lost_with);
    }
    *known = fresh;
  } else {
    side.links.insert(other, fresh);
    if (fresh.over != 0) remote_.tie_over(lost_with);
  }
  send_small<signal::link>(other, link_signal{mine, fresh.over});
}

void links::unlink(slot& me, pid other) {
  const pid mine = table_.pid_of(me);
  const bool parent = table_.is_linked_parent(me, other);
  if (!parent && me.side == nullptr) return;
  side_block& side = side_of(table_, me);
  if (parent) {
    me.set(slot::parent_linked, false);
    side.links.insert(other, {});
  }
  link_state* known = side.links.find(other);
  if (known == nullptr || known->unlinking != 0) return;
  if (++side.unlinks == 0) ++side.unlinks;
  known->unlinking = side.unlinks;
  send_small<signal::unlink>(other, unlink_signal{mine, known->unlinking});
}

const link_state* links::find(const slot& p, pid other) const noexcept {
  return p.side != nullptr ? p.side->links.find(other) : nullptr;
}

const link_state* links::find_lost(const slot& p, const link_signal& l) const noexcept {
  const link_state* known = find(p, l.from);
  return known != nullptr && known->over == l.over ? known : nullptr;
}

bool links::holds(const slot& p, pid other) const noexcept {
  if (table_.is_linked_parent(p, other)) return true;
  const link_state* known = find(p, other);
  return known != nullptr && known->unlinking == 0;
}

bool links::end_will_be_known(const slot& me, pid child) const noexcept {
  if (!table_.alive(child) || !table_.is_parent(table_[child.index()], table_.pid_of(me))) return false;
  // With an unlink of our own in flight, the exit of a child that ends before the unlink arrives is dropped.
  const link_state* known = find(me, child);
  return known == nullptr || known->unlinking == 0;
}

std::optional<link_state> links::remove(slot& p, pid other) {
  if (table_.is_linked_parent(p, other)) {
    p.set(slot::parent_linked, false);
    return link_state{};
  }
  if (p.side == nullptr) return {};
  const std::optional<link_state> was = p.side->links.take(other);
  // A link without a connection was never tied, and must not remove the tie of another link.
  if (was && was->over != 0)
    remote_.untie({.local = table_.pid_of(p), .remote = other, .what = tie::kind::link, .over = was->over});
  return was;
}

void links::receive(slot& p, const link_signal& l) {
  if (table_.is_linked_parent(p, l.from)) return;
  // A link from another node was tied on arrival. If `p` had it already, remove the second tie.
  if (!side_of(table_, p).links.insert(l.from, {.over = l.over}))
    remote_.untie({.local = table_.pid_of(p), .remote = l.from, .what = tie::kind::link, .over = l.over});
}

void links::receive(slot& p, const unlink_signal& u) {
  // If `p` has unlinked too, its entry stays until its own unlink is confirmed.
  if (holds(p, u.from)) (void)remove(p, u.from);
  send_small<signal::unlink_ack>(u.from, unlink_signal{table_.pid_of(p), u.number});
}

void links::receive_ack(slot& p, const unlink_signal& u) {
  const link_state* known = find(p, u.from);
  if (known != nullptr && known->unlinking == u.number) (void)remove(p, u.from);
}

// ---- monitors

monitor_ref links::monitor_unborn(slot& me) {
  side_block& side = side_of(table_, me);
  return monitor_ref{++side.refs};
}

monitor_ref links::monitor(slot& me, pid other) {
  side_block& side = side_of(table_, me);
  const monitor_ref ref{++side.refs};
  const bool fresh = side.monitors.insert(ref.value(), other);
  ensure(fresh, "a new monitor has the number of another one");
  const pid mine = table_.pid_of(me);
  if (elsewhere(other))
    remote_.tie_to({.local = mine, .remote = other, .number = ref.value(), .what = tie::kind::monitor});
  send_small<signal::monitor>(other, monitor_signal{mine, ref});
  return ref;
}

bool links::demonitor(slot& me, monitor_ref ref) {
  side_block* side = me.side;
  if (side == nullptr) return false;
  const std::optional<pid> other = side->monitors.take(ref.value());
  if (!other) return false;
  const pid mine = table_.pid_of(me);
  if (elsewhere(*other))
    remote_.untie({.local = mine, .remote = *other, .number = ref.value(), .what = tie::kind::monitor});
  remove_watch(mine, *other, ref);
  return true;
}

void links::remove_watch(pid watcher, pid target, monitor_ref ref) {
  send_small<signal::demonitor>(target, monitor_signal{watcher, ref});
}

void links::receive(slot& p, const monitor_signal& m) { add_watcher(p, m.from, m.ref); }

void links::receive_removal(slot& p, const monitor_signal& m) {
  if (p.side == nullptr) return;
  p.side->watchers.erase({m.from, m.ref});
  if (elsewhere(m.from))
    remote_.untie({.local = table_.pid_of(p), .remote = m.from, .number = m.ref.value(), .what = tie::kind::watched});
}

void links::adopt(slot& me, pid mine, pid child, bool linked, monitor_ref watched_as) {
  if (const kernel_section in_code_of_its_own{me, mine.serial()}) {
    side_block& side = side_of(table_, me);
    if (linked) side.links.insert(child, {});
    if (watched_as) side.monitors.insert(watched_as.value(), child);
  } else if (linked) {  // the spawner has ended: send the exit that the link would have sent
    kernel_.send_exit(child, {mine, exit_reason::noproc(), true});
  }
}

bool links::take_monitor(slot& p, const envelope& e) {
  side_block* side = p.side;
  if (side == nullptr) return false;
  const auto& d = static_cast<const letter<down>&>(e).body;
  if (elsewhere(d.who))
    remote_.untie({.local = table_.pid_of(p), .remote = d.who, .number = d.ref.value(), .what = tie::kind::monitor});
  return side->monitors.erase(d.ref.value());
}

// ---- signals

void links::apply(slot& p, const envelope& e) {
  switch (e.what()) {
    case signal::link: return receive(p, static_cast<const letter<link_signal>&>(e).body);
    case signal::unlink: return receive(p, static_cast<const letter<unlink_signal>&>(e).body);
    case signal::unlink_ack: return receive_ack(p, static_cast<const letter<unlink_signal>&>(e).body);
    case signal::monitor: return receive(p, static_cast<const letter<monitor_signal>&>(e).body);
    case signal::demonitor: return receive_removal(p, static_cast<const letter<monitor_signal>&>(e).body);
    default: ensure(false, "a signal that belongs to no link or monitor was applied as one");
  }
}

void links::apply_ahead(slot& p, envelope& e) {
  apply(p, e);
  e.type->drop(kernel_, e, {});
  e.become(signal::done);
}

// ---- the end

void links::notify_end(const side_block& side, pid me, const exit_reason& why, bool reported) {
  // Only the owner of the process changes the block, so sending does not change it meanwhile.
  side.links.for_each([&](pid other, const link_state& l) {
    if (elsewhere(other)) remote_.untie({.local = me, .remote = other, .what = tie::kind::link, .over = l.over});
    if (l.unlinking == 0)
      kernel_.parts().exits.send(other, {.from = me, .reason = why, .linked = true, .reported = reported});
  });
  side.watchers.for_each([&](const watch& w, nothing) {
    if (elsewhere(w.watcher))
      remote_.untie({.local = me, .remote = w.watcher, .number = w.ref.value(), .what = tie::kind::watched});
    kernel_.send(w.watcher, signal::down, make_letter<down>(plain<down>, w.ref, me, why));
  });
  side.monitors.for_each([&](std::uint64_t ref, pid other) {
    if (elsewhere(other)) remote_.untie({.local = me, .remote = other, .number = ref, .what = tie::kind::monitor});
    remove_watch(me, other, monitor_ref{ref});
  });
}

}  // namespace coppice::detail
