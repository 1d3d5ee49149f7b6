// Mailboxes with a limit or with priorities.
#include <algorithm>

#include <coppice/base/ensure.hpp>
#include <coppice/runtime/detail/mailbox_policy.hpp>

namespace coppice::detail {

std::size_t mailbox_policy::level_of(const envelope& e) const noexcept {
  int level = usual_level;
  if (by_priority_ && e.type->mailbox.priority != nullptr) {
    try {
      level = e.type->mailbox.priority(e);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a `priority` that throws must not fail the sender
    }
  }
  return static_cast<std::size_t>(std::clamp(level, 0, levels - 1));
}

void mailbox_policy::add(envelope* e) {
  mail_.at(level_of(*e)).push_back(e);
  ++size_;
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

mailbox_policy::outcome mailbox_policy::put(kernel& k, pid to, envelope* e, pid sender) {
  const std::scoped_lock lock{mutex_};
  if (closed_) return {.closed = true};
  if (e->type->mailbox.never_dropped && !waiting_.empty()) {  // behind those that wait for room
    waiting_.push_back({{}, e});
    return {};
  }
  envelope* dropped = nullptr;
  if (capacity_ != no_limit && size_ >= capacity_ && !e->type->mailbox.never_dropped) {
    if (when_full_ == when_full::sender_waits && sender) {
      waiting_.push_back({sender, e});
      tell_(k, sender, to, true);
      return {};
    }
    ++dropped_;
    if (when_full_ != when_full::drop_oldest) return {.dropped = e};
    dropped = remove_oldest(level_of(*e));
    if (dropped == nullptr) return {.dropped = e};
  }
  add(e);
  return {.dropped = dropped, .wake = !std::exchange(told_, true)};
}

envelope* mailbox_policy::take(kernel& k, pid owner) {
  const std::scoped_lock lock{mutex_};
  const auto highest = std::find_if(mail_.rbegin(), mail_.rend(), [](const auto& level) { return !level.empty(); });
  if (highest == mail_.rend()) {
    told_ = false;
    return nullptr;
  }
  envelope* e = highest->front();
  highest->pop_front();
  ensure(size_ > 0, "a mailbox policy counts less mail than it has");
  --size_;
  if (!waiting_.empty()) {
    const waiting next = waiting_.front();
    waiting_.pop_front();
    add(next.mail);
    if (next.sender) tell_(k, next.sender, owner, false);
  }
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
    if (w.sender) tell_(k, w.sender, owner, false);
  }
  waiting_.clear();
  return left;
}

std::vector<envelope*> mailbox_policy::withdraw(pid sender) {
  const std::scoped_lock lock{mutex_};
  std::vector<envelope*> back;
  std::erase_if(waiting_, [&](const waiting& w) {
    if (w.sender != sender) return false;
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

}  // namespace coppice::detail
