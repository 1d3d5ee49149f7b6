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
bool is_linked_parent(const kernel& k, const slot& p, pid other) {
  return p.is(slot::parent_linked) && other.node() == k.node() && other.index() == p.parent_index &&
         other.serial() == p.parent_serial;
}
}  // namespace

/// Sends a signal that is no message. When the receiver is idle there is nothing that this signal could overtake, so
/// the sender takes the process over for a moment and applies it: no allocation, and nobody is scheduled for it.
template <signal s, class Content>
[[gnu::always_inline]] inline void kernel::send_small(pid to, const Content& content) {
  flush_burst();
  const bool local = !elsewhere(to) && to.index() < table_size_;
  const bool detour = faults_ != nullptr && faults_->fails("signal.direct");
  slot& p = table_[local ? to.index() : 0];
  envelope hold{nullptr};
  if (!local || detour || !p.mail.claim(&hold)) [[unlikely]] {
    send(to, s, make_letter<Content>(plain<Content>, content));
    return;
  }
  const claim_guard giving_back{*this, p, hold};
  if (p.serial() == to.serial() && p.process != nullptr) [[likely]] {
    if constexpr (s == signal::link) receive_link(p, content);
    if constexpr (s == signal::unlink) receive_unlink(p, content);
    if constexpr (s == signal::unlink_ack) receive_unlink_ack(p, content);
    if constexpr (s == signal::monitor) receive_monitor(p, content);
    if constexpr (s == signal::demonitor) receive_demonitor(p, content);
  } else {
    letter<Content> unread{&plain<Content>, content};
    unread.tag = envelope::tag_of(to.serial(), s);
    bounce(to, unread, exit_reason::noproc());
  }
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
  const link_state fresh{.over = connection_to(other)};
  const tie lost_with{.local = mine, .remote = other, .what = tie::kind::link, .over = fresh.over};
  if (link_state* known = side.links.find(other)) {
    if (known->unlinking == 0) return;
    if (known->over != fresh.over) {
      untie(other, {.local = mine, .remote = other, .what = tie::kind::link, .over = known->over});
      if (fresh.over != 0) ties_->add(other.node(), lost_with);
    }
    *known = fresh;
  } else {
    side.links.insert(other, fresh);
    if (fresh.over != 0) ties_->add(other.node(), lost_with);
  }
  send_small<signal::link>(other, link_signal{mine, fresh.over});
}

void kernel::unlink(slot& me, pid other) {
  const pid mine = pid_of(me);
  const bool parent = is_linked_parent(*this, me, other);
  if (!parent && me.side == nullptr) return;
  side_block& side = side_of(me);
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

namespace {

const link_state* find_link(const slot& p, pid other) {
  return p.side != nullptr ? p.side->links.find(other) : nullptr;
}
/// The link that is lost with this connection; null: there is none, or it was made anew over another one.
const link_state* find_lost_link(const slot& p, const link_signal& l) {
  const link_state* known = find_link(p, l.from);
  return known != nullptr && known->over == l.over ? known : nullptr;
}

bool is_linked(const kernel& k, const slot& p, pid other) {
  if (is_linked_parent(k, p, other)) return true;
  const link_state* known = find_link(p, other);
  return known != nullptr && known->unlinking == 0;
}

}  // namespace

bool kernel::will_tell(const slot& me, pid child) const noexcept {
  if (!alive(child) || !is_parent(table_[child.index()], pid_of(me))) return false;
  // An unlink of our own is on its way: should the child end before it arrives, its exit is dropped.
  const link_state* known = find_link(me, child);
  return known == nullptr || known->unlinking == 0;
}

/// Removes the link of `p` to `other`, or what an unlink has left of it; gives what it was.
std::optional<link_state> kernel::remove_link(slot& p, pid other) {
  if (is_linked_parent(*this, p, other)) {
    p.set(slot::parent_linked, false);
    return link_state{};
  }
  if (p.side == nullptr) return {};
  const std::optional<link_state> was = p.side->links.take(other);
  // Without a connection it was never tied, and must not take away what another link is tied to.
  if (was && was->over != 0)
    untie(other, {.local = pid_of(p), .remote = other, .what = tie::kind::link, .over = was->over});
  return was;
}

void kernel::receive_link(slot& p, const link_signal& l) {
  if (is_linked_parent(*this, p, l.from)) return;
  // Tied on arrival; once is enough.
  if (!side_of(p).links.insert(l.from, {.over = l.over}) && elsewhere(l.from))
    untie(l.from, {.local = pid_of(p), .remote = l.from, .what = tie::kind::link, .over = l.over});
}

void kernel::receive_unlink(slot& p, const unlink_signal& u) {
  // When both have unlinked, each waits for the other's word only; a link made in between is then part of neither.
  if (is_linked(*this, p, u.from)) (void)remove_link(p, u.from);
  send_small<signal::unlink_ack>(u.from, unlink_signal{pid_of(p), u.number});
}

void kernel::receive_unlink_ack(slot& p, const unlink_signal& u) {
  const link_state* known = find_link(p, u.from);
  if (known != nullptr && known->unlinking == u.number) (void)remove_link(p, u.from);
}

void kernel::receive_monitor(slot& p, const monitor_signal& m) { side_of(p).watchers.insert({m.from, m.ref}, {}); }

void kernel::receive_demonitor(slot& p, const monitor_signal& m) {
  if (p.side == nullptr) return;
  p.side->watchers.erase({m.from, m.ref});
  if (elsewhere(m.from))
    untie(m.from, {.local = pid_of(p), .remote = m.from, .number = m.ref.value(), .what = tie::kind::watched});
}

/// One of the signals above, from the queue.
void kernel::apply(slot& p, const envelope& e) {
  switch (e.what()) {
    case signal::link: return receive_link(p, static_cast<const letter<link_signal>&>(e).body);
    case signal::unlink: return receive_unlink(p, static_cast<const letter<unlink_signal>&>(e).body);
    case signal::unlink_ack: return receive_unlink_ack(p, static_cast<const letter<unlink_signal>&>(e).body);
    case signal::monitor: return receive_monitor(p, static_cast<const letter<monitor_signal>&>(e).body);
    case signal::demonitor: return receive_demonitor(p, static_cast<const letter<monitor_signal>&>(e).body);
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
  side.monitors.insert(ref.value(), other);
  if (elsewhere(other))
    tie_to(other, {.local = pid_of(me), .remote = other, .number = ref.value(), .what = tie::kind::monitor});
  send_small<signal::monitor>(other, monitor_signal{pid_of(me), ref});
  return ref;
}

bool kernel::demonitor(slot& me, monitor_ref ref) {
  side_block* side = me.side;
  if (side == nullptr) return false;
  const pid* target = side->monitors.find(ref.value());
  if (target == nullptr) return false;
  const pid other = *target;
  side->monitors.erase(ref.value());
  if (elsewhere(other))
    untie(other, {.local = pid_of(me), .remote = other, .number = ref.value(), .what = tie::kind::monitor});
  drop_watch(pid_of(me), other, ref);
  return true;
}

void kernel::drop_watch(pid watcher, pid target, monitor_ref ref) {
  send_small<signal::demonitor>(target, monitor_signal{watcher, ref});
}

void kernel::adopt(slot& me, pid mine, pid child, bool linked, monitor_ref watched_as) {
  if (const kernel_section in_code_of_its_own{me, mine.serial()}) {
    side_block& side = side_of(me);
    if (linked) side.links.insert(child, {});
    if (watched_as) side.monitors.insert(watched_as.value(), child);
  } else if (linked) {  // spawned by what has ended: the link tells so
    send_exit(child, {mine, exit_reason::noproc(), true});
  }
}

bool kernel::take_down(slot& p, envelope& e) {
  side_block* side = p.side;
  if (side == nullptr) return false;
  const auto& d = static_cast<letter<down>&>(e).body;
  if (elsewhere(d.who))
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
  const bool is_order = p.is(slot::takes_orders) && is_parent(p, x.from);
  auto* e = make_letter<exited>(plain<exited>, std::move(x));
  e->tag = envelope::tag_of(to.serial(), signal::exit);
  if (p.mail.push(e)) return schedule(p);
  if (may_end_it) p.urgent.fetch_or(look_for_exit, std::memory_order_relaxed);
  if (is_order) p.urgent.fetch_or(look_for_orders, std::memory_order_relaxed);
  if (current_turn != nullptr) ++current_turn->out.met_busy;
}

void kernel::send_order(pid to, envelope* e) {
  flush_burst();
  e->tag = envelope::tag_of(to.serial(), signal::order);
  if (to.node() != node_ || to.index() >= table_size_) return send_elsewhere(to, e);
  slot& p = table_[to.index()];
  if (p.is_past(to.serial())) return send_elsewhere(to, e);
  if (p.mail.push(e)) return schedule(p);
  p.urgent.fetch_or(look_for_orders, std::memory_order_relaxed);
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

// What `send_small` is for small signals: with nothing that waits for it, the child would do nothing else in its turn.
bool kernel::end_idle(slot& me, pid child, const exit_reason& why) {
  flush_burst();
  if (elsewhere(child) || child.index() >= table_size_) return false;
  if (faults_ != nullptr && faults_->fails("signal.direct")) return false;
  slot& p = table_[child.index()];
  envelope hold{nullptr};
  if (!p.mail.claim(&hold)) return false;
  const claim_guard giving_back{*this, p, hold};
  const exited x{pid_of(me), why, false};
  if (p.serial() != child.serial() || p.process == nullptr || !is_linked_parent(*this, p, x.from)) return false;
  if (fate_of(p, x, false) != fate::dies) return false;
  {
    // Not for longer: whoever is stuck in a destructor of its child can be abandoned.
    const kernel_section mine{me, x.from.serial()};
    if (!mine) return false;
    p.set(slot::parent_linked | slot::born_linked, false);
    (void)remove_link(me, child);
  }
  finish(p, as_own_reason(x), p.process, nullptr);
  free_slot(child.index());
  return true;
}

verdict kernel::handle_exit(slot& p, envelope& e, turn& t) {
  auto& x = static_cast<letter<exited>&>(e).body;
  if (x.linked) {
    const auto was = remove_link(p, x.from);
    if (!was || was->unlinking != 0) return dropped(e);
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

void kernel::send_link_lost(pid to, pid other, connection_number lost) {
  send(to, signal::link_lost, make_letter<link_signal>(plain<link_signal>, other, lost));
  if (alive(to)) table_[to.index()].urgent.fetch_or(look_for_exit, std::memory_order_relaxed);
}

verdict kernel::handle_link_lost(slot& p, envelope& e, turn& t) {
  const link_signal l = static_cast<letter<link_signal>&>(e).body;
  (void)dropped(e);
  if (find_lost_link(p, l) == nullptr) return verdict::alive;
  if (remove_link(p, l.from)->unlinking != 0) return verdict::alive;
  if (!p.is(slot::traps_exits)) {
    t.ending = exit_reason::noconnection();
    return verdict::ended;
  }
  envelope* news = make_letter<exited>(plain<exited>, l.from, exit_reason::noconnection(), true);
  news->tag = envelope::tag_of(p.serial(), signal::message);
  const verdict v = offer_as_message(p, *news, t);
  if (v == verdict::kept) return verdict::alive;
  release(news);
  return v;
}

/// Before its turn, which then finds it done.
void kernel::apply_ahead(slot& p, envelope& e) {
  apply(p, e);
  (void)dropped(e);
  e.become(signal::done);
}

/// A kill was found behind these: what they say of links and monitors was said before it.
void kernel::settle_links(slot& p, envelope* from, const envelope* kill) {
  for (envelope* e = from; e != kill; e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() != p.serial()) continue;
    switch (e->what()) {
      case signal::link:
      case signal::unlink:
      case signal::unlink_ack:
      case signal::monitor:
      case signal::demonitor: apply_ahead(p, *e); break;
      case signal::exit:
        if (const auto& x = static_cast<letter<exited>&>(*e).body; x.linked) (void)remove_link(p, x.from);
        break;
      case signal::link_lost: {
        const link_signal& l = static_cast<letter<link_signal>&>(*e).body;
        if (find_lost_link(p, l) != nullptr) (void)remove_link(p, l.from);
        break;
      }
      default: break;
    }
  }
}

namespace {

/// What an actor takes before its mail: orders, and what its parent's exit says.
bool goes_first(kernel& k, const slot& p, const envelope& e) {
  if (e.what() == signal::order) return true;
  return e.what() == signal::exit && p.is(slot::takes_orders) &&
         k.is_parent(p, static_cast<const letter<exited>&>(e).body.from);
}

}  // namespace

/// Moves what goes first to the head of the queue, in its order. Their places stay where they were, empty. Where it has
/// looked through a long queue it leaves a mark, so that the next time it begins there.
void kernel::bring_forward(slot& p, envelope* from) {
  if (from == nullptr) return;
  if (goes_first(*this, p, *from)) {  // the oldest of them: the others when it is done
    p.urgent.fetch_or(look_for_orders, std::memory_order_relaxed);
    return;
  }
  envelope* before = nullptr;
  envelope* last = from;
  envelope* mark = nullptr;
  std::uint32_t looked_at = 0;
  for (envelope* e = p.side != nullptr && p.side->seen != nullptr ? p.side->seen : from; e != nullptr;
       last = e, e = e->next.load(std::memory_order_acquire)) {
    ++looked_at;
    if (e->serial() != p.serial()) continue;
    // Whoever watches it and then tells it to stop wants to hear how it ended.
    if (e->what() == signal::monitor || e->what() == signal::demonitor) apply_ahead(p, *e);
    if (e->what() == signal::message || e->what() == signal::done) mark = e;
    if (!goes_first(*this, p, *e)) continue;
    envelope* moved = e->type->relocate(*e);
    e->become(signal::done);
    mark = e;
    moved->next.store(from, std::memory_order_relaxed);
    if (before != nullptr)
      before->next.store(moved, std::memory_order_relaxed);
    else
      p.mail.head = moved;
    before = moved;
  }
  constexpr std::uint32_t worth_a_mark = 64;  // fewer are looked through again sooner than a side block is made
  if (mark != nullptr && looked_at > worth_a_mark) {
    unmark(p);
    side_block& side = side_of(p);
    side.seen = mark;
    side.seen_was = mark->what();
    mark->become(signal::seen);
  }
  looked_ahead_.fetch_add(looked_at, std::memory_order_relaxed);
  // Behind a push that is only half done nothing can be seen yet.
  if (p.mail.tail.load(std::memory_order_acquire) != last)
    p.urgent.fetch_or(look_for_orders, std::memory_order_relaxed);
}

bool kernel::is_message(const slot& p, const envelope& e) noexcept {
  return e.what() == signal::message || (e.what() == signal::seen && p.side->seen_was == signal::message);
}

void kernel::unmark(slot& p) {
  if (p.side == nullptr || p.side->seen == nullptr) return;
  std::exchange(p.side->seen, nullptr)->become(p.side->seen_was);
}

bool kernel::look_ahead(slot& p, envelope* from, turn& t) {
  if (p.process == nullptr) return false;  // not born yet: once it is
  const std::uint8_t wanted = p.urgent.exchange(0, std::memory_order_seq_cst);
  if ((wanted & (look_for_exit | look_at_yourself)) != 0 && find_exit(p, from, t, wanted)) return true;
  if ((wanted & look_for_orders) != 0 && !p.is(slot::drains)) bring_forward(p, from);
  if ((wanted & look_at_yourself) != 0) describe_yourself(p);
  return false;
}

/// True: the process ends by a signal that is in its queue. Otherwise it was counted what waits.
bool kernel::find_exit(slot& p, envelope* from, turn& t, std::uint8_t wanted) {
  std::uint32_t waiting = p.process->type->held(*p.process);
  std::uint32_t looked_at = 0;
  const envelope* last = from;
  for (envelope* e = from; e != nullptr; last = e, e = e->next.load(std::memory_order_acquire)) {
    ++looked_at;
    if (e->serial() != p.serial()) continue;
    switch (e->what()) {
      case signal::seen:
      case signal::message: waiting += is_message(p, *e) ? 1U : 0U; break;
      case signal::link:
      case signal::unlink:
      case signal::unlink_ack:
      case signal::monitor:
      case signal::demonitor:
        // No link ends a process that traps, and the news of a lost one waits for its turn: so do these behind it.
        if (p.is(slot::traps_exits)) break;
        apply_ahead(p, *e);
        break;
      case signal::exit: {
        // What becomes a message or nothing waits for its turn.
        const auto& x = static_cast<letter<exited>&>(*e).body;
        if ((x.linked && !is_linked(*this, p, x.from)) || fate_of(p, x, x.from == pid_of(p)) != fate::dies) break;
        if (p.is(slot::traps_exits)) settle_links(p, from, e);
        t.ending = as_own_reason(x);
        if (x.linked) (void)remove_link(p, x.from);
        (void)dropped(*e);
        e->become(signal::done);
        return true;
      }
      case signal::link_lost: {
        const link_signal l = static_cast<letter<link_signal>&>(*e).body;
        const link_state* lost = find_lost_link(p, l);
        if (p.is(slot::traps_exits) || lost == nullptr || lost->unlinking != 0) break;
        t.ending = exit_reason::noconnection();
        (void)remove_link(p, l.from);
        (void)dropped(*e);
        e->become(signal::done);
        return true;
      }
      default: break;
    }
  }
  // Behind a push that is only half done nothing can be seen yet.
  if (p.mail.tail.load(std::memory_order_acquire) != last)
    p.urgent.fetch_or(wanted & look_for_exit, std::memory_order_relaxed);
  looked_ahead_.fetch_add(looked_at, std::memory_order_relaxed);
  p.length.store(waiting, std::memory_order_relaxed);
  return false;
}

}  // namespace coppice::detail
