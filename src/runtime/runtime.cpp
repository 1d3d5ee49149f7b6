#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/runtime/runtime.hpp>

#include "internal/workers.hpp"

namespace coppice {

namespace {
/// Ends the process whose code has found a broken invariant, even if that code catches the exception.
void end_process_here(const broken_invariant& broken) noexcept {
  detail::turn* t = detail::turn_here();
  if (t == nullptr) return;
  t->ending = detail::reason_of_failure(broken, *t);
  t->ends = true;
}
}  // namespace

runtime_options::~runtime_options() = default;

runtime::runtime(const runtime_options& options) : runtime{real_environment(), options} {}
runtime::runtime(std::shared_ptr<environment> env, const runtime_options& options)
    : kernel_{std::make_shared<detail::kernel>(std::move(env), options)} {
  detail::observe_broken_invariants(&end_process_here);
}

namespace {
/// Keeps a kernel that is never freed, not even when the program ends: threads that are stuck still use it.
void leave_behind(std::shared_ptr<detail::kernel> k) {
  static auto* const mutex = new std::mutex;
  static auto* const remains = new std::vector<std::shared_ptr<detail::kernel>>;
  const std::scoped_lock lock{*mutex};
  remains->push_back(std::move(k));
}
}  // namespace

runtime::~runtime() {
  if (kernel_->env().threads() == nullptr || kernel_->stop()) {
    kernel_->crash();
    if (kernel_->env().threads() == nullptr) return;  // simulated nodes end often, and the next one needs the memory
    kernel_.reset();
    detail::trim_pools(detail::trim::fully);
    return;
  }
  kernel_->report_left_behind();
  leave_behind(kernel_);
}

void runtime::must_be_outside() {
  if (detail::turn_here() != nullptr)
    throw std::logic_error{
        "a function of the runtime that waits was called inside a process, where it would block a worker thread; "
        "inside a process use co_await, in a handler of an actor context::call"};
}

void runtime::finish(detail::kernel& k, std::atomic<std::uint32_t>& done) {
  done.store(1, std::memory_order_release);
  k.sched().wake(done);
}

void runtime::wait_for(std::atomic<std::uint32_t>& done) {
  if (!kernel_->sched().wait(done, std::nullopt))
    throw std::runtime_error{"nothing is left to happen in this simulated world, and the wait is not over"};
}

task<result<frozen>> runtime::freeze_body(self&, detail::kernel::freeze_target who, std::chrono::nanoseconds within) {
  pending_freeze freezing(who, within);
  result<frozen> answer = co_await freezing;
  co_return answer;
}

task<> runtime::await_end(self& me, pid who, std::shared_ptr<outcome<exit_reason>> into) {
  const completion<exit_reason> completing{me, into, exit_reason::killed()};
  const monitor_ref watched = me.monitor(who);
  const std::optional<detail::process_end> end = co_await detail::until_ended(watched, forever);
  ensure(end.has_value(), "a wait without limit timed out");
  into->value = end->reason;
}

exit_reason runtime::wait(pid who) {
  must_be_outside();
  auto into = std::make_shared<outcome<exit_reason>>();
  helper("helper of runtime::wait", &runtime::await_end, who, into);
  wait_for(into->done);
  return *into->value;
}

std::vector<pid> runtime::ancestors(pid who) {
  std::vector<pid> chain;
  for (auto at = info(who); at && at->parent; at = info(at->parent)) chain.push_back(at->parent);
  return chain;
}

}  // namespace coppice
