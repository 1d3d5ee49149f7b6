// A thread that is not part of any runtime and completes requests, as a driver, a thread pool or a library does: a
// queue with a mutex and a condition variable. coppice_bench and bench/peers/threads use it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace coppice_bench {

// A request for the next number. `Promise` is whatever completes it.
template <class Promise>
struct request {
  std::int64_t n;
  Promise answer;
};

template <class Promise, class Complete>
class foreign_thread {
 public:
  explicit foreign_thread(Complete complete) : complete_{complete}, thread_{[this] { serve(); }} {}
  foreign_thread(const foreign_thread&) = delete;
  foreign_thread& operator=(const foreign_thread&) = delete;
  ~foreign_thread() {
    {
      const std::scoped_lock lock{mutex_};
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void ask(std::int64_t n, Promise answer) {
    bool first = false;
    {
      const std::scoped_lock lock{mutex_};
      first = waiting_.empty();
      waiting_.push_back({n, std::move(answer)});
    }
    if (first) changed_.notify_one();
  }

 private:
  void serve() {
    std::vector<request<Promise>> taken;
    for (;;) {
      {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return over_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        std::swap(taken, waiting_);
      }
      for (auto& r : taken) complete_(r.answer, r.n + 1);
      taken.clear();
    }
  }

  Complete complete_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<request<Promise>> waiting_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace coppice_bench
