// Mailboxes with a limit or with priorities.
#include <algorithm>
#include <stdexcept>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/mailbox_policy.hpp>

namespace coppice {

result<void> mailbox::check() const {
  if (waits_at_most.count() <= 0) return fail(errc::invalid, "mailbox: waits_at_most must be positive");
  if (when_full == when_full::sender_waits && capacity == 0)
    return fail(errc::invalid, "mailbox: sender_waits needs a capacity");
  return {};
}

namespace detail {

namespace {
void refuse_nonsense(const coppice::mailbox& how) {
  if (const auto sensible = how.check(); !sensible) throw std::invalid_argument{std::string{sensible.error().text()}};
}

std::shared_ptr<mailbox_policy> make_policy(const coppice::mailbox& how, mailbox_policy::tokens which) {
  if (how == coppice::mailbox{}) [[likely]]
    return nullptr;
  refuse_nonsense(how);
  return mailbox_policy::has_effect(how) ? std::make_shared<mailbox_policy>(how, which) : nullptr;
}
}  // namespace

std::shared_ptr<mailbox_policy> make_policy_of_options(const coppice::mailbox& how) {
  return make_policy(how, mailbox_policy::tokens::each);
}
std::shared_ptr<mailbox_policy> make_policy_of_actor(const std::shared_ptr<mailbox_policy>& of_spec,
                                                     const coppice::mailbox& of_props) {
  return make_policy(of_spec ? of_spec->box : of_props, mailbox_policy::tokens::one);
}
std::shared_ptr<mailbox_policy> make_policy_of_spec(const coppice::mailbox& how) {
  refuse_nonsense(how);
  return std::make_shared<mailbox_policy>(how, mailbox_policy::tokens::each);
}

std::size_t mailbox_policy::level_of(const envelope& e) const noexcept {
  int level = usual_level;
  if (box.by_priority && e.type->mailbox.priority != nullptr) {
    try {
      level = e.type->mailbox.priority(e);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a `priority` that throws must not fail the sender
    }
  }
  return static_cast<std::size_t>(std::clamp(level, 0, levels - 1));
}

std::deque<envelope*>& mailbox_policy::add(envelope* e) {
  std::deque<envelope*>& level = mail_.at(level_of(*e));
  level.push_back(e);
  ++size_;
  return level;
}

/// Removes the oldest message of the lowest level that has one, up to `highest`. Null: none of these may be dropped.
envelope* mailbox_policy::remove_oldest(std::size_t highest) {
  for (std::size_t level = 0; level <= highest; ++level) {
    auto& mail = mail_.at(level);
    const auto oldest = std::ranges::find_if(mail, [](const envelope* e) { return !e->type->mailbox.never_dropped; });
    if (oldest == mail.end()) continue;
    envelope* e = *oldest;
    mail.erase(oldest);
    --size_;
    return e;
  }
  return nullptr;
}

mailbox_policy::outcome mailbox_policy::put(kernel& k, pid to, envelope* e, sender from) {
  const std::scoped_lock lock{mutex_};
  if (closed_) return {.closed = true};
  if (e->type->mailbox.never_dropped && !waiting_.empty()) {  // behind those that wait for room
    waiting_.push_back({{}, e});
    return {};
  }
  envelope* dropped = nullptr;
  if (!has_room() && !e->type->mailbox.never_dropped) {
    if (box.when_full == when_full::sender_waits && from.tell != nullptr) {
      waiting_.push_back({from, e});
      from.tell(k, from.who, to, true);
      return {};
    }
    ++dropped_;
    if (box.when_full != when_full::drop_oldest) return {.dropped = e};
    dropped = remove_oldest(level_of(*e));
    if (dropped == nullptr) return {.dropped = e};
  }
  std::deque<envelope*>& level = add(e);
  try {
    if (tokens_ == tokens::one) {
      if (!told_) k.push_actor_token(to);
      told_ = true;
    } else if (dropped == nullptr) {  // else the token of the dropped message serves for the new one
      k.push_mail_token(to);
    }
  } catch (...) {  // no memory: nothing was sent
    level.pop_back();
    --size_;
    throw;
  }
  return {.dropped = dropped};
}

/// Gives the messages that wait for room the room that there is now.
void mailbox_policy::admit_waiting(kernel& k, pid owner) {
  while (!waiting_.empty() && has_room()) {
    const waiting next = waiting_.front();
    std::deque<envelope*>& level = add(next.mail);
    try {
      if (tokens_ == tokens::each) k.push_mail_token(owner);
    } catch (const std::bad_alloc&) {  // it waits on: until the next message is taken
      level.pop_back();
      --size_;
      return;
    }
    waiting_.pop_front();
    if (next.from.tell != nullptr) next.from.tell(k, next.from.who, owner, false);
  }
}

void mailbox_policy::set_put_aside(kernel& k, pid owner, std::size_t count) {
  const std::scoped_lock lock{mutex_};
  aside_ = count;
  admit_waiting(k, owner);
}

std::deque<envelope*>* mailbox_policy::highest_level_with_mail() {
  const auto highest = std::find_if(mail_.rbegin(), mail_.rend(), [](const auto& level) { return !level.empty(); });
  return highest != mail_.rend() ? &*highest : nullptr;
}

const envelope* mailbox_policy::next() {
  const std::scoped_lock lock{mutex_};
  const std::deque<envelope*>* highest = highest_level_with_mail();
  return highest != nullptr ? highest->front() : nullptr;
}

envelope* mailbox_policy::take(kernel& k, pid owner) {
  const std::scoped_lock lock{mutex_};
  std::deque<envelope*>* highest = highest_level_with_mail();
  if (highest == nullptr) {
    told_ = false;
    return nullptr;
  }
  envelope* e = highest->front();
  highest->pop_front();
  ensure(size_ > 0, "a mailbox policy counts less mail than it has");
  --size_;
  admit_waiting(k, owner);
  return e;
}

std::vector<envelope*> mailbox_policy::close(kernel& k, pid owner) {
  const std::scoped_lock lock{mutex_};
  closed_ = true;
  std::vector<envelope*> left;
  for (auto level = mail_.rbegin(); level != mail_.rend(); ++level) {
    left.insert(left.end(), level->begin(), level->end());
    level->clear();
  }
  size_ = 0;
  for (const waiting& w : waiting_) {
    left.push_back(w.mail);
    if (w.from.tell != nullptr) w.from.tell(k, w.from.who, owner, false);
  }
  waiting_.clear();
  return left;
}

std::vector<envelope*> mailbox_policy::withdraw(pid from) {
  const std::scoped_lock lock{mutex_};
  std::vector<envelope*> back;
  std::erase_if(waiting_, [&](const waiting& w) {
    if (w.from.who != from) return false;
    back.push_back(w.mail);
    return true;
  });
  dropped_ += back.size();
  return back;
}

std::size_t mailbox_policy::count(std::vector<mail_count>& by_type) {
  const std::scoped_lock lock{mutex_};
  for (const auto& level : mail_)
    for (const envelope* e : level) count_mail(by_type, e->type->name);
  for (const waiting& w : waiting_) count_mail(by_type, w.mail->type->name);
  return size_ + waiting_.size();
}

std::uint64_t mailbox_policy::dropped() {
  const std::scoped_lock lock{mutex_};
  return dropped_;
}

}  // namespace detail
}  // namespace coppice
