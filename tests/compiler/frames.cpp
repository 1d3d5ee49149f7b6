// A million awaits that complete immediately, and the destruction of a suspended chain of frames.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "probe.hpp"

namespace {

constexpr int many = 1'000'000;

task<int> one() { co_return 1; }
task<int> sum_by_transfer() {
  int sum = 0;
  for (int i = 0; i < many; ++i) {
    const int n = co_await one();
    sum += n;
  }
  co_return sum;
}
const probe p01{"symmetric_transfer", [] { return sum_by_transfer().run() == many; }};

// The run loop: a frame never resumes another, it leaves the next one to the loop.
struct frame_loop {
  std::coroutine_handle<> next;
  void drain() {
    while (next) std::exchange(next, {}).resume();
  }
};
struct looped {
  struct promise_type {
    frame_loop* loop = nullptr;
    std::coroutine_handle<> parent;
    int value = 0;
    struct resume_parent {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> done) noexcept {
        done.promise().loop->next = done.promise().parent;
      }
      void await_resume() noexcept {}
    };
    looped get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    resume_parent final_suspend() noexcept { return {}; }
    void return_value(int v) { value = v; }
    void unhandled_exception() { std::terminate(); }
  };
  struct awaiting {
    std::coroutine_handle<promise_type> child;
    bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<promise_type> parent) noexcept {
      child.promise().loop = parent.promise().loop;
      child.promise().parent = parent;
      child.promise().loop->next = child;
    }
    int await_resume() { return child.promise().value; }
  };
  looped(std::coroutine_handle<promise_type> h) : handle(h) {}
  looped(looped&& other) noexcept : handle(std::exchange(other.handle, {})) {}
  ~looped() {
    if (handle) handle.destroy();
  }
  awaiting operator co_await() && { return {handle}; }
  std::coroutine_handle<promise_type> handle;
};
looped one_by_loop() { co_return 1; }
looped sum_by_loop() {
  int sum = 0;
  for (int i = 0; i < many; ++i) {
    const int n = co_await one_by_loop();
    sum += n;
  }
  co_return sum;
}
bool run_loop() {
  frame_loop loop;
  looped sum = sum_by_loop();
  sum.handle.promise().loop = &loop;
  loop.next = sum.handle;
  loop.drain();
  return sum.handle.promise().value == many;
}
const probe p02{"run_loop", run_loop};

// Kill: a chain of frames is destroyed where it waits. Each shape starts, waits for ever and is destroyed; nothing may
// leak and nothing may be freed twice.
struct for_ever {
  bool await_ready() noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) noexcept {}
  int await_resume() noexcept { return 0; }
};
struct two_strings {
  std::string a, b;
};
task<std::string> wait(std::string a) {
  std::string local = a + text;
  (void)co_await for_ever{};
  co_return local;
}
task<std::string> wait_by_ref(const std::string& a) {
  std::string local = a + text;
  (void)co_await for_ever{};
  co_return local;
}
task<std::string> at_once(std::string a) { co_return a; }
task<two_strings> give_two() {
  two_strings result{text, text};
  co_return result;
}

task<std::string> kill_1(std::string) { co_return co_await wait(std::string(text)); }
task<std::string> kill_2(std::string s) { co_return co_await wait(s + text); }
task<std::string> kill_3(std::string s) { co_return co_await wait_by_ref(s + text); }
task<std::string> kill_4(std::string) {
  try {
    auto q = std::make_unique<std::string>(text);
    auto r = co_await wait(*q);
    co_return r;
  } catch (...) {
    co_return "";
  }
}
task<std::string> kill_5(std::string) {
  for (int i = 0; i < 3; ++i) {
    auto x = co_await at_once(text);
    if (i == 2) {
      auto r = co_await wait(x);
      (void)r;
    }
  }
  co_return "";
}
task<std::string> kill_6(std::string) {
  std::vector<std::string> all{text, text};
  for (auto& each : all) {
    auto r = co_await wait(each);
    (void)r;
  }
  co_return "";
}
task<std::string> kill_7(std::string) {
  auto [a, b] = co_await give_two();
  auto r = co_await wait(a);
  co_return r + b;
}
task<std::string> kill_8(std::string) { co_return co_await wait(co_await at_once(text)); }
task<std::string> kill_9(std::string s) {
  auto body = [&]() -> task<std::string> {
    std::string copy = s;
    (void)co_await for_ever{};
    co_return copy;
  };
  auto r = co_await body();
  co_return r;
}
task<std::string> kill_10(std::string) {
  std::map<std::string, std::unique_ptr<int>> map;
  map.emplace(text, std::make_unique<int>(1));
  {
    auto shared = std::make_shared<std::string>(text);
    (void)co_await wait(*shared);
  }
  co_return "";
}
task<std::string> kill_11(std::string) { co_return (co_await wait(text)) + (co_await wait(text)); }
task<std::string> kill_12(std::string) {
  std::function<task<std::string>(std::string)> start = wait;
  auto r = co_await start(text);
  co_return r;
}

template <task<std::string> (*Body)(std::string)>
bool killed() {
  auto chain = Body(text);
  chain.start();
  return true;
}
const probe p11{"kill_argument", killed<kill_1>};
const probe p12{"kill_temporary", killed<kill_2>};
const probe p13{"kill_temporary_by_reference", killed<kill_3>};
const probe p14{"kill_in_try", killed<kill_4>};
const probe p15{"kill_in_loop", killed<kill_5>};
const probe p16{"kill_in_range_for", killed<kill_6>};
const probe p17{"kill_beside_structured_binding", killed<kill_7>};
const probe p18{"kill_nested_await", killed<kill_8>};
const probe p19{"kill_lambda_coroutine", killed<kill_9>};
const probe p20{"kill_in_scope", killed<kill_10>};
const probe p21{"kill_in_sum", killed<kill_11>};
const probe p22{"kill_through_function", killed<kill_12>};

}  // namespace
