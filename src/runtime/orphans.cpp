#include "internal/orphans.hpp"

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/spawn.hpp>

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

// ---- operations

void operation::belong_to(coroutine& owner) {
  if (number_ != 0) throw std::logic_error{"this operation was awaited before: make a new one each time"};
  const std::uint32_t number = owner.new_number();
  over_signal_ = make_letter<operation_over>(plain<operation_over>, number);
  orphan_if_needed_.reset(new orphan{.operation = std::string{what_}});
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
      if (const auto k = runs_in_.lock()) k->send_late(owner_, signal::wake, std::exchange(over_signal_, nullptr));
      return;
    case phase::orphaned: {
      const auto k = std::move(kept_);  // the last owner of the kernel frees it, after the frames
      return k->parts().orphans.over(*orphan_);
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
  const pid me = remains.id();
  const loss how = loss_by(me);
  orphan_ = orphan_if_needed_.release();
  orphan_->frames = &remains;
  orphan_->who = me;
  orphan_->why = how.why != nullptr ? *how.why : exit_reason::killed();
  orphans& all = kept_->parts().orphans;
  all.add(*orphan_);
  if (phase_.compare_exchange_strong(now, phase::orphaned, std::memory_order_acq_rel)) return true;
  all.forget(*orphan_);
  orphan_if_needed_.reset(orphan_);
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

void free_orphan::operator()(orphan* one) const noexcept { delete one; }

void orphans::add(orphan& one) noexcept {
  const std::scoped_lock lock{mutex_};
  waiting_.push(one);
  ++waiting_count_;
}

void orphans::forget(orphan& one) noexcept {
  const std::scoped_lock lock{mutex_};
  waiting_.remove(one);
  --waiting_count_;
}

namespace {
task<void> destroy_frames(self& me) {
  me.host().parts().orphans.destroy_ready();
  co_return;
}
}  // namespace

void orphans::over(orphan& one) {
  const late_use use{kernel_};
  {
    const std::scoped_lock lock{mutex_};
    ensure(waiting_count_ > 0, "an operation is over whose frames were not kept");
    waiting_.remove(one);
    --waiting_count_;
    one.next = nullptr;
    *ready_end_ = &one;
    ready_end_ = &one.next;
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
    std::unique_ptr<orphan, free_orphan> one;
    {
      const std::scoped_lock lock{mutex_};
      if (ready_ == nullptr) return;
      one.reset(std::exchange(ready_, ready_->next));
      if (ready_ == nullptr) ready_end_ = &ready_;
    }
    const ending_scope scope{one->who, one->why};  // requests in the frames are answered with the reason
    one->frames->destroy_kept();
  }
}

bool orphans::any_ready() {
  const std::scoped_lock lock{mutex_};
  return ready_ != nullptr;
}

bool orphans::destroy_ready_by(time_point deadline) {
  if (!any_ready()) return true;
  // Also when the deadline has passed: destructors that do not hang get a moment.
  deadline = std::max(deadline, kernel_.now() + std::chrono::milliseconds{200});
  struct helper_state {
    std::shared_ptr<kernel> owner;  // keeps the kernel if this function stops waiting
    std::atomic<std::uint32_t> finished{0};
  };
  const auto state = std::make_shared<helper_state>(kernel_.shared_from_this());
  threads& system = *kernel_.env().threads();
  std::unique_ptr<thread_handle> helper;
  try {
    helper = system.start("coppice-frames", std::nullopt, [state, &system] {
      state->owner->parts().orphans.destroy_ready();
      state->finished = 1;
      system.wake_all(state->finished);
    });
  } catch (const std::exception&) {
    destroy_ready();  // there is no thread for it
    return true;
  }
  while (state->finished.load() == 0 && kernel_.now() < deadline) system.wait(state->finished, 0, deadline);
  if (state->finished.load() != 0) {
    helper->join();
    return true;
  }
  helper->detach();
  kernel_.log(log_parts::runtime, log_level::error,
              "the runtime ends while a destructor in the frames of an ended process is stuck; it is left behind");
  return false;
}

std::size_t orphans::waiting() {
  const std::scoped_lock lock{mutex_};
  return waiting_count_;
}

void orphans::report_left_behind() {
  struct row {
    pid who;
    std::string operation;
  };
  std::vector<row> left;
  {
    const std::scoped_lock lock{mutex_};
    for (const orphan* each = waiting_.first; each != nullptr; each = each->next)
      if (!each->operation.empty()) left.push_back({each->who, each->operation});
  }
  for (const row& each : left)
    kernel_.log(log_parts::runtime, log_level::error,
                "the runtime ends while an operation is not over; the frames of its process are left behind",
                {{"pid", to_string(each.who)}, {"operation", each.operation}});
}

}  // namespace coppice::detail
