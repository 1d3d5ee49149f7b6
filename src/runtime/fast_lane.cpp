#include "internal/fast_lane.hpp"

#include <coppice/base/ensure.hpp>

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

namespace {
constexpr std::uint32_t worth_a_mark = 64;  // searching fewer envelopes again costs less than making a side block
}

void fast_lane::send(pid to, envelope* e) {
  kernel_.flush_burst();
  e->tag = envelope::tag_of(to.serial(), signal::fast);
  if (!table_.covers(to) || table_[to.index()].is_past(to.serial()))
    return kernel_.parts().remote.send_elsewhere(to, e);
  slot& p = table_[to.index()];
  if (p.mail.push(e)) return kernel_.schedule(p);
  p.urgent.fetch_or(look_for_fast, std::memory_order_relaxed);
}

/// True for signals of the fast lane, and for exits from the parent.
bool fast_lane::goes_first(const slot& p, const envelope& e) const noexcept {
  if (e.what() == signal::fast) return true;
  return e.what() == signal::exit && p.is(slot::has_fast_lane) &&
         table_.is_parent(p, static_cast<const letter<exited>&>(e).body.from);
}

void fast_lane::bring_forward(slot& p, envelope* from) {
  if (from == nullptr) return;
  if (goes_first(p, *from)) {  // the oldest of them is next anyway: search for the others when it is done
    p.urgent.fetch_or(look_for_fast, std::memory_order_relaxed);
    return;
  }
  envelope* before = nullptr;
  envelope* last = from;
  envelope* searched = nullptr;
  std::uint32_t looked_at = 0;
  for (envelope* e = p.side != nullptr && p.side->seen != nullptr ? p.side->seen : from; e != nullptr;
       last = e, e = e->next.load(std::memory_order_acquire)) {
    ++looked_at;
    if (e->serial() != p.serial()) continue;
    // A process that monitors this one and then stops it must receive its exit reason, not `noproc`.
    if (e->what() == signal::monitor || e->what() == signal::demonitor) links_.apply_ahead(p, *e);
    if (e->what() == signal::message || e->what() == signal::done) searched = e;
    if (!goes_first(p, *e)) continue;
    ensure(e->type->relocate != nullptr, "a signal of the fast lane can't be moved within its queue");
    envelope* moved = e->type->relocate(*e);
    e->become(signal::done);
    searched = e;
    moved->next.store(from, std::memory_order_relaxed);
    if (before != nullptr)
      before->next.store(moved, std::memory_order_relaxed);
    else
      p.mail.head = moved;
    before = moved;
  }
  if (searched != nullptr && looked_at > worth_a_mark) mark(p, *searched);
  exits_.count_looked_at(looked_at);
  // The envelopes behind a push that is only half done can't be seen yet.
  if (p.mail.tail.load(std::memory_order_acquire) != last) p.urgent.fetch_or(look_for_fast, std::memory_order_relaxed);
}

void fast_lane::mark(slot& p, envelope& e) {
  unmark(p);
  side_block& side = side_of(table_, p);
  side.seen = &e;
  side.seen_was = e.what();
  e.become(signal::seen);
}

void fast_lane::unmark(slot& p) {
  if (p.side == nullptr || p.side->seen == nullptr) return;
  envelope* marked = std::exchange(p.side->seen, nullptr);
  ensure(marked->what() == signal::seen, "the mark of the fast lane was overwritten");
  marked->become(p.side->seen_was);
}

}  // namespace coppice::detail
