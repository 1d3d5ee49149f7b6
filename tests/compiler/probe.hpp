// A minimal task and the list of probes. Each probe is one row of table.txt; see check.py.
#pragma once
#include <coroutine>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// A lazy coroutine that resumes its awaiter by symmetric transfer, as most libraries do it.
template <class T>
class task {
 public:
  struct promise_type {
    std::optional<T> value;
    std::exception_ptr error;
    std::coroutine_handle<> awaiter = std::noop_coroutine();

    struct resume_awaiter {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
        return done.promise().awaiter;
      }
      void await_resume() noexcept {}
    };

    task get_return_object() noexcept { return task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    resume_awaiter final_suspend() noexcept { return {}; }
    template <class U>
    void return_value(U&& result) {
      value.emplace(std::forward<U>(result));
    }
    void unhandled_exception() noexcept { error = std::current_exception(); }
    T take() {
      if (error) std::rethrow_exception(error);
      return std::move(*value);
    }
  };

  struct awaiting {
    std::coroutine_handle<promise_type> child;
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
      child.promise().awaiter = parent;
      return child;
    }
    T await_resume() { return child.promise().take(); }
  };

  task(task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  ~task() {
    if (handle_) handle_.destroy();
  }
  awaiting operator co_await() && noexcept { return {handle_}; }
  void start() { handle_.resume(); }
  T run() {
    start();
    return handle_.promise().take();
  }

 private:
  explicit task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// Long enough to live on the heap, so that a second destruction is a second free.
inline const std::string text = "a string that is too long for the small string optimisation";

// A probe answers whether its result was right; crashes and leaks are AddressSanitizer's to find.
struct probe {
  std::string_view name;
  bool (*run)();
  const probe* next = std::exchange(first, this);

  static inline const probe* first = nullptr;
};

// For coroutines that end with `text`.
template <task<std::string> (*Body)()>
bool gives_text() {
  return Body().run() == text;
}
