// Sending and scheduling; all else is passed on to the kernel's parts.
#include <coppice/runtime/detail/kernel.hpp>

#include "internal/kernel_parts.hpp"
#include "internal/workers.hpp"

namespace coppice::detail {

namespace {

constexpr unsigned most_workers = 1000;  // a timer_ref has ten bits for the wheel, and each worker has a wheel

runtime_options checked(runtime_options o, environment& env) {
  if (o.processes == 0 || o.processes > (1U << 28U))
    throw std::invalid_argument{"runtime_options::processes is " + std::to_string(o.processes) +
                                "; it must be between 1 and 2^28"};
  if (o.budget < 1) throw std::invalid_argument{"runtime_options::budget must be at least 1"};
  if (o.workers > most_workers)
    throw std::invalid_argument{"runtime_options::workers is " + std::to_string(o.workers) + "; it must be at most " +
                                std::to_string(most_workers)};
  if (o.blocking_threads == 0) throw std::invalid_argument{"runtime_options::blocking_threads must be at least 1"};
  if (o.stall_after.count() < 0 || o.stop_within.count() < 0)
    throw std::invalid_argument{"runtime_options::stall_after and stop_within must not be negative"};
  if (!o.node) o.node = node_id{env.new_node_number()};
  if (!o.log) o.log = stderr_sink();
  if (o.workers == 0) o.workers = env.threads() != nullptr ? env.threads()->cores() : 1;
  return o;
}

std::vector<log_field> with_trace(std::span<const log_field> fields, const trace_context& now) {
  std::vector<log_field> more(fields.begin(), fields.end());
  more.push_back({"trace", now.id()});
  more.push_back({"span", now.span_id()});
  return more;
}

log_level lowest_level(const runtime_options& o) {
  log_level lowest = o.level;
  for (const auto& [part, level] : o.levels) lowest = std::min(lowest, level);
  return lowest;
}

std::uint8_t observed_from_birth(const runtime_options& o) {
  return static_cast<std::uint8_t>((o.trace_ids ? has_trace_ids : 0U) | (o.measure_handlers ? is_measured : 0U));
}

}  // namespace

constinit kernel* all_kernels = nullptr;

/// Keeps `all_kernels` up to date.
class debugger_entry {
 public:
  static void add(kernel& k) {
    const std::scoped_lock lock{mutex};
    k.next_kernel_ = std::exchange(all_kernels, &k);
  }
  static void remove(kernel& k) {
    const std::scoped_lock lock{mutex};
    kernel** at = &all_kernels;
    while (*at != nullptr && *at != &k) at = &(*at)->next_kernel_;
    if (*at != nullptr) *at = k.next_kernel_;
  }

 private:
  static inline constinit std::mutex mutex{};
};

kernel::kernel(std::shared_ptr<environment> env, const runtime_options& options)
    : env_{std::move(env)},
      options_{checked(options, *env_)},
      table_{options_.node, options_.processes, observed_from_birth(options_)},
      parts_{std::make_unique<kernel_parts>(*this, env_->threads() != nullptr ? options_.workers + 1 : 1)},
      logged_from_{lowest_level(options_)} {
  if (env_->threads() != nullptr) {
    scheduler_ = make_worker_scheduler(*this, options_);
    scheduler_->begin();
  }
  debugger_entry::add(*this);
}

kernel::~kernel() {
  debugger_entry::remove(*this);
  crash();
}

void kernel::set_scheduler(std::unique_ptr<scheduler> s) { scheduler_ = std::move(s); }

void kernel::schedule(slot& p, bool spawned) {
  if (push_here(*this, p, spawned) || crashed_) return;
  scheduler_->inject(p);
}

// ---- mail

void kernel::send_slowly(pid to, envelope* e) {
  if (table_.has_trace_ids() && (e->what() == signal::message || e->what() == signal::exit))
    parts_->trace_ids.attach(*e);
  if (table_.covers(to)) return send_here(to, e);
  send_elsewhere(to, e);
}
void kernel::send_elsewhere(pid to, envelope* e) { parts_->remote.send_elsewhere(to, e); }
void kernel::send_fast(pid to, envelope* e) { parts_->fast_lane.send(to, e); }
void kernel::send_exit(pid to, exited x) { parts_->exits.send(to, std::move(x)); }
bool kernel::send_late(pid to, signal s, envelope* e) { return parts_->lifecycle.send_late(to, s, e); }
void kernel::note_dead_letter(pid to, const envelope& e) { parts_->observer.note_dead_letter(to, e); }
void kernel::note_unhandled(pid to, const envelope& e) { parts_->observer.note_unhandled(to, e); }
void kernel::defer(slot& me, const std::shared_ptr<pending_reply>& reply) { parts_->lifecycle.defer(me, reply); }
bool kernel::is_message(const slot& p, const envelope& e) noexcept {
  return e.what() == signal::message || (e.what() == signal::seen && p.side->seen_was == signal::message);
}

bool kernel::put_under_policy(pid to, envelope* e) { return parts_->policies.put(to, e); }
std::shared_ptr<mailbox_policy> kernel::policy_of(pid who) { return parts_->policies.of(who); }
std::vector<envelope*> kernel::close_policy(pid who) { return parts_->policies.close(who); }
void kernel::push_actor_token(pid who) { parts_->policies.push_actor_token(who); }
void kernel::push_mail_token(pid who) { parts_->policies.push_mail_token(who); }
void kernel::set_put_aside(pid who, std::size_t count) { parts_->policies.set_put_aside(who, count); }
void kernel::turn_away(pid to, envelope* e) { parts_->policies.turn_away(to, e); }

// ---- trace ids

void forget_trace(kernel& k, envelope& e) noexcept { (void)k.parts().trace_ids.take(e); }

void kernel::note_receipt(slot& me, std::uint32_t serial, envelope& e) {
  const kernel_section mine{me, serial};
  if (!mine) return;
  turn& t = *current_turn;
  if (me.is_set(has_trace_ids)) parts_->trace_ids.receive(me, e, t);
  if (!me.is_set(is_measured)) return;
  handler_times& times = notes_of(side_of(table_, me)).times;
  const time_point at = now();
  const message_type* before = t.piece_of != nullptr ? t.piece_of : t.message;
  if (before != nullptr && t.piece_began != time_point{}) times.add(before->name, 0, at - t.piece_began);
  times.add(e.type->name, 1, {});
  if (t.piece_began == time_point{}) return;  // measured since this turn: the time of its pieces is not known
  t.piece_of = e.type;
  t.piece_began = at;
}
void kernel::put_trace_id_aside(slot& me, std::uint32_t serial, envelope& e) {
  if (const kernel_section mine{me, serial}) parts_->trace_ids.put_aside(me, e, *current_turn);
}
void kernel::keep_trace_id(envelope& e) {
  if (table_.has_trace_ids()) parts_->trace_ids.keep(e, *current_turn);
}
trace_context kernel::begin_trace(slot& me, const trace_context& from) {
  return table_.has_trace_ids() ? parts_->trace_ids.begin_trace(me, from, *current_turn) : trace_context{};
}

// ---- processes

bool kernel::run(slot& p, int budget, turn& t) { return parts_->runner.run(p, budget, t); }
result<pid> kernel::start(start_letter* first) {
  if (first->with.policy != nullptr || table_.has_trace_ids()) [[unlikely]]
    return start_slowly(first);
  return parts_->lifecycle.start(first);
}
result<pid> kernel::start_slowly(start_letter* first) {
  if (first->with.policy && !mailbox_policy::has_effect(first->with.policy->box)) first->with.policy = nullptr;
  if (table_.has_trace_ids()) parts_->trace_ids.attach(*first);
  return parts_->lifecycle.start(first);
}
void kernel::before_spawn() {
  if (fault_plan* faults = env_->faults(); faults != nullptr && faults->fails("spawn.allocate")) throw std::bad_alloc{};
}
bool kernel::end_idle(slot& me, pid child, const exit_reason& why) {
  return parts_->exits.end_idle(me, child, why, parts_->lifecycle);
}
bool kernel::abandon(pid who) { return parts_->lifecycle.abandon(who); }
void kernel::bury(slot& p, envelope* e, bool kept) { parts_->lifecycle.bury(p, e, kept); }
bool kernel::stop() { return parts_->lifecycle.stop(); }
void kernel::crash() { parts_->lifecycle.crash(); }

void kernel::adopt(slot& me, pid mine, pid child, bool linked, monitor_ref watched_as) {
  parts_->links.adopt(me, mine, child, linked, watched_as);
}
void kernel::link(slot& me, pid other) { parts_->links.link(me, other); }
void kernel::unlink(slot& me, pid other) { parts_->links.unlink(me, other); }
monitor_ref kernel::monitor(slot& me, pid other) { return parts_->links.monitor(me, other); }
monitor_ref kernel::monitor_unborn(slot& me) { return parts_->links.monitor_unborn(me); }
bool kernel::demonitor(slot& me, monitor_ref ref) { return parts_->links.demonitor(me, ref); }
bool kernel::end_will_be_known(const slot& me, pid child) const noexcept {
  return parts_->links.end_will_be_known(me, child);
}

result<void> kernel::register_name(std::string_view name, pid who) { return parts_->names.add(name, who); }
bool kernel::unregister_name(std::string_view name) { return parts_->names.remove(name); }
pid kernel::where(std::string_view name) { return parts_->names.find(name); }
std::string kernel::name_of(pid who) { return parts_->names.of(who).name; }
std::string kernel::label_of(pid who) { return parts_->names.of(who).label; }
void kernel::set_label(slot& me, std::string label) { parts_->names.set_label(pid_of(me), std::move(label)); }

result<std::uint64_t> kernel::freeze(freeze_target who, pid informs) { return parts_->freezer.freeze(who, informs); }
result<std::vector<pid>> kernel::stop_waiting_for_freeze(freeze_target who, std::uint64_t frozen_as) {
  return parts_->freezer.stop_waiting(who, frozen_as);
}
bool kernel::thaw(freeze_target who) { return parts_->freezer.thaw(who); }
bool kernel::is_frozen(pid who) const noexcept {
  return table_.alive(who) && (table_[who.index()].urgent.load(std::memory_order_relaxed) & detail::is_frozen) != 0;
}

// ---- time

std::uint32_t kernel::centiseconds(time_point at) const noexcept {
  return static_cast<std::uint32_t>((at - parts_->lifecycle.started()) / std::chrono::milliseconds{10});
}
timer_ref kernel::arm(time_point due, pid to, signal s, envelope* e) {
  e->tag = envelope::tag_of(to.serial(), s);
  if (table_.has_trace_ids() && s == signal::message) parts_->trace_ids.attach(*e);
  const timer_ref ref = parts_->timers.arm(worker_number(*this), due, to, e);
  scheduler_->timer_armed(due);
  return ref;
}
bool kernel::disarm(timer_ref ref) {
  envelope* e = parts_->timers.disarm(ref);
  if (e == nullptr) return false;
  discard(*this, e);
  return true;
}
std::optional<std::chrono::nanoseconds> kernel::remaining(timer_ref ref) {
  const auto due = parts_->timers.due_of(ref);
  if (!due) return std::nullopt;
  return std::max(*due - now(), std::chrono::nanoseconds{0});
}
timer_ref kernel::start_timer(slot& me, std::chrono::nanoseconds after) {
  return parts_->process_timers.start(me, after);
}
bool kernel::cancel_timer(slot& me, timer_ref ref) { return parts_->process_timers.cancel(me, ref); }
void kernel::fire_timers() { parts_->timers.advance(now()); }
std::optional<time_point> kernel::next_timer() { return parts_->timers.next(); }

void kernel::add_future(slot& me, const std::shared_ptr<future_base>& f) { parts_->futures.add(me, f); }
void kernel::remove_future(slot& me, std::uint64_t number) { parts_->futures.remove(me, number); }

// ---- blocking work

void kernel::submit_blocking(std::move_only_function<void()> job, std::string_view what) {
  if (const trace_context& now = trace_here()) {
    job = [now, work = std::move(job)]() mutable {
      const trace_scope scope{now};
      work();
    };
  }
  parts_->blocking.submit(std::move(job), what);
}
std::shared_ptr<blocking_token> kernel::track_blocking(std::string_view what) { return parts_->blocking.track(what); }

// ---- other nodes

void kernel::set_transport(std::shared_ptr<transport> t) { parts_->remote.set_transport(std::move(t)); }
void kernel::deliver(connection_number over, parcel p) { parts_->remote.deliver(over, std::move(p)); }
void kernel::node_lost(node_id node, connection_number lost) { parts_->remote.node_lost(node, lost); }
void kernel::await_remote_reply(pid caller, std::uint64_t call, pid callee,
                                void (*fail)(kernel&, pid, std::uint64_t, error)) {
  parts_->remote.tie_to({.local = caller, .remote = callee, .number = call, .what = tie::kind::call, .fail = fail});
}
void kernel::remote_reply_over(pid caller, std::uint64_t call, pid callee) {
  parts_->remote.untie({.local = caller, .remote = callee, .number = call, .what = tie::kind::call});
}

// ---- observation

std::vector<process_info> kernel::snapshot() { return parts_->observer.snapshot(); }
std::string kernel::why(pid who) { return parts_->observer.why(who); }
std::vector<std::vector<pid>> kernel::call_cycles() { return parts_->observer.call_cycles(); }
bool kernel::measure(pid who, bool on) {
  if (!table_.alive(who)) return false;
  if (options_.measure_handlers) return true;
  std::atomic<std::uint8_t>& urgent = table_[who.index()].urgent;
  constexpr auto others = static_cast<std::uint8_t>(~is_measured);
  if (!on) {
    urgent.fetch_and(others, std::memory_order_relaxed);
    return true;
  }
  urgent.fetch_or(is_measured, std::memory_order_seq_cst);
  if (table_.alive(who)) return true;
  urgent.fetch_and(others, std::memory_order_relaxed);  // it has ended meanwhile: not the next process in its slot
  return false;
}
std::optional<process_info> kernel::info(pid who) { return parts_->observer.info(who); }
runtime_counters kernel::counters() { return parts_->observer.counters(); }
event_stream& kernel::events() noexcept { return parts_->events; }
void kernel::report_stall(slot& p, std::chrono::milliseconds lasting) { parts_->observer.report_stall(p, lasting); }
metrics& metrics_in(kernel& k) noexcept { return k.parts().metrics; }
void kernel::report_left_behind() { parts_->observer.report_left_behind(); }
log_level kernel::level_of(log_part part) const noexcept {
  const auto found = options_.levels.find(part.name);
  return found != options_.levels.end() ? found->second : options_.level;
}
void kernel::log(log_part part, log_level level, std::string_view text, std::span<const log_field> fields) {
  if (!logs(level, part)) return;
  if (const trace_context& now = trace_here()) return parts_->log.write(part, level, text, with_trace(fields, now));
  parts_->log.write(part, level, text, fields);
}
void kernel::log_throttled(const flood& about, log_part part, log_level level, std::string_view text,
                           std::span<const log_field> fields) {
  if (!logs(level, part)) return;
  if (level_of(part) == log_level::debug) return log(part, level, text, fields);  // all of them are wanted
  if (const trace_context& now = trace_here())
    return parts_->log.write_throttled(about, part, level, text, with_trace(fields, now));
  parts_->log.write_throttled(about, part, level, text, fields);
}

}  // namespace coppice::detail
