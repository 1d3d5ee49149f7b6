#pragma once
/// What a thread that runs processes is doing now, and which process the current code belongs to.
#include <exception>
#include <vector>

#include <coppice/base/error.hpp>
#include <coppice/runtime/detail/burst.hpp>
#include <coppice/runtime/detail/slot.hpp>
#include <coppice/runtime/detail/stall_guard.hpp>
#include <coppice/runtime/detail/tracer.hpp>
#include <coppice/runtime/trace_context.hpp>

namespace coppice::detail {

/// A caller that waits for an answer.
struct open_call {
  pid caller;
  std::uint64_t call = 0;
  void (*fail)(kernel&, pid, std::uint64_t, error) = nullptr;
};

/// An answer that is kept until the `terminate` of the answering server has run.
struct held_answer {
  pid to;
  envelope* answer = nullptr;
};

struct turn {
  /// Why the thread has to stop running the process, although it has not ended.
  enum class interruption : std::uint8_t { none, abandoned, frozen };

  kernel* k = nullptr;
  slot* p = nullptr;     // null: between two processes
  body* born = nullptr;  // the body that the start letter has just made
  exit_reason ending{};
  bool ends = false;  // the process asked to end
  interruption interrupted = interruption::none;
  bool continues = false;  // the object has asked for its `handle_continue`
  bool publishes = false;  // an event is being sent, so a full mailbox does not make the sender wait
  int budget = 0;
  const message_type* message = nullptr;  // the one being handled, for the report of a failure
  std::vector<open_call> unanswered{};    // requests destroyed by an exception that is still being unwound
  std::vector<held_answer> held{};        // answers of a server that stops
  std::exception_ptr failure{};           // thrown by a frame, not yet rethrown in the frame that awaits it
  std::atomic<std::uint64_t> handled{0};  // the number of signals handled on this thread
  // Hundredths of a second since the runtime started. The timekeeper keeps it up to date while the thread runs
  // processes, so that a process can note the time at the cost of a load and a store.
  std::atomic<std::uint32_t> clock_cs{0};
  stall_guard guard{};
  burst out{};
  detail::tracer* tracer = nullptr;  // not null: the slot that runs has the bit `in_world_trace`
  trace_context trace{};             // of what the process does now; set for slots that have the bit `has_trace_ids`
  // While a signal of a slot is handled that has the bit `is_measured`: when the code that runs now began, and the
  // message that it received meanwhile; null: it has received none since then. Otherwise empty.
  time_point piece_began{};
  const message_type* piece_of = nullptr;
};
extern constinit thread_local turn* current_turn
    [[gnu::tls_model("initial-exec")]];  // null on threads that run no processes
/// The turn of the process that this code belongs to, or null.
[[nodiscard]] inline turn* turn_here() noexcept {
  return current_turn != nullptr && current_turn->p != nullptr ? current_turn : nullptr;
}

/// What the running process does in this scope belongs to that trace.
class in_trace {
 public:
  explicit in_trace(const trace_context& as) noexcept : turn_{turn_here()} {
    if (turn_ != nullptr) before_ = std::exchange(turn_->trace, as);
  }
  ~in_trace() {
    if (turn_ != nullptr) turn_->trace = before_;
  }
  in_trace(const in_trace&) = delete;
  in_trace& operator=(const in_trace&) = delete;

 private:
  turn* turn_;
  trace_context before_;
};

/// Guards kernel code that a process calls and that touches its slot: meanwhile the process can't be abandoned.
/// Must not be nested.
class kernel_section {
 public:
  kernel_section(slot& me, std::uint32_t serial) noexcept : turn_{current_turn} {
    if (turn_ == nullptr || turn_->p != &me) return;  // not the code of that process
    bool lost = false;
    for (;;) {
      stall_guard::step(turn_->guard.section);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (turn_->guard.state.load(std::memory_order_acquire) == stall_guard::none || lost) [[likely]]
        break;
      stall_guard::step(turn_->guard.section);  // stay outside while another thread decides
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
  /// False: the process was abandoned, or this is not its code. The slot must not be touched.
  explicit operator bool() const noexcept { return mine_; }

 private:
  turn* turn_;
  bool entered_ = false;
  bool mine_ = false;
};

/// The trace of the code that runs on this thread: of its process or, on other threads, of its `trace_scope`.
[[nodiscard]] const trace_context& trace_here() noexcept;
[[noreturn]] void throw_no_process_here();
/// The kernel of the process that runs on this thread; throws `std::logic_error` when there is none.
[[nodiscard]] inline kernel& kernel_here() {
  const turn* t = turn_here();
  if (t == nullptr) [[unlikely]]
    throw_no_process_here();
  return *t->k;
}
/// Answers a call whose request `callee` has dropped. If the callee is ending, the error holds its exit reason. If an
/// exception is being unwound, the call is answered once it is known whether the exception ends the callee.
void answer_dropped(kernel& k, pid callee, const open_call& lost);
/// Called in a catch block: the reason that the failing process ends with.
[[nodiscard]] exit_reason reason_of_failure(const turn& t) noexcept;
/// The same for an exception that was caught by its type, which is cheaper.
[[nodiscard]] exit_reason reason_of_failure(const std::exception& x, const turn& t) noexcept;
/// The process whose code runs on this thread, or that is ending on it; nobody when there is none.
[[nodiscard]] pid process_here() noexcept;
/// The loss of a request that `who` drops now: `ended` if `who` is ending on this thread, otherwise `dropped`.
[[nodiscard]] loss loss_by(pid who) noexcept;
/// The error for the caller of a request that is lost.
[[nodiscard]] error error_of(loss how);

}  // namespace coppice::detail
