#include "internal/trace_ids.hpp"

namespace coppice::detail {

// ---- messages

void trace_ids::attach(envelope& e, const trace_context& as) {
  if (!as) return;
  try {
    shard& s = shard_of(e);
    const std::scoped_lock lock{s.mutex};
    s.in_flight.insert_or_assign(&e, as);
    e.tag |= envelope::has_trace;
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the message goes without its trace
  }
}

trace_context trace_ids::take(envelope& e) noexcept {
  if ((e.tag & envelope::has_trace) == 0) return {};
  e.tag &= ~envelope::has_trace;
  shard& s = shard_of(e);
  const std::scoped_lock lock{s.mutex};
  const auto found = s.in_flight.extract(&e);
  return found ? found.mapped() : trace_context{};
}

std::size_t trace_ids::in_flight() {
  std::size_t all = 0;
  for (shard& s : shards_) {
    const std::scoped_lock lock{s.mutex};
    all += s.in_flight.size();
  }
  return all;
}

// ---- processes

trace_context trace_ids::next_step(const trace_context& from) {
  trace_context next = from;
  next.parent = from.span;
  do next.span = kernel_.env().random().next();
  while (next.span == 0);
  return next;
}

void trace_ids::set(slot& p, const trace_context& now, turn& t) {
  t.trace = now;
  if (!now && (p.side == nullptr || p.side->notes == nullptr)) return;
  try {
    observer_notes& notes = notes_of(side_of(kernel_.table(), p));
    notes.trace_before = std::exchange(notes.trace, now);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): after its next wait it belongs to no trace
  }
}

void trace_ids::receive(slot& p, envelope& e, turn& t) {
  const trace_context sent_in = take(e);
  set(p, sent_in ? next_step(sent_in) : trace_context{}, t);
}

void trace_ids::keep(envelope& e, const turn& t) {
  trace_context sent_in = t.trace;
  sent_in.span = sent_in.parent;
  attach(e, sent_in);
}

void trace_ids::put_aside(slot& p, envelope& e, turn& t) {
  keep(e, t);
  t.trace = {};
  if (p.side == nullptr || p.side->notes == nullptr) return;
  t.trace = p.side->notes->trace = p.side->notes->trace_before;
}

void trace_ids::begin(slot& p, envelope& e, turn& t) {
  t.trace = {};
  if (e.serial() != p.serial()) return;  // not for this process: it becomes a dead letter or an error
  switch (e.what()) {
    case signal::message:
    case signal::start: return receive(p, e, t);
    case signal::seen:
      if (kernel::is_message(p, e)) receive(p, e, t);
      return;
    case signal::fast: return;     // an order of the library to an actor
    default: return resume(p, t);  // if this becomes a message, `receive` follows
  }
}

void trace_ids::resume(const slot& p, turn& t) noexcept {
  t.trace = p.side != nullptr && p.side->notes != nullptr ? p.side->notes->trace : trace_context{};
}

trace_context trace_ids::begin_trace(slot& p, const trace_context& from, turn& t) {
  trace_context first = from;
  if (!first) {
    first = {.id_high = kernel_.env().random().next(), .id_low = kernel_.env().random().next()};
    if (!first) first.id_low = 1;
  }
  set(p, next_step(first), t);
  return t.trace;
}

}  // namespace coppice::detail
