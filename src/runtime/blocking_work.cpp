#include "internal/blocking_work.hpp"

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

blocking_work::blocking_work(kernel& k) : kernel_{k}, pool_{k.env().make_blocking_pool(k.options().blocking_threads)} {}

/// Counts a job from its submission until it is destroyed, whether it was run or not. The pointer to the kernel is
/// weak: work that hangs must not keep a runtime that has ended.
class blocking_work::tracked_job {
 public:
  tracked_job(kernel& k, std::uint64_t number, std::string_view what, std::move_only_function<void()> job)
      : kernel_{k.weak_from_this()}, number_{number}, owner_{process_here()}, what_{what}, job_{std::move(job)} {
    k.parts().freezer.blocking_began(owner_);
  }
  tracked_job(tracked_job&& other) noexcept
      : kernel_{std::exchange(other.kernel_, {})},
        number_{other.number_},
        owner_{other.owner_},
        what_{std::move(other.what_)},
        job_{std::move(other.job_)},
        begun_{other.begun_} {}
  tracked_job& operator=(tracked_job&&) = delete;
  ~tracked_job() {
    job_ = nullptr;  // first: the end of the job may send its result
    if (const auto k = kernel_.lock()) over(*k);
  }
  void operator()() {
    if (const auto k = kernel_.lock()) begin(*k);
    job_();
  }

 private:
  void begin(kernel& k) {
    blocking_work& all = k.parts().blocking;
    const std::scoped_lock lock{all.mutex_};
    --all.waiting_;
    begun_ = true;
    all.running_.emplace(number_, running_job{owner_, what_, k.now()});
  }
  void over(kernel& k) {
    k.parts().freezer.blocking_over(owner_);
    blocking_work& all = k.parts().blocking;
    const std::scoped_lock lock{all.mutex_};
    if (begun_) {
      all.running_.erase(number_);
      ++all.done_;
    } else {
      --all.waiting_;
    }
  }

  std::weak_ptr<kernel> kernel_;
  std::uint64_t number_;
  pid owner_;
  std::string what_;
  std::move_only_function<void()> job_;
  bool begun_ = false;
};

void blocking_work::submit(std::move_only_function<void()> job, std::string_view what) {
  std::shared_ptr<blocking_pool> pool;
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock{mutex_};
    pool = pool_;
    number = ++submitted_;
    if (pool) ++waiting_;
  }
  if (pool) pool->submit(tracked_job{kernel_, number, what, std::move(job)});
}

void blocking_work::close() {
  std::shared_ptr<blocking_pool> last;
  const std::scoped_lock lock{mutex_};
  last = std::exchange(pool_, nullptr);  // destroyed without the lock, which the jobs in it take
}

void blocking_work::count(runtime_counters& into) {
  const std::scoped_lock lock{mutex_};
  into.blocking_waiting = waiting_;
  into.blocking_running = running_.size();
  into.blocking_done = done_;
}

std::size_t blocking_work::pending() {
  const std::scoped_lock lock{mutex_};
  return waiting_ + running_.size();
}

void blocking_work::report_left_behind() {
  const std::scoped_lock lock{mutex_};
  for (const auto& [number, job] : running_) {
    const auto lasting = std::chrono::duration_cast<std::chrono::milliseconds>(kernel_.now() - job.since);
    kernel_.log(log_level::error, "the runtime ends while blocking work has not returned; its thread is left behind",
                {{"pid", to_string(job.owner)}, {"work", job.what}, {"ms", std::to_string(lasting.count())}});
  }
}

}  // namespace coppice::detail
