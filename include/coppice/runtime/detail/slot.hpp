#pragma once
/// A process as the kernel keeps it: one cache line, in memory that is never given back while the runtime lives.
///
/// The rule everything hangs on: whoever turns a mailbox from idle to not idle OWNS the process until it is idle again,
/// and may touch all its plain fields. So a message costs two atomic operations, an old sender may push into a slot
/// that has long been reused (the serial tells), and a spawn is the first envelope of a new serial.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include <coppice/base/error.hpp>
#include <coppice/env/threads.hpp>
#include <coppice/runtime/detail/envelope.hpp>

namespace coppice::detail {

inline void cpu_pause() noexcept { __builtin_ia32_pause(); }

struct mailbox {
  std::atomic<envelope*> tail{nullptr};  // null when idle, else the newest envelope
  envelope* head = nullptr;              // owner's: the envelope in hand

  /// True: the caller owns the process now and has to schedule it.
  [[nodiscard]] bool push(envelope* e) noexcept {
    envelope* before = tail.exchange(e, std::memory_order_acq_rel);
    if (before == nullptr) {
      head = e;
      return true;
    }
    before->next.store(e, std::memory_order_release);
    return false;
  }
  /// The same for a chain of envelopes, linked already.
  [[nodiscard]] bool push_chain(envelope* first, envelope* last) noexcept {
    envelope* before = tail.exchange(last, std::memory_order_acq_rel);
    if (before == nullptr) {
      head = first;
      return true;
    }
    before->next.store(first, std::memory_order_release);
    return false;
  }
  /// Takes ownership of an idle process with `e`, which the caller keeps; false when it is not idle.
  [[nodiscard]] bool claim(envelope* e) noexcept {
    envelope* idle = nullptr;
    if (!tail.compare_exchange_strong(idle, e, std::memory_order_acq_rel, std::memory_order_relaxed)) return false;
    head = e;
    return true;
  }
  enum class step : std::uint8_t { next, idle, hidden };
  /// Past `e`: to the next envelope (in `n`), to idle (then the process is no longer the caller's), or the next one is
  /// hidden: its sender was interrupted between the two halves of its push.
  [[nodiscard]] step advance(envelope* e, envelope*& n) noexcept {
    n = e->next.load(std::memory_order_acquire);
    if (n != nullptr) return step::next;
    envelope* last = e;
    if (tail.load(std::memory_order_relaxed) == e &&
        tail.compare_exchange_strong(last, nullptr, std::memory_order_acq_rel, std::memory_order_relaxed))
      return step::idle;
    for (int i = 0; i < 1000; ++i) {  // usually a few nanoseconds
      n = e->next.load(std::memory_order_acquire);
      if (n != nullptr) return step::next;
      cpu_pause();
    }
    return step::hidden;
  }
};

/// Excludes the one thread that has it nearly always, its owner, from the one that rarely wants it. The owner's side
/// has no atomic operation; who comes from outside pays for both with a barrier everywhere.
class biased_lock {
 public:
  enum class access : std::uint8_t { open, held, closed };
  /// By the owner. False: it was closed for good.
  [[nodiscard]] bool enter() noexcept {
    for (;;) {
      busy_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      const access a = access_.load(std::memory_order_acquire);
      if (a == access::open) [[likely]]
        return true;
      busy_.store(false, std::memory_order_release);
      if (a == access::closed) return false;
      cpu_pause();
    }
  }
  void leave() noexcept { busy_.store(false, std::memory_order_release); }
  void enter_from_outside(threads& all) noexcept {
    access_.store(access::held, std::memory_order_seq_cst);
    all.barrier_everywhere();
    while (busy_.load(std::memory_order_acquire)) cpu_pause();  // a few instructions, unless it was interrupted there
  }
  void leave_from_outside(access afterwards) noexcept { access_.store(afterwards, std::memory_order_release); }

 private:
  std::atomic<bool> busy_{false};
  std::atomic<access> access_{access::open};
};

enum class verdict : std::uint8_t { alive, kept, ended };  // kept: the body holds on to the envelope

struct turn;
struct body;

/// What a kind of process does with its signals; one object per kind.
struct body_type {
  verdict (*offer)(body&, turn&, envelope&) = nullptr;  // one message, or a signal that became one
  void (*destroy)(body&, kernel&) noexcept = nullptr;
  std::uint32_t (*held)(const body&) noexcept = nullptr;  // messages it has put aside
  /// Its last words, when it ends by itself: gives the reason it ends with after all. Null: it has none.
  exit_reason (*terminate)(body&, turn&, exit_reason) = nullptr;
  /// What it handles when that is not the head of its queue, otherwise null. Asked by others.
  envelope* (*in_hand)(const body&) noexcept = nullptr;
};
struct body {
  const body_type* type = nullptr;
};

struct side_block;

struct alignas(64) slot {
  // In the tag, beside the serial and the signal that it accepts; only the owner writes them.
  static constexpr std::uint64_t traps_exits = 1U << 16U;
  static constexpr std::uint64_t parent_linked = 1U << 17U;
  static constexpr std::uint64_t has_process = 1U << 18U;
  static constexpr std::uint64_t born_linked = 1U << 19U;   // whoever spawned it is its parent, for life
  static constexpr std::uint64_t takes_orders = 1U << 20U;  // an actor: what its parent says comes before its mail
  static constexpr std::uint64_t gated = 1U << 21U;         // its mail goes through a gate
  static constexpr std::uint64_t drains = 1U << 22U;        // an actor that only puts its mail aside: orders come soon
  static constexpr std::uint64_t flags = 0xffff0000U;

  mailbox mail;
  std::atomic<std::uint64_t> tag{0};  // of the messages it accepts now, and the flags
  body* process = nullptr;
  side_block* side = nullptr;
  // The parent is of this node: the one link nearly every process has. Atomic, as all below, for observers only.
  std::atomic<std::uint32_t> parent_index{0};
  std::atomic<std::uint32_t> parent_serial{0};
  std::atomic<std::uint32_t> handled{0};
  std::atomic<std::uint32_t> length{0};  // of the mailbox when somebody last looked
  std::atomic<std::uint8_t> urgent{0};   // an exit signal, or somebody's question, wants the queue looked through
  std::atomic<std::uint8_t> named{0};
  std::atomic<std::uint16_t> body_units{0};  // memory of the body and its frames, in units of 16 bytes
  std::atomic<std::uint32_t> born_ds{0};     // tenths of a second since the runtime started

  [[nodiscard]] std::uint64_t tag_now() const noexcept { return tag.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t serial() const noexcept { return static_cast<std::uint32_t>(tag_now() >> 32U); }
  /// The process of that serial is long gone, has told everybody, and another has its place.
  [[nodiscard]] bool is_past(std::uint32_t serial_of_it) const noexcept {
    const std::uint64_t now = tag.load(std::memory_order_acquire);
    return (now & has_process) != 0 && now >> 32U != serial_of_it;
  }
  /// As `is_past`, or its mail is not simply pushed.
  [[nodiscard]] bool is_special(std::uint32_t serial_of_it) const noexcept {
    const std::uint64_t now = tag.load(std::memory_order_acquire);
    return (now & gated) != 0 || ((now & has_process) != 0 && now >> 32U != serial_of_it);
  }
  [[nodiscard]] bool accepts(const envelope& e) const noexcept { return ((e.tag ^ tag_now()) & ~flags) == 0; }
  [[nodiscard]] bool is(std::uint64_t flag) const noexcept { return (tag_now() & flag) != 0; }
  void note_body_bytes(std::size_t bytes) noexcept {
    body_units.store(static_cast<std::uint16_t>(std::min<std::size_t>(bytes / 16, 0xffff)), std::memory_order_relaxed);
  }
  void set(std::uint64_t flag, bool on) noexcept {
    tag.store(on ? tag_now() | flag : tag_now() & ~flag, std::memory_order_relaxed);
  }
};
static_assert(sizeof(slot) == 64);

inline constexpr std::uint8_t look_for_exit = 1;
inline constexpr std::uint8_t look_at_yourself = 2;
inline constexpr std::uint8_t look_for_orders = 4;

/// Where a thread that runs processes and whoever finds it stuck agree on who has the process.
struct stall_guard {
  static constexpr std::uint32_t none = 0, asked = 1, taken = 2, over = 3;  // over: who took it is done with the slot
  std::atomic<std::uint32_t> phase{0};                                      // odd while in a body's code
  std::atomic<std::uint32_t> section{0};                                    // odd while that has called the kernel
  std::atomic<std::uint32_t> state{none};
  static void step(std::atomic<std::uint32_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// By the thread that runs, when `state` is not `none`: waits for the decision.
  [[nodiscard]] bool was_taken() const noexcept {
    std::uint32_t now = state.load(std::memory_order_acquire);
    for (; now == asked || now == taken; now = state.load(std::memory_order_acquire)) cpu_pause();
    return now == over;
  }
};

/// The user's code that runs when a process ends: a stall there is noticed, but the process can't be taken away.
class last_code {
 public:
  explicit last_code(stall_guard* guard) noexcept : guard_{guard} { step(); }
  ~last_code() { step(); }
  last_code(const last_code&) = delete;
  last_code& operator=(const last_code&) = delete;

 private:
  void step() noexcept {
    if (guard_ == nullptr) return;
    stall_guard::step(guard_->section);
    stall_guard::step(guard_->phase);
  }
  stall_guard* guard_;
};

/// Messages to one receiver that is busy, sent in one go: held back for a moment and pushed together, because its
/// mailbox is the one place where many senders meet. Pushed when there are enough, when the handler returns, before any
/// other signal, and from outside when the handler takes long.
struct burst {
  static constexpr std::uint32_t begins_after = 64;  // messages in a row to a receiver that was not idle
  static constexpr std::uint32_t length = 64;
  slot* target = nullptr;
  envelope* first = nullptr;
  envelope* last = nullptr;
  std::uint32_t count = 0;
  std::uint32_t in_a_row = 0;
  std::uint32_t met_busy = 0;       // how many receivers were not idle, since the thread began
  slot* busy = nullptr;             // the receiver of that row
  std::atomic<bool> closed{false};  // nobody looks after the thread any more: hold nothing back
  biased_lock lock;                 // of the chain
};

/// A caller that waits for an answer.
struct open_call {
  pid caller;
  std::uint64_t call = 0;
  void (*fail)(kernel&, pid, std::uint64_t, error) = nullptr;
};

/// An answer that waits until its process has cleaned up.
struct held_answer {
  pid to;
  envelope* answer = nullptr;
};

/// What a thread that runs processes is doing right now.
struct turn {
  kernel* k = nullptr;
  slot* p = nullptr;     // null: between two processes
  body* born = nullptr;  // the one its first letter has just made
  exit_reason ending{};
  bool ends = false;       // the process asked to end
  bool taken = false;      // it was abandoned under our feet
  bool continues = false;  // the object has asked for its `handle_continue`
  bool publishes = false;  // what is sent now is an event, which nobody waits for
  int budget = 0;
  const message_type* message = nullptr;  // the one being handled, for the report of a failure
  std::vector<open_call> unanswered{};    // requests that went down in an unwinding, until it is known where that ends
  std::vector<held_answer> held{};        // answers of a process that stops
  std::exception_ptr failure{};           // of a frame, on its way to the frame that awaits it
  std::atomic<std::uint64_t> handled{0};  // signals, since the thread began
  stall_guard guard{};
  burst out{};
};
extern constinit thread_local turn* current_turn
    [[gnu::tls_model("initial-exec")]];  // null on threads that run no processes
/// The turn of the process that this code belongs to, or null.
[[nodiscard]] inline turn* turn_here() noexcept {
  return current_turn != nullptr && current_turn->p != nullptr ? current_turn : nullptr;
}

/// Code of the kernel that a process calls and that touches its slot: nobody may abandon the process in the middle of
/// it.
class kernel_section {
 public:
  kernel_section(slot& me, std::uint32_t serial) noexcept : turn_{current_turn} {
    if (turn_ == nullptr || turn_->p != &me) return;  // not in its own code: nothing of it may be touched
    bool lost = false;
    for (;;) {
      stall_guard::step(turn_->guard.section);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (turn_->guard.state.load(std::memory_order_acquire) == stall_guard::none || lost) [[likely]]
        break;
      stall_guard::step(turn_->guard.section);  // not while somebody decides
      lost = turn_->guard.was_taken();
    }
    mine_ = !lost && me.serial() == serial;
    entered_ = true;
  }
  ~kernel_section() {
    if (entered_) stall_guard::step(turn_->guard.section);
  }
  kernel_section(const kernel_section&) = delete;
  kernel_section& operator=(const kernel_section&) = delete;
  /// False: the process was abandoned, and its slot is not the caller's any more.
  explicit operator bool() const noexcept { return mine_; }

 private:
  turn* turn_;
  bool entered_ = false;
  bool mine_ = false;
};

/// The runtime of the process that runs on this thread; throws `std::logic_error` when there is none.
[[noreturn]] void throw_no_process_here();
[[nodiscard]] inline kernel& kernel_here() {
  const turn* t = turn_here();
  if (t == nullptr) [[unlikely]]
    throw_no_process_here();
  return *t->k;
}
/// Answers a call whose request was dropped by `callee`: with the reason when the callee is ending, and when it is
/// failing right now, as soon as that is known.
void answer_dropped(kernel& k, pid callee, const open_call& lost);
/// In a handler of exceptions: what the process that fails ends with.
[[nodiscard]] exit_reason reason_of_failure(const turn& t) noexcept;
/// The same, of what was caught: cheaper.
[[nodiscard]] exit_reason reason_of_failure(const std::exception& x, const turn& t) noexcept;
/// The process whose code runs on this thread, or that is ending on it; nobody when there is none.
[[nodiscard]] pid process_here() noexcept;
/// How a request is lost that `who` lets go of now: with its end, when it is ending on this thread, or just so.
[[nodiscard]] loss loss_by(pid who) noexcept;

}  // namespace coppice::detail
