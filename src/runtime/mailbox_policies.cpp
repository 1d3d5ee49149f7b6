#include "internal/mailbox_policies.hpp"

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

envelope* taken_for_head(const slot& p) noexcept {
  return p.process->type->in_hand != nullptr ? p.process->type->in_hand(*p.process) : nullptr;
}

void mailbox_policies::set(pid who, std::shared_ptr<mailbox_policy> policy) {
  shard& s = near(who);
  const std::scoped_lock lock{s.mutex};
  s.policies[who] = std::move(policy);
  table_[who.index()].set(slot::has_policy, true);
}

std::shared_ptr<mailbox_policy> mailbox_policies::of(pid who) {
  shard& s = near(who);
  const std::scoped_lock lock{s.mutex};
  const auto found = s.policies.find(who);
  return found != s.policies.end() ? found->second : nullptr;
}

std::vector<envelope*> mailbox_policies::close(pid who) {
  const std::shared_ptr<mailbox_policy> policy = of(who);
  if (policy == nullptr) return {};
  {
    shard& s = near(who);
    const std::scoped_lock lock{s.mutex};
    s.policies.erase(who);
  }
  return policy->close(kernel_, who);
}

void mailbox_policies::push_token(pid who) {
  kernel_.send(who, signal::wake, make_letter<mail_token>(plain<mail_token>));
}

/// The process that sends now, if it can wait for room in the mailbox of `to`. Nobody: it can't, because it has no fast
/// lane, sends to itself, or publishes an event, or because the sender is not a process of this runtime.
pid mailbox_policies::sender_that_can_wait(pid to) const noexcept {
  const turn* t = turn_here();
  if (t == nullptr || t->k != &kernel_ || t->publishes || !t->p->is(slot::has_fast_lane)) return {};
  const pid sender = table_.pid_of(*t->p);
  return sender != to ? sender : pid{};
}

bool mailbox_policies::put(pid to, envelope* e) {
  if (e->type->mailbox.bypasses_policy) return false;
  const std::shared_ptr<mailbox_policy> policy = of(to);
  if (policy == nullptr) return false;
  const mailbox_policy::outcome o = policy->put(kernel_, to, e, sender_that_can_wait(to));
  if (o.closed) {
    kernel_.parts().remote.bounce(to, *e, exit_reason::noproc());
    release(e);
    return true;
  }
  if (o.wake) push_token(to);
  if (o.dropped != nullptr) turn_away(to, o.dropped);
  return true;
}

void mailbox_policies::turn_away(pid to, envelope* e) {
  if (e->type->is_request())
    e->type->fail(kernel_, *e, error{errc::capacity, "the mailbox of " + to_string(to) + " is full"});
  else
    kernel_.note_dead_letter(to, *e);
  discard(kernel_, e, {loss::kind::vanished});  // answers nobody; a caller was answered above
}

}  // namespace coppice::detail
