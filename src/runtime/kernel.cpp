// The process table, running a process, and its beginning and end.
#include <cxxabi.h>
#include <sys/mman.h>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/event_stream.hpp>
#include <coppice/runtime/detail/kernel.hpp>

#include "internal/names.hpp"
#include "internal/remote_ties.hpp"
#include "internal/side_block.hpp"
#include "internal/timers.hpp"
#include "internal/workers.hpp"

namespace coppice::detail {

constinit thread_local turn* current_turn = nullptr;

namespace {
constexpr unsigned most_workers = 1000;  // a timer's name has ten bits for the wheel, and each worker has one
}

namespace {

// Why the process that is ending on this thread ends, for the requests that go down with its frames.
struct ending_process {
  pid who;
  const exit_reason* why;
};
constinit thread_local ending_process ending{};

std::string demangled(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text{abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free};
  return status == 0 ? text.get() : mangled;
}

/// The last name is kept: taking one apart costs as much as throwing, and what fails, fails again.
const std::string& type_name_of(const std::type_info& type) {
  thread_local std::pair<const std::type_info*, std::string> last;
  if (last.first != &type) last = {&type, demangled(type.name())};
  return last.second;
}

/// Whatever the exception is like, and even without memory to tell of it.
exit_reason reason_of(const std::type_info& type, const char* what, const turn& t) noexcept {
  try {
    return exit_reason::error(type == typeid(void) ? "unknown" : type_name_of(type), what != nullptr ? what : "",
                              t.message != nullptr ? std::string{t.message->name} : "");
  } catch (...) {
    return exit_reason::killed();
  }
}

}  // namespace

namespace {
// Stands for the body until the start letter has made one, in the process itself, so that its failure is an exit.
verdict make_body(body& nobody, turn& t, envelope& e) {
  t.born = nullptr;
  e.type->deliver(nobody, t, e);
  if (const kernel_section mine{*t.p, e.serial()}) t.p->process = t.born;
  return t.born->type->offer(*t.born, t, e);
}
constinit const body_type unborn_type{
    .offer = &make_body, .destroy = [](body&, kernel&) noexcept {}, .held = [](const body&) noexcept { return 0U; }};
constinit body unborn{&unborn_type};
}  // namespace

exit_reason reason_of_failure(const turn& t) noexcept {
  try {
    throw;
  } catch (const exit_with& x) {
    return x.reason();
  } catch (const std::exception& x) {
    return reason_of(typeid(x), x.what(), t);
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return reason_of(type != nullptr ? *type : typeid(void), "", t);
  }
}

exit_reason reason_of_failure(const std::exception& x, const turn& t) noexcept {
  return reason_of(typeid(x), x.what(), t);
}

pid process_here() noexcept {
  if (ending.why != nullptr) return ending.who;
  const turn* t = turn_here();
  return t != nullptr ? t->k->pid_of(*t->p) : pid{};
}

loss loss_by(pid who) noexcept {
  return ending.who == who && ending.why != nullptr ? loss{loss::kind::ended, ending.why} : loss{};
}

void answer_dropped(kernel& k, pid callee, const open_call& lost) {
  turn* t = turn_here();
  if (std::uncaught_exceptions() > 0 && t != nullptr && t->k == &k && ending.why == nullptr &&
      k.pid_of(*t->p) == callee)
    t->unanswered.push_back(lost);
  else if (t != nullptr && ending.why == nullptr && &k.slot_at(callee.index()) == t->p && !k.alive(callee))
    lost.fail(k, lost.caller, lost.call, error{errc::exited, exit_reason::abandoned().to_string()});
  else
    lost.fail(k, lost.caller, lost.call, error_of(loss_by(callee)));
}

void throw_no_process_here() {
  throw std::logic_error{"this needs a process to run in; from a plain thread use the functions of coppice::runtime"};
}

// ---- the table

kernel::kernel(std::shared_ptr<environment> env, runtime_options options)
    : env_{std::move(env)},
      options_{std::move(options)},
      node_{options_.node ? options_.node : node_id{env_->new_node_number()}},
      table_size_{options_.processes + 1},
      faults_{env_->faults()},
      names_{std::make_unique<names>()},
      events_{std::make_unique<event_stream>(*this)},
      ties_{std::make_unique<remote_ties>()},
      started_{env_->clock().now()} {
  if (options_.processes == 0 || options_.processes > (1U << 28U))
    throw std::invalid_argument{"runtime_options::processes is " + std::to_string(options_.processes) +
                                "; it must be between 1 and 2^28"};
  if (options_.budget < 1) throw std::invalid_argument{"runtime_options::budget must be at least 1"};
  if (options_.workers > most_workers)
    throw std::invalid_argument{"runtime_options::workers is " + std::to_string(options_.workers) +
                                "; it must be at most " + std::to_string(most_workers)};
  if (options_.stall_after.count() < 0 || options_.stop_within.count() < 0)
    throw std::invalid_argument{"runtime_options::stall_after and stop_within must not be negative"};
  if (!options_.log) options_.log = stderr_sink();
  const std::size_t workers = options_.workers != 0 ? options_.workers : env_->threads() ? env_->threads()->cores() : 1;
  options_.workers = static_cast<unsigned>(workers);
  timers_ = std::make_unique<timers>(*this, env_->threads() ? workers + 1 : 1, started_);
  // Never moved and never given back: address space for all slots, memory on first touch, one addition to find one. The
  // zeros the kernel hands out are valid slots without a process.
  void* table = ::mmap(nullptr, sizeof(slot) * table_size_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) throw std::bad_alloc{};
  // A hundred thousand processes are not worth huge pages, which come whole; a million are.
  constexpr std::size_t first_part = std::size_t{8} << 20U;
  table_ = static_cast<slot*>(table);
  if (const std::size_t all = sizeof(slot) * table_size_; all > first_part)
    ::madvise(table_ + first_part / sizeof(slot), all - first_part, MADV_HUGEPAGE);
  if (env_->threads() == nullptr) return;
  try {
    scheduler_ = make_worker_scheduler(*this, options_);
    scheduler_->begin();
  } catch (...) {
    ::munmap(table_, sizeof(slot) * table_size_);
    throw;
  }
}

kernel::~kernel() {
  crash();
  ::munmap(table_, sizeof(slot) * table_size_);
}

void kernel::set_scheduler(std::unique_ptr<scheduler> s) { scheduler_ = std::move(s); }

bool kernel::alive(pid who) const noexcept {
  if (who.node() != node_ || !who || who.index() >= table_size_) return false;
  return table_[who.index()].serial() == who.serial() && who.index() < slots_used_.load(std::memory_order_relaxed);
}

bool kernel::gone(pid who) const noexcept {
  if (elsewhere(who) || alive(who)) return false;
  const slot& p = table_[who.index()];
  return p.is_past(who.serial()) || p.mail.tail.load(std::memory_order_acquire) == nullptr;
}

std::uint32_t kernel::take_slot() {
  if (const std::uint32_t mine = slot_from_here(*this)) return mine;
  {
    const std::scoped_lock lock{free_mutex_};
    if (!free_slots_.empty()) {
      const std::uint32_t index = free_slots_.back();
      free_slots_.pop_back();
      return index;
    }
  }
  const std::uint32_t index = slots_used_.fetch_add(1, std::memory_order_relaxed);
  if (index >= table_size_) {
    slots_used_.store(table_size_, std::memory_order_relaxed);
    return 0;
  }
  return index;
}

std::size_t kernel::take_slots(std::uint32_t* into, std::size_t most) {
  std::size_t n = 0;
  {
    const std::scoped_lock lock{free_mutex_};
    while (n < most && !free_slots_.empty()) {
      into[n++] = free_slots_.back();
      free_slots_.pop_back();
    }
  }
  if (n != 0) return n;
  const auto want = static_cast<std::uint32_t>(most);
  if (slots_used_.load(std::memory_order_relaxed) + want >= table_size_) return 0;  // the last few go one by one
  const std::uint32_t first = slots_used_.fetch_add(want, std::memory_order_relaxed);
  if (first + want > table_size_) return 0;
  for (std::uint32_t i = want; i > 0; --i) into[n++] = first + i - 1;
  return n;
}

void kernel::give_slots(const std::uint32_t* from, std::size_t n) noexcept {
  const std::scoped_lock lock{free_mutex_};
  free_slots_.insert(free_slots_.end(), from, from + n);
}

void kernel::free_slot(std::uint32_t index) noexcept {
  if (table_[index].serial() == 0) return;  // its serials are used up: no old pid may ever meet a new process
  if (!slot_to_here(*this, index)) give_slots(&index, 1);
}

side_block& kernel::side_of(slot& p) {
  if (p.side == nullptr) {
    p.side = new side_block;
    p.side->refs = std::uint64_t{pid_of(p).index()} << 32U;  // so that another process's ref is none of ours
  }
  return *p.side;
}

void kernel::free_side(slot& p) noexcept { delete std::exchange(p.side, nullptr); }

// ---- running

void kernel::schedule(slot& p, bool spawned) {
  if (push_here(*this, p, spawned) || crashed_) return;
  scheduler_->inject(p);
}

/// It ends by itself: first it cleans up, then its callers hear.
void kernel::terminate(body& b, turn& t) {
  t.ending = b.type->terminate(b, t, std::move(t.ending));
  for (const held_answer& h : std::exchange(t.held, {})) send(h.to, signal::reply, h.answer);
}

// The body's code, between the two halves of a handshake with `take_from_stuck`: the other side must know that we are
// in it, and we, when we come back, whether the process was taken away meanwhile. The other side has the barrier for
// both.
[[gnu::always_inline]] inline verdict kernel::offer(slot& p, envelope& e, turn& t) {
  stall_guard& guard = t.guard;
  body* mine = p.process;  // once we are in its code, somebody may take it out of the slot
  stall_guard::step(guard.phase);
  verdict v = verdict::ended;
  t.message = e.what() == signal::message ? e.type : nullptr;
  try {
    if (e.type->for_body == mine->type) [[likely]] {
      e.type->deliver(*mine, t, e);
      v = t.ends ? verdict::ended : verdict::alive;
    } else {
      v = mine->type->offer(*mine, t, e);
    }
  } catch (const exit_with& x) {  // each by its type: to throw once more would cost as much again
    t.ending = x.reason();
  } catch (const std::exception& x) {
    t.ending = reason_of(typeid(x), x.what(), t);
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    t.ending = reason_of(type != nullptr ? *type : typeid(void), "", t);
  }
  if (v == verdict::ended && mine->type->terminate != nullptr) [[unlikely]]
    terminate(*mine, t);
  stall_guard::step(guard.phase);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (guard.state.load(std::memory_order_acquire) != stall_guard::none) [[unlikely]]
    t.taken = guard.was_taken();
  if (t.out.target != nullptr) [[unlikely]]
    flush_burst(t);
  if (!t.unanswered.empty() && v != verdict::ended) [[unlikely]]  // the failure was caught: they were just dropped
    for (const open_call& c : std::exchange(t.unanswered, {})) c.fail(*this, c.caller, c.call, error_of({}));
  return v;
}

bool kernel::run(slot& p, int budget, turn& t) {
  t.p = &p;
  t.budget = budget;
  envelope* e = p.mail.head;
  bool more = false;
  std::uint64_t handled = 0;
  for (;;) {
    if (p.urgent.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      if (look_ahead(p, e, t)) end(p, t, e);
      e = p.mail.head;
    }
    const verdict v = p.accepts(*e) ? offer(p, *e, t) : handle_rare(p, *e, t);
    --t.budget;
    ++handled;
    if (t.taken) [[unlikely]] {
      t.taken = false;
      t.ends = false;
      t.ending = {};
      const exit_reason given_up = exit_reason::abandoned();
      for (const open_call& c : std::exchange(t.unanswered, {}))
        c.fail(*this, c.caller, c.call, error_of({loss::kind::ended, &given_up}));
      if (v == verdict::kept) e->next.store(nullptr, std::memory_order_relaxed);  // the keeper's, not the queue's
      bury(p, e, v == verdict::kept);
      break;
    }
    p.handled.store(p.handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const bool kept = v == verdict::kept;
    if (v == verdict::ended) [[unlikely]]
      end(p, t, e->next.load(std::memory_order_acquire));
    envelope* n = nullptr;
    const mailbox::step s = p.mail.advance(e, n);
    if (s == mailbox::step::idle) {
      if (!kept) release(e);
      break;
    }
    if (s == mailbox::step::hidden) [[unlikely]] {
      if (!kept) {  // the place is kept until the sender has woken up; meanwhile others run
        e->tag = envelope::tag_of(0, signal::done);
        more = true;
        break;
      }
      while (p.mail.advance(e, n) != mailbox::step::next) cpu_pause();
    }
    if (kept)
      e->next.store(nullptr, std::memory_order_relaxed);  // from here on the link is the keeper's
    else
      release(e);
    p.mail.head = e = n;
    if (t.budget <= 0) [[unlikely]] {
      more = true;
      break;
    }
  }
  t.handled.store(t.handled.load(std::memory_order_relaxed) + handled, std::memory_order_relaxed);
  if (t.out.target != nullptr) [[unlikely]]  // what was sent outside of the body: by the end of the process
    flush_burst(t);
  t.p = nullptr;
  return more;
}

void kernel::end(slot& p, turn& t, envelope* rest) {
  t.ends = false;
  const exit_reason why = std::exchange(t.ending, {});
  const auto unanswered = std::exchange(t.unanswered, {});
  finish(p, why, p.process, rest, unanswered);
  free_slot(pid_of(p).index());
}

verdict kernel::handle_rare(slot& p, envelope& e, turn& t) {
  if (e.what() == signal::done) return verdict::alive;
  if (e.serial() != p.serial() || (p.process == nullptr && e.what() != signal::start)) {
    bounce(pid::from_parts(node_, pid_of(p).index(), e.serial()), e, exit_reason::noproc());
    return verdict::alive;
  }
  switch (e.what()) {
    case signal::start: return begin(p, static_cast<start_letter&>(e), t);
    case signal::seen: unmark(p); return e.what() == signal::done ? verdict::alive : offer(p, e, t);
    case signal::exit: return handle_exit(p, e, t);
    case signal::link_lost: return handle_link_lost(p, e, t);
    case signal::down: return take_down(p, e) ? offer_as_message(p, e, t) : dropped(e);
    case signal::timeout: return take_timeout(p, e) ? offer_as_message(p, e, t) : dropped(e);
    case signal::order:
    case signal::reply:
    case signal::wait_over:
    case signal::wake: return offer(p, e, t);
    default: apply(p, e); return dropped(e);
  }
}

verdict kernel::offer_as_message(slot& p, envelope& e, turn& t) {
  e.become(signal::message);
  return offer(p, e, t);
}

verdict kernel::dropped(envelope& e) {
  e.type->drop(*this, e, {});
  return verdict::alive;
}

// ---- the beginning

void kernel::before_spawn() {
  if (faults_ != nullptr && faults_->fails("spawn.allocate")) throw std::bad_alloc{};
}

result<pid> kernel::start(start_letter* first) {
  const std::uint32_t index = stopping_.load(std::memory_order_relaxed) ? 0 : take_slot();
  if (index == 0) {
    discard(*this, first);
    if (stopping_.load(std::memory_order_relaxed)) return coppice::fail(errc::stopped, "the runtime is stopping");
    return coppice::fail(errc::invalid, "the process table is full; see runtime_options::processes");
  }
  const pid me = pid::from_parts(node_, index, table_[index].serial());
  if (first->with.gate) set_gate(me, first->with.gate);  // before anybody can know it
  if (!first->with.has_name()) {
    push_start(table_[index], first);
    return me;
  }
  const std::string name = first->with.called->name;  // the letter is gone once it is pushed
  if (auto registered = register_name(name, me, first); !registered) {
    discard(*this, first);
    (void)close_gate(me);
    table_[index].set(slot::gated, false);
    give_slots(&index, 1);
    return std::unexpected{registered.error()};
  }
  return me;
}

void kernel::push_start(slot& p, start_letter* first) {
  count_spawned(*this);
  first->tag = envelope::tag_of(p.serial(), signal::start);
  if (p.mail.push(first)) schedule(p, true);
}

verdict kernel::begin(slot& p, start_letter& first, turn& t) {
  const birth& with = first.with;
  std::uint64_t tag = envelope::tag_of(p.serial(), signal::message) | slot::has_process;
  p.parent_index.store(with.parent.index(), std::memory_order_relaxed);
  p.parent_serial.store(with.parent.serial(), std::memory_order_relaxed);
  if (with.linked) tag |= slot::parent_linked | slot::born_linked;
  if (with.gate) tag |= slot::gated;
  p.handled.store(0, std::memory_order_relaxed);
  p.length.store(0, std::memory_order_relaxed);
  p.born_ds.store(static_cast<std::uint32_t>((env_->clock().coarse_now() - started_) / std::chrono::milliseconds{100}),
                  std::memory_order_relaxed);
  p.tag.store(tag, std::memory_order_release);
  if (with.watched_as) {
    side_block& side = side_of(p);
    side.watchers.insert({with.parent, with.watched_as}, {});
  }
  if (with.has_label()) set_label(p, with.called->label);
  p.process = &unborn;
  const verdict v = offer(p, first, t);
  first.type->drop(*this, first, {});
  return v;
}

// ---- the end

void kernel::finish(slot& p, const exit_reason& why, body* to_destroy, envelope* rest,
                    std::span<const open_call> unanswered) {
  const pid me = pid_of(p);
  unmark(p);
  const bool parent_linked = p.is(slot::parent_linked);
  const bool born_linked = p.is(slot::born_linked);
  const pid parent = pid::from_parts(node_, p.parent_index, p.parent_serial);
  if (to_destroy != nullptr) p.process = nullptr;
  // From here on nobody finds it alive, and what was queued or is still coming is dead mail.
  p.tag.store(envelope::tag_of(me.serial() + 1, signal::vacant), std::memory_order_seq_cst);
  // Whoever hears of the end, callers included, can use the name.
  names::entry texts;
  if (p.named.exchange(0, std::memory_order_seq_cst) != 0) texts = names_->release(me);
  {
    const ending_process before = std::exchange(ending, {me, &why});
    if (to_destroy != nullptr) {
      // In the turn of another, who ends it, that one's guard is set already.
      const bool in_its_turn = current_turn != nullptr && current_turn->p == &p;
      const last_code code{in_its_turn ? &current_turn->guard : nullptr};
      to_destroy->type->destroy(*to_destroy, *this);
    }
    for (const open_call& c : unanswered) c.fail(*this, c.caller, c.call, error_of({loss::kind::ended, &why}));
    answer_requests(rest, me.serial(), why);
    ending = before;
  }
  if (crashed_) {
    free_side(p);
    return;
  }
  if ((why.what() == exit_reason::kind::error && logs(log_level::error)) || events_->wanted(plain<process_ended>))
    report_end(me, why, std::move(texts.name), std::move(texts.label));
  if (parent_linked)
    send_exit(parent, {me, why, true});
  else if (born_linked)
    send(parent, signal::reply, make_letter<child_ended>(plain<child_ended>, me, why));
  tell_the_bereaved(p, me, why);
  free_side(p);
  count_ended(*this);
}

void kernel::answer_requests(envelope* from, std::uint32_t serial, const exit_reason& why) {
  for (envelope* e = from; e != nullptr; e = e->next.load(std::memory_order_acquire)) {
    if (e->serial() != serial || !e->type->is_request || e->what() != signal::message) continue;
    e->type->drop(*this, *e, {loss::kind::ended, &why});
    e->become(signal::done);
  }
}

void kernel::tell_the_bereaved(slot& p, pid me, const exit_reason& why) {
  side_block* side = p.side;
  if (side == nullptr) return;
  // Nobody else changes the block while we own the process, and sending takes no lock of ours: no lock is needed to
  // read.
  side->links.for_each([&](pid other, const link_state& l) {
    if (elsewhere(other)) untie(other, {.local = me, .remote = other, .what = tie::kind::link, .over = l.over});
    if (l.unlinking == 0) send_exit(other, {me, why, true});
  });
  side->watchers.for_each([&](const watch& w, nothing) {
    if (elsewhere(w.watcher))
      untie(w.watcher, {.local = me, .remote = w.watcher, .number = w.ref.value(), .what = tie::kind::watched});
  });
  side->watchers.for_each(
      [&](const watch& w, nothing) { send(w.watcher, signal::down, make_letter<down>(plain<down>, w.ref, me, why)); });
  side->monitors.for_each([&](std::uint64_t ref, pid other) {
    if (elsewhere(other)) untie(other, {.local = me, .remote = other, .number = ref, .what = tie::kind::monitor});
    drop_watch(me, other, monitor_ref{ref});
  });
  side->timers.for_each([&](std::uint64_t ref, nothing) { disarm(timer_ref{ref}); });
  for (const auto& weak : side->replies) {
    const auto reply = weak.lock();
    if (reply && !reply->answered.exchange(true)) reply->fail(*this, *reply, why);
  }
}

void kernel::report_end(pid me, const exit_reason& why, std::string name, std::string label) {
  if (why.what() == exit_reason::kind::error && logs(log_level::error))
    log(log_level::error, "process ended",
        {{"pid", to_string(me)}, {"name", name}, {"label", label}, {"reason", why.to_string()}});
  events_->publish(process_ended{.who = me, .name = std::move(name), .label = std::move(label), .reason = why});
}

void kernel::defer(slot& me, const std::shared_ptr<pending_reply>& reply) {
  side_block& side = side_of(me);
  if (side.replies.size() == side.replies.capacity())
    std::erase_if(side.replies, [](const auto& weak) { return weak.expired(); });
  side.replies.push_back(reply);
}

// ---- stuck processes

bool kernel::abandon(pid who) {
  if (!alive(who)) return false;
  slot& p = table_[who.index()];
  if (!scheduler_->take_from_stuck(p, who.serial())) return false;
  envelope* stuck_in = p.mail.head;
  const exit_reason given_up = exit_reason::abandoned();
  envelope* held = p.process->type->in_hand != nullptr ? p.process->type->in_hand(*p.process) : nullptr;
  envelope& handled = held != nullptr ? *held : *stuck_in;
  if (handled.type->fail != nullptr) handled.type->fail(*this, handled, error_of({loss::kind::ended, &given_up}));
  // Its frames belong to the thread that is stuck in them.
  {
    const std::scoped_lock lock{stranded_mutex_};
    stranded_[&p] = std::exchange(p.process, nullptr);
  }
  const std::vector<envelope*> at_gate = close_gate(who);
  finish(p, exit_reason::abandoned(), nullptr, stuck_in->next.load(std::memory_order_acquire));
  for (envelope* e : at_gate) {
    note_dead_letter(who, *e);
    discard(*this, e, {loss::kind::ended, &given_up});
  }
  release_claim(p, *stuck_in);
  scheduler_->done_with_stuck(p);
  return true;
}

void kernel::bury(slot& p, envelope* e, bool kept) {
  // The process was abandoned while this thread was in its handler. The slot stayed out of use until now, so that
  // nothing the handler did in between could touch a successor.
  body* left_behind = nullptr;
  {
    const std::scoped_lock lock{stranded_mutex_};
    left_behind = stranded_[&p];
    stranded_.erase(&p);
    if (left_behind == &unborn && current_turn != nullptr && current_turn->born != nullptr)
      left_behind = current_turn->born;  // made meanwhile
  }
  {
    const exit_reason given_up = exit_reason::abandoned();
    const pid was = pid::from_parts(node_, pid_of(p).index(), p.serial() - 1);
    const ending_process before = std::exchange(ending, {was, &given_up});
    const last_code code{current_turn != nullptr ? &current_turn->guard : nullptr};
    left_behind->type->destroy(*left_behind, *this);
    ending = before;
  }
  if (!kept) release(e);
  // The handler may have told others a pid with the serial the slot has now: that one is skipped.
  p.tag.store(envelope::tag_of(p.serial() + 1, signal::vacant), std::memory_order_seq_cst);
  free_slot(pid_of(p).index());
}

}  // namespace coppice::detail
