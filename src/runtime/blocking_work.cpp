#include "internal/blocking_work.hpp"

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

blocking_work::blocking_work(kernel& k) : kernel_{k}, pool_{k.env().make_blocking_pool(k.options().blocking_threads)} {}

std::shared_ptr<blocking_token> blocking_work::track(std::string_view what) {
  return std::make_shared<blocking_token>(kernel_, what);
}

void blocking_work::submit(std::move_only_function<void()> job, std::string_view what) {
  std::shared_ptr<blocking_pool> pool;
  {
    const std::scoped_lock lock{mutex_};
    pool = pool_;
  }
  if (!pool) return;  // the runtime ends
  // Destroyed in the reverse order: first the job, whose end may send its result.
  pool->submit([token = track(what), job = std::move(job)]() mutable {
    token->begin();
    job();
  });
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
  std::map<const blocking_token*, running_job> left;
  {
    const std::scoped_lock lock{mutex_};
    left = running_;
  }
  for (const auto& [token, job] : left) {
    const auto lasting = std::chrono::duration_cast<std::chrono::milliseconds>(kernel_.now() - job.since);
    kernel_.log(
        log_level::error, "the runtime ends while blocking work has not returned; its thread is left behind",
        {{"pid", to_string(job.owner)}, {"work", std::string{job.what}}, {"ms", std::to_string(lasting.count())}});
  }
}

// ---- one piece of work

blocking_token::blocking_token(kernel& k, std::string_view what)
    : kernel_{k.weak_from_this()}, owner_{process_here()}, what_{what} {
  blocking_work& all = k.parts().blocking;
  {
    const std::scoped_lock lock{all.mutex_};
    ++all.waiting_;
  }
  k.parts().freezer.blocking_began(owner_);
}

blocking_token::~blocking_token() {
  const auto k = kernel_.lock();
  if (!k) return;
  k->parts().freezer.blocking_over(owner_);
  blocking_work& all = k->parts().blocking;
  const std::scoped_lock lock{all.mutex_};
  if (begun_) {
    all.running_.erase(this);
    ++all.done_;
  } else {
    --all.waiting_;
  }
}

void blocking_token::begin() {
  const auto k = kernel_.lock();
  if (!k) return;
  blocking_work& all = k->parts().blocking;
  const std::scoped_lock lock{all.mutex_};
  all.running_.emplace(this, blocking_work::running_job{owner_, what_, k->now()});
  --all.waiting_;
  begun_ = true;
}

}  // namespace coppice::detail
