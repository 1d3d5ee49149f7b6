#include "internal/workers.hpp"

#include <algorithm>
#include <limits>

#include <coppice/base/ensure.hpp>

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

constinit thread_local worker* here = nullptr;

void run_ring::grow() {
  std::vector<slot*> more(at_.size() * 2);
  for (std::uint32_t i = first_; i != last_; ++i) more[i & (more.size() - 1)] = (*this)[i];
  at_.swap(more);
}

// ---- life

std::unique_ptr<scheduler> make_worker_scheduler(kernel& k, const runtime_options& options) {
  return std::make_unique<worker_scheduler>(k, options);
}

worker_scheduler::worker_scheduler(kernel& k, const runtime_options& options)
    : kernel_{k},
      threads_{*k.env().threads()},
      clock_{k.env().clock()},
      count_{options.workers},
      searchers_{std::max(1U, options.workers / 4)},
      budget_{options.budget},
      stall_after_{options.stall_after},
      pin_{options.pin_workers},
      workers_(options.workers) {
  for (std::uint32_t i = 0; i < count_; ++i) workers_[i] = &fresh_worker(i);
}

worker_scheduler::~worker_scheduler() = default;

void worker_scheduler::begin() {
  try {
    for (auto& w : workers_) launch(*w.load());
    keeper_ = threads_.start("coppice-time", std::nullopt, [this] { keep_time(); });
  } catch (...) {
    (void)stop({});
    throw;
  }
}

worker& worker_scheduler::fresh_worker(std::uint32_t number) {
  const std::scoped_lock lock{all_mutex_};
  worker* w = nullptr;
  // Whoever waits for the backtrace of a stuck thread holds that mutex for long, and timers must not wait for it.
  const std::unique_lock handles{handles_mutex_, std::try_to_lock};
  if (retired_.empty() || !handles) {
    w = &all_.emplace_back();
  } else {
    w = retired_.back();
    retired_.pop_back();
    if (w->thread) w->thread->join();  // it has retired, and ends soon
    w->thread.reset();
    w->finished = 0;
    w->replaced = false;
    w->now.out.closed = false;
    w->next.reopen();
  }
  w->k = &kernel_;
  w->now.k = &kernel_;
  w->worth_ns = worth_ns;
  w->owner = this;
  w->number = number;
  return *w;
}

void worker_scheduler::launch(worker& w) {
  const auto core = pin_ ? std::optional<unsigned>{w.number} : std::nullopt;
  w.thread = threads_.start("coppice-" + std::to_string(w.number), core, [this, &w] { work(w); });
}

bool worker_scheduler::stop(time_point deadline) {
  stopping_ = true;
  for (auto& w : workers_) wake_to_leave(*w.load());
  kick_timekeeper();
  deadline = std::max(deadline, clock_.now() + std::chrono::milliseconds{200});
  const auto wait_for = [&](std::atomic<std::uint32_t>& finished) {
    while (finished.load() == 0 && clock_.now() < deadline) threads_.wait(finished, 0, deadline);
  };
  bool clean = true;
  const auto end = [&](std::unique_ptr<thread_handle>& thread, const std::atomic<std::uint32_t>& finished) {
    if (!thread) return;
    if (finished.load() != 0) {
      thread->join();
    } else {
      thread->detach();
      clean = false;
    }
    thread.reset();
  };
  if (keeper_) wait_for(keeper_finished_);
  end(keeper_, keeper_finished_);
  if (reporter_) wait_for(reporter_finished_);
  end(reporter_, reporter_finished_);
  // Without the lock, which a worker that was replaced takes before it is finished.
  for (worker* w : workers_with_threads()) wait_for(w->finished);
  const std::scoped_lock lock{all_mutex_, handles_mutex_};
  for (worker& w : all_) end(w.thread, w.finished);
  return clean;
}

std::vector<worker*> worker_scheduler::workers_with_threads() {
  const std::scoped_lock lock{all_mutex_};
  std::vector<worker*> found;
  for (worker& w : all_)
    if (w.thread) found.push_back(&w);
  return found;
}

void worker_scheduler::count(runtime_counters& into) {
  const std::scoped_lock lock{all_mutex_};
  for (const worker& w : all_) {
    into.spawned += w.spawned.get();
    into.ended += w.ended.get();
    into.handled += w.now.handled.load(std::memory_order_relaxed);
    into.turns += w.turns.load(std::memory_order_relaxed);
    into.stolen += w.stolen.get();
    into.parked += w.parks.get();
  }
  into.injected = injected_count_.load(std::memory_order_relaxed);
  into.stalls = stalls_;
}

bool worker_scheduler::is_running(const slot& p) {
  const std::scoped_lock lock{all_mutex_};
  for (const worker& w : all_)
    if (w.current.load(std::memory_order_relaxed) == &p) return true;
  return false;
}

bool worker_scheduler::wait(std::atomic<std::uint32_t>& done, std::optional<time_point> until) {
  while (done.load(std::memory_order_acquire) == 0) {
    if (until && clock_.now() >= *until) return false;
    threads_.wait(done, 0, until);
  }
  return true;
}

// ---- pushing

void worker_scheduler::note_surplus(worker& w) {
  w.surplus.store(w.queue.size() + w.fresh.size(), std::memory_order_relaxed);
}

bool worker_scheduler::push_surplus(worker& w, slot& p, bool spawned) {
  {
    const std::scoped_lock lock{w.lock};
    if (w.replaced.load(std::memory_order_relaxed)) return false;
    (spawned ? w.fresh : w.queue).push_back(&p);
    note_surplus(w);
  }
  wake_if_worth(w);
  return true;
}

void worker_scheduler::inject(slot& p) {
  {
    const std::scoped_lock lock{injected_mutex_};
    injected_.push_back(&p);
    injected_size_.store(static_cast<std::uint32_t>(injected_.size()), std::memory_order_seq_cst);
  }
  injected_count_.fetch_add(1, std::memory_order_relaxed);
  wake_one();
}

bool worker_scheduler::worthy(const worker& v) {
  const std::uint64_t backlog_ns =
      std::uint64_t{v.surplus.load(std::memory_order_relaxed)} * v.turn_ns.load(std::memory_order_relaxed);
  const std::uint32_t worth = v.worth_ns.load(std::memory_order_relaxed);
  return backlog_ns >= worth || (v.buried.load(std::memory_order_relaxed) != 0 && worth < worth_at_hub_ns);
}

// A wake-up missed here costs parallelism for a moment only: this worker goes on with its queue, and looks again. When
// it does not, because it is in a long handler, the timekeeper looks.
void worker_scheduler::wake_if_worth(const worker& w) {
  if (parked_.load(std::memory_order_relaxed) == 0) return;
  if (worthy(w) || !guarded_.load(std::memory_order_relaxed)) wake_one();
}

// Nobody else would find a process that was injected, so this function and `doze` are sequentially consistent. A worker
// that searches already looks for injected processes before it sleeps.
void worker_scheduler::wake_one() {
  if (parked_.load(std::memory_order_seq_cst) == 0) return;
  std::uint32_t now = searching_.load(std::memory_order_seq_cst);
  if (now >= searchers_ || !searching_.compare_exchange_strong(now, now + 1)) return;
  for (auto& w : workers_)
    if (unpark(*w.load(std::memory_order_acquire))) return;  // it starts as a searcher
  // The searcher counted above does not exist, but a thread that has injected work meanwhile may rely on it. If others
  // search, one of them finds the work: each looks for it after it has stopped searching. There is no second try here,
  // because this thread may be the worker that has to take the work.
  const bool last = searching_.fetch_sub(1, std::memory_order_seq_cst) == 1;
  if (last && injected_size_.load(std::memory_order_seq_cst) != 0) kick_timekeeper();
}

/// A woken worker takes itself off the searchers when it is done, so it is counted before it is woken.
void worker_scheduler::wake_to_leave(worker& w) {
  searching_.fetch_add(1);
  if (unpark(w)) return;
  searching_.fetch_sub(1);
  wake_for_injected();
}

/// Called after `searching_` was reduced: a thread that has injected a process may have relied on that searcher.
void worker_scheduler::wake_for_injected() {
  if (injected_size_.load(std::memory_order_seq_cst) != 0) wake_one();
}

bool worker_scheduler::unpark(worker& w) {
  std::uint32_t one = 1;
  if (w.asleep.load(std::memory_order_relaxed) == 0 || !w.asleep.compare_exchange_strong(one, 0)) return false;
  threads_.wake_one(w.asleep);
  return true;
}

// ---- a worker's loop

void worker_scheduler::work(worker& w) {
  while (w.cleared.load(std::memory_order_acquire) == 0) threads_.wait(w.cleared, 0, std::nullopt);
  here = &w;
  current_turn = &w.now;
  while (slot* p = pick(w)) {
    w.current.store(p, std::memory_order_relaxed);
    const bool more = kernel_.run(*p, budget_, w.now);
    w.current.store(nullptr, std::memory_order_relaxed);
    if (w.now.guard.state.load(std::memory_order_relaxed) == stall_guard::over) w.now.guard.state = stall_guard::none;
    if (more && !push_surplus(w, *p, false)) inject(*p);
  }
  leave(w);
}

void worker_scheduler::leave(worker& w) {
  if (w.woken) {
    stop_searching(w);
    wake_for_injected();
  }
  if (w.replaced && !stopping_) {
    hand_over(w);
    const std::scoped_lock lock{all_mutex_};
    retired_.push_back(&w);
  }
  kernel_.table().give_back(w.slots.data(), w.slots_count);
  w.slots_count = 0;
  here = nullptr;
  current_turn = nullptr;
  w.finished = 1;
  threads_.wake_all(w.finished);
}

/// The successor has taken over the queues. Injects the processes that this worker has queued since then.
void worker_scheduler::hand_over(worker& w) {
  std::vector<slot*> left;
  {
    const std::scoped_lock lock{w.lock};
    while (w.queue.size() != 0) left.push_back(w.queue.pop_front());
    while (w.fresh.size() != 0) left.push_back(w.fresh.pop_front());
    note_surplus(w);
  }
  slot* next = nullptr;
  (void)w.next.exchange(nullptr, next);
  if (next != nullptr) left.push_back(next);
  for (slot* p : left) inject(*p);
}

slot* worker_scheduler::pick(worker& w) {
  for (;;) {
    if (stopping_.load(std::memory_order_relaxed) || w.replaced.load(std::memory_order_relaxed)) [[unlikely]]
      return nullptr;
    const std::uint32_t turns = w.turns.load(std::memory_order_relaxed) + 1;
    w.turns.store(turns, std::memory_order_relaxed);
    if (turns % 64 == 0) [[unlikely]]
      measure(w);
    if (injected_size_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      take_injected(w);
    slot* p = pop(w);
    if (p == nullptr) p = search(w);
    if (p == nullptr) continue;
    if (w.woken) [[unlikely]] {
      stop_searching(w);
      call_for_help(w);
    }
    return p;
  }
}

/// While a worker searches, nobody else is woken. Once it has found something it looks whether there is more.
void worker_scheduler::call_for_help(const worker& w) {
  if (injected_size_.load(std::memory_order_seq_cst) != 0 || anybody_waits()) wake_if_worth(w);
}

bool worker_scheduler::anybody_waits() const {
  return std::ranges::any_of(workers_, [](const std::atomic<worker*>& w) {
    return w.load(std::memory_order_acquire)->surplus.load(std::memory_order_relaxed) != 0;
  });
}

/// Called by a searcher that has found something or given up.
void worker_scheduler::stop_searching(worker& w) {
  w.woken = false;
  const std::uint32_t before = searching_.fetch_sub(1);
  ensure(before > 0, "a worker stops searching that was not counted");
}

void worker_scheduler::measure(worker& w) {
  const time_point now = clock_.now();
  const std::uint32_t turns = w.turns.load(std::memory_order_relaxed);
  const auto one = (now - w.measured_at).count() / std::max(1U, turns - w.measured_turns);
  const auto lately = static_cast<std::uint32_t>(std::clamp<std::int64_t>(one, 1, 1'000'000));
  w.turn_ns.store((w.turn_ns.load(std::memory_order_relaxed) + lately) / 2, std::memory_order_relaxed);
  const bool at_hub = w.now.out.met_busy - w.measured_met_busy > (turns - w.measured_turns) / 2;
  w.worth_ns.store(at_hub ? worth_at_hub_ns : worth_ns, std::memory_order_relaxed);
  w.measured_met_busy = w.now.out.met_busy;
  w.measured_at = now;
  w.measured_turns = turns;
  const std::scoped_lock lock{w.lock};
  w.buried.store(w.fresh_low, std::memory_order_relaxed);
  w.fresh_low = w.fresh.size();
}

slot* worker_scheduler::pop_newest(worker& w) {
  if (w.fresh.size() != 0) {
    slot* p = w.fresh.pop_back();
    w.fresh_low = std::min(w.fresh_low, w.fresh.size());
    return p;
  }
  if (w.queue.size() == 0) return nullptr;
  w.streak = 0;
  slot* p = w.queue.pop_front();
  if (w.queue.size() != 0) __builtin_prefetch(w.queue.front());
  return p;
}

/// For fairness: takes the one that has waited longest, by turns from the queue and from the stack.
slot* worker_scheduler::pop_oldest(worker& w) {
  w.streak = 0;
  w.oldest_fresh_next = !w.oldest_fresh_next;
  if (w.queue.size() == 0 || (w.oldest_fresh_next && w.fresh.size() != 0)) {
    if (w.fresh.size() == 0) return nullptr;
    slot* p = w.fresh.pop_front();
    w.fresh_low = std::min(w.fresh_low, w.fresh.size());
    return p;
  }
  return w.queue.pop_front();
}

slot* worker_scheduler::pop(worker& w) {
  slot* n = nullptr;
  (void)w.next.exchange(nullptr, n);
  const bool queue_has_waited = ++w.streak > streak_limit && w.surplus.load(std::memory_order_relaxed) != 0;
  if (n != nullptr && !queue_has_waited) [[likely]]
    return n;
  slot* p = nullptr;
  {
    const std::scoped_lock lock{w.lock};
    if (n != nullptr) w.queue.push_back(n);
    p = queue_has_waited ? pop_oldest(w) : pop_newest(w);
    note_surplus(w);
    w.popped.store(w.popped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  if (p != nullptr && w.surplus.load(std::memory_order_relaxed) != 0) wake_if_worth(w);
  return p;
}

void worker_scheduler::take_injected(worker& w) {
  std::vector<slot*> got;
  {
    const std::scoped_lock lock{injected_mutex_};
    got.swap(injected_);
    injected_size_.store(0, std::memory_order_seq_cst);
  }
  w.lock.lock();
  for (slot* p : got) w.queue.push_back(p);
  note_surplus(w);
  w.lock.unlock();
}

// ---- without work

slot* worker_scheduler::steal_from(worker& v, worker& w) {
  if (!v.lock.try_lock()) return nullptr;
  std::array<slot*, 256> loot;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled as far as it is used
  std::uint32_t n = 0;
  const std::uint32_t queued = std::min((v.queue.size() + 1) / 2, 128U);
  const std::uint32_t spawned = std::min((v.fresh.size() + 1) / 2, 128U);
  while (n < queued) loot[n++] = v.queue.pop_front();
  while (n < queued + spawned) loot[n++] = v.fresh.pop_front();  // the oldest: the largest subtrees
  v.fresh_low = std::min(v.fresh_low, v.fresh.size());
  v.buried.store(std::min(v.buried.load(std::memory_order_relaxed), v.fresh.size()), std::memory_order_relaxed);
  note_surplus(v);
  v.popped.store(v.popped.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  v.lock.unlock();
  if (n == 0) return nullptr;
  w.stolen.add(n);
  if (n > 1) {
    const std::scoped_lock lock{w.lock};
    for (std::uint32_t k = 1; k < n; ++k) w.queue.push_back(loot[k]);
    note_surplus(w);
  }
  // Until the thief has measurements of its own, it uses those of its victim.
  w.turn_ns.store(v.turn_ns.load(std::memory_order_relaxed), std::memory_order_relaxed);
  w.worth_ns.store(v.worth_ns.load(std::memory_order_relaxed), std::memory_order_relaxed);
  w.victim = &v;
  w.victim_turns = v.turns.load(std::memory_order_relaxed);
  return loot[0];
}

slot* worker_scheduler::steal_worthy(worker& w) {
  // A victim that is still in the same turn as at the last theft is busy for long: only thieves empty its queue.
  if (worker* v = w.victim; v != nullptr && v->turns.load(std::memory_order_relaxed) == w.victim_turns &&
                            v->surplus.load(std::memory_order_relaxed) != 0)
    if (slot* p = steal_from(*v, w)) return p;
  for (std::uint32_t i = 1; i < count_; ++i) {
    worker& v = *workers_[(w.number + i) % count_].load(std::memory_order_acquire);
    if (!worthy(v)) continue;
    if (slot* p = steal_from(v, w)) return p;
  }
  return nullptr;
}

bool worker_scheduler::called_off(const worker& w) const {
  return injected_size_.load(std::memory_order_seq_cst) != 0 || stopping_.load(std::memory_order_relaxed) ||
         w.replaced.load(std::memory_order_seq_cst);
}

slot* worker_scheduler::spin(worker& w) {
  const time_point until = clock_.now() + spin_for;
  for (;;) {
    slot* p = steal_worthy(w);
    if (p != nullptr || called_off(w)) return p;
    for (int i = 0; i < 64; ++i) cpu_pause();
    if (clock_.now() > until) return nullptr;
  }
}

/// The loop of the sentinel: looks at the queues at growing intervals, and steals from one whose backlog is worth it or
/// that has not moved enough. Null: no other worker is busy, or the sentinel was woken or called off.
slot* worker_scheduler::stand_guard(worker& w) {
  struct sight {
    std::uint32_t popped = 0;
    std::uint32_t surplus = 0;
  };
  std::vector<sight> seen(count_);
  std::chrono::microseconds pause = guard_first;
  while (parked_.load(std::memory_order_seq_cst) + 1 < count_) {
    for (std::uint32_t i = 0; i < count_; ++i) {
      worker& v = *workers_[i].load(std::memory_order_acquire);
      if (&v == &w) continue;
      const sight now{v.popped.load(std::memory_order_relaxed), v.surplus.load(std::memory_order_relaxed)};
      const bool stale = pause.count() * 1000 >= v.worth_ns.load(std::memory_order_relaxed) && seen[i].surplus != 0 &&
                         now.popped - seen[i].popped < seen[i].surplus;
      seen[i] = now;
      if (now.surplus == 0 || !(stale || worthy(v))) continue;
      if (slot* p = steal_from(v, w)) return p;
    }
    if (called_off(w) || w.woken) return nullptr;
    doze(w, clock_.now() + pause);
    pause = std::min(pause * 2, guard_longest);
  }
  return nullptr;
}

slot* worker_scheduler::search(worker& w) {
  slot* p = nullptr;
  std::uint32_t now = searching_.load();
  if (!w.woken) w.woken = count_ > 1 && now < searchers_ && searching_.compare_exchange_strong(now, now + 1);
  if (w.woken) {
    p = spin(w);
    stop_searching(w);
    if (p != nullptr) call_for_help(w);
  }
  if (p == nullptr && !called_off(w) && count_ > 1 && !guarded_.exchange(true)) {
    p = stand_guard(w);
    guarded_ = false;
    // Another worker must stand guard: processes in queues rely on it, also when this one leaves for injected work.
    if (p != nullptr || anybody_waits()) wake_one();
  }
  if (p == nullptr && !called_off(w) && !w.woken) park(w);
  w.measured_at = clock_.now();
  w.measured_turns = w.turns.load(std::memory_order_relaxed);
  // The timekeeper may have slept as long as this worker.
  w.now.clock_cs.store(kernel_.centiseconds(w.measured_at), std::memory_order_relaxed);
  return p;
}

/// Sleeps until woken, or until `until`.
void worker_scheduler::doze(worker& w, std::optional<time_point> until) {
  w.asleep.store(1, std::memory_order_seq_cst);
  parked_.fetch_add(1, std::memory_order_seq_cst);
  if (!called_off(w)) {
    if (!until) w.parks.add(1);
    // A sentinel that has just stopped may not have seen this worker parked and not have woken it: do not sleep.
    const bool unguarded = !until && !guarded_.load(std::memory_order_seq_cst) && parked_.load() < count_ && count_ > 1;
    while (!unguarded && w.asleep.load() == 1 && (!until || clock_.now() < *until)) threads_.wait(w.asleep, 1, until);
  }
  // In this order, so that `parked_` counts no worker that can't be woken: `wake_one` would search in vain.
  parked_.fetch_sub(1, std::memory_order_seq_cst);
  std::uint32_t one = 1;
  w.woken |= !w.asleep.compare_exchange_strong(one, 0);
  if (keeper_unworried_.load(std::memory_order_seq_cst)) kick_timekeeper();
}

void worker_scheduler::park(worker& w) { doze(w, std::nullopt); }

// ---- time

void worker_scheduler::timer_armed(time_point due) {
  if (due.time_since_epoch().count() < planned_wake_.load(std::memory_order_seq_cst)) [[unlikely]]
    kick_timekeeper();
}

void worker_scheduler::kick_timekeeper() {
  keeper_word_.fetch_add(1, std::memory_order_seq_cst);
  if (keeper_asleep_.load(std::memory_order_seq_cst)) threads_.wake_one(keeper_word_);
}

void worker_scheduler::keep_time() {
  using std::chrono::milliseconds;
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  const milliseconds tick =
      stall_after_.count() == 0 ? milliseconds{10} : std::clamp(stall_after_ / 4, milliseconds{1}, milliseconds{10});
  constexpr milliseconds trim_every{10};
  time_point trim_next{};
  bool trimming = false;
  while (!stopping_.load()) {
    wake_for_injected();  // before the word is read, so that a kick by `wake_one` does not cut the wait below short
    const std::uint32_t word = keeper_word_.load(std::memory_order_seq_cst);
    const time_point now = clock_.now();
    kernel_.parts().timers.advance(now);
    look_for_stalls(now);
    if (now >= trim_next) {
      trimming = trim_pools(trim::gently);
      trim_next = now + trim_every;
    } else {
      trimming = true;  // too early: the last workers may park with a burst behind them, so look once more
    }
    // A thread that arms a timer from here on sees that nothing is planned yet, and kicks.
    planned_wake_.store(never, std::memory_order_seq_cst);
    std::optional<time_point> until = kernel_.parts().timers.next();
    keeper_unworried_.store(true, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) != count_ || injected_size_.load(std::memory_order_seq_cst) != 0) {
      keeper_unworried_.store(false, std::memory_order_seq_cst);
      until = std::min(until.value_or(now + tick), now + tick);
    }
    if (trimming) until = std::min(until.value_or(trim_next), trim_next);
    if (until) planned_wake_.store(until->time_since_epoch().count(), std::memory_order_seq_cst);
    keeper_asleep_.store(true, std::memory_order_seq_cst);
    threads_.wait(keeper_word_, word, until);
    keeper_asleep_.store(false, std::memory_order_seq_cst);
  }
  keeper_finished_ = 1;
  threads_.wake_all(keeper_finished_);
}

}  // namespace coppice::detail
