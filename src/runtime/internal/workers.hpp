#pragma once
/// Work stealing over threads.
///
/// A worker has three places for processes that have mail: a next-to-run slot for the one just signalled (hot in this
/// core's cache), a stack of processes just spawned (newest first, so that a tree of spawns goes depth first and stays
/// small), and a queue in fair order.
///
/// A process that waits only a few microseconds is best left to the core whose cache has its data. So other workers
/// steal only from a backlog (number of waiting processes times the cost of a turn) that is worth it. The threshold is
/// higher where most messages go to receivers that are busy anyway, because processes that all talk to one hub only get
/// slower when they are spread over cores. While any worker is busy, one of the idle workers, the sentinel, looks now
/// and then for processes that have waited for long all the same. The other idle workers are parked, and when no worker
/// is busy all are.
#include <array>
#include <deque>
#include <mutex>
#include <vector>

#include <coppice/runtime/detail/scheduler.hpp>

#include "spin_lock.hpp"

namespace coppice::detail {

/// A growing ring of processes, open at both ends.
class run_ring {
 public:
  [[nodiscard]] std::uint32_t size() const noexcept { return last_ - first_; }
  void push_back(slot* p) {
    if (size() == at_.size()) grow();
    (*this)[last_++] = p;
  }
  slot* pop_front() noexcept { return (*this)[first_++]; }
  slot* pop_back() noexcept { return (*this)[--last_]; }
  [[nodiscard]] slot* front() noexcept { return (*this)[first_]; }

 private:
  slot*& operator[](std::uint32_t i) noexcept { return at_[i & (at_.size() - 1)]; }
  void grow();
  std::vector<slot*> at_ = std::vector<slot*>(256);
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
};

/// A worker's next-to-run process. The worker accesses it at nearly every message, the timekeeper only when the worker
/// stays long in a handler.
class next_slot {
 public:
  /// Called by the worker: stores `p` and returns the previous process in `before`. False: the worker was replaced.
  [[nodiscard]] bool exchange(slot* p, slot*& before) noexcept {
    if (!lock_.enter()) [[unlikely]]
      return false;
    before = std::exchange(process_, p);
    lock_.leave();
    return true;
  }
  /// Called by the timekeeper only: takes the process out, and leaves the slot open or closed.
  slot* take_from_outside(coppice::threads& threads, biased_lock::access afterwards) noexcept {
    lock_.enter_from_outside(threads);
    slot* taken = std::exchange(process_, nullptr);
    lock_.leave_from_outside(afterwards);
    return taken;
  }
  void reopen() noexcept { lock_.leave_from_outside(biased_lock::access::open); }

 private:
  slot* process_ = nullptr;
  biased_lock lock_;
};

/// Written by one thread, read by all.
class own_counter {
 public:
  void add(std::uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class worker_scheduler;

struct alignas(128) worker {
  kernel* k = nullptr;
  worker_scheduler* owner = nullptr;
  std::uint32_t number = 0;

  next_slot next;
  spin_lock lock;  // of `queue`, `fresh` and `fresh_low`
  run_ring queue;
  run_ring fresh;
  std::uint32_t fresh_low = 0;  // the smallest size of `fresh` since the last measurement
  // Read without the lock, also by other threads:
  std::atomic<std::uint32_t> surplus{0};   // the number of processes in `queue` and `fresh`
  std::atomic<std::uint32_t> popped{0};    // how many were taken out of these, by anybody
  std::atomic<std::uint32_t> turn_ns{0};   // the average cost of a turn lately
  std::atomic<std::uint32_t> worth_ns{0};  // a backlog that takes this long is worth stealing from
  std::atomic<std::uint32_t> buried{0};    // how many in `fresh` were not reached between two measurements
  std::atomic<bool> replaced{false};       // a successor has taken over; pushes to this worker fail

  turn now;
  std::atomic<slot*> current{nullptr};
  std::atomic<std::uint32_t> turns{0};

  // written by the worker's own thread only
  int streak = 0;
  bool oldest_fresh_next = false;  // `fresh` and `queue` alternate when a streak is over
  bool woken = false;              // the worker is counted in `searching_`
  worker* victim = nullptr;        // the worker that it stole from last, ...
  std::uint32_t victim_turns = 0;  // ... and the number of the victim's turn then
  std::uint32_t measured_turns = 0;
  std::uint32_t measured_met_busy = 0;
  time_point measured_at{};
  std::array<std::uint32_t, 128> slots{};
  std::uint32_t slots_count = 0;
  own_counter spawned, ended, stolen, parks;

  // parking
  alignas(64) std::atomic<std::uint32_t> asleep{0};
  std::atomic<std::uint32_t> cleared{1};  // 0: its thread has to wait until it may begin
  std::atomic<std::uint32_t> finished{0};
  std::unique_ptr<thread_handle> thread;

  // written by the timekeeper only, to detect stalls: the last phase that it saw, and when it saw it first
  std::atomic<std::uint32_t> seen_phase{0};
  std::atomic<time_point> seen_at{};
};
extern constinit thread_local worker* here [[gnu::tls_model("initial-exec")]];  // null on threads that are not workers

/// Work stealing over threads of the environment.
[[nodiscard]] std::unique_ptr<scheduler> make_worker_scheduler(kernel& k, const runtime_options& options);

class worker_scheduler final : public scheduler {
 public:
  worker_scheduler(kernel& k, const runtime_options& options);
  ~worker_scheduler() override;
  void begin() override;
  void inject(slot& p) override;
  void timer_armed(time_point due) override;
  bool wait(std::atomic<std::uint32_t>& done, std::optional<time_point> until) override;
  void wake(std::atomic<std::uint32_t>& done) noexcept override { threads_.wake_all(done); }
  bool take_from_stuck(slot& p, std::uint32_t serial) override;
  void done_with_stuck(slot& p) override;
  bool look_into_code(slot& p, const std::function<void(time_point since)>& look) override;
  std::vector<const void*> backtrace(slot& p) override;
  bool stop(time_point deadline) override;
  void count(runtime_counters& into) override;
  bool is_running(const slot& p) override;

  /// False: the worker was replaced.
  [[nodiscard]] bool push(worker& w, slot& p, bool spawned);

 private:
  [[nodiscard]] bool push_surplus(worker& w, slot& p, bool spawned);
  void work(worker& w);
  void leave(worker& w);
  slot* pick(worker& w);
  slot* pop(worker& w);
  static slot* pop_newest(worker& w);
  static slot* pop_oldest(worker& w);
  void measure(worker& w);
  slot* search(worker& w);
  slot* spin(worker& w);
  slot* stand_guard(worker& w);
  slot* steal_worthy(worker& w);
  slot* steal_from(worker& v, worker& w);
  void park(worker& w);
  void doze(worker& w, std::optional<time_point> until);
  [[nodiscard]] bool called_off(const worker& w) const;
  [[nodiscard]] static bool worthy(const worker& v);
  void stop_searching(worker& w);
  void call_for_help(const worker& w);
  [[nodiscard]] bool anybody_waits() const;
  void hand_over(worker& w);
  void flush(worker& w);
  void clear(worker& w);
  void take_injected(worker& w);
  void note_surplus(worker& w);
  void wake_if_worth(const worker& w);
  void wake_one();
  bool unpark(worker& w);
  void wake_to_leave(worker& w);
  void wake_for_injected();
  worker& fresh_worker(std::uint32_t number);
  [[nodiscard]] std::vector<worker*> workers_with_threads();
  void launch(worker& w);

  void keep_time();
  void look_for_stalls(time_point now);
  [[nodiscard]] bool hold(worker& w, const slot& p, std::uint32_t phase);
  template <class Act>
  [[nodiscard]] bool while_held(slot& p, const Act& act);
  void replace(worker& stuck, std::chrono::milliseconds lasting);
  struct stall_report {
    slot* where = nullptr;
    pid who{};
    std::chrono::milliseconds lasting{0};
  };
  void report(const stall_report& what);
  void write_reports();
  void kick_timekeeper();

  static constexpr int streak_limit = 64;  // turns in a row before the oldest in queue or stack has one
  static constexpr std::chrono::microseconds spin_for{20};
  static constexpr std::uint32_t worth_ns = 20'000;
  static constexpr std::uint32_t worth_at_hub_ns = 50 * worth_ns;
  static constexpr std::chrono::microseconds guard_first{20};
  static constexpr std::chrono::microseconds guard_longest{1000};

  kernel& kernel_;
  coppice::threads& threads_;
  coppice::clock& clock_;
  const std::uint32_t count_;
  const std::uint32_t searchers_;  // how many workers may search at a time
  const int budget_;
  const std::chrono::milliseconds stall_after_;
  const bool pin_;

  std::vector<std::atomic<worker*>> workers_;  // the ones in service
  std::mutex all_mutex_;
  std::deque<worker> all_;  // with those that were replaced; never freed, because other threads may still read them
  std::vector<worker*> retired_;
  std::mutex handles_mutex_;  // held to use or destroy the handle of a worker's thread; locked after `all_mutex_`
  std::mutex outsiders_;      // held by a thread that flushes the burst of a worker from outside
  std::uint64_t stalls_ = 0;

  alignas(64) std::atomic<std::uint32_t> parked_{0};
  std::atomic<std::uint32_t> searching_{0};
  std::atomic<bool> guarded_{false};  // a worker is the sentinel
  alignas(64) std::atomic<std::uint32_t> injected_size_{0};
  std::mutex injected_mutex_;
  std::vector<slot*> injected_;
  std::atomic<std::uint64_t> injected_count_{0};
  std::atomic<bool> stopping_{false};

  alignas(64) std::atomic<std::int64_t> planned_wake_{0};  // of the timekeeper; in nanoseconds of the clock
  std::atomic<std::uint32_t> keeper_word_{0};
  std::atomic<bool> keeper_asleep_{false};
  std::atomic<bool> keeper_unworried_{false};  // all workers are parked: no stall checks until one wakes and kicks it
  std::atomic<std::uint32_t> keeper_finished_{0};
  std::unique_ptr<thread_handle> keeper_;

  std::deque<stall_report> reports_;         // this and the next under `all_mutex_`
  bool reporting_ = false;                   // the thread below looks for more before it ends
  std::unique_ptr<thread_handle> reporter_;  // started by the timekeeper when there is a report
  std::atomic<std::uint32_t> reporter_finished_{0};
};

inline bool worker_scheduler::push(worker& w, slot& p, bool spawned) {
  slot* surplus = &p;
  if (!spawned) {
    if (!w.next.exchange(&p, surplus)) return false;
    if (surplus == nullptr) return true;  // only the next slot is filled: nobody is woken
  }
  if (!push_surplus(w, *surplus, spawned)) inject(*surplus);
  return true;
}

// ---- what the kernel asks of the current thread, which may be a worker

[[nodiscard]] inline worker* worker_of(const kernel& k) noexcept {
  worker* w = here;
  return w != nullptr && w->k == &k ? w : nullptr;
}

/// The wheel for timers that this thread arms: that of its worker, or the first, which all other threads share.
[[nodiscard]] inline std::size_t worker_number(const kernel& k) noexcept {
  const worker* w = worker_of(k);
  return w != nullptr ? w->number + 1 : 0;
}

/// Queues a process at the current worker. False: this thread is not a worker of `k`, or was replaced.
[[nodiscard]] inline bool push_here(kernel& k, slot& p, bool spawned) {
  worker* w = worker_of(k);
  return w != nullptr && w->owner->push(*w, p, spawned);
}

/// A slot index from the current worker's reserve, or 0.
[[nodiscard]] inline std::uint32_t slot_from_here(kernel& k) noexcept {
  worker* w = worker_of(k);
  if (w == nullptr || k.table().is_small()) return 0;
  if (w->slots_count == 0)
    w->slots_count = static_cast<std::uint32_t>(k.table().take_some(w->slots.data(), w->slots.size() / 2));
  return w->slots_count == 0 ? 0 : w->slots[--w->slots_count];
}

[[nodiscard]] inline bool slot_to_here(kernel& k, std::uint32_t index) noexcept {
  worker* w = worker_of(k);
  if (w == nullptr || k.table().is_small()) return false;
  if (w->slots_count == w->slots.size()) {
    w->slots_count /= 2;
    k.table().give_back(&w->slots[w->slots_count], w->slots_count);
  }
  w->slots[w->slots_count++] = index;
  return true;
}

}  // namespace coppice::detail
