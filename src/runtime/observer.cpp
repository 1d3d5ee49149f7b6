#include "internal/observer.hpp"

#include <array>

#include <coppice/runtime/detail/event_stream.hpp>

#include "internal/claim.hpp"
#include "internal/kernel_parts.hpp"
#include "internal/workers.hpp"

namespace coppice {

std::string_view to_string(process_state state) noexcept {
  switch (state) {
    case process_state::waiting: return "waiting";
    case process_state::runnable: return "runnable";
    case process_state::running: return "running";
    case process_state::frozen: return "frozen";
  }
  return "unknown";
}

namespace detail {

process_info observer::describe(slot& p, view from) {
  process_info out;
  out.id = table_.pid_of(p);
  out.traps_exits = p.is(slot::traps_exits);
  out.handled = p.handled.load(std::memory_order_relaxed);
  out.mailbox = p.length.load(std::memory_order_relaxed);
  out.memory = sizeof(slot) + std::size_t{16} * p.body_units.load(std::memory_order_relaxed);
  const auto born = std::chrono::milliseconds{100} * p.born_ds.load(std::memory_order_relaxed);
  const auto age = kernel_.env().clock().coarse_now() - kernel_.parts().lifecycle.started() - born;
  out.age = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(age), std::chrono::milliseconds{0});
  out.parent = table_.parent_of(p);
  if (out.parent && p.is(slot::parent_linked)) out.links.push_back(out.parent);
  if (p.named.load(std::memory_order_relaxed) != 0) {
    name_table::entry texts = kernel_.parts().names.of(out.id);
    out.name = std::move(texts.name);
    out.label = std::move(texts.label);
  }
  if (from == view::from_outside || p.side == nullptr) return out;
  out.memory += p.side->bytes();
  out.monitors = static_cast<std::uint32_t>(p.side->monitors.size());
  out.monitored = static_cast<std::uint32_t>(p.side->watchers.size());
  p.side->links.for_each([&](pid other, const link_state& l) {
    if (l.unlinking == 0) out.links.push_back(other);
  });
  return out;
}

/// An idle process is claimed for a moment, so that it does not change meanwhile. False: the process is busy, and was
/// asked to describe itself.
bool observer::look_at(slot& p, std::vector<process_info>& into) {
  if (const claim mine{kernel_, p}) {
    if (!p.is(slot::has_process)) return true;
    p.length.store(p.process->type->held(*p.process), std::memory_order_relaxed);
    into.push_back(describe(p, view::as_owner));
    return true;
  }
  const bool frozen =
      kernel_.parts().freezer.any() && kernel_.parts().freezer.inspect(table_.pid_of(p), [&](slot& parked) {
        count_waiting(parked, parked.mail.head);
        into.push_back(describe(parked, view::as_owner));
        into.back().state = process_state::frozen;
      });
  if (frozen) return true;
  if (turn_here() != nullptr && turn_here()->p == &p) {  // called by its own code
    const kernel_section mine{p, p.serial()};
    if (!mine) return false;
    count_waiting(p, p.mail.head->next.load(std::memory_order_acquire));
    into.push_back(describe(p, view::as_owner));
    into.back().state = process_state::running;
    return true;
  }
  if (kernel_.env().threads() == nullptr) {  // nothing runs at the same time: the process can be read as it is
    count_waiting(p, p.mail.head);
    into.push_back(describe(p, view::as_owner));
    into.back().state = kernel_.sched().is_running(p) ? process_state::running : process_state::runnable;
    return true;
  }
  p.urgent.fetch_or(describe_yourself, std::memory_order_relaxed);
  return false;
}

void observer::count_waiting(slot& p, const envelope* from) {
  std::uint32_t waiting = p.process != nullptr ? p.process->type->held(*p.process) : 0;
  for (const envelope* e = from; e != nullptr; e = e->next.load(std::memory_order_acquire))
    if (e->serial() == p.serial() && kernel::is_message(p, *e)) ++waiting;
  p.length.store(waiting, std::memory_order_relaxed);
}

void observer::describe_itself(slot& p) {
  if (observers_.load(std::memory_order_relaxed) == 0) return;
  process_info mine = describe(p, view::as_owner);
  const std::scoped_lock lock{described_mutex_};
  described_.insert_or_assign(mine.id, std::move(mine));
}

std::vector<process_info> observer::look_at_all(std::uint32_t first, std::uint32_t last) {
  std::vector<process_info> all;
  std::vector<pid> busy;
  observers_.fetch_add(1);
  for (std::uint32_t i = first; i < last; ++i) {
    if (!table_[i].is(slot::has_process)) continue;
    const pid who = table_.pid_of(table_[i]);
    if (!look_at(table_[i], all)) busy.push_back(who);
  }
  const bool may_wait = turn_here() == nullptr && kernel_.env().threads() != nullptr;
  std::atomic<std::uint32_t> never{0};
  if (!busy.empty() && may_wait) kernel_.env().threads()->wait(never, 0, kernel_.now() + std::chrono::milliseconds{2});
  for (const pid who : busy) {
    slot& p = table_[who.index()];
    const std::scoped_lock lock{described_mutex_};
    const auto found = described_.find(who);
    process_info one = found != described_.end() ? std::move(found->second) : describe(p, view::from_outside);
    one.complete = found != described_.end();
    if (found != described_.end()) described_.erase(found);
    if (!table_.alive(who)) continue;
    one.state = kernel_.sched().is_running(p) ? process_state::running : process_state::runnable;
    all.push_back(std::move(one));
  }
  if (observers_.fetch_sub(1) == 1) {
    const std::scoped_lock lock{described_mutex_};
    described_.clear();
  }
  return all;
}

std::vector<process_info> observer::snapshot() { return look_at_all(1, table_.used()); }

std::optional<process_info> observer::info(pid who) {
  if (!table_.alive(who)) return std::nullopt;
  auto found = look_at_all(who.index(), who.index() + 1);
  if (found.empty() || found.front().id != who) return std::nullopt;
  return std::move(found.front());
}

runtime_counters observer::counters() {
  runtime_counters all;
  kernel_.sched().count(all);
  all.spawned += kernel_.parts().lifecycle.spawned_outside();
  all.ended += kernel_.parts().lifecycle.ended_outside();
  all.dead_letters = dead_letters_.load(std::memory_order_relaxed);
  all.looked_ahead = kernel_.parts().exits.looked_at();
  all.timers = kernel_.parts().timers.size();
  kernel_.parts().blocking.count(all);
  const pool_usage pools = usage_of_pools();
  all.pool_bytes = pools.held;
  all.pool_bytes_returned = pools.given_back;
  return all;
}

void observer::report_stall(slot& p, std::chrono::milliseconds lasting) {
  if (!p.is(slot::has_process)) return;  // it was abandoned meanwhile, or has ended
  const process_info who = describe(p, view::from_outside);
  kernel_.log(
      log_level::warning, "process holds its worker; the other processes continue on a new thread",
      {{"pid", to_string(who.id)}, {"name", who.name}, {"label", who.label}, {"ms", std::to_string(lasting.count())}});
  kernel_.events().publish(process_stalled{who.id, who.name, who.label, lasting});
}

void observer::report_left_behind() {
  bool known = false;
  table_.for_each_process([&](slot& p) {
    if (!kernel_.sched().is_running(p)) return;
    const process_info who = describe(p, view::from_outside);
    kernel_.log(log_level::error, "the runtime ends while a process is stuck in its code; its thread is left behind",
                {{"pid", to_string(who.id)}, {"name", who.name}, {"label", who.label}});
    known = true;
  });
  if (!known)
    kernel_.log(log_level::error, "the runtime ends while an ended process is stuck; its thread is left behind");
}

// ---- messages that nobody receives

void observer::note_dead_letter(pid to, const envelope& e) {
  if (e.type->is_request()) return;
  // A supervisor that ends in order has reported all its children. One that was killed may not have.
  if (const loss how = loss_by(to); e.type == &plain<exited> && how.why != nullptr && how.why->abnormal())
    kernel_.parts().lifecycle.log_unreported(static_cast<const letter<exited>&>(e).body);
  if (kernel_.logs(log_level::info)) {
    const std::array<log_field, 2> fields{{{"to", to_string(to)}, {"message", std::string{e.type->name}}}};
    kernel_.log_throttled({"dead letter"}, log_parts::runtime, log_level::info, "dead letter", fields);
  }
  count_dead_letter(to, e);
}

void observer::note_unhandled(pid to, const envelope& e) {
  if (kernel_.logs(log_level::warning)) {
    constexpr std::string_view text = "no handler for a message; is it in the protocol of the receiver?";
    const std::array<log_field, 3> fields{
        {{"pid", to_string(to)}, {"name", kernel_.name_of(to)}, {"message", std::string{e.type->name}}}};
    kernel_.log_throttled({text}, log_parts::runtime, log_level::warning, text, fields);
  }
  if (!e.type->is_request()) count_dead_letter(to, e);
}

void observer::count_dead_letter(pid to, const envelope& e) {
  dead_letters_.fetch_add(1, std::memory_order_relaxed);
  // A lost `dead_letter` event must not cause another one.
  if (e.type != &plain<dead_letter>) kernel_.events().publish(dead_letter{to, e.type->name});
}

}  // namespace detail
}  // namespace coppice
