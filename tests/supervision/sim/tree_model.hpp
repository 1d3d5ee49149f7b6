#pragma once
/// Holds what was seen of one supervisor against the reference. From outside it can't be seen when a call is served or
/// a timer comes, so all states are followed that the supervisor may be in; when none is left, it did what it must not.
#include <unordered_map>

#include "tree_calls.hpp"

namespace coppice::random_trees {

class model {
 public:
  model(const program& p, pid sup) : program_{p}, sup_{sup}, mine_{*p.find(sup)} {
    state first{.flags = mine_.spec};
    for (const child_spec& c : mine_.spec->children) {
      const std::size_t number = first.add(c).number;
      first.todo.push_back({.what = step::kind::start, .child = number, .because = step::why::first});
    }
    states_.push_back(std::move(first));
    if (const auto found = p.published.find(sup); found != p.published.end()) published_ = found->second;
  }

  void run() {
    for (const entry& e : program_.log) {
      if (e.what == entry::kind::ended ? e.who != sup_ : e.what != entry::kind::quiet && e.sup != sup_) continue;
      if (e.what == entry::kind::quiet && !e.alive->contains(sup_)) continue;
      take(e);
    }
    sim::require(said_ == published_.size(), about("it published more than it logged"));
  }

 private:
  [[nodiscard]] std::string about(const std::string& what) const {
    return "supervisor " + mine_.what->id + " " + to_string(sup_) + ": " + what;
  }
  void take(const entry& e) {
    if (e.what == entry::kind::sent) return sent_.push_back(e.number);
    exit_reason reason = e.reason;
    if (e.what == entry::kind::told) reason = check_event(e);
    std::vector<state> next;
    for (const state& s : reachable(e)) {
      switch (e.what) {
        case entry::kind::begin: begins(s, e, next); break;
        case entry::kind::told: says(s, e, reason, next); break;
        case entry::kind::answered: answers(s, e, next); break;
        case entry::kind::ended: ends(s, e, next); break;
        default: is_quiet(s, e, next); break;
      }
    }
    if (next.empty()) throw sim::violation{about(to_string(e) + " is not what the reference says\n" + describe(e))};
    states_.clear();
    std::unordered_multimap<std::uint64_t, std::size_t> known;  // by digest
    for (state& s : next) {
      if (e.what == entry::kind::begin || e.what == entry::kind::told) {
        s.last = e.at;
        s.starts = e.what == entry::kind::begin;
      }
      const std::uint64_t digest = s.digest();
      const auto [first, last] = known.equal_range(digest);
      if (std::any_of(first, last, [&](const auto& at) { return states_[at.second] == s; })) continue;
      known.emplace(digest, states_.size());
      states_.push_back(std::move(s));
    }
  }

  /// It is the same that was published, and what it says of the process is true.
  exit_reason check_event(const entry& e) {
    sim::require(said_ < published_.size(), about("it logged what it did not publish: " + to_string(e)));
    const supervisor_event& same = published_[said_++];
    sim::require(same.what == e.said && same.child == e.id && same.who == e.who,
                 about("it published something else: " + to_string(e)));
    const attempt* a = program_.find(e.who);
    if (e.said != event::exited && e.said != event::stopped && e.said != event::abandoned) return same.reason;
    if (e.said == event::stopped && same.reason.what() == exit_reason::kind::error) mark("a death was absorbed");
    sim::require(a != nullptr && a->sup == sup_, about("a process that is not its own: " + to_string(e)));
    sim::require(!e.still_alive, about("it is still alive: " + to_string(e) + "\n" + describe(e)));
    const bool unseen = a->unlinked && same.reason == exit_reason::noproc();
    if (unseen) mark("an unlinked child had ended unseen");
    sim::require(unseen || (a->end && same.reason == *a->end),
                 about(to_string(e) + " with the reason " + same.reason.to_string() + ", but it ended with " +
                       (a->end ? a->end->to_string() : "nothing") + "\n" + describe(e)));
    const bool killed = e.said == event::stopped && same.reason == exit_reason::killed();
    sim::require(!killed || may_be_killed(*a), about("it had no time to end as it was told: " + to_string(e)));
    return same.reason;
  }
  /// A child has the time of its spec before it is killed; time in which it was frozen is lost to it. A supervisor that
  /// was frozen too may have told it earlier.
  [[nodiscard]] bool may_be_killed(const attempt& a) const {
    const bool is_supervisor = a.what->what == plant::kind::supervisor;
    const shutdown how =
        a.what->how.shutdown.value_or(is_supervisor ? shutdown::infinity() : shutdown{std::chrono::seconds{5}});
    if (a.killed || how.is_brutal()) return true;
    if (how.is_infinite()) return false;
    if (a.stuck || is_supervisor || a.what->ignores_exits || a.what->lingers + 1ms >= how.time()) return true;
    const auto waited = how.time() + program_.freezes.time_frozen(sup_, {}, a.ended);
    const auto held_up = program_.freezes.time_frozen(a.who, a.ended - waited, a.ended);
    if (held_up.count() > 0) mark("killed because it was frozen");
    return a.what->lingers + held_up + 1ms >= how.time();
  }

  /// Where it can be by now, with what can't be seen.
  [[nodiscard]] std::vector<state> reachable(const entry& e) const {
    const bool begins = e.what == entry::kind::begin ||
                        (e.what == entry::kind::told &&
                         (e.said == event::stopped || e.said == event::abandoned || e.said == event::gave_up));
    std::vector<state> all = states_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].idle()) continue;
      if (all[i].calls < sent_.size()) {
        const std::size_t number = sent_[all[i].calls];
        state served = serve(all[i], program_.calls[number], number);
        all.push_back(std::move(served));
      }
      if (begins) begin_by_itself(state{all[i]}, e, all);
    }
    return all;
  }
  void begin_by_itself(const state& s, const entry& e, std::vector<state>& into) const {
    for (const kid& k : s.kids) {
      if (k.is == kid::status::waiting && k.due_low <= e.at && !too_late(s, k, e)) {
        state next = s;
        restart_group(next, k.number);
        next.go_on();
        into.push_back(std::move(next));
      }
      // A retry comes behind the calls that were made before.
      if (k.is == kid::status::retrying && !k.retries.empty() && k.retries.front() <= s.calls) {
        state next = s;
        std::vector<std::size_t>& left = next.at(k.number).retries;
        left.erase(left.begin());
        mark("tried again");
        const bool at_once = e.what == entry::kind::begin || e.said == event::gave_up;
        with_one_more(next, k.number, {at_once ? e.at : s.last, e.at}, into,
                      [&](state& n) { restart_group(n, k.number); });
      }
    }
    if (e.what == entry::kind::told && e.said != event::gave_up) {
      state next = s;
      next.ends = state::end::told;
      stop_all(next);
      into.push_back(std::move(next));
    }
  }

  /// A supervisor that had nothing else to do is on time. How long a start takes that comes to nothing is not known.
  [[nodiscard]] bool too_late(const state& s, const kid& k, const entry& e) const {
    if (e.what != entry::kind::begin || s.starts || mine_.stuck) return false;
    const time_point due = std::max(k.due_high, s.last);
    const auto held_up = program_.freezes.time_frozen(sup_, due, e.at);
    if (e.at > due + 1ms && held_up.count() > 0) mark("a restart waited for a thaw");
    return e.at > due + held_up + 1ms;
  }

  /// The failure of such a start is an error of the call, without an event.
  [[nodiscard]] static bool by_call(const step& start) {
    return start.because == step::why::add || start.because == step::why::by_hand;
  }
  void begins(state s, const entry& e, std::vector<state>& into) const {
    if (s.todo.empty() || s.todo.front().what != step::kind::start) return;
    step& now = s.todo.front();
    const kid& k = s.at(now.child);
    const attempt& a = program_.attempts[e.number];
    if (k.spec->id != e.id || static_cast<const tree_recipe&>(k.spec->start.how()).what() != a.what) return;
    now.what = step::kind::starting;
    now.number = e.number;
    const bool ignored = a.said == attempt::word::ignore;
    if (ignored) start_is_ignored(s, into);
    if (ignored && k.spec->start_within == forever) return;
    const bool abandoned = a.end == exit_reason::abandoned();
    if (a.started || !by_call(now) || abandoned) return into.push_back(std::move(s));
    start_fails(std::move(s), e.at, sent_.size(), into);
  }

  void says(state s, const entry& e, const exit_reason& reason, std::vector<state>& into) const {
    if (e.said == event::exited) {
      if (!s.idle()) return;
      const auto found = std::ranges::find_if(
          s.kids, [&](const kid& k) { return k.is == kid::status::running && k.who == e.who && k.spec->id == e.id; });
      if (found != s.kids.end()) child_ends(s, found->number, reason, e.at, into);
      return;
    }
    if (s.todo.empty()) return;
    const step now = s.todo.front();
    if (now.what == step::kind::say) {
      // A temporary child is forgotten before the supervisor says that it ends because of it.
      if (now.says != e.said || (e.said != event::shut_down && s.at(now.child).spec->id != e.id)) return;
      s.todo.pop_front();
      s.go_on();
      return into.push_back(std::move(s));
    }
    kid& k = s.at(now.child);
    if (k.spec->id != e.id) return;
    if (now.what == step::kind::starting) return says_of_start(s, e, into);
    if (now.what != step::kind::stop || (e.said != event::stopped && e.said != event::abandoned) || k.who != e.who)
      return;
    if (e.said == event::abandoned && !s.flags->abandon_after) return;
    if (e.said == event::abandoned) mark("abandoned");
    k.go_down();
    if (now.leader != 0) k.follow(now.leader);
    s.todo.pop_front();
    s.go_on();
    into.push_back(std::move(s));
  }
  void says_of_start(state s, const entry& e, std::vector<state>& into) const {
    const step now = s.todo.front();
    const attempt& a = program_.attempts[now.number];
    if (e.said == event::start_failed) return start_fails(std::move(s), e.at, sent_.size(), into);
    if (e.said == event::abandoned) {
      if (!s.flags->abandon_after || a.who != e.who) return;
      if (by_call(now)) return start_fails(std::move(s), e.at, sent_.size(), into);
      return into.push_back(std::move(s));
    }
    if (e.said != event::started && e.said != event::restarted) return;
    kid& k = s.at(now.child);
    if (a.who != e.who || (k.ran && e.said != event::restarted)) return;
    k.is = kid::status::running;
    k.who = e.who;
    k.since = e.at;
    k.ran = true;
    s.todo.pop_front();
    if (now.call && now.because != step::why::again) s.replies.emplace_back(*now.call, answer{.who = e.who});
    s.go_on();
    into.push_back(std::move(s));
  }

  void answers(state s, const entry& e, std::vector<state>& into) const {
    const answer& got = *program_.calls[e.number].got;
    if (got.failed == error_code{errc::exited} || got.failed == error_code{errc::noproc}) {
      sim::require(mine_.end.has_value(), about("a call was answered as if it had ended"));
      return into.push_back(std::move(s));
    }
    const auto found = std::ranges::find_if(s.replies, [&](const auto& r) { return r.first == e.number; });
    if (found == s.replies.end() || !agrees(found->second, got)) return;
    s.replies.erase(found);
    into.push_back(std::move(s));
  }

  void ends(state s, const entry& e, std::vector<state>& into) const {
    if (violent(e.reason)) return into.push_back(std::move(s));
    if (!s.todo.empty()) return;
    const bool nobody = std::ranges::none_of(s.kids, [](const kid& k) { return k.is == kid::status::running; });
    if (s.ends == state::end::no && nobody) s.ends = state::end::told;
    switch (s.ends) {
      case state::end::no: return;
      case state::end::own:
        if (e.reason != exit_reason::shutdown()) return;
        break;
      case state::end::no_start:
        if (e.reason.what() != exit_reason::kind::shutdown) return;
        break;
      case state::end::told:
        if (!was_told(e.reason)) return;
    }
    into.push_back(std::move(s));
  }
  /// Whether its parent has asked it to end, or has ended itself.
  [[nodiscard]] bool was_told(const exit_reason& why) const {
    const attempt* parent = program_.find(mine_.sup);
    if (parent == nullptr) return true;  // the root: checked where it is told
    if (parent->end && *parent->end == why) return true;
    if (why != exit_reason::shutdown()) return false;
    if (parent->end && violent(*parent->end)) return true;  // while it stopped this one
    return std::ranges::any_of(program_.log, [&](const entry& e) {
      return e.what == entry::kind::told && (e.said == event::stopped || e.said == event::abandoned) && e.who == sup_;
    });
  }

  void is_quiet(state s, const entry& e, std::vector<state>& into) const {
    if (!s.idle() || s.calls != sent_.size() || !s.replies.empty()) return;
    std::set<pid> running;
    for (kid& k : s.kids) {
      if (k.is == kid::status::following && s.at(k.leader).is != kid::status::waiting) return;
      if (k.is == kid::status::retrying || (k.is == kid::status::waiting && k.due_high < e.at)) return;
      k.retries.clear();
      if (k.is != kid::status::running) continue;
      const attempt* a = program_.find(k.who);
      if (!e.alive->contains(k.who) && !a->unlinked) return;
      running.insert(k.who);
    }
    for (const attempt& a : program_.attempts)
      if (a.sup == sup_ && e.alive->contains(a.who) && !running.contains(a.who)) return;
    into.push_back(std::move(s));
  }

  [[nodiscard]] static std::string to_string(const entry& e);
  static std::string to_string(pid who) { return coppice::to_string(who); }
  [[nodiscard]] std::string describe(const entry& last) const;

  const program& program_;
  pid sup_;
  const attempt& mine_;
  std::vector<supervisor_event> published_;
  std::size_t said_ = 0;
  std::vector<std::size_t> sent_;
  std::vector<state> states_;
};

inline std::string model::to_string(const entry& e) {
  const std::string at = std::to_string(e.at.time_since_epoch().count()) + " ";
  const std::string of = " '" + e.id + "'" + (e.who ? " " + to_string(e.who) : "");
  switch (e.what) {
    case entry::kind::begin: return at + "begins to start" + of;
    case entry::kind::told: return at + std::string{coppice::to_string(e.said)} + of;
    case entry::kind::sent: return at + "is asked " + std::to_string(e.number);
    case entry::kind::answered: return at + "answers " + std::to_string(e.number);
    case entry::kind::ended: return at + "ends: " + e.reason.to_string();
    case entry::kind::quiet: break;
  }
  return at + "does nothing more";
}

inline std::string model::describe(const entry& last) const {
  static constexpr std::array status{"running", "down", "waiting", "retrying", "following"};
  static constexpr std::array steps{"stop", "forget", "start", "starting", "say", "reply"};
  std::string text = "  " + std::string{coppice::to_string(mine_.spec->strategy)};
  for (const state& s : states_) {
    text += "\n  either";
    for (const kid& k : s.kids)
      text += " " + k.spec->id + ":" + std::string{coppice::to_string(k.spec->restart)} + ":" +
              status.at(std::to_underlying(k.is)) + (k.is == kid::status::running ? to_string(k.who) : "");
    text += ", restarts " + std::to_string(s.restarts.size()) + " of " + std::to_string(s.flags->limit.restarts) +
            ", served " + std::to_string(s.calls) + " of " + std::to_string(sent_.size()) + "; next:";
    for (const step& x : s.todo) text += std::string{" "} + steps.at(std::to_underlying(x.what));
  }
  text += "\n  log:";
  std::vector<std::string> lines;
  for (const entry& e : program_.log) {
    if (e.sup == sup_ || e.what == entry::kind::quiet) lines.push_back(to_string(e));
    if (&e == &last) break;
  }
  const std::size_t first = lines.size() > 60 ? lines.size() - 60 : 0;
  for (std::size_t i = first; i < lines.size(); ++i) text += "\n    " + lines[i];
  return text;
}

}  // namespace coppice::random_trees
