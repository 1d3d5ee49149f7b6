// Mailboxes with a limit or with priorities.
#include <algorithm>

#include <coppice/runtime/detail/gate.hpp>

namespace coppice::detail {

void gate::add(envelope* e) {
  const int level = by_priority_ && e->type->priority != nullptr ? e->type->priority(*e) : usual_level;
  mail_[static_cast<std::size_t>(std::clamp(level, 0, levels - 1))].push_back(e);
  ++size_;
}

/// Of the lowest level: what would wait longest goes first. Null: nothing may go.
envelope* gate::remove_oldest() {
  for (auto& level : mail_) {
    const auto oldest = std::ranges::find_if(level, [](const envelope* e) { return !e->type->never_dropped; });
    if (oldest == level.end()) continue;
    envelope* e = *oldest;
    level.erase(oldest);
    --size_;
    return e;
  }
  return nullptr;
}

gate::outcome gate::put(kernel& k, pid to, envelope* e, pid sender) {
  const std::scoped_lock lock{mutex_};
  if (closed_) return {.dropped = e};
  if (open_) return admit(k, to, e, sender);
  early_.push_back({sender, e});
  return {};
}

gate::outcome gate::put_own(kernel& k, pid owner, envelope* e) {
  const std::scoped_lock lock{mutex_};
  return admit(k, owner, e, {});
}

std::vector<envelope*> gate::open(kernel& k, pid owner) {
  const std::scoped_lock lock{mutex_};
  open_ = true;
  std::vector<envelope*> back;
  for (const waiting& w : std::exchange(early_, {}))
    if (envelope* dropped = admit(k, owner, w.mail, w.sender).dropped) back.push_back(dropped);
  return back;
}

gate::outcome gate::admit(kernel& k, pid to, envelope* e, pid sender) {
  envelope* dropped = nullptr;
  if (e->type->never_dropped && !waiting_.empty()) {  // behind those that wait for room
    waiting_.push_back({{}, e});
    return {};
  }
  if (capacity_ != no_limit && size_ >= capacity_ && !e->type->never_dropped) {
    if (when_full_ == when_full::sender_waits && sender) {
      waiting_.push_back({sender, e});
      tell_(k, sender, to, true);
      return {};
    }
    ++dropped_;
    if (when_full_ != when_full::drop_oldest) return {.dropped = e};
    dropped = remove_oldest();
  }
  add(e);
  return {.dropped = dropped, .wake = !std::exchange(told_, true)};
}

envelope* gate::take(kernel& k, pid owner) {
  const std::scoped_lock lock{mutex_};
  const auto highest = std::find_if(mail_.rbegin(), mail_.rend(), [](const auto& level) { return !level.empty(); });
  if (highest == mail_.rend()) {
    told_ = false;
    return nullptr;
  }
  envelope* e = highest->front();
  highest->pop_front();
  --size_;
  if (!waiting_.empty()) {
    const waiting next = waiting_.front();
    waiting_.pop_front();
    add(next.mail);
    if (next.sender) tell_(k, next.sender, owner, false);
  }
  return e;
}

std::vector<envelope*> gate::close(kernel& k, pid owner) {
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
  for (const waiting& w : std::exchange(early_, {})) left.push_back(w.mail);
  return left;
}

std::vector<envelope*> gate::withdraw(pid sender) {
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

std::size_t gate::size() {
  const std::scoped_lock lock{mutex_};
  return size_ + waiting_.size() + early_.size();
}

std::uint64_t gate::dropped() {
  const std::scoped_lock lock{mutex_};
  return dropped_;
}

// ---- the kernel's part

void kernel::set_gate(slot& me, std::shared_ptr<gate> g) {
  const pid who = pid_of(me);
  {
    const std::scoped_lock lock{gates_mutex_};
    gates_[who] = std::move(g);
  }
  me.set(slot::gated, true);
  push_token(who, true);
}

void kernel::drop_gate(pid who) {
  const std::scoped_lock lock{gates_mutex_};
  gates_.erase(who);
}

void kernel::push_token(pid who, bool opens) {
  send(who, signal::wake, make_letter<gate_token>(plain<gate_token>, opens));
}

std::shared_ptr<gate> kernel::gate_of(pid who) {
  const std::scoped_lock lock{gates_mutex_};
  const auto found = gates_.find(who);
  return found != gates_.end() ? found->second : nullptr;
}

bool kernel::put_into_gate(pid to, envelope* e) {
  const std::shared_ptr<gate> g = gate_of(to);
  if (g == nullptr) return false;
  const turn* t = turn_here();
  // Only actors can wait, and not for themselves.
  const bool can_wait = t != nullptr && t->k == this && t->p->is(slot::takes_orders) && pid_of(*t->p) != to;
  const gate::outcome o = g->put(*this, to, e, can_wait ? pid_of(*t->p) : pid{});
  if (o.wake) push_token(to, false);
  if (o.dropped != nullptr) turn_away(to, o.dropped);
  return true;
}

void kernel::turn_away(pid to, envelope* e) {
  if (e->type->is_request) {
    mail_origin origin;
    e->type->open(*e, origin);
    if (origin.sender)
      origin.fail(*this, origin.sender, origin.call,
                  error{errc::capacity, "the mailbox of " + to_string(to) + " is full"});
  } else {
    note_dead_letter(to, *e);
  }
  discard(*this, e);
}

}  // namespace coppice::detail
