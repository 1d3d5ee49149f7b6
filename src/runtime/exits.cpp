#include "internal/exits.hpp"

#include "internal/claim.hpp"
#include "internal/fast_lane.hpp"
#include "internal/freezer.hpp"
#include "internal/kernel_parts.hpp"
#include "internal/lifecycle.hpp"
#include "internal/process_runner.hpp"
#include "internal/remote.hpp"

namespace coppice::detail {

namespace {

enum class fate : std::uint8_t { ignores, dies, is_told };

bool is_kill(const exited& x) noexcept { return x.reason.what() == exit_reason::kind::kill && !x.linked; }

/// What an exit signal does to its receiver, if the link it came over holds.
fate fate_of(const slot& p, const exited& x, bool from_self) noexcept {
  if (is_kill(x)) return fate::dies;
  if (p.is(slot::traps_exits)) return fate::is_told;
  if (x.reason.what() == exit_reason::kind::normal) return from_self && !x.linked ? fate::dies : fate::ignores;
  return fate::dies;
}

exit_reason as_own_reason(const exited& x) { return is_kill(x) ? exit_reason::killed() : x.reason; }

/// Whether the receiver should look for the signal ahead of its turn, because the signal may end it. If the receiver
/// starts or stops trapping exits before it looks, it receives the signal in its turn.
bool may_end(const slot& p, exit_reason::kind why, bool linked) noexcept {
  if (why == exit_reason::kind::kill) return !linked || !p.is(slot::traps_exits);
  return why != exit_reason::kind::normal && !p.is(slot::traps_exits);
}

}  // namespace

// ---- sending

void exits::send(pid to, exited x) {
  kernel_.flush_burst();
  if (!table_.covers(to)) return kernel_.send(to, signal::exit, make_letter<exited>(plain<exited>, std::move(x)));
  slot& p = table_[to.index()];
  const exit_reason::kind why = x.reason.what();
  const bool linked = x.linked;
  const pid from = x.from;
  auto* e = make_letter<exited>(plain<exited>, std::move(x));
  e->tag = envelope::tag_of(to.serial(), signal::exit);
  if (table_.has_trace_ids()) [[unlikely]]
    kernel_.parts().trace_ids.attach(*e);
  if (p.mail.push(e)) return kernel_.schedule(p);
  // After the push: a receiver that begins meanwhile finds the signal by itself, or its flags are seen here.
  const std::uint8_t wanted =
      static_cast<std::uint8_t>((may_end(p, why, linked) ? look_for_exit : 0U) |
                                (p.is(slot::has_fast_lane) && table_.is_parent(p, from) ? look_for_fast : 0U));
  if (wanted != 0) {
    const std::uint8_t before = p.urgent.fetch_or(wanted, std::memory_order_seq_cst);
    const bool kill = why == exit_reason::kind::kill && !linked;
    if (kill && (before & is_frozen) != 0) kernel_.parts().freezer.unpark(to);
  }
  if (current_turn != nullptr) ++current_turn->out.met_busy;
}

void exits::send_link_lost(pid to, pid other, connection_number lost) {
  kernel_.send(to, signal::link_lost, make_letter<link_signal>(plain<link_signal>, other, lost));
  if (table_.alive(to)) table_[to.index()].urgent.fetch_or(look_for_exit, std::memory_order_relaxed);
}

// Like `links::send_small`: an idle child has no mail that the exit could overtake, so the caller ends the child
// itself.
bool exits::end_idle(slot& me, pid child, const exit_reason& why, lifecycle& life) {
  kernel_.flush_burst();
  if (!table_.covers(child)) return false;
  fault_plan* faults = kernel_.env().faults();
  if (faults != nullptr && faults->fails("signal.direct")) return false;
  slot& p = table_[child.index()];
  const claim held{kernel_, p};
  if (!held) return false;
  const exited x{table_.pid_of(me), why, false};
  if (p.serial() != child.serial() || p.process == nullptr || !table_.is_linked_parent(p, x.from)) return false;
  if (fate_of(p, x, false) != fate::dies) return false;
  {
    // The section ends before `finish`, so that a parent that is stuck in a destructor of its child can be abandoned.
    const kernel_section mine{me, x.from.serial()};
    if (!mine) return false;
    p.set(slot::parent_linked | slot::born_linked, false);
    (void)links_.remove(me, child);
  }
  life.finish(p, as_own_reason(x), p.process, nullptr);
  life.free_slot(child.index());
  return true;
}

// ---- receiving

verdict exits::receive(slot& p, envelope& e, turn& t, process_runner& r) {
  auto& x = static_cast<letter<exited>&>(e).body;
  if (x.linked) {
    const auto was = links_.remove(p, x.from);
    if (!was || was->unlinking != 0) return r.drop(e);
  }
  switch (fate_of(p, x, x.from == table_.pid_of(p))) {
    case fate::ignores: return r.drop(e);
    case fate::is_told: return r.offer_as_message(p, e, t);
    case fate::dies: break;
  }
  t.ending = as_own_reason(x);
  (void)r.drop(e);
  return verdict::ended;
}

verdict exits::receive_link_lost(slot& p, envelope& e, turn& t, process_runner& r) {
  const link_signal l = static_cast<letter<link_signal>&>(e).body;
  (void)r.drop(e);
  if (links_.find_lost(p, l) == nullptr) return verdict::alive;
  if (links_.remove(p, l.from)->unlinking != 0) return verdict::alive;
  if (!p.is(slot::traps_exits)) {
    t.ending = exit_reason::noconnection();
    return verdict::ended;
  }
  envelope* news = make_letter<exited>(plain<exited>, l.from, exit_reason::noconnection(), true);
  news->tag = envelope::tag_of(p.serial(), signal::message);
  const verdict v = r.offer_as_message(p, *news, t);
  if (v == verdict::kept) return verdict::alive;
  release(news);
  return v;
}

// ---- looking ahead

/// The signal was dealt with before its turn: its envelope stays in the queue, empty.
void exits::drop_ahead(envelope& e) {
  if ((e.tag & envelope::has_trace) != 0) [[unlikely]]
    forget_trace(kernel_, e);
  e.type->drop(kernel_, e, {});
  e.become(signal::done);
}

/// The link and monitor signals in front of a kill arrived before it, so they take effect before it.
void exits::settle_links(slot& p, envelope* from, const envelope* kill) {
  for (envelope* e = from; e != kill; e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() != p.serial()) continue;
    if (links::is_link_signal(e->what())) {
      links_.apply_ahead(p, *e);
    } else if (e->what() == signal::exit) {
      if (const auto& x = static_cast<letter<exited>&>(*e).body; x.linked) (void)links_.remove(p, x.from);
    } else if (e->what() == signal::link_lost) {
      const link_signal& l = static_cast<letter<link_signal>&>(*e).body;
      if (links_.find_lost(p, l) != nullptr) (void)links_.remove(p, l.from);
    }
  }
}

/// The envelopes behind a push that is only half done can't be seen yet.
void exits::look_again_if_hidden(slot& p, const envelope* last) {
  if (p.mail.tail.load(std::memory_order_acquire) != last) p.urgent.fetch_or(look_for_exit, std::memory_order_relaxed);
}

bool exits::find(slot& p, envelope* from, turn& t) {
  std::uint32_t looked_at = 0;
  const envelope* last = from;
  for (envelope* e = from; e != nullptr; last = e, e = e->next.load(std::memory_order_acquire)) {
    ++looked_at;
    if (e->serial() != p.serial()) continue;
    if (links::is_link_signal(e->what())) {
      // A process that traps exits never ends because of a link: it receives a message, which must keep its place in
      // the queue, so the link signals keep theirs too.
      if (!p.is(slot::traps_exits)) links_.apply_ahead(p, *e);
      continue;
    }
    switch (e->what()) {
      case signal::exit: {
        // An exit that becomes a message, or is ignored, waits for its turn.
        const auto& x = static_cast<letter<exited>&>(*e).body;
        if ((x.linked && !links_.holds(p, x.from)) || fate_of(p, x, x.from == table_.pid_of(p)) != fate::dies) break;
        if (p.is(slot::traps_exits)) settle_links(p, from, e);
        t.ending = as_own_reason(x);
        if (x.linked) (void)links_.remove(p, x.from);
        drop_ahead(*e);
        return true;
      }
      case signal::link_lost: {
        const link_signal l = static_cast<letter<link_signal>&>(*e).body;
        const link_state* lost = links_.find_lost(p, l);
        if (p.is(slot::traps_exits) || lost == nullptr || lost->unlinking != 0) break;
        t.ending = exit_reason::noconnection();
        (void)links_.remove(p, l.from);
        drop_ahead(*e);
        return true;
      }
      default: break;
    }
  }
  look_again_if_hidden(p, last);
  count_looked_at(looked_at);
  return false;
}

bool exits::find_kill(slot& p, envelope* from, turn& t) {
  const envelope* last = from;
  for (envelope* e = from; e != nullptr; last = e, e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() != p.serial() || e->what() != signal::exit) continue;
    if (!is_kill(static_cast<letter<exited>&>(*e).body)) continue;
    settle_links(p, from, e);
    t.ending = exit_reason::killed();
    drop_ahead(*e);
    return true;
  }
  look_again_if_hidden(p, last);
  return false;
}

}  // namespace coppice::detail
