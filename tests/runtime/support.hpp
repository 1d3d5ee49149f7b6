#pragma once
// What many tests of the runtime need.
#include <atomic>
#include <latch>
#include <thread>
#include <utility>

#include <coppice/runtime/runtime.hpp>

namespace coppice {

inline runtime_options quiet() { return {.workers = 2, .level = log_level::off}; }

/// Runs `body` as a process of a runtime of its own, and gives the reason it ended with.
template <class F, class... Args>
exit_reason run(F body, Args... args) {
  runtime rt{quiet()};
  return rt.run(std::move(body), std::move(args)...);
}

/// Code that does not come back before the test lets it.
class trap_door {
 public:
  trap_door() = default;
  trap_door(const trap_door&) = delete;
  trap_door& operator=(const trap_door&) = delete;
  ~trap_door() { open(); }
  void fall_in() {
    inside_.count_down();
    while (!open_) std::this_thread::yield();
  }
  void wait_until_inside() { inside_.wait(); }
  void open() { open_ = true; }

 private:
  std::latch inside_{1};
  std::atomic<bool> open_{false};
};

}  // namespace coppice
