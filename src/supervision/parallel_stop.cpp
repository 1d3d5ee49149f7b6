#include "internal/parallel_stop.hpp"

namespace coppice::detail {

void parallel_stop::add(pid who, const child_spec& spec) {
  // Every child is monitored. Without a monitor, the end of a child that has unlinked itself would be reported by
  // `child_ended`, which is dropped when this process does not wait for just this child.
  leaving l{.spec = &spec, .watched = me_.monitor(who)};
  take_step(who, l, me_.now());
  leaving_.insert(who, l);
}

void parallel_stop::take_step(pid who, leaving& l, time_point now) {
  const stop_target target{.by = me_.id(), .who = who, .what = "child", .name = l.spec->id};
  const taken_step taken = detail::take_step(me_.host(), l.ladder, {*l.spec->shutdown, abandon_after_}, target);
  l.abandoned = taken.abandoned || l.abandoned;
  l.deadline = deadline_after(now, taken.wait);
  next_deadline_ = std::min(next_deadline_, l.deadline);
}

void parallel_stop::handle_deadlines() {
  const time_point now = me_.now();
  next_deadline_ = time_point::max();
  std::vector<pid> late;
  leaving_.for_each([&](pid who, const leaving& l) {
    if (l.deadline <= now)
      late.push_back(who);
    else
      next_deadline_ = std::min(next_deadline_, l.deadline);
  });
  for (const pid who : late) take_step(who, *leaving_.find(who), now);
}

task<std::optional<parallel_stop::gone>> parallel_stop::next() {
  while (!leaving_.empty()) {
    const std::chrono::nanoseconds timeout = next_deadline_ == time_point::max()
                                                 ? no_timeout
                                                 : std::max(next_deadline_ - me_.now(), std::chrono::nanoseconds{0});
    std::optional<process_end> end = co_await until_one_ended(*this, timeout);
    if (!end) {
      handle_deadlines();
      continue;
    }
    const std::optional<leaving> l = leaving_.take(end->who);
    ensure(l.has_value(), "a process has ended that was not being stopped");
    me_.demonitor(l->watched);
    gone out{end->who, {.reason = std::move(end->reason), .abandoned = l->abandoned}};
    co_return out;
  }
  co_return std::nullopt;
}

}  // namespace coppice::detail
