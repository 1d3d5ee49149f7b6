#pragma once
/// The log of a run, made ready for questions: who lived when, who was linked by whom, which nodes were cut off.
///
/// A place in the log is its index. Signals travel for a while, so that some questions have only the answer "possibly".
#include <limits>
#include <optional>
#include <set>

#include "random_log.hpp"

namespace coppice::random_programs {

using place = std::size_t;
inline constexpr place never = std::numeric_limits<place>::max();

struct lifetime {
  pid parent;
  place born = never;
  place end = never;
  bool crashed = false;  // with its node
  bool abandoned = false;
  unsigned reports = 0;               // of its end, by the event stream
  std::optional<exit_reason> reason;  // by the event stream; none: alive, or its node crashed before it could tell
  std::optional<place> own_end;
  std::vector<std::pair<place, bool>> traps;
  bool linked_at_birth = false;
  bool server = false;  // an object that was linked at birth: its parent's exits are orders, also when it traps

  [[nodiscard]] bool obeys(pid who) const { return server && who == parent; }
  [[nodiscard]] bool traps_at(place at) const {
    bool on = false;
    for (const auto& [since, value] : traps)
      if (since < at) on = value;
    return on;
  }
  [[nodiscard]] bool traps_between(place from, place to) const {
    return traps_at(from) ||
           std::ranges::any_of(traps, [&](const auto& t) { return t.second && t.first >= from && t.first < to; });
  }
  [[nodiscard]] bool traps_throughout(place from, place to) const {
    return traps_at(from) &&
           std::ranges::none_of(traps, [&](const auto& t) { return !t.second && t.first >= from && t.first < to; });
  }
};

/// What two processes did about their link.
struct link_step {
  enum class kind : std::uint8_t { link, unlink, birth };
  place at;
  pid by;
  kind what;
};
/// A link that holds for certain: the last step that made it, and the first since the last unlink, which perhaps made
/// the last one a step for nothing.
struct sure_link {
  pid by;
  place at;
  place since;
};

/// One note on its way from one process to another.
struct note_way {
  place sent = never;
  place got = never;
};

class history {
 public:
  explicit history(const std::vector<entry>& entries) : log{entries} {
    for (place i = 0; i < log.size(); ++i) read(i, log[i]);
  }

  const std::vector<entry>& log;
  std::map<pid, lifetime> lives;
  std::map<std::pair<pid, pid>, std::vector<link_step>> links;  // by the smaller pid first
  std::map<pid, std::set<pid>> partners;                        // who ever had to do with whom by links
  std::map<std::pair<pid, pid>, std::vector<note_way>> notes;   // by sender and receiver, in order of their numbers
  std::map<std::pair<pid, pid>, std::vector<place>> told;       // by receiver and sender: exits seen as messages
  std::map<pid, std::vector<place>> exits_to;                   // explicit signals
  place quiet = never;

  [[noreturn]] void refuse(std::string_view what, place at, pid a, pid b = {}) const;
  void expect(bool holds, std::string_view what, place at, pid a, pid b = {}) const {
    if (!holds) refuse(what, at, a, b);
  }

  [[nodiscard]] const entry& operator[](place at) const { return log[at]; }
  [[nodiscard]] const lifetime& life_of(pid who) const {
    static const lifetime unknown{};
    const auto found = lives.find(who);
    return found == lives.end() ? unknown : found->second;
  }
  [[nodiscard]] bool ended_before(pid who, place at) const { return life_of(who).end < at; }
  [[nodiscard]] bool lives_when_quiet(pid who) const {
    const lifetime& l = life_of(who);
    return l.born != never && l.end > quiet;
  }
  [[nodiscard]] const std::vector<link_step>& steps_of(pid a, pid b) const {
    static const std::vector<link_step> none;
    const auto found = links.find(std::minmax(a, b));
    return found == links.end() ? none : found->second;
  }
  /// Whether `who` ended for that reason before `at`, as far as is known.
  [[nodiscard]] bool ended_with(pid who, const exit_reason& why, place at) const {
    const lifetime& l = life_of(who);
    return l.end < at && !l.crashed && (!l.reason || *l.reason == why);
  }

  // -- nodes
  /// Nothing gets from `a` to `b` or back at that place.
  [[nodiscard]] bool blocked(node_id a, node_id b, place at) const;
  /// The runtime `here` may have been told after `since` that `there` is lost, or may have known it then.
  [[nodiscard]] bool may_know_of_loss(node_id here, node_id there, place since) const {
    return here != there && (blocked(here, there, since) || std::ranges::any_of(faults_, [&](place i) {
                               return i > since && is_loss(i, here, there);
                             }));
  }
  /// It was told so for certain. The event comes some time after the loss, but not before what was sent earlier.
  [[nodiscard]] bool knows_of_loss(node_id here, node_id there, place since) const {
    return std::ranges::any_of(faults_, [&](place i) {
      return i < quiet && is_loss(i, here, there) && log[i].number != 0 && pulses_[log[i].number - 1] > since;
    });
  }
  /// Signals between the two sent at `since` may have been lost.
  [[nodiscard]] bool may_lose(node_id a, node_id b, place since) const {
    if (a == b) return false;
    if (may_know_of_loss(a, b, since) || may_know_of_loss(b, a, since)) return true;
    return std::ranges::any_of(faults_, [&](place i) {
      return i > since && log[i].kind == what::crashed && (log[i].here == a || log[i].here == b);
    });
  }

  // -- signals
  /// When `to` is first seen to have received something that `from` sent after `since`: all before has arrived.
  [[nodiscard]] place arrived(pid from, pid to, place since) const {
    const auto found = notes.find({from, to});
    if (found == notes.end()) return never;
    place first = never;
    for (const note_way& n : found->second)
      if (n.sent != never && n.sent > since) first = std::min(first, n.got);
    return first;
  }
  /// Whether `p` could have had a link to `q` at that place.
  [[nodiscard]] bool possibly_linked(pid p, pid q, place at) const;
  /// The link of the two as seen when all is quiet; none: it is gone, or nobody can say.
  [[nodiscard]] std::optional<sure_link> certain_link(pid a, pid b) const;
  [[nodiscard]] bool certainly_not_linked(pid a, pid b) const;

 private:
  void read(place at, const entry& e);
  void read_end(place at, const entry& e);
  void add_link(place at, pid by, pid other, link_step::kind kind) {
    links[std::minmax(by, other)].push_back({at, by, kind});
    partners[by].insert(other);
    partners[other].insert(by);
  }
  note_way& way(pid from, pid to, std::uint64_t number) {
    auto& all = notes[{from, to}];
    if (all.size() < number) all.resize(number);
    return all[number - 1];
  }
  [[nodiscard]] bool is_loss(place i, node_id here, node_id there) const {
    return log[i].kind == what::lost && log[i].here == here && log[i].there == there;
  }
  std::vector<place> faults_;
  std::vector<place> pulses_;
};

/// What belongs to the story of one process, or of two with each other.
inline bool tells_of(const entry& e, pid a, pid b) {
  const bool of_one = e.who == a || (b && e.who == b);
  const bool of_other = e.other == a || (b && e.other == b);
  switch (e.kind) {
    case what::looked_up: return false;
    case what::spawned:
    case what::own_end:
    case what::gone:
    case what::ended:
    case what::abandoned:
    case what::trapped: return of_one || of_other;
    default: break;
  }
  if (e.here) return a.node() != b.node() && (e.here == a.node() || e.here == b.node());
  return b ? of_one && of_other : of_one || of_other;
}

inline void history::refuse(std::string_view what, place at, pid a, pid b) const {
  std::string text{what};
  text += " (" + to_string(a) + (b ? " and " + to_string(b) : "") + ")\n";
  std::vector<std::string> lines;
  for (place i = 0; i < log.size(); ++i)
    if (i == at || tells_of(log[i], a, b)) lines.push_back(line_of(i, log[i]));
  const std::size_t first = lines.size() > 60 ? lines.size() - 60 : 0;
  for (std::size_t i = first; i < lines.size(); ++i) text += lines[i] + "\n";
  throw sim::violation{text};
}

// ---- reading

inline void history::read_end(place at, const entry& e) {
  switch (e.kind) {
    case what::gone:
    case what::abandoned: {
      lifetime& l = lives[e.who];
      if (l.end == never) {
        l.end = at;
        l.abandoned = e.kind == what::abandoned;
      } else {
        expect(l.abandoned || l.crashed, "a process ended twice", at, e.who);
      }
      return;
    }
    case what::ended: {
      lifetime& l = lives[e.who];
      expect(l.end != never, "an end was reported of a process that lives", at, e.who);
      expect(++l.reports == 1, "an end was reported twice", at, e.who);
      l.reason = e.reason;
      return;
    }
    case what::crashed:
      faults_.push_back(at);
      for (auto& [who, l] : lives)
        if (who.node() == e.here && l.end == never) {
          l.end = at;
          l.crashed = true;
        }
      return;
    default: return;
  }
}

inline void history::read(place at, const entry& e) {
  switch (e.kind) {
    case what::spawned: {
      lifetime& l = lives[e.other];
      expect(l.born == never, "a pid was given twice", at, e.other);
      l.parent = e.who;
      l.born = at;
      l.linked_at_birth = e.flag;
      l.server = e.server;
      if (e.flag) add_link(at, e.who, e.other, link_step::kind::birth);
      return;
    }
    case what::own_end: lives[e.who].own_end = at; return;
    case what::gone:
    case what::abandoned:
    case what::ended:
    case what::crashed: return read_end(at, e);
    case what::trapped: lives[e.who].traps.emplace_back(at, e.flag); return;
    case what::sent: way(e.who, e.other, e.number).sent = at; return;
    case what::got: {
      note_way& n = way(e.other, e.who, e.number);
      expect(n.sent != never, "a note was received that nobody sent", at, e.who, e.other);
      expect(n.got == never, "a note was received twice", at, e.who, e.other);
      n.got = at;
      return;
    }
    case what::linked:
      if (!e.flag) add_link(at, e.who, e.other, link_step::kind::link);
      return;
    case what::unlinked: add_link(at, e.who, e.other, link_step::kind::unlink); return;
    case what::told: told[{e.who, e.other}].push_back(at); return;
    case what::exit_sent: exits_to[e.other].push_back(at); return;
    case what::stray: refuse("a message came that was never sent: " + e.text, at, e.who);
    case what::cut:
    case what::healed:
    case what::up:
    case what::lost: faults_.push_back(at); return;
    case what::pulse: pulses_.push_back(at); return;
    case what::quiet: quiet = at; return;
    default: return;
  }
}

// ---- questions

inline bool history::blocked(node_id a, node_id b, place at) const {
  bool cut = false;
  bool a_up = false;
  bool b_up = false;
  for (const place i : faults_) {
    if (i >= at) break;
    const entry& e = log[i];
    if (e.kind == what::cut && ((e.here == a && e.there == b) || (e.here == b && e.there == a))) cut = true;
    if (e.kind == what::healed) cut = false;
    if (e.kind != what::up && e.kind != what::crashed) continue;
    if (e.here == a) a_up = e.kind == what::up;
    if (e.here == b) b_up = e.kind == what::up;
  }
  return cut || !a_up || !b_up;
}

inline bool history::possibly_linked(pid p, pid q, place at) const {
  place unlinked = 0;
  bool ever_unlinked = false;
  for (const link_step& s : steps_of(p, q))
    if (s.at < at && s.by == p && s.what == link_step::kind::unlink) {
      unlinked = s.at;
      ever_unlinked = true;
    }
  for (const link_step& s : steps_of(p, q)) {
    if (s.at >= at || s.what == link_step::kind::unlink) continue;
    if (!ever_unlinked || s.at > unlinked) return true;
    // Made by the other side before our unlink: its signal may have arrived only afterwards.
    if (s.by == q && s.what == link_step::kind::link && arrived(q, p, s.at) > unlinked) return true;
  }
  return false;
}

inline std::optional<sure_link> history::certain_link(pid a, pid b) const {
  std::optional<sure_link> last;
  std::set<pid> unlinkers;
  for (const link_step& s : steps_of(a, b)) {
    if (s.at > quiet) break;
    if (s.what == link_step::kind::unlink) {
      unlinkers.insert(s.by);
      last.reset();
      continue;
    }
    // An unlink of the other side may still be on its way, and then wins.
    const pid other = s.by == a ? b : a;
    if (!unlinkers.contains(other)) last = sure_link{s.by, s.at, last ? last->since : s.at};
  }
  return last;
}

inline bool history::certainly_not_linked(pid a, pid b) const {
  bool unlinked = true;
  std::set<pid> linkers;
  for (const link_step& s : steps_of(a, b)) {
    if (s.at > quiet) break;
    const pid other = s.by == a ? b : a;
    if (s.what != link_step::kind::unlink) {
      if (s.what == link_step::kind::link) linkers.insert(s.by);
      unlinked = false;
    } else {
      unlinked = !linkers.contains(other);  // else its link may have come after our unlink, which was nothing then
    }
  }
  return unlinked;
}

}  // namespace coppice::random_programs
