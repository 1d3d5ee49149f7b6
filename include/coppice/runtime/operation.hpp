#pragma once
/// An operation of another library that uses memory of the waiting frame, such as a read into a buffer:
///
///     std::array<char, 512> buffer;
///     const auto read = [&](promise<std::size_t> done) {
///       socket.read(buffer, [done](std::size_t n) mutable { done.complete(n); });
///     };
///     const result<std::size_t> n = co_await me.perform<std::size_t>(read, [&] { socket.cancel(); });
///
/// The frame stays until the promise is completed or destroyed, even if the process is killed: then the operation is
/// cancelled, everybody else is notified of the end at once, and the frame is destroyed when the operation is over.
#include <coppice/runtime/detail/operation.hpp>
#include <coppice/runtime/future.hpp>

namespace coppice {

namespace detail {

template <class R>
class foreign_operation final : public operation {
 public:
  using operation::operation;
  std::optional<result<R>> value;
};

/// The value becomes the result of an operation, which is over then.
template <class R>
class promise_of_operation final : public promise_state<R> {
 public:
  explicit promise_of_operation(std::shared_ptr<foreign_operation<R>> of) noexcept : operation_{std::move(of)} {}
  ~promise_of_operation() override { this->give_up(); }

 private:
  bool deliver(result<R> value) override {
    const bool wanted = operation_->is_wanted();
    operation_->value = std::move(value);
    operation_->over();
    return wanted;
  }
  std::shared_ptr<foreign_operation<R>> operation_;
};

}  // namespace detail

/// For operations that can't be cancelled.
struct no_cancel {
  void operator()() const noexcept {}
};

/// An operation, to be awaited. It begins when it is awaited.
template <class R, class Start, class Cancel>
class [[nodiscard]] pending_operation : public detail::waiter {
  using base = detail::waiter;

 public:
  pending_operation(Start start, Cancel cancel) noexcept
      : base{&how}, start_(std::move(start)), cancel_(std::move(cancel)) {}
  /// After this time the operation is cancelled. The wait goes on until the operation is over; the result is then the
  /// error `timeout`, unless the operation has succeeded.
  [[nodiscard]] pending_operation within(std::chrono::nanoseconds timeout) && {
    timeout_ = timeout;
    return std::move(*this);
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    detail::coroutine& me = detail::process_of(h.promise());
    timed_out_ = false;
    running_ = std::make_shared<detail::foreign_operation<R>>(type_name<Start>());
    running_->belong_to(me);
    promise<R> done{std::make_shared<detail::promise_of_operation<R>>(running_)};
    me.wait(h, *this, timeout_);  // first, because it may throw: once the operation runs, the frame must stay
    (void)running_->begin();
    try {
      start_(std::move(done));
    } catch (...) {
      me.take_back_wait();
      throw;
    }
  }
  result<R> await_resume() {
    if (timed_out_ && !*running_->value) return fail(errc::timeout, "the operation was cancelled at its time limit");
    return std::move(*running_->value);
  }

 private:
  static bool take(detail::waiter& w, detail::coroutine&, detail::envelope& e) {
    return static_cast<pending_operation&>(w).running_->is_over_signal(e);
  }
  static bool cancel_and_go_on(detail::waiter& w) {
    auto& mine = static_cast<pending_operation&>(w);
    mine.timed_out_ = true;
    mine.cancel_();
    return true;
  }
  static bool keep_frames(detail::waiter& w, detail::coroutine& me) {
    auto& mine = static_cast<pending_operation&>(w);
    if (!mine.timed_out_ && !mine.running_->is_over()) mine.cancel_();
    return mine.running_->keep_frames(me);
  }
  static void describe(const detail::waiter&, wait_info& into) {
    into.kind = wait_kind::operation;
    into.what = type_name<Start>();
  }
  static constexpr detail::wait_type how{
      .take = &take, .cancel_at_timeout = &cancel_and_go_on, .keep_frames = &keep_frames, .describe = &describe};

  Start start_;
  Cancel cancel_;
  std::chrono::nanoseconds timeout_ = detail::no_timeout;
  std::shared_ptr<detail::foreign_operation<R>> running_;
  bool timed_out_ = false;
};

template <class R, class Start>
pending_operation<R, Start, no_cancel> self::perform(Start start) {
  return {std::move(start), no_cancel{}};
}
template <class R, class Start, class Cancel>
pending_operation<R, Start, Cancel> self::perform(Start start, Cancel cancel) {
  return {std::move(start), std::move(cancel)};
}

}  // namespace coppice
