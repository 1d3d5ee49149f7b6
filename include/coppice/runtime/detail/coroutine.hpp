#pragma once
/// A process whose body is a coroutine: its frames, its current wait, and the messages it has put aside.
#include <coroutine>
#include <limits>

#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/observe.hpp>
#include <coppice/runtime/self.hpp>
#include <coppice/runtime/task.hpp>

namespace coppice::detail {

inline constexpr time_point no_deadline = time_point::max();
inline constexpr std::chrono::nanoseconds no_timeout = std::chrono::nanoseconds::max();

struct waiter;

/// A kind of wait.
struct wait_type {
  /// True: the envelope was for this wait, and its payload was taken out.
  bool (*take)(waiter&, coroutine&, envelope&) = nullptr;
  void (*expire)(waiter&) = nullptr;  ///< called at the timeout; null: the wait has no timeout
  /// Called at the timeout instead of `expire`. True: the wait goes on, without a timeout.
  bool (*cancel_at_timeout)(waiter&) = nullptr;
  /// Called when the process ends during the wait. True: an operation still uses the frames, and `operation::over`
  /// destroys them. Null: nothing but the process uses them.
  bool (*keep_frames)(waiter&, coroutine&) = nullptr;
  void (*describe)(const waiter&, wait_info& into) = nullptr;  ///< for observers
};
/// The current wait of a suspended body. Lives in the frame that waits.
struct waiter {
  using is_awaitable = void;
  const wait_type* kind;
};

struct wait_number {
  std::uint32_t value = 0;  // not 0: the wait that ends; 0: a timer fired, so compare the deadline with the clock
};

class coroutine final : public body, public self {
 public:
  explicit coroutine(kernel& k) noexcept;
  static const body_type type_of;

  /// Suspends the process at `h` until `w` has taken a signal or `timeout` has passed. Zero: `w` can take only signals
  /// that have arrived already.
  void wait(std::coroutine_handle<> h, waiter& w, std::chrono::nanoseconds timeout);
  /// Undoes `wait`, in the call that has begun it.
  void take_back_wait() noexcept;
  /// Tries the messages put aside earlier, oldest first.
  [[nodiscard]] bool take_saved(waiter& w);
  /// After a message was taken without waiting. True: the budget of the turn is used up, and the process is suspended.
  [[nodiscard]] bool out_of_turn(std::coroutine_handle<> h);
  void yield(std::coroutine_handle<> h);
  void end(std::coroutine_handle<> h, exit_reason why);

  void resume_next(std::coroutine_handle<> h) noexcept { next_ = h; }
  [[nodiscard]] std::uint32_t new_number() noexcept { return ++numbers_ == 0 ? ++numbers_ : numbers_; }
  /// Makes the process a server, which runs `terminate` before it ends. Null: it is not a server any more.
  void serve(serving* s) { more().server = s; }
  [[nodiscard]] bool serves() const noexcept { return extras_ && extras_->server != nullptr; }
  /// Requests `handle_continue` of the server.
  void continue_next() noexcept;
  void set_root(std::coroutine_handle<> root) noexcept { root_ = next_ = root; }
  void settle(slot& p, std::size_t frame_bytes) noexcept;
  /// Drops the first saved message of that type for which `unwanted` holds. False: there is none.
  bool flush_saved(const message_type& kind, bool (*unwanted)(const envelope&, std::uint64_t), std::uint64_t argument);
  void destroy() noexcept;
  /// Destroys the frames that were kept for an operation, and this object.
  void destroy_kept() noexcept;
  /// For a process that was never started.
  void destroy_unborn() noexcept;

 private:
  [[nodiscard]] const message_type* received() const noexcept { return handling_.load(std::memory_order_relaxed); }
  static verdict offer(body& b, turn& t, envelope& e);
  static void describe(const body& b, kernel& k, process_info& into);
  [[nodiscard]] verdict take(turn& t, envelope& e);
  [[nodiscard]] verdict wait_may_be_over(turn& t, envelope& e);
  [[nodiscard]] verdict drain(turn& t);
  void remove_saved(envelope* before, envelope* e);
  [[gnu::noinline]] void wait_with_limit(std::coroutine_handle<> h, waiter& w, std::chrono::nanoseconds timeout);
  void note_put_aside();
  void end_wait_after_queued_signals();
  void arm(time_point due);
  void disarm();
  void drop_saved() noexcept;
  void destroy_frames() noexcept;
  void free() noexcept;

  // Allocated for servers and for processes that have waited with a timeout or put a message aside. A process has one
  // timer at most for all its waits, and replaces it only by an earlier one; when the timer fires, the process compares
  // the deadline of its current wait with the clock.
  struct extras {
    time_point deadline = no_deadline;
    time_point armed_for = no_deadline;
    timer_ref armed;
    envelope* saved = nullptr;  // messages put aside, oldest first
    envelope* saved_last = nullptr;
    serving* server = nullptr;
    static void* operator new(std::size_t n) { return allocate(n); }
    static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }
  };
  extras& more() {
    if (!extras_) [[unlikely]]
      make_extras();
    return *extras_;
  }
  [[gnu::noinline]] void make_extras();

  std::uint32_t numbers_ = 0;
  std::coroutine_handle<> next_;  // the frame that `drain` resumes next; nothing else resumes frames
  std::coroutine_handle<> root_;
  waiter* waiting_ = nullptr;
  // The message it received last, for the report of a failure and for observers. Only the process changes it.
  std::atomic<const message_type*> handling_{nullptr};
  std::unique_ptr<extras> extras_;
  std::atomic<std::uint32_t> held_{0};  // messages put aside; only the process changes it
  std::uint32_t wait_number_ = 0;
};

inline coroutine& process_of(const promise_base& p) noexcept { return p.process(); }

/// The base of awaitables that wait for a signal or for a timeout.
class timed_waiter : public waiter {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    process_of(h.promise()).wait(h, *this, timeout_);
  }

 protected:
  timed_waiter(const wait_type& how, std::chrono::nanoseconds timeout) noexcept : waiter{&how}, timeout_{timeout} {}

 private:
  std::chrono::nanoseconds timeout_;
};

}  // namespace coppice::detail
