#include "internal/observer.hpp"

#include <algorithm>
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

void count_mail(std::vector<mail_count>& into, std::string_view type) {
  const auto found = std::ranges::find(into, type, &mail_count::type);
  if (found != into.end())
    ++found->count;
  else
    into.push_back({type, 1});
}

process_info observer::describe(slot& p, view from) {
  process_info out;
  out.id = table_.pid_of(p);
  out.traps_exits = p.is(slot::traps_exits);
  out.handled = p.handled.load(std::memory_order_relaxed);
  out.memory = sizeof(slot) + std::size_t{16} * p.body_units.load(std::memory_order_relaxed);
  const time_point now = kernel_.env().clock().coarse_now();
  const auto born = std::chrono::milliseconds{100} * p.born_ds.load(std::memory_order_relaxed);
  const auto age = now - kernel_.parts().lifecycle.started() - born;
  out.age = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(age), std::chrono::milliseconds{0});
  const std::uint32_t lasting = kernel_.centiseconds(now) - p.since_cs.load(std::memory_order_relaxed);
  // Modulo 2^32; a process can note a time that is a little later than the coarse one.
  if (lasting < 1U << 31U) out.lasting = std::chrono::milliseconds{10} * lasting;
  out.lasting = std::min(out.lasting, out.age);
  out.parent = table_.parent_of(p);
  if (out.parent && p.is(slot::parent_linked)) out.links.push_back(out.parent);
  if (p.named.load(std::memory_order_relaxed) != 0) {
    name_table::entry texts = kernel_.parts().names.of(out.id);
    out.name = std::move(texts.name);
    out.label = std::move(texts.label);
  }
  if (from == view::from_outside) return out;
  describe_body(p, from, out);
  if (out.label.empty()) out.label = out.type;
  if (p.side == nullptr) return out;
  if (from == view::as_owner) out.memory += p.side->bytes();
  if (p.side->notes != nullptr) out.handlers = p.side->notes->times.by_total();
  out.monitors = static_cast<std::uint32_t>(p.side->monitors.size());
  out.monitored = static_cast<std::uint32_t>(p.side->watchers.size());
  p.side->links.for_each([&](pid other, const link_state& l) {
    if (l.unlinking == 0) out.links.push_back(other);
  });
  return out;
}

void observer::describe_body(slot& p, view from, process_info& into) {
  if (from == view::in_its_code) into.state = process_state::running;
  if (const body* b = p.process; b != nullptr) {
    into.type = b->type->name;
    if (into.type.empty() && b->type->code != nullptr) into.type = kernel_.env().function_at(b->type->code(*b));
    if (from == view::in_its_code)
      describe_running(p, *b, into);
    else
      describe_waiting(*b, into);
  }
  count_queue(p, from, into);
}

void observer::describe_running(const slot& p, const body& b, process_info& into) {
  if (b.type->received != nullptr) {
    if (const message_type* last = b.type->received(b); last != nullptr) into.handling = last->name;
  } else {
    const envelope* taken = taken_for_head(p);
    const envelope& handled = taken != nullptr ? *taken : *p.mail.head;
    if (handled.what() == signal::message || taken != nullptr) into.handling = handled.type->name;
  }
  into.mailbox = b.type->puts_mail_aside ? 0 : b.type->held(b);
}

void observer::describe_waiting(const body& b, process_info& into) {
  into.mailbox = b.type->held(b);
  if (b.type->describe != nullptr)
    b.type->describe(b, kernel_, into);
  else
    into.waits.kind = wait_kind::mail;
}

/// Adds the messages that the process has not taken yet. A process that was frozen before its first turn has no body,
/// but may have mail.
void observer::count_queue(slot& p, view from, process_info& into) {
  const envelope* e = p.mail.head;
  if (from == view::in_its_code) e = e->next.load(std::memory_order_acquire);  // the first is being handled
  for (; e != nullptr; e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() != p.serial() || !kernel::is_message(p, *e)) continue;
    ++into.mailbox;
    count_mail(into.mail, e->type->name);
  }
  if (const auto policy = p.is(slot::has_policy) ? kernel_.policy_of(into.id) : nullptr)
    into.mailbox += static_cast<std::uint32_t>(policy->count(into.mail));
  std::ranges::sort(into.mail, [](const mail_count& a, const mail_count& b) {
    return a.count != b.count ? a.count > b.count : a.type < b.type;
  });
}

/// Looks at a process without its help. An idle process is claimed for a moment, so that it does not change meanwhile.
/// False: the process is between two messages, or waits for a worker.
bool observer::look_at(slot& p, std::vector<process_info>& into) {
  if (const claim mine{kernel_, p}) {
    if (!p.is(slot::has_process)) return true;
    into.push_back(describe(p, view::as_owner));
    return true;
  }
  const bool frozen =
      kernel_.parts().freezer.any() && kernel_.parts().freezer.inspect(table_.pid_of(p), [&](slot& parked) {
        into.push_back(describe(parked, view::as_owner));
        into.back().state = process_state::frozen;
      });
  if (frozen) return true;
  if (turn_here() != nullptr && turn_here()->p == &p) {  // called by its own code
    const kernel_section mine{p, p.serial()};
    if (!mine) return false;
    into.push_back(describe(p, view::in_its_code));
    into.back().lasting = {};
    return true;
  }
  if (kernel_.env().threads() == nullptr) {  // nothing runs at the same time: the process can be read as it is
    const bool stuck = kernel_.sched().is_running(p);
    into.push_back(describe(p, stuck ? view::in_its_code : view::as_owner));
    if (!stuck) set_runnable(into.back());
    return true;
  }
  return kernel_.sched().look_into_code(p, [&](time_point since) {
    into.push_back(describe(p, view::in_its_code));
    into.back().lasting = std::chrono::duration_cast<std::chrono::milliseconds>(kernel_.now() - since);
  });
}

/// It has mail, so it does not wait any more.
void observer::set_runnable(process_info& one) {
  one.state = process_state::runnable;
  one.waits = {};
  one.frames.clear();
}

void observer::describe_itself(slot& p) {
  if (observers_.load(std::memory_order_relaxed) == 0) return;
  process_info mine = describe(p, view::as_owner);
  set_runnable(mine);
  const std::scoped_lock lock{described_mutex_};
  if (observers_.load() != 0) described_.insert_or_assign(mine.id, std::move(mine));
}

/// Moves the processes that have described themselves from `busy` to `all`, and those that can be looked at now.
void observer::collect(std::vector<pid>& busy, std::vector<process_info>& all) {
  std::erase_if(busy, [&](pid who) {
    if (!table_.alive(who)) return true;
    {
      const std::scoped_lock lock{described_mutex_};
      if (auto found = described_.extract(who)) {
        all.push_back(std::move(found.mapped()));
        return true;
      }
    }
    slot& p = table_[who.index()];
    p.urgent.fetch_or(describe_yourself, std::memory_order_relaxed);  // another observer may have had its description
    return look_at(p, all);
  });
}

/// Reads the symbol table of the program before any process is looked at: that takes long, and a process that is held
/// must not wait for it.
void observer::load_symbols() {
  (void)kernel_.env().function_at(reinterpret_cast<const void*>(&count_mail));  // NOLINT: some code of the program
}

/// While one exists, processes that are asked to describe themselves do.
class observer::observing {
 public:
  explicit observing(observer& o) noexcept : observer_{o} { observer_.observers_.fetch_add(1); }
  ~observing() {
    if (observer_.observers_.fetch_sub(1) != 1) return;
    const std::scoped_lock lock{observer_.described_mutex_};
    observer_.described_.clear();
  }
  observing(const observing&) = delete;
  observing& operator=(const observing&) = delete;

 private:
  observer& observer_;
};

/// A description that was made for an earlier observer may be old.
void observer::forget_description(pid who) {
  const std::scoped_lock lock{described_mutex_};
  described_.erase(who);
}

std::vector<process_info> observer::look_at_all(std::uint32_t first, std::uint32_t last) {
  load_symbols();
  std::vector<process_info> all;
  std::vector<pid> busy;
  const observing now{*this};
  for (std::uint32_t i = first; i < last; ++i) {
    slot& p = table_[i];
    if (!p.is(slot::has_process)) continue;
    const pid who = table_.pid_of(p);
    if (look_at(p, all)) continue;
    busy.push_back(who);
    forget_description(who);
    p.urgent.fetch_or(describe_yourself, std::memory_order_relaxed);
  }
  // A process that waits for a worker describes itself in its next turn.
  const bool may_wait = turn_here() == nullptr && kernel_.env().threads() != nullptr;
  const time_point give_up_at = kernel_.now() + (may_wait ? longest_wait : std::chrono::milliseconds{0});
  std::atomic<std::uint32_t> never{0};
  for (collect(busy, all); !busy.empty() && kernel_.now() < give_up_at; collect(busy, all))
    kernel_.env().threads()->wait(never, 0, kernel_.now() + std::chrono::milliseconds{1});
  for (const pid who : busy) {
    slot& p = table_[who.index()];
    process_info one = describe(p, view::from_outside);
    if (!table_.alive(who)) continue;
    one.complete = false;
    one.state = kernel_.sched().is_running(p) ? process_state::running : process_state::runnable;
    all.push_back(std::move(one));
  }
  std::ranges::sort(all, {}, [](const process_info& p) { return p.id.index(); });
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

std::vector<metrics::computed> observer::metrics() {
  const runtime_counters n = counters();
  std::uint64_t supervised = 0;
  table_.for_each_process([&](const slot& p) { supervised += p.is(slot::parent_reports) ? 1U : 0U; });
  return {
      {"coppice_blocking_done", "Pieces of blocking work that are done.", true, n.blocking_done},
      {"coppice_blocking_running", "Pieces of blocking work that run now.", false, n.blocking_running},
      {"coppice_blocking_waiting", "Pieces of blocking work that wait for a thread.", false, n.blocking_waiting},
      {"coppice_children", "Running processes that were started from child specs.", false, supervised},
      {"coppice_dead_letters", "Messages that nobody received.", true, n.dead_letters},
      {"coppice_pool_bytes", "Memory that the pools of the program hold.", false, n.pool_bytes},
      {"coppice_pool_bytes_returned", "Memory that the pools gave back to the system.", true, n.pool_bytes_returned},
      {"coppice_processes", "Running processes.", false, n.spawned - std::min(n.spawned, n.ended)},
      {"coppice_processes_ended", "Processes that have ended.", true, n.ended},
      {"coppice_processes_injected", "Processes made runnable from outside of the workers.", true, n.injected},
      {"coppice_processes_spawned", "Processes that were spawned.", true, n.spawned},
      {"coppice_processes_stolen", "Processes taken from the queue of another worker.", true, n.stolen},
      {"coppice_signals_handled", "Signals that processes have handled.", true, n.handled},
      {"coppice_signals_looked_ahead", "Signals inspected before their turn.", true, n.looked_ahead},
      {"coppice_timers_pending", "Pending timers.", false, n.timers},
      {"coppice_worker_parks", "Times that a worker went to sleep.", true, n.parked},
      {"coppice_worker_stalls", "Workers replaced because a process did not return.", true, n.stalls},
      {"coppice_worker_turns", "Times that a worker looked for a process to run.", true, n.turns},
  };
}

void observer::report_stall(slot& p, std::chrono::milliseconds lasting) {
  if (!p.is(slot::has_process)) return;  // it was abandoned meanwhile, or has ended
  load_symbols();
  std::vector<process_info> seen;
  if (!look_at(p, seen) || seen.empty()) seen.push_back(describe(p, view::from_outside));
  const process_info& who = seen.front();
  process_stalled event{who.id, who.name, who.label, lasting, who.handling, {}};
  std::string where;
  bool innermost = true;
  for (const void* address : kernel_.sched().backtrace(p)) {
    // The others are where calls return to, which may be behind the last call of a function.
    const void* inside = std::exchange(innermost, false) ? address : static_cast<const char*>(address) - 1;
    std::string name = kernel_.env().function_at(inside);
    if (name.empty()) continue;
    if (name.starts_with("coppice::detail::process_runner::")) break;  // from here on it is the runtime
    where.append(where.empty() ? "" : " < ").append(name);
    event.backtrace.push_back(std::move(name));
  }
  kernel_.log(log_level::warning, "process holds its worker; the other processes continue on a new thread",
              {{"pid", to_string(who.id)},
               {"name", who.name},
               {"label", who.label},
               {"handling", std::string{who.handling}},
               {"ms", std::to_string(lasting.count())},
               {"backtrace", where}});
  kernel_.events().publish(event);
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
