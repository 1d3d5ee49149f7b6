#pragma once
/// Operations: work outside of a process that may use memory of the frame that waits for it, such as a read into a
/// buffer, or blocking work with a lambda that captures by reference.
///
/// If the process ends first, everybody else is notified at once, but its frames stay until the operation is over. Then
/// a process of the runtime destroys them: not the thread that ran the operation, which may hold a lock of its library.
#include <coppice/runtime/detail/coroutine.hpp>

namespace coppice::detail {

/// Wakes the process that waits for an operation.
struct operation_over {
  std::uint32_t number;
};

/// Shared by the process and by whoever runs the operation.
/// Thread safety: `over` from any thread, once; the rest for the process.
class operation {
 public:
  /// `what` names the operation in the log if it never ends. Empty: something else reports it.
  explicit operation(std::string_view what) noexcept : what_{what} {}
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  virtual ~operation() = default;

  /// Must be called before the operation begins.
  void begin(coroutine& owner);
  /// The operation does not use the frame any more. Its result, if it has one, must have been stored.
  void over();
  [[nodiscard]] bool is_over() const noexcept { return phase_.load(std::memory_order_acquire) == phase::over; }
  /// False: nobody waits for the result any more.
  [[nodiscard]] bool is_wanted() const noexcept { return phase_.load(std::memory_order_acquire) == phase::running; }
  /// The process ends. True: the operation goes on, and `remains` is destroyed when it is over.
  [[nodiscard]] bool keep_frames(coroutine& remains);
  /// The process does not wait any longer, and the operation must not use its frame: for operations that own all their
  /// data. False: the operation is over.
  [[nodiscard]] bool go_on_alone() noexcept;
  /// Whether this is the news that the operation is over.
  [[nodiscard]] bool is_news(const envelope& e) const noexcept {
    return e.type == &plain<operation_over> && static_cast<const letter<operation_over>&>(e).body.number == number_;
  }
  [[nodiscard]] std::string_view what() const noexcept { return what_; }

 private:
  enum class phase : std::uint8_t {
    running,  // the process waits
    over,
    orphaned,  // the process has ended: `over` destroys its frames
    alone,     // the process has stopped waiting
  };
  std::atomic<phase> phase_{phase::running};
  std::uint32_t number_ = 0;
  std::string_view what_;
  pid owner_;
  std::weak_ptr<kernel> runs_in_;  // weak: an operation that hangs must not keep the runtime alive
  // Set when the process ends first:
  std::shared_ptr<kernel> kept_;
  coroutine* remains_ = nullptr;
};

}  // namespace coppice::detail
