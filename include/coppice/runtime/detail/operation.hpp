#pragma once
/// Operations: work outside of a process that may use memory of the frame that waits for it, such as a read into a
/// buffer, or blocking work with a lambda that captures by reference.
///
/// If the process ends first, everybody else is notified at once, but its frames stay until the operation is over. Then
/// a process of the runtime destroys them: not the thread that ran the operation, which may hold a lock of its library.
#include <coppice/runtime/detail/coroutine.hpp>

namespace coppice::detail {

/// Frames that are kept: see internal/orphans.hpp.
struct orphan;
struct free_orphan {
  void operator()(orphan* one) const noexcept;
};

/// Wakes the process that waits for an operation.
struct operation_over {
  std::uint32_t number;
};

/// Shared by the process and by whoever runs the operation.
/// Thread safety: `begin`, `over` and the questions from any thread; the rest for the process.
class operation {
 public:
  /// `what` names the operation in the log if it never ends. Empty: something else reports it.
  explicit operation(std::string_view what) noexcept : what_{what} {}
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  virtual ~operation() {
    if (over_signal_ != nullptr) release(over_signal_);
  }

  /// The process is about to wait. Throws `std::logic_error` if it has waited for this operation before.
  void belong_to(coroutine& owner);
  /// From here on the operation may use the frame. False: nobody waits for it any more, and it must not begin.
  [[nodiscard]] bool begin() noexcept;
  /// The operation does not use the frame any more, or will never begin. Its result, if it has one, must have been
  /// stored. Must be called once.
  void over();
  [[nodiscard]] bool is_over() const noexcept { return phase_.load(std::memory_order_acquire) == phase::over; }
  /// False: nobody waits for the result any more.
  [[nodiscard]] bool is_wanted() const noexcept {
    const phase now = phase_.load(std::memory_order_acquire);
    return now == phase::waiting || now == phase::begun;
  }
  /// The process ends. True: the operation uses its frames, and `remains` is destroyed when it is over.
  [[nodiscard]] bool keep_frames(coroutine& remains);
  /// The process does not wait any longer, and the operation must not use its frame: for operations that own all their
  /// data. False: the operation is over.
  [[nodiscard]] bool go_on_alone() noexcept;
  /// Whether this is the news that the operation is over.
  [[nodiscard]] bool is_over_signal(const envelope& e) const noexcept {
    return e.type == &plain<operation_over> && static_cast<const letter<operation_over>&>(e).body.number == number_;
  }

 private:
  enum class phase : std::uint8_t {
    waiting,   // it has not begun
    begun,     // it may use the frame
    over,      // it has ended, or was dropped
    orphaned,  // it has begun, and its process has ended: `over` destroys the frames
    alone,     // nobody waits for it
  };
  std::atomic<phase> phase_{phase::waiting};
  std::uint32_t number_ = 0;  // 0: the process has not waited yet
  std::string_view what_;
  pid owner_;
  // Made before the wait: neither `over` nor the end of the process must fail for want of memory.
  letter<operation_over>* over_signal_ = nullptr;
  std::unique_ptr<orphan, free_orphan> orphan_if_needed_;
  std::weak_ptr<kernel> runs_in_;  // weak: an operation that hangs must not keep the runtime alive
  // Set when the process ends first:
  std::shared_ptr<kernel> kept_;
  orphan* orphan_ = nullptr;
};

}  // namespace coppice::detail
