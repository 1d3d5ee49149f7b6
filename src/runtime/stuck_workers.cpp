// Workers whose process does not return: detecting them, replacing them, taking the process away.
#include "internal/workers.hpp"

namespace coppice::detail {

void worker_scheduler::look_for_stalls(time_point now) {
  for (auto& at : workers_) {
    worker& w = *at.load();
    w.now.clock_cs.store(kernel_.centiseconds(now), std::memory_order_relaxed);
    const std::uint32_t phase = w.now.guard.phase.load(std::memory_order_acquire);
    if (phase != w.seen_phase || phase % 2 == 0) {
      w.seen_phase = phase;
      w.seen_at = now;
      continue;
    }
    const auto lasting = std::chrono::duration_cast<std::chrono::milliseconds>(now - w.seen_at.load());
    if (stall_after_.count() != 0 && lasting >= stall_after_) {
      replace(w, lasting);
      continue;
    }
    // Long, but not a stall yet: other workers can continue with the messages and processes that it holds back.
    flush(w);
    if (parked_.load() == 0) continue;
    slot* waiting = w.next.take_from_outside(threads_, biased_lock::access::open);
    if (waiting != nullptr) inject(*waiting);
    if (w.surplus.load() != 0 && !guarded_.load()) wake_one();
  }
}

void worker_scheduler::clear(worker& w) {
  w.cleared = 1;
  threads_.wake_all(w.cleared);
}

void worker_scheduler::flush(worker& w) {
  const std::scoped_lock lock{outsiders_};
  kernel_.flush_from_outside(w.now);
}

void worker_scheduler::replace(worker& stuck, std::chrono::milliseconds lasting) {
  slot* culprit = stuck.current.load();
  const pid who = culprit != nullptr ? kernel_.pid_of(*culprit) : pid{};
  worker& successor = fresh_worker(stuck.number);
  successor.cleared = 0;
  try {
    launch(successor);
  } catch (const std::exception& x) {
    kernel_.log(log_level::error, "a process holds its worker, and no thread can take over", {{"reason", x.what()}});
    stuck.seen_at = clock_.now();  // so it is tried again after `stall_after_`
    const std::scoped_lock lock{all_mutex_};
    retired_.push_back(&successor);
    return;
  }
  if (stuck.now.guard.phase.load(std::memory_order_acquire) != stuck.seen_phase) {  // it has come back meanwhile
    successor.replaced = true;
    clear(successor);
    return;
  }
  stuck.now.out.closed = true;
  flush(stuck);
  stuck.lock.lock();
  stuck.replaced.store(true, std::memory_order_seq_cst);
  std::swap(successor.queue, stuck.queue);
  std::swap(successor.fresh, stuck.fresh);
  note_surplus(stuck);
  stuck.lock.unlock();
  successor.lock.lock();
  note_surplus(successor);
  successor.lock.unlock();
  if (slot* waiting = stuck.next.take_from_outside(threads_, biased_lock::access::closed)) inject(*waiting);
  successor.seen_phase = successor.now.guard.phase.load();
  workers_[stuck.number].store(&successor, std::memory_order_release);
  {
    const std::scoped_lock lock{all_mutex_};
    ++stalls_;
  }
  clear(successor);
  // If the stuck worker has just come back and gone to sleep, nobody else wakes it so that it can leave.
  wake_to_leave(stuck);
  if (culprit != nullptr) report({culprit, who, lasting});
}

/// A report takes long: it has a backtrace with names. Timers must not wait for it, so another thread writes it.
void worker_scheduler::report(const stall_report& what) {
  {
    const std::scoped_lock lock{all_mutex_};
    reports_.push_back(what);
    if (std::exchange(reporting_, true)) return;
  }
  try {
    if (reporter_) reporter_->join();  // it has nothing left to report, and ends
    reporter_.reset();
    reporter_finished_ = 0;
    reporter_ = threads_.start("coppice-stalls", std::nullopt, [this] { write_reports(); });
  } catch (const std::exception&) {
    write_reports();  // there is no thread for it
  }
}

void worker_scheduler::write_reports() {
  for (;;) {
    stall_report next;
    {
      const std::scoped_lock lock{all_mutex_};
      if (reports_.empty()) {
        reporting_ = false;
        break;
      }
      next = reports_.front();
      reports_.pop_front();
    }
    if (kernel_.pid_of(*next.where) == next.who) kernel_.report_stall(*next.where, next.lasting);
  }
  reporter_finished_ = 1;
  threads_.wake_all(reporter_finished_);
}

/// Keeps the code that `w` runs from entering a `kernel_section` and from returning to the runtime. False: the worker
/// does not run code of `p`, or that code is in a `kernel_section` or `last_code`. In both cases `guard.state` has to
/// be set afterwards.
bool worker_scheduler::hold(worker& w, const slot& p, std::uint32_t phase) {
  const stall_guard& guard = w.now.guard;
  threads_.barrier_everywhere();
  // From here on its code enters no `kernel_section`. One that it is in ends soon; a `last_code` may not.
  const time_point give_up_at = clock_.now() + std::chrono::milliseconds{1};
  while (guard.section.load(std::memory_order_acquire) % 2 == 1 && clock_.now() < give_up_at) cpu_pause();
  return guard.phase.load(std::memory_order_acquire) == phase &&
         guard.section.load(std::memory_order_acquire) % 2 == 0 && w.current.load() == &p;
}

/// Calls `act` for the worker that runs the code of `p`, while that code is held. `act` returns the state that the
/// guard has afterwards. False: nothing was called, because no other thread runs its code, or that code is in a part of
/// the runtime.
template <class Act>
bool worker_scheduler::while_held(slot& p, const Act& act) {
  const std::scoped_lock lock{all_mutex_};
  for (worker& w : all_) {
    if (w.current.load() != &p) continue;
    stall_guard& guard = w.now.guard;
    const std::uint32_t phase = guard.phase.load(std::memory_order_acquire);
    std::uint32_t none = stall_guard::none;
    if (phase % 2 == 0 || &w == here || !guard.state.compare_exchange_strong(none, stall_guard::asked)) return false;
    const bool still = hold(w, p, phase) && p.is(slot::has_process);
    std::uint32_t after = stall_guard::none;
    try {
      if (still) after = act(w, phase);
    } catch (...) {
      guard.state.store(after, std::memory_order_release);  // or the worker would wait for ever
      throw;
    }
    guard.state.store(after, std::memory_order_release);
    return still;
  }
  return false;
}

bool worker_scheduler::take_from_stuck(slot& p, std::uint32_t serial) {
  bool taken = false;
  (void)while_held(p, [&](worker& w, std::uint32_t) {
    taken = p.serial() == serial;
    if (!taken) return stall_guard::none;
    flush(w);  // what it has sent must arrive before the signals of its end
    return stall_guard::taken;
  });
  return taken;
}

bool worker_scheduler::look_into_code(slot& p, const std::function<void(time_point since)>& look) {
  return while_held(p, [&](const worker& w, std::uint32_t phase) {
    look(w.seen_phase == phase ? w.seen_at.load() : clock_.now());
    return stall_guard::none;
  });
}

std::vector<const void*> worker_scheduler::backtrace(slot& p) {
  std::unique_lock all{all_mutex_};
  for (worker& w : all_) {
    if (w.current.load() != &p || &w == here || !w.thread) continue;
    const std::scoped_lock handles{handles_mutex_};
    all.unlock();  // the answer of the thread may take long
    return w.thread->backtrace();
  }
  return {};
}

void worker_scheduler::done_with_stuck(slot& p) {
  const std::scoped_lock lock{all_mutex_};
  for (worker& w : all_) {
    std::uint32_t taken = stall_guard::taken;
    if (w.current.load() == &p && w.now.guard.state.compare_exchange_strong(taken, stall_guard::over)) return;
  }
}

}  // namespace coppice::detail
