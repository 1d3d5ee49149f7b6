#include <algorithm>
#include <stdexcept>

#include <coppice/actor/detail/instance_timers.hpp>
#include <coppice/base/ensure.hpp>

namespace coppice::detail {

void instance_timers::add(kernel& k, pid me, std::uint64_t number, std::chrono::nanoseconds delay, timer_entry entry,
                          envelope* first) {
  entry.due = k.time_after(delay);
  entry.armed = k.arm(entry.due, me, signal::message, first);
  const bool added = by_number_.emplace(number, std::move(entry)).second;
  ensure(added, "two timers of an actor have the same number");
}

bool instance_timers::cancel(kernel& k, std::uint64_t number) {
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return false;
  k.disarm(found->second.armed);
  by_number_.erase(found);
  return true;
}

bool instance_timers::fired(kernel& k, pid me, std::uint64_t number) {
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return false;
  timer_entry& timer = found->second;
  if (!timer.make_next) {
    by_number_.erase(found);
    return true;
  }
  // The next message is due a multiple of the period after the first one, however late this one is. Missed times are
  // skipped.
  const auto late = std::max(k.now() - timer.due, std::chrono::nanoseconds{0});
  timer.due += timer.period * (1 + late / timer.period);
  timer.armed = k.arm(timer.due, me, signal::message, timer.make_next());
  return true;
}

void instance_timers::cancel_all(kernel& k) noexcept {
  for (const auto& [number, timer] : std::exchange(by_number_, {})) k.disarm(timer.armed);
}

void receive_timeout_check::set(kernel& k, pid me, std::chrono::nanoseconds limit) {
  limit_ = limit;
  last_message_ = k.now();
  ++number_;
  disarm(k);
  if (limit != no_timeout) arm(k, me, limit);
}

void receive_timeout_check::forget() noexcept {
  limit_ = no_timeout;
  ++number_;
}

void receive_timeout_check::arm(kernel& k, pid me, std::chrono::nanoseconds after) {
  timer_ = k.arm(k.time_after(after), me, signal::wake, make_letter<receive_check>(plain<receive_check>, number_));
}

void receive_timeout_check::disarm(kernel& k) const noexcept { k.disarm(timer_); }

}  // namespace coppice::detail
