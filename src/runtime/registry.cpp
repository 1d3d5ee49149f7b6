// Names, labels and timers of processes.
#include <coppice/runtime/detail/kernel.hpp>

#include "internal/names.hpp"
#include "internal/side_block.hpp"
#include "internal/timers.hpp"
#include "internal/workers.hpp"

namespace coppice::detail {

// A name may be given to a process by another one while it is ending on a third thread. The giver raises the flag and
// then looks whether the process is alive; the ending process first becomes dead and then looks at the flag. So at
// least one of them sees the other.
result<void> kernel::register_name(std::string_view name, pid who, start_letter* first) {
  if (name.empty()) return coppice::fail(errc::invalid, "a process name must not be empty");
  if (who.node() != node_ || !alive(who))
    return coppice::fail(errc::noproc, "can't give the name '" + std::string{name} + "' to " + to_string(who) +
                                           ": it is not a live process of this node");
  slot& p = table_[who.index()];
  const std::scoped_lock lock{names_->mutex};
  if (const auto taken = names_->by_name.find(name); taken != names_->by_name.end())
    return coppice::fail(errc::name_taken, "'" + std::string{name} + "' is the name of " + to_string(taken->second));
  names::entry& entry = names_->by_pid[who];
  if (!entry.name.empty())
    return coppice::fail(errc::invalid, to_string(who) + " has the name '" + entry.name + "' already");
  const auto by_name = names_->by_name.emplace(name, who).first;
  entry.name = name;
  p.named.store(1, std::memory_order_seq_cst);
  if (first != nullptr) {
    push_start(p, first);  // should it end at once, it gives the name back by itself
    return {};
  }
  if (alive(who)) return {};
  names_->by_name.erase(by_name);
  names_->by_pid.erase(who);
  return coppice::fail(errc::noproc, to_string(who) + " has ended");
}

bool kernel::unregister_name(std::string_view name) {
  const std::scoped_lock lock{names_->mutex};
  const auto found = names_->by_name.find(name);
  if (found == names_->by_name.end()) return false;
  names_->by_pid[found->second].name.clear();
  names_->by_name.erase(found);
  return true;
}

pid kernel::where(std::string_view name) {
  const std::scoped_lock lock{names_->mutex};
  const auto found = names_->by_name.find(name);
  return found == names_->by_name.end() ? pid{} : found->second;
}

std::string kernel::name_of(pid who) {
  const std::scoped_lock lock{names_->mutex};
  const auto found = names_->by_pid.find(who);
  return found == names_->by_pid.end() ? std::string{} : found->second.name;
}

void kernel::set_label(slot& me, std::string label) {
  const std::scoped_lock lock{names_->mutex};
  names_->by_pid[pid_of(me)].label = std::move(label);
  me.named.store(1, std::memory_order_seq_cst);
}

// ---- timers

timer_ref kernel::arm(time_point due, pid to, signal s, envelope* e) {
  e->tag = envelope::tag_of(to.serial(), s);
  const timer_ref ref = timers_->arm(worker_number(*this), due, to, e);
  scheduler_->timer_armed(due);
  return ref;
}

void kernel::fire_timers() { timers_->advance(now()); }
std::optional<time_point> kernel::next_timer() { return timers_->next(); }

bool kernel::disarm(timer_ref ref) {
  envelope* e = timers_->disarm(ref);
  if (e == nullptr) return false;
  discard(*this, e);
  return true;
}

std::optional<std::chrono::nanoseconds> kernel::remaining(timer_ref ref) {
  const auto due = timers_->due_of(ref);
  if (!due) return std::nullopt;
  return std::max(*due - now(), std::chrono::nanoseconds{0});
}

timer_ref kernel::start_timer(slot& me, std::chrono::nanoseconds after) {
  auto* e = make_letter<timeout>(plain<timeout>);
  side_block& side = side_of(me);
  const timer_ref ref = arm(time_after(after), pid_of(me), signal::timeout, e);
  e->body.ref = ref;  // even if it has fired by now: only this process, busy here, ever opens the letter
  side.timers.insert(ref.value(), {});
  return ref;
}

bool kernel::cancel_timer(slot& me, timer_ref ref) {
  const bool pending = disarm(ref);
  side_block* side = me.side;
  if (side == nullptr) return pending;
  return side->timers.erase(ref.value()) || pending;
}

bool kernel::take_timeout(slot& p, envelope& e) {
  side_block* side = p.side;
  if (side == nullptr) return false;
  return side->timers.erase(static_cast<letter<timeout>&>(e).body.ref.value());
}

}  // namespace coppice::detail
