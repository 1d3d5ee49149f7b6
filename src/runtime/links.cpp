// Links, monitors and exit signals (reference facts 1-12).
#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/no_such_process.hpp>

#include "internal/link_signals.hpp"
#include "internal/remote_ties.hpp"
#include "internal/side_block.hpp"
#include "internal/workers.hpp"

namespace coppice::detail {

namespace {
constexpr std::uint64_t not_linked = ~std::uint64_t{0};

bool is_linked_parent(const kernel& k, const slot& p, pid other) {
  return p.is(slot::parent_linked) && other.node() == k.node() && other.index() == p.parent_index &&
         other.serial() == p.parent_serial;
}
}  // namespace

/// Sends a signal that is no message. When the receiver is idle there is nothing that this signal could overtake, so
/// the sender takes the process over for a moment and applies it: no allocation, and nobody is scheduled for it.
template <class Signal>
void kernel::send_small(pid to, signal s, Signal content) {
  flush_burst();
  letter<Signal> mine{&plain<Signal>, content};
  mine.tag = envelope::tag_of(to.serial(), s);
  const bool local = to.node() == node_ && to.index() < table_size_;
  const bool detour = faults_ != nullptr && faults_->fails("signal.direct");
  slot& p = table_[local ? to.index() : 0];
  if (!local || detour || !p.mail.claim(&mine)) {
    send(to, s, make_letter<Signal>(plain<Signal>, std::move(mine.body)));
    return;
  }
  if (p.serial() == to.serial() && p.process != nullptr)
    apply(p, mine);
  else
    bounce(to, mine, exit_reason::noproc());
  release_claim(p, mine);
}

void kernel::release_claim(slot& p, envelope& mine) {
  envelope* n = nullptr;
  mailbox::step step = p.mail.advance(&mine, n);
  while (step == mailbox::step::hidden) step = p.mail.advance(&mine, n);
  if (step == mailbox::step::idle) return;
  p.mail.head = n;
  schedule(p);
}

// ---- links
//
// Each side keeps an entry for the link. An unlink takes effect at once on its own side; the entry stays, numbered,
// until the other side has confirmed, so that a link made anew meanwhile is not mistaken for the old one.

void kernel::link(slot& me, pid other) {
  const pid mine = pid_of(me);
  if (other == mine) return;
  if (is_linked_parent(*this, me, other)) return;
  const bool known_dead = !other || (other.node() == node_ && !alive(other));
  if (known_dead && !me.is(slot::traps_exits)) throw no_such_process{other};
  side_block& side = side_of(me);
  if (std::uint64_t* unlinking = side.links.find(other)) {
    if (*unlinking == 0) return;
    *unlinking = 0;
  } else {
    side.links.insert(other, 0);
    tie_to(other, {.local = mine, .remote = other, .what = tie::kind::link});
  }
  send_small(other, signal::link, link_signal{mine});
}

void kernel::unlink(slot& me, pid other) {
  const pid mine = pid_of(me);
  const bool parent = is_linked_parent(*this, me, other);
  if (!parent && me.side == nullptr) return;
  side_block& side = side_of(me);
  std::uint64_t number = 0;
  {
    if (parent) {
      me.set(slot::parent_linked, false);
      side.links.insert(other, number = ++side.unlinks);
    } else {
      std::uint64_t* unlinking = side.links.find(other);
      if (unlinking == nullptr || *unlinking != 0) return;
      *unlinking = number = ++side.unlinks;
    }
  }
  send_small(other, signal::unlink, unlink_signal{mine, number});
}

namespace {

bool is_linked(const kernel& k, const slot& p, pid other) {
  if (is_linked_parent(k, p, other)) return true;
  side_block* side = p.side;
  if (side == nullptr) return false;
  const std::uint64_t* unlinking = side->links.find(other);
  return unlinking != nullptr && *unlinking == 0;
}

/// Removes the link of `p` to `other`; the number of its unlink, 0 for a live link, or `not_linked`.
std::uint64_t remove_link(kernel& k, slot& p, pid other) {
  if (is_linked_parent(k, p, other)) {
    p.set(slot::parent_linked, false);
    return 0;
  }
  side_block* side = p.side;
  if (side == nullptr) return not_linked;
  const std::uint64_t* unlinking = side->links.find(other);
  if (unlinking == nullptr) return not_linked;
  const std::uint64_t was = *unlinking;
  side->links.erase(other);
  return was;
}

}  // namespace

void kernel::apply(slot& p, const envelope& e) {
  switch (e.what()) {
    case signal::link: {
      const pid from = static_cast<const letter<link_signal>&>(e).body.from;
      if (is_linked_parent(*this, p, from)) return;
      side_block& side = side_of(p);
      // Tied on arrival; once is enough.
      if (!side.links.insert(from, 0)) untie(from, {.local = pid_of(p), .remote = from, .what = tie::kind::link});
      return;
    }
    case signal::unlink: {
      // When both have unlinked, each waits for the other's word only; a link made in between is then part of neither.
      const auto u = static_cast<const letter<unlink_signal>&>(e).body;
      if (is_linked(*this, p, u.from)) {
        remove_link(*this, p, u.from);
        untie(u.from, {.local = pid_of(p), .remote = u.from, .what = tie::kind::link});
      }
      send_small(u.from, signal::unlink_ack, unlink_signal{pid_of(p), u.number});
      return;
    }
    case signal::unlink_ack: {
      const auto u = static_cast<const letter<unlink_signal>&>(e).body;
      side_block* side = p.side;
      if (side == nullptr) return;
      const std::uint64_t* unlinking = side->links.find(u.from);
      if (unlinking == nullptr || *unlinking != u.number) return;
      side->links.erase(u.from);
      untie(u.from, {.local = pid_of(p), .remote = u.from, .what = tie::kind::link});
      return;
    }
    case signal::monitor: {
      const auto m = static_cast<const letter<monitor_signal>&>(e).body;
      side_of(p).watchers.insert({m.from, m.ref}, {});
      return;
    }
    case signal::demonitor: {
      const auto m = static_cast<const letter<monitor_signal>&>(e).body;
      side_block* side = p.side;
      if (side == nullptr) return;
      side->watchers.erase({m.from, m.ref});
      untie(m.from, {.local = pid_of(p), .remote = m.from, .number = m.ref.value(), .what = tie::kind::watched});
      return;
    }
    default: ensure(false, "a signal that is not applied");
  }
}

// ---- monitors

monitor_ref kernel::monitor_unborn(slot& me) {
  side_block& side = side_of(me);
  return monitor_ref{++side.refs};
}

monitor_ref kernel::monitor(slot& me, pid other) {
  side_block& side = side_of(me);
  const monitor_ref ref{++side.refs};
  { side.monitors.insert(ref.value(), other); }
  tie_to(other, {.local = pid_of(me), .remote = other, .number = ref.value(), .what = tie::kind::monitor});
  send_small(other, signal::monitor, monitor_signal{pid_of(me), ref});
  return ref;
}

bool kernel::demonitor(slot& me, monitor_ref ref) {
  side_block* side = me.side;
  if (side == nullptr) return false;
  pid other;
  {
    const pid* target = side->monitors.find(ref.value());
    if (target == nullptr) return false;
    other = *target;
    side->monitors.erase(ref.value());
  }
  untie(other, {.local = pid_of(me), .remote = other, .number = ref.value(), .what = tie::kind::monitor});
  drop_watch(pid_of(me), other, ref);
  return true;
}

void kernel::drop_watch(pid watcher, pid target, monitor_ref ref) {
  send_small(target, signal::demonitor, monitor_signal{watcher, ref});
}

void kernel::adopt(slot& me, pid child, bool linked, monitor_ref watched_as) {
  side_block& side = side_of(me);
  if (linked) side.links.insert(child, 0);
  if (watched_as) side.monitors.insert(watched_as.value(), child);
}

bool kernel::take_down(slot& p, envelope& e) {
  side_block* side = p.side;
  if (side == nullptr) return false;
  const auto& d = static_cast<letter<down>&>(e).body;
  untie(d.who, {.local = pid_of(p), .remote = d.who, .number = d.ref.value(), .what = tie::kind::monitor});
  return side->monitors.erase(d.ref.value());
}

// ---- exits

void kernel::send_exit(pid to, exited x) {
  flush_burst();
  if (to.node() != node_ || to.index() >= table_size_)
    return send(to, signal::exit, make_letter<exited>(plain<exited>, std::move(x)));
  slot& p = table_[to.index()];
  // Only what may end the receiver is worth looking ahead for. It may change its mind about trapping: then the signal
  // is received in its turn.
  const auto why = x.reason.what();
  const bool may_end_it = why == exit_reason::kind::kill ? !x.linked || !p.is(slot::traps_exits)
                                                         : why != exit_reason::kind::normal && !p.is(slot::traps_exits);
  auto* e = make_letter<exited>(plain<exited>, std::move(x));
  e->tag = envelope::tag_of(to.serial(), signal::exit);
  if (p.mail.push(e)) return schedule(p);
  if (may_end_it) p.urgent.fetch_or(look_for_exit, std::memory_order_relaxed);
  if (current_turn != nullptr) ++current_turn->out.met_busy;
}

namespace {

enum class fate : std::uint8_t { ignores, dies, is_told };

/// The reception matrix (fact 6), for a signal whose link is known to hold.
fate fate_of(const slot& p, const exited& x, bool from_self) {
  using kind = exit_reason::kind;
  if (x.reason.what() == kind::kill && !x.linked) return fate::dies;
  if (p.is(slot::traps_exits)) return fate::is_told;
  if (x.reason.what() == kind::normal) return from_self && !x.linked ? fate::dies : fate::ignores;
  return fate::dies;
}
exit_reason as_own_reason(const exited& x) {
  return x.reason.what() == exit_reason::kind::kill && !x.linked ? exit_reason::killed() : x.reason;
}

}  // namespace

verdict kernel::handle_exit(slot& p, envelope& e, turn& t) {
  auto& x = static_cast<letter<exited>&>(e).body;
  if (x.linked) {
    const std::uint64_t unlinking = remove_link(*this, p, x.from);
    if (unlinking != not_linked) untie(x.from, {.local = pid_of(p), .remote = x.from, .what = tie::kind::link});
    if (unlinking != 0) return dropped(e);
    // The connection may be back, and the other side may never have noticed: then it hears of the broken link from us.
    if (x.from.node() != node_ && x.reason.what() == exit_reason::kind::noconnection)
      send_exit(x.from, {pid_of(p), exit_reason::noconnection(), true});
  }
  switch (fate_of(p, x, x.from == pid_of(p))) {
    case fate::ignores: return dropped(e);
    case fate::is_told: return offer_as_message(p, e, t);
    case fate::dies: break;
  }
  t.ending = as_own_reason(x);
  (void)dropped(e);
  return verdict::ended;
}

bool kernel::look_ahead(slot& p, envelope* from, turn& t) {
  const std::uint8_t wanted = p.urgent.exchange(0, std::memory_order_seq_cst);
  if (p.process == nullptr) return false;
  std::uint32_t waiting = p.process->type->held(*p.process);
  for (envelope* e = from; e != nullptr; e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() != p.serial()) continue;
    switch (e->what()) {
      case signal::message: ++waiting; break;
      case signal::link:
      case signal::unlink:
      case signal::unlink_ack:
      case signal::monitor:
      case signal::demonitor:
        apply(p, *e);
        (void)dropped(*e);
        e->become(signal::done);
        break;
      case signal::exit: {
        // What becomes a message or nothing waits for its turn.
        const auto& x = static_cast<letter<exited>&>(*e).body;
        if ((x.linked && !is_linked(*this, p, x.from)) || fate_of(p, x, x.from == pid_of(p)) != fate::dies) break;
        t.ending = as_own_reason(x);
        if (x.linked) remove_link(*this, p, x.from);
        (void)dropped(*e);
        e->become(signal::done);
        return true;
      }
      default: break;
    }
  }
  p.length.store(waiting, std::memory_order_relaxed);
  if ((wanted & look_at_yourself) != 0) describe_yourself(p);
  return false;
}

}  // namespace coppice::detail
