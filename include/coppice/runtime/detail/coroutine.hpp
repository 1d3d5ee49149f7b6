#pragma once
/// A process whose body is a coroutine: its frames, what it waits for, and the messages it has put aside.
#include <coroutine>
#include <limits>

#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/self.hpp>
#include <coppice/runtime/task.hpp>

namespace coppice::detail {

inline constexpr time_point no_deadline = time_point::max();
inline constexpr std::chrono::nanoseconds no_timeout = std::chrono::nanoseconds::max();

/// What a suspended body waits for. Lives in the frame that waits.
struct waiter {
  /// True: it was for this wait, and its payload was taken out.
  bool (*take)(waiter&, coroutine&, envelope&);
  void (*expire)(waiter&) = nullptr;  ///< the time is over; null: it can't be
};

struct wait_number {
  std::uint32_t value = 0;  // 0: look at the clock
};

class coroutine final : public body, public self {
 public:
  explicit coroutine(kernel& k) noexcept;
  static const body_type type_of;

  /// Suspends the process at `h` until `w` has taken something or `timeout` is over. Zero: only what is there already.
  void wait(std::coroutine_handle<> h, waiter& w, std::chrono::nanoseconds timeout);
  /// Tries the messages put aside earlier, oldest first.
  [[nodiscard]] bool take_saved(waiter& w);
  /// After something was taken without waiting: whether it is somebody else's turn now. Then the process is suspended.
  [[nodiscard]] bool out_of_turn(std::coroutine_handle<> h);
  void yield(std::coroutine_handle<> h);
  void end(exit_reason why);

  void resume_next(std::coroutine_handle<> h) noexcept { next_ = h; }
  [[nodiscard]] std::uint32_t new_number() noexcept { return ++numbers_ == 0 ? ++numbers_ : numbers_; }
  void set_root(std::coroutine_handle<> root, std::size_t bytes) noexcept;
  void settle(slot& p) noexcept;
  /// Drops the message put aside for which `unwanted` holds, if there is one.
  bool flush_saved(const message_type& kind, bool (*unwanted)(const envelope&, std::uint64_t), std::uint64_t argument);
  void destroy() noexcept;
  /// Before it ever ran.
  void destroy_unborn() noexcept;

 private:
  static verdict offer(body& b, turn& t, envelope& e);
  [[nodiscard]] verdict take(turn& t, envelope& e);
  [[nodiscard]] verdict wait_may_be_over(turn& t, envelope& e);
  [[nodiscard]] verdict drain(turn& t);
  void remove_saved(envelope* before, envelope* e) noexcept;
  void arm(time_point due);
  void disarm();
  void free() noexcept;

  std::coroutine_handle<> next_;  // the frame to resume, by `drain` alone
  std::coroutine_handle<> root_;
  waiter* waiting_ = nullptr;
  envelope* saved_ = nullptr;
  envelope* saved_last_ = nullptr;
  time_point deadline_ = no_deadline;
  time_point armed_for_ = no_deadline;  // one timer a process at most; a wait only writes its deadline down
  timer_ref armed_;
  std::uint32_t held_ = 0;
  std::uint32_t numbers_ = 0;
  std::uint32_t wait_number_ = 0;
  std::uint32_t frame_bytes_ = 0;
};

inline coroutine& process_of(const promise_base& p) noexcept { return p.process(); }

}  // namespace coppice::detail
