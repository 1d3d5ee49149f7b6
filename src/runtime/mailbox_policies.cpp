#include "internal/mailbox_policies.hpp"

#include <optional>

#include "internal/kernel_parts.hpp"

namespace coppice::detail {

envelope* taken_for_head(const slot& p) noexcept {
  envelope& head = *p.mail.head;
  if (head.what() == signal::mail)
    return std::atomic_ref<envelope*>{static_cast<letter<mail_token>&>(head).body.in_hand}.load(
        std::memory_order_acquire);
  return p.process->type->in_hand != nullptr ? p.process->type->in_hand(*p.process) : nullptr;
}

void mailbox_policies::set(pid who, std::shared_ptr<mailbox_policy> policy) {
  shard& s = shard_of(who);
  const std::scoped_lock lock{s.mutex};
  s.policies[who] = std::move(policy);
  table_[who.index()].set(slot::has_policy, true);
}

std::shared_ptr<mailbox_policy> mailbox_policies::of(pid who) {
  shard& s = shard_of(who);
  const std::scoped_lock lock{s.mutex};
  const auto found = s.policies.find(who);
  return found != s.policies.end() ? found->second : nullptr;
}

std::vector<envelope*> mailbox_policies::close(pid who) {
  const std::shared_ptr<mailbox_policy> policy = of(who);
  if (policy == nullptr) return {};
  {
    shard& s = shard_of(who);
    const std::scoped_lock lock{s.mutex};
    s.policies.erase(who);
  }
  return policy->close(kernel_, who);
}

void mailbox_policies::push_actor_token(pid who) {
  kernel_.send(who, signal::wake, make_letter<mail_token>(plain<mail_token>));
}

// Not by `send`: it may hold the token back in a burst, and then the token of another sender would take its message.
void mailbox_policies::push_mail_token(pid who) {
  slot& p = table_[who.index()];
  envelope* token = make_letter<mail_token>(plain<mail_token>);
  token->tag = envelope::tag_of(who.serial(), signal::mail);
  if (p.mail.push(token)) kernel_.schedule(p);
}

void mailbox_policies::set_put_aside(pid who, std::size_t count) {
  if (const std::shared_ptr<mailbox_policy> policy = of(who)) policy->set_put_aside(kernel_, who, count);
}

std::vector<envelope*> mailbox_policies::close_all() {
  std::vector<envelope*> left;
  for (shard& s : shards_)
    for (const auto& [who, policy] : std::exchange(s.policies, {}))
      for (envelope* e : policy->close(kernel_, who)) left.push_back(e);
  return left;
}

/// The process that sends now, if it can wait for room in the mailbox of `to`. Nobody: it can't, because it is of a
/// kind that can't, sends to itself, or publishes an event, or because the sender is not a process of this runtime.
mailbox_policy::sender mailbox_policies::sender_that_can_wait(pid to) const noexcept {
  const turn* t = turn_here();
  if (t == nullptr || t->k != &kernel_ || t->publishes) return {};
  const pid sender = table_.pid_of(*t->p);
  // A `kernel_section` must not be nested: the end of the inner one would end the outer one.
  std::optional<kernel_section> mine;
  if (t->guard.section.load(std::memory_order_relaxed) % 2 == 0) mine.emplace(*t->p, sender.serial());
  if ((mine && !*mine) || sender == to || t->p->process == nullptr) return {};
  return {sender, t->p->process->type->tell_of_room};
}

bool mailbox_policies::put(pid to, envelope* e) {
  if (e->type->mailbox.bypasses_policy) return false;
  const std::shared_ptr<mailbox_policy> policy = of(to);
  if (policy == nullptr) return false;
  kernel_.flush_burst();  // signals that this thread has sent before come before the token of this message
  const mailbox_policy::outcome o = policy->put(kernel_, to, e, sender_that_can_wait(to));
  if (o.closed) {
    kernel_.parts().remote.bounce(to, *e, exit_reason::noproc());
    release(e);
    return true;
  }
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
