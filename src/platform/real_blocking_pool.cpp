#include "internal/real_blocking_pool.hpp"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "internal/no_thread.hpp"

namespace coppice {
namespace {

constexpr std::chrono::seconds idle_limit{10};

/// Shared by the pool and its threads, which may outlive it.
class shared_queue {
 public:
  explicit shared_queue(unsigned most_threads) noexcept : most_threads_{most_threads} {}

  void submit(std::move_only_function<void()> job, const std::shared_ptr<shared_queue>& me) {
    const std::scoped_lock lock{mutex_};
    jobs_.push_back(std::move(job));
    if (idle_ >= jobs_.size() || threads_ == most_threads_) {
      work_.notify_one();
      return;
    }
    try {
      std::thread{[me] { me->work(); }}.detach();
    } catch (const std::system_error& x) {
      if (threads_ != 0) return;  // the job waits for an existing thread
      jobs_.pop_back();
      rethrow_no_thread(x);
    } catch (...) {
      if (threads_ != 0) return;
      jobs_.pop_back();
      throw;
    }
    ++threads_;
  }
  void close() {
    std::deque<std::move_only_function<void()>> dropped;  // destroyed without the lock
    const std::scoped_lock lock{mutex_};
    closed_ = true;
    dropped.swap(jobs_);
    work_.notify_all();
  }

 private:
  void work() {
    ::pthread_setname_np(::pthread_self(), "coppice-block");
    std::unique_lock lock{mutex_};
    for (;;) {
      if (jobs_.empty()) {
        if (closed_) break;
        ++idle_;
        const bool woken = work_.wait_for(lock, idle_limit, [this] { return closed_ || !jobs_.empty(); });
        --idle_;
        if (!woken) break;
        continue;
      }
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      job = nullptr;  // destroy its captures before the lock is taken again
      lock.lock();
    }
    --threads_;
  }

  const unsigned most_threads_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::move_only_function<void()>> jobs_;
  std::size_t idle_ = 0;
  unsigned threads_ = 0;
  bool closed_ = false;
};

/// Starts a thread when a job finds none idle, keeps idle threads for a while, and queues jobs beyond the limit.
class real_blocking_pool final : public blocking_pool {
 public:
  explicit real_blocking_pool(unsigned most_threads) : queue_{std::make_shared<shared_queue>(most_threads)} {}
  real_blocking_pool(const real_blocking_pool&) = delete;
  real_blocking_pool& operator=(const real_blocking_pool&) = delete;
  ~real_blocking_pool() override { queue_->close(); }
  void submit(std::move_only_function<void()> job) override { queue_->submit(std::move(job), queue_); }

 private:
  std::shared_ptr<shared_queue> queue_;
};

}  // namespace

std::unique_ptr<blocking_pool> make_real_blocking_pool(unsigned most_threads) {
  return std::make_unique<real_blocking_pool>(most_threads);
}

}  // namespace coppice
