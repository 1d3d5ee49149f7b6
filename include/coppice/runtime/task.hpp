#pragma once
/// `task<T>`: a function that waits. Bodies of processes and everything they await are tasks.
///
/// A task starts when it is awaited, belongs to its process and needs no locks: a process runs on one thread at a time.
/// One loop of the process resumes all frames; they never resume one another, so that a million awaits that complete at
/// once use no stack. Killing a process destroys its frames, the innermost first: destructors run. (Frames that an
/// operation outside of the process still uses are destroyed when that operation is over: see operation.hpp.)
///
/// A task can await other tasks and the awaitables of this library. To wait for anything else, for example a callback
/// or another library's coroutine, let it complete a `promise` and await the future: see future.hpp.
///
/// House rule, because g++ 12 miscompiles the rest: one `co_await` per statement, into a named local; no brace-built
/// value and no lambda with captures by value in that statement; no `co_await` in a condition or in `?:`.
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include <coppice/runtime/detail/turn.hpp>
#include <coppice/runtime/fwd.hpp>

namespace coppice {

namespace detail {

extern constinit thread_local std::size_t newest_frame_bytes [[gnu::tls_model("initial-exec")]];
[[noreturn]] void throw_awaited_before();

class promise_base;

/// What a task may await. An awaitable of the library says so with a member `using is_awaitable = void;`.
template <class A>
inline constexpr bool can_be_awaited = requires { typename A::is_awaitable; };

/// Awaits `*what`, which lives in the awaiting statement. g++ 12 copies an awaiter that `await_transform` returns by
/// reference.
template <class A>
struct awaiting {
  A* what;
  [[nodiscard]] bool await_ready() const { return what->await_ready(); }
  template <class P>
  decltype(auto) await_suspend(std::coroutine_handle<P> h) const {
    return what->await_suspend(h);
  }
  decltype(auto) await_resume() const { return what->await_resume(); }
};

/// Connects a frame with the frame that waits for it, its parent. Lives in the parent.
struct frame_link {
  promise_base* parent = nullptr;
  std::coroutine_handle<>* owner = nullptr;  // in the task that will destroy the frame
  /// Makes the owned frame run next; `waiting` is resumed when the owned frame is done.
  void wait_in(promise_base& waiting) noexcept;
};

class promise_base {
 public:
  static void* operator new(std::size_t n) {
    newest_frame_bytes = n;
    return allocate(n);
  }
  static void operator delete(void* p, std::size_t n) noexcept { release(p, n); }

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct final_awaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> h) const noexcept {
      continue_with(h.promise());
    }
    void await_resume() const noexcept {}
  };
  final_awaiter final_suspend() noexcept { return {}; }
  template <class A>
  auto await_transform(A&& what) {
    using awaited = std::remove_cvref_t<A>;
    static_assert(can_be_awaited<awaited>,
                  "a process can await only a task or an awaitable of Coppice; to wait for anything else, let it "
                  "complete a coppice::promise and await the future of that promise");
    static_assert(
        !requires { typename awaited::promise_type; } || !std::is_lvalue_reference_v<A>,
        "await a task with co_await std::move(it): a task can be awaited once");
    if constexpr (requires { std::forward<A>(what).make_awaiter(); })
      return std::forward<A>(what).make_awaiter();
    else
      return awaiting<awaited>{std::addressof(what)};
  }
  void unhandled_exception() {
    if (link_ == nullptr) throw;  // the outermost frame: the loop of the process catches it
    // The parent is resumed right after this, in the same turn: one place for all frames is enough.
    pass_on_failure(std::current_exception());
  }

  [[nodiscard]] coroutine& process() const noexcept { return *process_; }
  void belong_to(coroutine& c) noexcept { process_ = &c; }
  void return_to(frame_link& parent) noexcept { link_ = &parent; }
  /// Destroys a frame and the frames that wait for it, except for the outermost one. It is a loop, not a recursion, so
  /// the depth does not matter.
  static void destroy_up_to_outermost(std::coroutine_handle<> innermost) noexcept;

  /// Calls `f` with a frame, the frame that waits for it, and so on, up to the outermost one.
  template <class F>
  static void for_each_frame(std::coroutine_handle<> innermost, const F& f);

  /// In the parent: throws the exception of the child, if it failed.
  static void rethrow_failure() {
    if (current_turn->failure) [[unlikely]]
      std::rethrow_exception(std::exchange(current_turn->failure, nullptr));
  }

 private:
  static void continue_with(promise_base& finished) noexcept;
  static void pass_on_failure(std::exception_ptr failure) noexcept { current_turn->failure = std::move(failure); }
  coroutine* process_ = nullptr;
  frame_link* link_ = nullptr;  // null: the outermost
};

// Converts between a frame and its promise without knowing the type: every promise begins with a promise_base, and lies
// 16 bytes behind the beginning of its frame, unless it has a larger alignment (which `task_promise` refuses).
using any_frame = std::coroutine_handle<promise_base>;

template <class F>
void promise_base::for_each_frame(std::coroutine_handle<> innermost, const F& f) {
  if (!innermost) return;
  f(innermost);
  const promise_base* frame = &any_frame::from_address(innermost.address()).promise();
  while (const frame_link* link = frame->link_) {
    frame = link->parent;
    f(std::coroutine_handle<>{any_frame::from_promise(*link->parent)});
  }
}

template <class T>
class task_promise final : public promise_base {
 public:
  task<T> get_return_object() noexcept;
  template <class U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  [[nodiscard]] T take() {
    rethrow_failure();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  static_assert(alignof(std::optional<T>) <= 16, "tasks do not give over-aligned values");
};

template <>
class task_promise<void> final : public promise_base {
 public:
  task<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() { rethrow_failure(); }
};

}  // namespace detail

template <class T>
class [[nodiscard]] task {
 public:
  using value_type = T;
  using is_awaitable = void;
  using promise_type = detail::task_promise<T>;
  using handle = std::coroutine_handle<promise_type>;

  explicit task(std::coroutine_handle<> h) noexcept : handle_{h} {}
  task(task&& other) noexcept : handle_{std::exchange(other.handle_, {})} {}
  task& operator=(task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~task() {
    if (handle_) handle_.destroy();
  }

  class awaiter {
   public:
    explicit awaiter(std::coroutine_handle<>* owner) noexcept : link_{.owner = owner} {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> parent) noexcept {
      link_.wait_in(parent.promise());
    }
    T await_resume() const { return promise().take(); }

   private:
    [[nodiscard]] promise_type& promise() const noexcept {
      return handle::from_address(link_.owner->address()).promise();
    }
    detail::frame_link link_;
  };
  /// For the runtime. Throws `std::logic_error` if the task was awaited or moved away before.
  [[nodiscard]] awaiter make_awaiter() && {
    if (!handle_ || handle_.done()) [[unlikely]]
      detail::throw_awaited_before();
    return awaiter{&handle_};
  }

  /// For the runtime: hands the frame over to the caller.
  [[nodiscard]] handle release() noexcept { return handle::from_address(std::exchange(handle_, {}).address()); }

 private:
  std::coroutine_handle<> handle_;
};

template <class T>
task<T> detail::task_promise<T>::get_return_object() noexcept {
  return task<T>{std::coroutine_handle<task_promise<T>>::from_promise(*this)};
}
inline task<void> detail::task_promise<void>::get_return_object() noexcept {
  return task<void>{std::coroutine_handle<task_promise<void>>::from_promise(*this)};
}

}  // namespace coppice
