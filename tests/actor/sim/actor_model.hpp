#pragma once
/// What must be true of what a run has left, once all is quiet.
#include <set>

#include "actor_plan.hpp"

namespace coppice::random_actors {

class model {
 public:
  explicit model(const program& p) : p_{p} {
    for (const verdict& v : p_.verdicts) by_child_[v.child].push_back(&v);
  }
  void run() {
    for (const auto& [who, l] : p_.lives) {
      who_ = who;
      check_hooks(l);
      check_verdicts(l);
      check_restarts(l);
      check_restarts_of_all(l);
      check_end(l);
      check_mail(l);
      check_watches(l);
    }
    check_faults();
    check_questions();
  }

 private:
  void require(bool holds, const std::string& what) const { sim::require(holds, to_string(who_) + ": " + what); }
  [[nodiscard]] const rules& strategy_for(const life& l) const {
    static const rules usual{};
    if (l.parent) return p_.lives.at(l.parent).what->strategy;
    return l.what->guardian ? *l.what->guardian : usual;
  }
  [[nodiscard]] const std::vector<const verdict*>& verdicts_on(pid who) const {
    static const std::vector<const verdict*> none;
    const auto found = by_child_.find(who);
    return found == by_child_.end() ? none : found->second;
  }
  /// Whether `what` was decided about that failure, of the actor or, for all, of a sibling.
  [[nodiscard]] const verdict* decided(const life& l, std::uint64_t id, directive what) const {
    for (const verdict* v : verdicts_on(who_))
      if (v->id == id && v->what == what) return v;
    if (!l.parent) return nullptr;
    for (const verdict& v : p_.verdicts)
      if (v.parent == l.parent && v.child != who_ && v.id == id && v.what == what && for_all(v)) return &v;
    return nullptr;
  }
  /// Whether this actor, or one below it, has failed with that failure.
  [[nodiscard]] bool is_from_below(std::uint64_t id) const {
    for (pid at = p_.faults.at(id).who; at; at = p_.lives.at(at).parent)
      if (at == who_) return true;
    return false;
  }
  /// For how long the actor or its parent was frozen then: one of them waited for that long at most.
  [[nodiscard]] std::chrono::nanoseconds time_frozen(const life& l, time_point from, time_point to) const {
    return p_.freezes.time_frozen(who_, from, to) + p_.freezes.time_frozen(l.parent, from, to);
  }
  [[nodiscard]] bool for_all(const verdict& v) const {
    const life& l = p_.lives.at(v.child);
    if (!l.parent) return false;
    const rules& by = strategy_for(l);
    if (by.what == rules::kind::all) return true;
    // Passed on, and made anew when its parent was resumed: a custom strategy is not asked, and it is for the one
    // alone.
    const auto said = p_.words.find({v.child, v.id});
    return by.what == rules::kind::custom && said != p_.words.end() && said->second.said.all &&
           said->second.said.what != directive::escalate;
  }
  /// When that was decided at the earliest and at the latest: a decider says its time, an event is seen a little later.
  [[nodiscard]] std::pair<time_point, time_point> time_of(const verdict& v) const {
    const auto said = p_.words.find({v.child, v.id});
    if (said == p_.words.end() || said->second.said.what == directive::escalate) return {v.at - soon, v.at};
    return {said->second.at, said->second.at};
  }
  void check_hooks(const life& l) const;
  void check_verdicts(const life& l) const;
  void check_wait(const life& l, const verdict& v, const rules& by, time_point& since, unsigned& in_a_row) const;
  void check_restarts(const life& l) const;
  void check_restarts_of_all(const life& l) const;
  void check_end(const life& l) const;
  [[nodiscard]] bool ancestor(const life& l, bool life::* has) const {
    for (const life* at = &l; at->parent;) {
      at = &p_.lives.at(at->parent);
      if (at->*has) return true;
    }
    return false;
  }
  /// Its parent was stopped or restarted before. (Without an instance, no hook runs.)
  [[nodiscard]] bool was_shut_down(const life& l) const {
    if (!l.parent) return false;
    const life& parent = p_.lives.at(l.parent);
    return parent.what->keeps_children || std::ranges::any_of(parent.log, [&](const entry& e) {
             const bool ends = e.what == entry::kind::restarting || e.what == entry::kind::stopping;
             return ends && e.at >= l.spawned && e.at <= l.ended;
           });
  }
  /// Stopped by its parent, and frozen for so much of its time that it could not end by itself.
  [[nodiscard]] bool killed_at_its_deadline(pid who) const {
    constexpr std::chrono::nanoseconds limit = 5s;
    const life& l = p_.lives.at(who);
    if (!l.end || l.end->what() != exit_reason::kind::killed || !l.parent) return false;
    if (!was_shut_down(l) && !judged_to_stop(who)) return false;
    const auto waited = limit + p_.freezes.time_frozen(l.parent, {}, l.ended);
    if (p_.freezes.time_frozen(who, l.ended - waited, l.ended) + soon < limit) return false;
    mark("killed because it was frozen");
    return true;
  }
  /// Its parent has decided to stop it, or all its children.
  [[nodiscard]] bool judged_to_stop(pid who) const {
    const life& l = p_.lives.at(who);
    return std::ranges::any_of(p_.verdicts, [&](const verdict& v) {
      return v.parent == l.parent && v.what == directive::stop && v.at <= l.ended && (v.child == who || for_all(v));
    });
  }
  [[nodiscard]] bool ancestor_killed_at_its_deadline(const life& l) const {
    for (pid at = l.parent; at; at = p_.lives.at(at).parent)
      if (killed_at_its_deadline(at)) return true;
    return false;
  }
  void check_mail(const life& l) const;
  void check_watches(const life& l) const;
  void check_faults();
  void check_questions() const;

  const program& p_;
  pid who_;
  std::map<pid, std::vector<const verdict*>> by_child_;
};

/// The order in which the hooks of an instance run.
inline void model::check_hooks(const life& l) const {
  using kind = entry::kind;
  std::optional<kind> before;
  for (const entry& e : l.log) {
    const bool alive = before && before != kind::attempt && before != kind::destroyed;
    switch (e.what) {
      case kind::attempt: require(!alive, "a new instance before the end of the old one"); break;
      case kind::born: require(before == kind::attempt, "born without an attempt"); break;
      case kind::started: require(before == kind::born, "started is not the first it hears"); break;
      case kind::restarting: require(before == kind::started, "it is restarted twice, or was never started"); break;
      case kind::stopping:
        require(before == kind::started, "it stops twice, or when it has heard of its restart");
        break;
      case kind::stopped: require(before == kind::stopping, "it has stopped without `stopping`"); break;
      case kind::destroyed:
        require(l.killed || killed_at_its_deadline(who_) || before == kind::restarting || before == kind::stopped,
                "the instance is gone, and heard of no end");
        break;
    }
    before = e.what;
  }
  if (l.end && !l.killed && !killed_at_its_deadline(who_)) {
    require(l.living == 0, "it has ended, and its instance is still there");
    std::optional<exit_reason> said;
    for (const entry& e : l.log)
      if (e.what == kind::stopping || e.what == kind::stopped) {
        require(!said || *said == e.reason, "it heard two reasons");
        said = e.reason;
      }
    require(!said || *said == *l.end, "it ended for another reason than it heard");
  }
}

/// Each decision is what the rules make of the failure: the word of the decider, the limit, the wait.
inline void model::check_verdicts(const life& l) const {
  const rules& by = strategy_for(l);
  restart_window window;
  time_point since = l.parent ? l.spawned : time_point{};
  unsigned in_a_row = 0;
  time_point latest{};  // a decider says its time at once, an event is seen a little later
  std::set<std::uint64_t> passed_on;
  for (const verdict* v : verdicts_on(who_)) {
    require(v->parent == (l.parent ? l.parent : who_), "somebody else decided");
    require(v->id != 0 && p_.faults.contains(v->id), "a decision about nothing that has failed");
    const fault& f = p_.faults.at(v->id);
    require(!f.quiet, "a failure of a hook was answered that changes nothing");
    time_point at = std::max(v->at, latest);
    directive expected = by.what == rules::kind::always_stop ? directive::stop : directive::restart;
    // One that was never made has nothing to go on with when its parent, failed for it, is resumed.
    const bool made_anew = l.parent && (passed_on.contains(v->id) || p_.speechless.contains({who_, v->id}));
    if (made_anew) require(!f.made, "a failure was answered twice");
    if (made_anew) mark("made when its parent was resumed");
    if (by.has_words() && !made_anew) {
      const auto said = p_.words.find({who_, v->id});
      if (said == p_.words.end()) {  // a guardian that failed itself
        require(!l.parent && v->what == directive::escalate, "nobody has said that");
        continue;
      }
      expected = said->second.said.what;
      at = std::max(said->second.at, latest);
      require(by.what == rules::kind::custom || by.limit == unlimited ||
                  said->second.restarts == window.count(at, by.limit),
              "the decider was told another number of restarts");
    }
    latest = at;
    if (made_anew) expected = directive::restart;
    if (expected == directive::escalate) passed_on.insert(v->id);
    if (expected == directive::resume && f.who == who_ && !f.made) expected = directive::restart;
    const bool counts = expected == directive::restart && by.what != rules::kind::custom && by.limit != unlimited;
    if (counts && !window.add(at, by.limit)) {
      mark("a limit was reached");
      expected = directive::stop;
    }
    require(v->what == expected,
            "decided was " + std::string{to_string(v->what)} + " in the place of " + std::string{to_string(expected)});
    mark(to_string(v->what));
    if (made_anew && by.what == rules::kind::custom)
      since = v->at;
    else
      check_wait(l, *v, by, since, in_a_row);
  }
}

inline void model::check_wait(const life& l, const verdict& v, const rules& by, time_point& since,
                              unsigned& in_a_row) const {
  if (v.what != directive::restart) return;
  std::chrono::nanoseconds expected{0};
  if (by.what == rules::kind::custom) {
    expected = p_.words.at({who_, v.id}).said.after;
  } else if (by.wait) {
    if (l.parent && (by.may_hit_siblings() || p_.lives.at(l.parent).what->keeps_children)) return;
    const auto healthy = v.at - since - by.wait->reset_after;
    if (healthy > soon + time_frozen(l, since, v.at) || (healthy > -soon && v.after == by.wait->wait_after(1)))
      in_a_row = 0;
    expected = by.wait->wait_after(++in_a_row);
    if (in_a_row > 2) mark("a long wait");
  }
  since = v.at + expected;
  require(v.after == expected, "it waits for another time than it should");
}

/// Each restart was decided, and each decision has its effect.
inline void model::check_restarts(const life& l) const {
  const bool kept = l.parent && p_.lives.at(l.parent).what->keeps_children;
  const bool alone = !l.parent || !strategy_for(l).may_hit_siblings();
  for (const entry& e : l.log) {
    if (e.what != entry::kind::restarting) continue;
    const std::uint64_t id = id_of(e.reason);
    if (id == 0) {
      require(kept, "restarted for " + e.reason.to_string());
      mark("restarted with its parent");
      continue;
    }
    const verdict* v = decided(l, id, directive::restart);
    if (v == nullptr && kept) {  // its failure was escalated, and its parent was restarted for it
      require(is_from_below(id), "restarted with its parent for a failure of another");
      mark("restarted with its parent");
      continue;
    }
    require(v != nullptr, "restarted without a decision");
    if (v->child != who_) mark("restarted for a sibling");
    require(v->at + v->after <= e.at + soon, "restarted before its time");
    const time_point due = v->at + v->after;
    // After a thaw, the turns that waited for it come first.
    const std::chrono::nanoseconds turns = p_.freezes.were_made() ? 10us : 0us;
    const auto held_up = time_frozen(l, due, e.at) + turns;
    if (alone && e.at > due + soon && held_up > turns) mark("a restart waited for a thaw");
    require(!alone || e.at <= due + held_up + soon, "restarted later than decided");
  }
  std::uint64_t decisions = 0;
  for (const verdict* v : verdicts_on(who_)) {
    if (v->what == directive::restart) ++decisions;
    if (v->what == directive::stop) require(l.end.has_value(), "it was to be stopped, and lives");
    if (v->what == directive::escalate && !l.parent) require(l.end.has_value(), "nobody can answer, and it lives");
    if (v->what == directive::escalate && l.parent) {
      const life& parent = p_.lives.at(l.parent);
      const auto& above = verdicts_on(l.parent);
      const bool heard = std::ranges::any_of(above, [&](const verdict* a) { return a->id == v->id; });
      const bool speechless = p_.speechless.contains({l.parent, v->id});
      const bool otherwise = parent.attempts > 1 && strategy_for(parent).may_hit_siblings();
      require(heard || parent.end || speechless || otherwise, "an escalation was lost");
    }
  }
  if (!alone || kept || l.attempts == 0) return;
  const std::uint64_t done = l.attempts - 1;
  require(done <= decisions, "restarted more often than decided");
  require(done >= decisions || (l.end && done + 1 == decisions), "decided, and not restarted");
}

/// A restart of all reaches every child, and answers all failures that are older.
inline void model::check_restarts_of_all(const life& l) const {
  const auto restarted = [&](time_point after, time_point until) {
    return std::ranges::any_of(
        l.log, [&](const entry& e) { return e.what == entry::kind::attempt && e.at > after && e.at <= until; });
  };
  for (const verdict& all : p_.verdicts) {
    if (all.parent != l.parent || all.what != directive::restart || !for_all(all)) continue;
    const auto [earliest, latest] = time_of(all);
    if (l.spawned >= earliest) continue;
    require(l.end || restarted(earliest, time_point::max()), "a restart of all has left it out");
    if (all.child == who_ || all.after.count() > 0) continue;
    for (const verdict* v : verdicts_on(who_)) {
      const fault& f = p_.faults.at(v->id);
      const auto said = p_.words.find({who_, v->id});
      if (f.who != who_ || said == p_.words.end() || said->second.at <= latest) continue;
      require(restarted(earliest, f.at), "a failure was answered that a restart of all had answered");
      mark("failed again after a restart of all");
    }
  }
}

inline void model::check_end(const life& l) const {
  if (!l.end) return;
  using kind = exit_reason::kind;
  const std::uint64_t id = id_of(*l.end);
  if (id != 0) {
    const bool own = decided(l, id, directive::stop) != nullptr;
    const bool top = !l.parent && (decided(l, id, directive::escalate) != nullptr || p_.faults.at(id).who == who_);
    return require(own || top, "it ended with a failure that was not to end it");
  }
  switch (l.end->what()) {
    case kind::normal: require(l.told || ancestor(l, &life::told), "nobody has told it to end"); break;
    case kind::shutdown: require(was_shut_down(l), "its parent had no reason to shut it down"); break;
    case kind::killed:
      require(
          l.killed || killed_at_its_deadline(who_) || ancestor(l, &life::killed) || ancestor_killed_at_its_deadline(l),
          "nobody has killed it");
      break;
    default: require(false, "ended with " + l.end->to_string());
  }
  if (l.killed || l.told || ancestor(l, &life::told) || ancestor(l, &life::killed) || l.end->what() == kind::shutdown)
    return;
  for (const verdict* v : verdicts_on(who_)) require(v->what != directive::stop, "it ended without its failure");
}

inline void model::check_mail(const life& l) const {
  const mail& m = l.letters;
  const std::uint64_t left = l.end ? 0 : m.stash.size();
  require(m.sent == m.consumed + m.dead + left,
          "of " + std::to_string(m.sent) + " letters " + std::to_string(m.consumed) + " were handled, " +
              std::to_string(m.dead) + " are dead, and " + std::to_string(left) + " stashed");
  require(l.end || l.what->mailbox.capacity != 0 || m.dead == 0, "it lives, and its mail is dead");
}

inline void model::check_watches(const life& l) const {
  if (l.end) return;
  for (const pid other : l.watching)
    require(!p_.lives.at(other).end, "nobody told it of the end of " + to_string(other));
}

/// No failure is forgotten, and none is answered twice.
inline void model::check_faults() {
  for (const auto& [id, f] : p_.faults) {
    if (f.quiet) continue;
    who_ = f.who;
    const life& l = p_.lives.at(f.who);
    const auto answers =
        std::ranges::count_if(verdicts_on(f.who), [&, n = id](const verdict* v) { return v->id == n; });
    const bool passed_on = decided(l, id, directive::escalate) != nullptr;
    require(answers <= (passed_on ? 2 : 1), "a failure was answered twice");
    require(answers == 1 || p_.speechless.contains({who_, id}) || l.end || l.attempts > f.instance,
            "failure " + std::to_string(id) + " was not answered");
  }
}

inline void model::check_questions() const {
  for (const auto& [number, q] : p_.questions) {
    const life& l = p_.lives.at(q.who);
    sim::require(l.end || l.living != q.instance, to_string(q.who) + ": a question has no answer");
  }
}

}  // namespace coppice::random_actors
