#include "internal/lifecycle.hpp"

#include <algorithm>
#include <array>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/event_stream.hpp>

#include "internal/claim.hpp"
#include "internal/kernel_parts.hpp"
#include "internal/workers.hpp"

namespace coppice::detail {

namespace {
struct ending_process {
  pid who;
  const exit_reason* why = nullptr;
};
constinit thread_local ending_process ending{};
}  // namespace

ending_scope::ending_scope(pid who, const exit_reason& why) noexcept
    : who_before_{ending.who}, why_before_{ending.why} {
  ending = {who, &why};
}
ending_scope::~ending_scope() { ending = {who_before_, why_before_}; }

pid process_here() noexcept {
  if (ending.why != nullptr) return ending.who;
  const turn* t = turn_here();
  return t != nullptr ? t->k->pid_of(*t->p) : pid{};
}

loss loss_by(pid who) noexcept {
  return ending.who == who && ending.why != nullptr ? loss{loss::kind::ended, ending.why} : loss{};
}

void answer_dropped(kernel& k, pid callee, const open_call& lost) {
  const late_use use{k};
  if (!use) return;
  turn* t = turn_here();
  if (std::uncaught_exceptions() > 0 && t != nullptr && t->k == &k && ending.why == nullptr &&
      k.pid_of(*t->p) == callee)
    t->unanswered.push_back(lost);
  else if (t != nullptr && ending.why == nullptr && &k.slot_at(callee.index()) == t->p && !k.alive(callee))
    lost.fail(k, lost.caller, lost.call, error{errc::exited, exit_reason::abandoned().to_string()});
  else
    lost.fail(k, lost.caller, lost.call, error_of(loss_by(callee)));
}

lifecycle::lifecycle(kernel& k) : kernel_{k}, table_{k.table()}, started_{k.now()} {}

// ---- the counters

inline void lifecycle::count_spawned() noexcept {
  if (worker* w = worker_of(kernel_)) return w->spawned.add(1);
  spawned_outside_.fetch_add(1, std::memory_order_relaxed);
}
inline void lifecycle::count_ended() noexcept {
  if (worker* w = worker_of(kernel_)) return w->ended.add(1);
  ended_outside_.fetch_add(1, std::memory_order_relaxed);
}

// ---- the beginning

std::uint32_t lifecycle::take_slot() {
  const std::uint32_t reserved = slot_from_here(kernel_);
  return reserved != 0 ? reserved : table_.take();
}

result<pid> lifecycle::start(start_letter* first) {
  const std::uint32_t index = stopping_.load(std::memory_order_relaxed) ? 0 : take_slot();
  if (index == 0) {
    discard(kernel_, first);
    if (stopping_.load(std::memory_order_relaxed)) return coppice::fail(errc::stopped, "the runtime is stopping");
    return coppice::fail(errc::capacity, "the process table is full; see runtime_options::processes");
  }
  slot& p = table_[index];
  ensure(!p.is(slot::has_process), "a slot was handed out that still has a process");
  const pid me = table_.pid_of(p);
  if (first->with.policy) kernel_.parts().policies.set(me, first->with.policy);
  if (!first->with.has_name()) {
    push_start(p, first);
    return me;
  }
  const std::string name = first->with.called->name;  // the letter is gone once it is pushed
  if (auto registered = kernel_.parts().names.add_unborn(name, me, [&] { push_start(p, first); }); !registered) {
    discard(kernel_, first);
    (void)kernel_.parts().policies.close(me);
    p.set(slot::has_policy, false);
    table_.give_back(&index, 1);
    return std::unexpected{registered.error()};
  }
  return me;
}

void lifecycle::push_start(slot& p, start_letter* first) {
  count_spawned();
  first->tag = envelope::tag_of(p.serial(), signal::start) | (first->tag & envelope::has_trace);
  if (p.mail.push(first)) kernel_.schedule(p, true);
}

// ---- the end

void lifecycle::free_slot(std::uint32_t index) noexcept {
  if (table_[index].serial() == 0) return;  // its serials are used up: an old pid must never reach a new process
  if (!slot_to_here(kernel_, index)) table_.give_back(&index, 1);
}

void lifecycle::finish(slot& p, const exit_reason& why, body* to_destroy, envelope* rest,
                       std::span<const open_call> unanswered) {
  ensure(p.is(slot::has_process), "a process ends that has ended already");
  kernel_parts& parts = kernel_.parts();
  const pid me = table_.pid_of(p);
  fast_lane::unmark(p);
  const bool parent_linked = p.is(slot::parent_linked);
  const bool born_linked = p.is(slot::born_linked);
  const bool parent_reports = parent_linked && p.is(slot::parent_reports);
  const bool has_policy = p.is(slot::has_policy);
  const pid parent = pid::from_parts(table_.node(), p.parent_index, p.parent_serial);
  if (to_destroy != nullptr) p.process = nullptr;
  // From here on the process is not alive for any other process, and its messages are dead letters.
  p.tag.store(envelope::tag_of(me.serial() + 1, signal::vacant), std::memory_order_seq_cst);
  // The name is free before anybody is notified of the end, callers included.
  std::optional<name_table::entry> texts;
  if (p.named.exchange(0, std::memory_order_seq_cst) != 0) texts = parts.names.release(me);
  {
    const ending_scope scope{me, why};
    if (to_destroy != nullptr) {
      // When another process ends this one (`end_idle`), the guard of that process is set already.
      const bool in_its_turn = current_turn != nullptr && current_turn->p == &p;
      const last_code code{in_its_turn ? &current_turn->guard : nullptr};
      to_destroy->type->destroy(*to_destroy, kernel_);
    }
    for (const open_call& c : unanswered) c.fail(kernel_, c.caller, c.call, error_of({loss::kind::ended, &why}));
    answer_requests(rest, me.serial(), why);
    if (has_policy) [[unlikely]]
      drop_mail_under_policy(me, why);
  }
  // After its destructors have run, because `freeze_done` means that no code of the process is running.
  if (const std::uint8_t last = p.urgent.load(std::memory_order_seq_cst); (last & (is_frozen | is_measured)) != 0) {
    if ((last & is_frozen) != 0) parts.freezer.ended(me, p.side);
    if (!kernel_.options().measure_handlers)
      p.urgent.fetch_and(static_cast<std::uint8_t>(~is_measured), std::memory_order_relaxed);
  }
  if (kernel_.crashed()) {
    free_side(p);
    return;
  }
  bool reported = false;
  if (why.what() == exit_reason::kind::error) [[unlikely]] {
    const bool held = p.side != nullptr && holds_failure(*p.side);
    reported = held || !parent_reports;
    const log_level level = held ? log_level::info : parent_reports ? log_level::debug : log_level::error;
    if (kernel_.logs(level)) log_failure(me, why, level, texts);
  }
  if (parts.events.wanted(plain<process_ended>)) publish_end(me, why, std::move(texts).value_or(name_table::entry{}));
  if (parent_linked)
    parts.exits.send(parent, {.from = me, .reason = why, .linked = true, .reported = reported});
  else if (born_linked)
    kernel_.send(parent, signal::notice, make_letter<child_ended>(plain<child_ended>, me, why));
  if (p.side != nullptr) {
    parts.links.notify_end(*p.side, me, why, reported);
    parts.process_timers.cancel_all(*p.side);
    if (!p.side->replies.empty()) fail_pending_replies(*p.side, why);
    if (!p.side->futures.empty()) parts.futures.fail_all(p.side->futures, why);
    free_side(p);
  }
  count_ended();
}

void lifecycle::answer_requests(envelope* from, std::uint32_t serial, const exit_reason& why) {
  for (envelope* e = from; e != nullptr; e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() != serial || !e->type->is_request() || e->what() != signal::message) continue;
    e->type->drop(kernel_, *e, {loss::kind::ended, &why});
    if ((e->tag & envelope::has_trace) != 0) [[unlikely]]
      forget_trace(kernel_, *e);
    e->become(signal::done);
  }
}

void lifecycle::drop_mail_under_policy(pid me, const exit_reason& why) {
  for (envelope* e : kernel_.parts().policies.close(me)) {
    if (!kernel_.crashed()) kernel_.note_dead_letter(me, *e);
    discard(kernel_, e, {loss::kind::ended, &why});
  }
}

void lifecycle::defer(slot& me, const std::shared_ptr<pending_reply>& reply) {
  side_block& side = side_of(table_, me);
  if (side.replies.size() == side.replies.capacity())
    std::erase_if(side.replies, [](const auto& weak) { return weak.expired(); });
  side.replies.push_back(reply);
}

void lifecycle::fail_pending_replies(const side_block& side, const exit_reason& why) {
  for (const auto& weak : side.replies) {
    const auto reply = weak.lock();
    if (reply && !reply->answered.exchange(true)) reply->fail(kernel_, *reply, why);
  }
}

/// Whether the end of the process is a result that another process holds.
bool lifecycle::holds_failure(const side_block& side) {
  return std::ranges::any_of(side.replies, [](const auto& weak) {
    const auto reply = weak.lock();
    return reply && reply->holds_failure && !reply->answered.load(std::memory_order_relaxed);
  });
}

void lifecycle::log_failure(pid me, const exit_reason& why, log_level level,
                            const std::optional<name_table::entry>& texts) {
  const std::array<log_field, 4> fields{{{"pid", to_string(me)},
                                         {"name", texts ? texts->name : std::string{}},
                                         {"label", texts ? texts->label : std::string{}},
                                         {"reason", why.to_string()}}};
  // By the type of the exception and that of the message being handled, not by the text: texts of one failure often
  // differ in a number or a time.
  const std::hash<std::string_view> hash;
  const std::size_t kind = hash(why.exception_type()) ^ (hash(why.message()) << 1U) ^ (hash(fields[1].value) << 2U);
  kernel_.log_throttled({"process ended", kind}, log_parts::runtime, level, "process ended", fields);
}

void lifecycle::log_unreported(const exited& x) {
  if (x.linked && !x.reported && x.reason.what() == exit_reason::kind::error && kernel_.logs(log_level::error))
    log_failure(x.from, x.reason, log_level::error, std::nullopt);
}

void lifecycle::publish_end(pid me, const exit_reason& why, name_table::entry texts) {
  kernel_.events().publish(
      process_ended{.who = me, .name = std::move(texts.name), .label = std::move(texts.label), .reason = why});
}

// ---- stuck processes

bool lifecycle::abandon(pid who) {
  if (!table_.alive(who)) return false;
  slot& p = table_[who.index()];
  if (!kernel_.sched().take_from_stuck(p, who.serial())) return false;
  envelope* stuck_in = p.mail.head;
  const exit_reason given_up = exit_reason::abandoned();
  envelope* taken = taken_for_head(p);
  envelope& handled = taken != nullptr ? *taken : *stuck_in;
  if (handled.type->fail != nullptr) handled.type->fail(kernel_, handled, error_of({loss::kind::ended, &given_up}));
  // The stuck thread still uses the body, and may be looking at a future: `bury` destroys the one and fails the others.
  {
    const std::scoped_lock lock{stranded_mutex_};
    remains left{.process = std::exchange(p.process, nullptr), .futures = {}};
    if (p.side != nullptr) left.futures = std::exchange(p.side->futures, {});
    const bool fresh = stranded_.emplace(&p, std::move(left)).second;
    ensure(fresh, "a process was abandoned twice");
  }
  finish(p, given_up, nullptr, stuck_in->next.load(std::memory_order_acquire));
  release_claim(kernel_, p, *stuck_in);
  kernel_.sched().done_with_stuck(p);
  return true;
}

// The slot was not used again until now, so that the stuck code could not touch another process.
void lifecycle::bury(slot& p, envelope* e, bool kept) {
  body* left_behind = nullptr;
  future_map pending;
  {
    const std::scoped_lock lock{stranded_mutex_};
    const auto found = stranded_.find(&p);
    ensure(found != stranded_.end(), "a process comes back that was not abandoned");
    left_behind = found->second.process;
    pending = std::move(found->second.futures);
    stranded_.erase(found);
    if (left_behind == &unborn_body() && current_turn != nullptr && current_turn->born != nullptr)
      left_behind = current_turn->born;  // made after the process was abandoned
  }
  {
    const exit_reason given_up = exit_reason::abandoned();
    const ending_scope scope{pid::from_parts(table_.node(), table_.index_of(p), p.serial() - 1), given_up};
    const last_code code{current_turn != nullptr ? &current_turn->guard : nullptr};
    left_behind->type->destroy(*left_behind, kernel_);
    kernel_.parts().futures.fail_all(pending, given_up);
  }
  if (!kept) release(e);
  // The handler may have given others a pid with the serial the slot has now: that serial is skipped.
  p.tag.store(envelope::tag_of(p.serial() + 1, signal::vacant), std::memory_order_seq_cst);
  free_slot(table_.index_of(p));
}

// ---- the runtime

bool lifecycle::stop() {
  stopping_ = true;
  const time_point deadline = kernel_.now() + kernel_.options().stop_within;
  std::atomic<std::uint32_t> never{0};
  orphans& orphans = kernel_.parts().orphans;
  blocking_work& blocking = kernel_.parts().blocking;
  bool frames_stuck = false;
  for (std::chrono::milliseconds pause{1};; pause = std::min(pause * 2, std::chrono::milliseconds{32})) {
    std::uint32_t alive = 0;
    table_.for_each_process([&](slot& p) {
      ++alive;
      kernel_.send_exit(table_.pid_of(p), {.from = pid{}, .reason = exit_reason::kill()});
    });
    if (alive == 0) blocking.close();  // work that has not begun is dropped
    frames_stuck = !orphans.destroy_ready_by(deadline);
    if (frames_stuck) break;
    if (alive == 0 && orphans.waiting() == 0 && blocking.pending() == 0) break;
    if (kernel_.now() >= deadline) break;
    kernel_.env().threads()->wait(never, 0, std::min(deadline, kernel_.now() + pause));
  }
  bool stopped = kernel_.sched().stop(deadline);
  // A process that was just ending may have left an operation since the last look.
  while (!frames_stuck) {
    frames_stuck = !orphans.destroy_ready_by(deadline);
    if (orphans.waiting() == 0 || kernel_.now() >= deadline) break;
    kernel_.env().threads()->wait(never, 0, std::min(deadline, kernel_.now() + std::chrono::milliseconds{1}));
  }
  stopped = stopped && !frames_stuck;
  blocking.report_left_behind();
  orphans.report_left_behind();
  if (!stopped) late_users_.fetch_or(ended);  // the kernel is left behind, but its runtime has ended
  return stopped;
}

bool lifecycle::begin_late_use() noexcept {
  std::uint32_t now = late_users_.load();
  while ((now & ended) == 0)
    if (late_users_.compare_exchange_weak(now, now + 1)) return true;
  return false;
}

void lifecycle::end_late_use() noexcept { late_users_.fetch_sub(1); }

// Looks again and again: a user that has left may not touch the environment any more, so nobody can wake this thread.
void lifecycle::wait_for_late_users() {
  for (std::uint32_t now = late_users_.fetch_or(ended) | ended; now != ended; now = late_users_.load()) {
    ensure(kernel_.env().threads() != nullptr, "a simulated runtime is destroyed while it sends a message");
    kernel_.env().threads()->wait(late_users_, now, kernel_.now() + std::chrono::milliseconds{1});
  }
}

// Holds no lock: a message to a process that has ended is destroyed here, and its destructor may answer calls.
bool lifecycle::send_late(pid to, signal s, envelope* e) {
  const late_use use{kernel_};
  if (use)
    kernel_.send(to, s, e);
  else
    discard(kernel_, e);
  return static_cast<bool>(use);
}

void lifecycle::crash() {
  wait_for_late_users();
  kernel_.parts().blocking.close();
  kernel_.parts().orphans.destroy_ready();
  kernel_.note_crash();
  kernel_.parts().timers.drop_all();
  turn last{.k = &kernel_};
  turn* before = std::exchange(current_turn, &last);
  for (std::uint32_t i = 1, end = table_.used(); i < end; ++i) {
    slot& p = table_[i];
    if (p.process == nullptr) continue;
    last.p = &p;
    finish(p, exit_reason::killed(), p.process, nullptr);
  }
  kernel_.flush_burst(last);
  current_turn = before;
  drop_all_mail();
  kernel_.parts().timers.drop_all();
}

/// Repeats until all mailboxes are empty, because destroying frames and dropping requests sends mail.
void lifecycle::drop_all_mail() {
  for (envelope* e : kernel_.parts().policies.close_all()) discard(kernel_, e);
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t i = 1, end = table_.used(); i < end; ++i) {
      mailbox& mail = table_[i].mail;
      if (mail.tail.load() == nullptr) continue;
      again = true;
      envelope* e = mail.head;
      mail.tail = nullptr;
      mail.head = nullptr;
      while (e != nullptr) {
        envelope* n = e->next.load();
        if (e->what() == signal::done)
          release(e);
        else
          discard(kernel_, e);
        e = n;
      }
    }
  }
}

}  // namespace coppice::detail
