#include "internal/real_lanes.hpp"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>

#include "internal/no_thread.hpp"

namespace coppice {

/// What the handle of a lane and its thread share. Jobs are called and destroyed without the lock: they may use the
/// lane.
class lane_thread {
 public:
  explicit lane_thread(std::string name) : name_{std::move(name)} {}

  /// The body of the thread.
  void run() {
    ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());  // the kernel's limit
    std::unique_lock lock{mutex_};
    for (;;) {
      changed_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
      if (jobs_.empty()) break;
      {
        job next = std::move(jobs_.front());
        jobs_.pop_front();
        running_since_ = now();
        lock.unlock();
        next.work();
        next.done();
      }
      lock.lock();
      running_since_.reset();
      ++done_;
      if (closed_) changed_.notify_all();
    }
  }

  [[nodiscard]] bool submit(std::move_only_function<void()> work, std::move_only_function<void()> done) {
    const std::scoped_lock lock{mutex_};
    if (closed_) return false;
    jobs_.push_back({std::move(work), std::move(done)});
    changed_.notify_all();
    return true;
  }

  void close() noexcept {
    std::deque<job> dropped;
    {
      const std::scoped_lock lock{mutex_};
      closed_ = true;
      dropped_ += jobs_.size();
      dropped.swap(jobs_);
      changed_.notify_all();
    }
    while (!dropped.empty()) dropped.pop_front();
  }

  [[nodiscard]] bool wait_closed(time_point until) {
    std::unique_lock lock{mutex_};
    const std::chrono::steady_clock::time_point deadline{until.time_since_epoch()};  // the same clock
    return changed_.wait_until(lock, deadline, [this] { return closed_ && !running_since_; });
  }

  [[nodiscard]] lane_status status() const {
    const std::scoped_lock lock{mutex_};
    return {.name = name_,
            .queued = jobs_.size(),
            .running_since = running_since_,
            .done = done_,
            .dropped = dropped_,
            .closed = closed_};
  }

 private:
  struct job {
    std::move_only_function<void()> work;
    std::move_only_function<void()> done;
  };
  [[nodiscard]] static time_point now() noexcept {
    return time_point{std::chrono::steady_clock::now().time_since_epoch()};
  }

  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> jobs_;
  std::optional<time_point> running_since_;
  std::uint64_t done_ = 0;
  std::uint64_t dropped_ = 0;
  bool closed_ = false;
};

namespace {

class real_lane final : public lane {
 public:
  explicit real_lane(std::shared_ptr<lane_thread> thread) : thread_{std::move(thread)} {}
  real_lane(const real_lane&) = delete;
  real_lane& operator=(const real_lane&) = delete;
  ~real_lane() override { thread_->close(); }

  bool submit(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    return thread_->submit(std::move(work), std::move(done));
  }
  void close() noexcept override { thread_->close(); }
  bool wait_closed(time_point until) override { return thread_->wait_closed(until); }
  lane_status status() const override { return thread_->status(); }

 private:
  std::shared_ptr<lane_thread> thread_;
};

}  // namespace

std::unique_ptr<lane> real_lanes::open(std::string name) try {
  auto thread = std::make_shared<lane_thread>(std::move(name));
  auto opened = std::make_unique<real_lane>(thread);
  {
    const std::scoped_lock lock{mutex_};
    std::erase_if(opened_, [](const auto& each) { return each.expired(); });
    opened_.push_back(thread);
  }
  std::thread{[thread] { thread->run(); }}.detach();
  return opened;
} catch (const std::system_error& x) {
  rethrow_no_thread(x, "no thread could be started for a lane");
}

std::vector<lane_status> real_lanes::status() const {
  std::vector<lane_status> all;
  const std::scoped_lock lock{mutex_};
  for (const auto& each : opened_) {
    const auto thread = each.lock();
    if (thread == nullptr) continue;
    lane_status now = thread->status();
    if (!now.closed || now.running_since) all.push_back(std::move(now));
  }
  return all;
}

}  // namespace coppice
