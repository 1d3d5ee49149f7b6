#include "internal/freezer.hpp"

#include <algorithm>

#include <coppice/base/ensure.hpp>

#include "internal/kernel_parts.hpp"
#include "internal/workers.hpp"

namespace coppice::detail {

namespace {
/// The envelope that `add` pushes. It makes a busy process read `urgent` once more; an idle process is owned by the
/// freezer once the envelope is pushed.
struct freeze_mark {};

error undone(pid who, bool alive) {
  return alive ? error{errc::not_found, to_string(who) + " was thawed before its freeze was complete"}
               : error{errc::noproc, to_string(who) + " is not alive"};
}
}  // namespace

// ---- freezing

result<std::uint64_t> freezer::freeze(target who, pid informs) {
  if (!who.root) return coppice::fail(errc::noproc, "there is nothing to freeze: the pid names no process");
  if (who.root.node() != table_.node())
    return coppice::fail(errc::invalid,
                         to_string(who.root) + " is not a process of this node, so it can't be frozen here");
  if (!table_.alive(who.root)) return coppice::fail(errc::noproc, to_string(who.root) + " is not alive");
  if (informs == who.root)
    return coppice::fail(errc::invalid, to_string(informs) + " can't freeze itself: it would never thaw anything");
  if (who.subtree && is_below(informs, who.root))
    return coppice::fail(errc::invalid, to_string(informs) + " can't freeze the subtree of " + to_string(who.root) +
                                            ", because it belongs to it: it would never thaw anything");
  to_inform done;
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock{mutex_};
    number = ++numbers_;
    freezes_in_force_.fetch_add(1, std::memory_order_seq_cst);
    freeze_order& o = orders_.emplace_back(freeze_order{.number = number, .who = who, .informs = informs});
    add(o, who.root);
    if (who.subtree) add_descendants(o);
    if (o.members.empty()) {  // it has ended since the check above
      orders_.pop_back();
      freezes_in_force_.fetch_sub(1, std::memory_order_seq_cst);
      return coppice::fail(errc::noproc, to_string(who.root) + " is not alive");
    }
    done = newly_done();
  }
  inform(done);
  return number;
}

void freezer::add(freeze_order& o, pid who) {
  if (!table_.alive(who)) return;  // another process may have its slot, and must not be touched
  slot& p = table_[who.index()];
  frozen& f = frozen_[who];
  if (f.count == 0) {
    envelope* mark = make_letter<freeze_mark>(plain<freeze_mark>);
    mark->tag = envelope::tag_of(0, signal::done);
    // A kill that arrived while the process was idle is the first in its queue, and did not set `look_for_exit`.
    p.urgent.fetch_or(is_frozen | look_for_exit, std::memory_order_seq_cst);
    const bool owner = p.mail.push(mark);
    // If the process ends after this check, `lifecycle::finish` finds `is_frozen` and calls `ended`.
    if (!table_.alive(who) || (owner && !p.is(slot::has_process))) {
      p.urgent.fetch_and(static_cast<std::uint8_t>(~is_frozen), std::memory_order_seq_cst);
      frozen_.erase(who);
      if (owner) kernel_.schedule(p);
      return;
    }
    f.parked = owner;
  }
  ++f.count;
  o.members.insert(who);
  if (!f.parked) o.pending.insert(who);
}

/// A process that begins while this runs either is seen here, or sees that there is a freeze and calls
/// `join_freezes`: the barrier makes sure of that.
void freezer::add_descendants(freeze_order& o) {
  for (bool found = true; found;) {
    found = false;
    if (threads* all = kernel_.env().threads()) all->barrier_everywhere();
    std::vector<std::pair<pid, pid>> children;  // parent, child
    table_.for_each_process([&](slot& p) {
      const pid parent = table_.parent_of(p);
      if (table_.is_parent(p, parent)) children.emplace_back(parent, table_.pid_of(p));
    });
    std::ranges::sort(children);
    std::vector<pid> parents(o.members.begin(), o.members.end());
    while (!parents.empty()) {
      const pid parent = parents.back();
      parents.pop_back();
      for (const auto& [of, child] : std::ranges::equal_range(children, parent, {}, &std::pair<pid, pid>::first)) {
        if (o.members.contains(child)) continue;
        add(o, child);
        if (!o.members.contains(child)) continue;
        parents.push_back(child);
        found = true;
      }
    }
  }
}

bool freezer::is_below(pid who, pid root) const {
  while (table_.alive(who)) {
    const slot& p = table_[who.index()];
    const pid parent = table_.parent_of(p);
    if (!table_.is_parent(p, parent)) return false;
    if (parent == root) return true;
    who = parent;
  }
  return false;
}

bool freezer::join_freezes(slot& p, pid parent) {
  const std::scoped_lock lock{mutex_};
  const pid me = table_.pid_of(p);
  bool awaited = false;
  for (freeze_order& o : orders_) {
    awaited = o.unborn.erase(me) != 0 || awaited;
    if (!o.who.subtree || !(o.members.contains(parent) || o.past.contains(parent))) continue;
    if (!o.members.insert(me).second) continue;
    ++frozen_[me].count;
  }
  if (awaited) drop_orders_without_processes();
  if (!frozen_.contains(me)) return false;
  p.urgent.fetch_or(is_frozen, std::memory_order_seq_cst);
  return true;
}

freezer::parking freezer::park(slot& p) {
  to_inform done;
  {
    const std::scoped_lock lock{mutex_};
    const pid me = table_.pid_of(p);
    const auto found = frozen_.find(me);
    if (found == frozen_.end()) return parking::thawed;
    if ((p.urgent.load(std::memory_order_seq_cst) & look_for_exit) != 0) return parking::exit_pending;
    ensure(!found->second.parked, "a frozen process is run although the freezer owns it");
    found->second.parked = true;
    for (freeze_order& o : orders_) o.pending.erase(me);
    done = newly_done();
  }
  inform(done);
  return parking::parked;
}

// ---- leaving

void freezer::unpark(pid who) {
  {
    const std::scoped_lock lock{mutex_};
    const auto found = frozen_.find(who);
    if (found == frozen_.end() || !std::exchange(found->second.parked, false)) return;
  }
  kernel_.schedule(table_[who.index()]);
}

/// The newest freeze of that target whose maker was informed; the makers of later ones still wait. If there is none, it
/// is the newest freeze of that target.
std::vector<freezer::freeze_order>::reverse_iterator freezer::find_to_thaw(target who) {
  const auto is_it = [&](const freeze_order& o) { return o.who == who; };
  const auto answered =
      std::find_if(orders_.rbegin(), orders_.rend(), [&](const freeze_order& o) { return o.informed && is_it(o); });
  return answered != orders_.rend() ? answered : std::find_if(orders_.rbegin(), orders_.rend(), is_it);
}

bool freezer::thaw(target who) {
  std::vector<slot*> runnable;
  to_inform done;
  {
    const std::scoped_lock lock{mutex_};
    const auto newest = find_to_thaw(who);
    if (newest == orders_.rend()) return false;
    // Sorted, because in a simulation the order of scheduling must depend on the seed alone.
    std::vector<pid> members(newest->members.begin(), newest->members.end());
    std::ranges::sort(members);
    for (const pid member : members) {
      const auto found = frozen_.find(member);
      ensure(found != frozen_.end() && found->second.count > 0, "a process is thawed more often than frozen");
      if (--found->second.count != 0) continue;
      slot& p = table_[member.index()];
      p.urgent.fetch_and(static_cast<std::uint8_t>(~is_frozen), std::memory_order_seq_cst);
      // Exits and signals of the fast lane that arrived meanwhile were not looked at.
      p.urgent.fetch_or(look_for_exit | look_for_fast, std::memory_order_seq_cst);
      if (found->second.parked) runnable.push_back(&p);
      frozen_.erase(found);
    }
    if (!newest->informed) done.push_back({newest->informs, {.number = newest->number, .undone = true}});
    orders_.erase(std::next(newest).base());
    freezes_in_force_.fetch_sub(1, std::memory_order_seq_cst);
  }
  for (slot* p : runnable) kernel_.schedule(*p);
  inform(done);
  return true;
}

void freezer::ended(pid who, const side_block* side) {
  to_inform done;
  {
    const std::scoped_lock lock{mutex_};
    table_[who.index()].urgent.fetch_and(static_cast<std::uint8_t>(~is_frozen), std::memory_order_seq_cst);
    if (frozen_.erase(who) == 0) return;
    for (freeze_order& o : orders_) {
      o.pending.erase(who);
      if (o.members.erase(who) == 0) continue;
      o.past.insert(who);
      if (o.who.subtree && side != nullptr) note_unborn(o, who, *side);
    }
    done = newly_done();
    drop_orders_without_processes();
  }
  inform(done);
}

/// A child that has not begun belongs to the frozen subtree, although only the link of its parent shows it. It calls
/// `join_freezes` when it begins; until then the order must not be dropped.
void freezer::note_unborn(freeze_order& o, pid ended, const side_block& side) {
  side.links.for_each([&](pid other, const link_state&) {
    if (!table_.alive(other) || o.members.contains(other) || o.past.contains(other)) return;
    const slot& p = table_[other.index()];
    if (!p.is(slot::has_process) || table_.is_parent(p, ended)) o.unborn.insert(other);
  });
}

void freezer::drop_orders_without_processes() {
  const auto gone =
      std::erase_if(orders_, [](const freeze_order& o) { return o.members.empty() && o.unborn.empty() && o.informed; });
  freezes_in_force_.fetch_sub(static_cast<std::uint32_t>(gone), std::memory_order_seq_cst);
}

// ---- answers

bool freezer::is_done(const freeze_order& o) const {
  return o.pending.empty() && std::ranges::none_of(o.members, [&](pid who) { return blocking_.contains(who); });
}

freezer::to_inform freezer::newly_done() {
  to_inform all;
  for (freeze_order& o : orders_)
    if (!o.informed && is_done(o)) {
      o.informed = true;
      all.push_back({o.informs, {.number = o.number}});
    }
  return all;
}

/// Uses `send_late` because the end of blocking work calls it on a thread that may outlive the runtime.
void freezer::inform(const to_inform& all) {
  for (const auto& [who, what] : all)
    kernel_.send_late(who, signal::notice, make_letter<freeze_done>(plain<freeze_done>, what));
}

result<std::vector<pid>> freezer::stop_waiting(target who, std::uint64_t number) {
  const std::scoped_lock lock{mutex_};
  const auto found = std::ranges::find(orders_, number, &freeze_order::number);
  if (found == orders_.end()) return std::unexpected{undone(who.root, table_.alive(who.root))};
  found->informed = true;
  std::vector<pid> all;
  for (const pid one : found->members) {
    const bool in_its_code = found->pending.contains(one) && kernel_.sched().is_running(table_[one.index()]);
    if (in_its_code || blocking_.contains(one)) all.push_back(one);
  }
  std::ranges::sort(all);
  return all;
}

void freezer::blocking_began(pid who) {
  const std::scoped_lock lock{mutex_};
  ++blocking_[who];
}

void freezer::blocking_over(pid who) {
  to_inform done;
  {
    const std::scoped_lock lock{mutex_};
    const auto found = blocking_.find(who);
    ensure(found != blocking_.end() && found->second > 0, "blocking work ends that has not begun");
    if (--found->second == 0) blocking_.erase(found);
    done = newly_done();
  }
  inform(done);
}

}  // namespace coppice::detail
