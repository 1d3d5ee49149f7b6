#include "internal/orphans.hpp"

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/spawn.hpp>

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

// ---- operations

void operation::belong_to(coroutine& owner) {
  if (number_ != 0) throw std::logic_error{"this operation was awaited before: make a new one each time"};
  const std::uint32_t number = owner.new_number();
  news_ = make_letter<operation_over>(plain<operation_over>, number);
  number_ = number;
  owner_ = owner.id();
  runs_in_ = owner.host().weak_from_this();
}

bool operation::begin() noexcept {
  phase expected = phase::waiting;
  return phase_.compare_exchange_strong(expected, phase::begun, std::memory_order_acq_rel);
}

void operation::over() {
  switch (phase_.exchange(phase::over, std::memory_order_acq_rel)) {
    case phase::waiting:
    case phase::begun:
      if (const auto k = runs_in_.lock()) k->send_late(owner_, signal::wake, std::exchange(news_, nullptr));
      return;
    case phase::orphaned: {
      const auto k = std::move(kept_);  // the last owner of the kernel frees it, after the frames
      return k->parts().orphans.over(*remains_);
    }
    case phase::alone: return;
    case phase::over: ensure(false, "an operation was over twice");
  }
}

bool operation::keep_frames(coroutine& remains) {
  phase now = phase::waiting;
  if (phase_.compare_exchange_strong(now, phase::alone, std::memory_order_acq_rel)) return false;
  if (now != phase::begun) return false;
  kept_ = runs_in_.lock();
  if (!kept_) return false;  // the kernel itself is being destroyed: nothing runs any more
  remains_ = &remains;
  const pid me = remains.id();
  const loss how = loss_by(me);
  orphans& all = kept_->parts().orphans;
  all.add(remains, me, how.why != nullptr ? *how.why : exit_reason::killed(), what_);
  if (phase_.compare_exchange_strong(now, phase::orphaned, std::memory_order_acq_rel)) return true;
  all.forget(remains);
  kept_ = nullptr;
  return false;
}

bool operation::go_on_alone() noexcept {
  phase now = phase_.load(std::memory_order_acquire);
  while (now == phase::waiting || now == phase::begun)
    if (phase_.compare_exchange_weak(now, phase::alone, std::memory_order_acq_rel)) return true;
  return false;
}

// ---- frames

void orphans::add(coroutine& frames, pid who, const exit_reason& why, std::string_view operation) {
  const std::scoped_lock lock{mutex_};
  const bool fresh = waiting_.try_emplace(&frames, entry{who, why, std::string{operation}}).second;
  ensure(fresh, "the frames of a process are kept for two operations");
}

void orphans::forget(coroutine& frames) {
  const std::scoped_lock lock{mutex_};
  waiting_.erase(&frames);
}

namespace {
task<void> destroy_frames(self& me) {
  me.host().parts().orphans.destroy_ready();
  co_return;
}
}  // namespace

void orphans::over(coroutine& frames) {
  const late_use use{kernel_};
  {
    const std::scoped_lock lock{mutex_};
    auto one = waiting_.extract(&frames);
    ensure(!one.empty(), "an operation is over whose frames were not kept");
    ready_.push_back(std::move(one));
  }
  if (use && start_helper()) return;
  destroy_ready();
}

/// Starts a process that destroys the frames. False: it can't be started.
bool orphans::start_helper() noexcept try {
  auto helper =
      spawn_coroutine(kernel_, {.called = birth::by({}, "destroys frames of ended processes")}, &destroy_frames);
  return helper || helper.error().code() == errc::stopped;  // a runtime that stops destroys them itself
} catch (...) {
  return false;
}

void orphans::destroy_ready() {
  for (;;) {
    list::node_type one;
    {
      const std::scoped_lock lock{mutex_};
      if (ready_.empty()) return;
      one = std::move(ready_.front());
      ready_.pop_front();
    }
    destroy(std::move(one));
  }
}

void orphans::destroy(list::node_type one) noexcept {
  const ending_scope scope{one.mapped().who, one.mapped().why};  // requests in the frames are answered with the reason
  one.key()->destroy_kept();
}

std::size_t orphans::waiting() {
  const std::scoped_lock lock{mutex_};
  return waiting_.size();
}

void orphans::report_left_behind() {
  std::vector<entry> left;
  {
    const std::scoped_lock lock{mutex_};
    for (const auto& [frames, each] : waiting_)
      if (!each.operation.empty()) left.push_back(each);
  }
  for (const entry& each : left)
    kernel_.log(log_parts::runtime, log_level::error,
                "the runtime ends while an operation is not over; the frames of its process are left behind",
                {{"pid", to_string(each.who)}, {"operation", each.operation}});
}

}  // namespace coppice::detail
