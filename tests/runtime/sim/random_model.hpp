#pragma once
/// What must hold of a log, written from the rules of Erlang for processes, links, monitors and exit signals, and not
/// from the code: ends, notes, links and monitors. Names, calls and timers are in random_model_more.hpp.
#include "random_history.hpp"

namespace coppice::random_programs {

using kind = exit_reason::kind;

// ---- 1. every end has one reason, and a cause

/// Signals of `from` with that reason that `to` may have received before `at` and has not seen as a message.
inline bool exit_unaccounted(const history& h, pid from, pid to, const exit_reason& why, place at) {
  std::size_t sent = 0;
  std::size_t seen = 0;
  for (const place i : h.exits_to.at(to))
    if (i < at && h[i].who == from && h[i].reason == why) ++sent;
  if (const auto found = h.told.find({to, from}); found != h.told.end())
    for (const place i : found->second)
      if (i < at && !h[i].flag && h[i].reason == why) ++seen;
  return sent > seen;
}

inline bool killed_by_signal(const history& h, pid who, const lifetime& l) {
  const auto found = h.exits_to.find(who);
  if (found == h.exits_to.end()) return false;
  const bool traps = l.traps_at(l.end);
  return std::ranges::any_of(found->second, [&](place i) {
    const entry& e = h[i];
    if (i >= l.end) return false;
    if (e.reason.what() == kind::kill) {
      if (*l.reason != exit_reason::killed()) return false;
      if (traps) mark("killed while trapping");
      return true;
    }
    if (*l.reason != e.reason) return false;
    if (traps && l.obeys(e.who)) {
      mark("a server that traps obeyed its parent");
      return true;
    }
    if (traps) return false;
    if (e.reason.what() == kind::normal) {
      if (e.who == who) mark("ended by its own normal signal");
      return e.who == who;
    }
    return exit_unaccounted(h, e.who, who, e.reason, l.end);
  });
}

[[nodiscard]] inline bool link_may_end(const history& h, pid who, const lifetime& l, pid peer);

/// Whether `who` can have been ended only by a signal that `by` sent after `since`: then all that `by` told it up to
/// `since` had arrived.
inline bool ended_only_by(const history& h, pid who, pid by, place since) {
  const lifetime& l = h.life_of(who);
  const auto signals = h.exits_to.find(who);
  if (!l.reason || l.own_end || l.abandoned || l.crashed || signals == h.exits_to.end()) return false;
  bool any = false;
  for (const place i : signals->second) {
    const entry& e = h[i];
    const exit_reason ends_with = e.reason.what() == kind::kill ? exit_reason::killed() : e.reason;
    if (i >= l.end || ends_with != *l.reason) continue;
    if (e.who != by || i < since) return false;
    any = true;
  }
  const auto peers = h.partners.find(who);
  return any && (peers == h.partners.end() ||
                 std::ranges::none_of(peers->second, [&](pid peer) { return link_may_end(h, who, l, peer); }));
}

/// Whether `p` may have been told over a link before `at` that there is no process `q`.
inline bool link_finds_nobody(const history& h, pid p, pid q, place at) {
  return h.ended_before(q, at) && std::ranges::any_of(h.steps_of(p, q), [&](const link_step& s) {
           return s.at < at && s.by == p && s.what == link_step::kind::link && h.arrived(p, q, s.at) == never &&
                  !ended_only_by(h, q, p, s.at);
         });
}
/// Either side may have noticed, and told the other one.
inline bool link_finds_no_connection(const history& h, pid p, pid q, place at) {
  return p.node() != q.node() && std::ranges::any_of(h.steps_of(p, q), [&](const link_step& s) {
           return s.at < at && s.what != link_step::kind::unlink && h.may_lose(p.node(), q.node(), s.at);
         });
}
/// Whether the link from `q` can have sent `why` to `p` before `at`.
inline bool link_may_say(const history& h, pid p, pid q, const exit_reason& why, place at) {
  if (h.ended_with(q, why, at)) return true;
  if (why == exit_reason::noproc() && link_finds_nobody(h, p, q, at)) return true;
  return why == exit_reason::noconnection() && link_finds_no_connection(h, p, q, at);
}

/// Whether the link to `peer` may have ended `who`.
inline bool link_may_end(const history& h, pid who, const lifetime& l, pid peer) {
  const bool traps = l.traps_at(l.end);
  if (traps ? !l.obeys(peer) : l.reason->what() == kind::normal) return false;
  return h.possibly_linked(who, peer, l.end) && link_may_say(h, who, peer, *l.reason, l.end);
}

inline bool killed_by_link(const history& h, pid who, const lifetime& l) {
  const auto found = h.partners.find(who);
  if (found == h.partners.end()) return false;
  return std::ranges::any_of(found->second, [&](pid peer) {
    if (!link_may_end(h, who, l, peer)) return false;
    if (l.reason->what() == kind::kill) mark("died of the kill that a peer gave as its own reason");
    if (l.reason->what() == kind::killed) mark("died of a killed peer");
    return true;
  });
}

inline void check_end(const history& h, pid who, const lifetime& l) {
  if (l.own_end) {
    const entry& said = h[*l.own_end];
    const bool same = said.flag ? l.reason->what() == kind::error && l.reason->text() == said.reason.text()
                                : *l.reason == said.reason;
    h.expect(same, "a process ended otherwise than it said: " + l.reason->to_string(), l.end, who);
    return;
  }
  if (l.abandoned) {
    mark("abandoned");
    h.expect(*l.reason == exit_reason::abandoned(), "an abandoned process ended otherwise", l.end, who);
    return;
  }
  const bool justified = killed_by_signal(h, who, l) || killed_by_link(h, who, l);
  h.expect(justified, "a process ended without a cause: " + l.reason->to_string(), l.end, who);
}

inline void check_ends(const history& h) {
  for (const auto& [who, l] : h.lives) {
    h.expect(l.born != never, "a process was never spawned", l.end, who);
    if (l.reason) check_end(h, who, l);
    // The event stream of a node that crashed may not have had the time to tell.
    const bool node_lived =
        std::ranges::none_of(h.log, [&](const entry& e) { return e.kind == what::crashed && e.here == who.node(); });
    if (l.end != never && node_lived) h.expect(l.reports == 1, "an end was not reported", l.end, who);
  }
}

/// Signals that must have been received: over no bad connection, to a process that lives to the end.
inline void check_signals_arrive(const history& h) {
  for (const auto& [to, places] : h.exits_to) {
    if (!h.lives_when_quiet(to)) continue;
    std::map<std::pair<pid, std::string>, std::size_t> sent;
    for (const place i : places) {
      const entry& e = h[i];
      if (i > h.quiet) continue;
      if (h.life_of(to).obeys(e.who)) {
        const bool trapped = h.life_of(to).traps_throughout(i, h.quiet);
        h.expect(!trapped && e.reason.what() == kind::normal, "a server survived its parent's order", i, to, e.who);
        continue;
      }
      if (e.reason.what() == kind::normal) {
        const bool trapped = h.life_of(to).traps_between(i, h.quiet);
        h.expect(e.who != to || trapped, "a process survived its own normal signal", i, to);
        if (!h.life_of(to).traps_throughout(i, h.quiet)) continue;  // else it is told, whoever sent it
      }
      if (e.who && h.may_lose(e.who.node(), to.node(), i)) continue;
      h.expect(e.reason.what() != kind::kill, "a process survived a kill", i, to, e.who);
      ++sent[{e.who, e.reason.to_string()}];
    }
    for (const auto& [what_sent, times] : sent) {
      std::size_t seen = 0;
      if (const auto found = h.told.find({to, what_sent.first}); found != h.told.end())
        for (const place i : found->second)
          if (!h[i].flag && h[i].reason.to_string() == what_sent.second) ++seen;
      h.expect(seen >= times, "an exit signal was lost: " + what_sent.second, h.quiet, to, what_sent.first);
    }
  }
}

// ---- 2. notes arrive in order, once, without gaps

inline void check_notes_of(const history& h, pid from, pid to, const std::vector<note_way>& all) {
  const bool here = !from || from.node() == to.node();
  const bool stays = h.lives_when_quiet(to);
  place last = 0;
  place missing = never;  // the first that was sent and not received
  for (const note_way& n : all) {
    if (n.got == never) {
      // A note that nobody had the time to receive does not count as lost.
      if (n.sent < h.quiet && stays)
        h.expect(!here && h.may_lose(from.node(), to.node(), n.sent), "a note was lost", n.sent, to, from);
      missing = std::min(missing, n.sent);
      continue;
    }
    h.expect(n.got > n.sent, "a note was received before it was sent", n.got, to, from);
    h.expect(n.got >= last, "a note overtook another one", n.got, to, from);
    last = n.got;
    if (missing == never) continue;
    h.expect(!here && h.may_lose(from.node(), to.node(), missing), "a note is missing among others", n.got, to, from);
    mark("a note was lost with its connection");
  }
}

/// `from` had sent all this before it sent the signal that `to` saw at `seen`, ready to take anything.
inline void check_nothing_overtaken(const history& h, pid from, pid to, place sent_before, place seen) {
  if (!h[seen].full || (from && from.node() != to.node())) return;
  const auto found = h.notes.find({from, to});
  if (found == h.notes.end()) return;
  for (const note_way& n : found->second)
    if (n.sent < sent_before) h.expect(n.got < seen, "a signal overtook a note", seen, to, from);
}

inline void check_notes(const history& h) {
  for (const auto& [ends, all] : h.notes) check_notes_of(h, ends.first, ends.second, all);
  for (place i = 0; i < h.log.size(); ++i) {
    const entry& e = h[i];
    if (e.kind == what::down || (e.kind == what::told && e.flag)) {
      check_nothing_overtaken(h, e.other, e.who, h.life_of(e.other).end, i);
    } else if (e.kind == what::told) {
      for (const place s : h.exits_to.at(e.who))
        if (h[s].who == e.other && h[s].reason == e.reason) {
          check_nothing_overtaken(h, e.other, e.who, s, i);
          break;
        }
    }
  }
}

// ---- 3. links

inline void check_told_by_link(const history& h, place at) {
  const entry& e = h[at];
  const pid p = e.who;
  const pid q = e.other;
  h.expect(!h.life_of(p).obeys(q), "a server was told of its parent's end", at, p, q);
  h.expect(link_may_say(h, p, q, e.reason, at), "a link told what is not so: " + e.reason.to_string(), at, p, q);
  const bool lost = e.reason == exit_reason::noconnection();
  const place source = h.ended_before(q, at) && !lost ? h.life_of(q).end : 0;
  h.expect(h.life_of(p).traps_between(source, at), "an exit became a message although it was not trapped", at, p, q);
  // It may have been taken in by then and only looked at now.
  bool linked = h.possibly_linked(p, q, at);
  for (const link_step& s : h.steps_of(p, q))
    if (s.by == p && s.what == link_step::kind::unlink && s.at > source && s.at < at)
      linked = linked || h.possibly_linked(p, q, s.at);
  h.expect(linked, "an exit came over a link that was not there", at, p, q);
  if (e.reason == exit_reason::noproc() && !h.ended_with(q, e.reason, at)) mark("link: noproc");
  if (e.reason == exit_reason::noconnection() && p.node() != q.node()) mark("link: noconnection");
  if (e.reason.what() == kind::normal)
    mark(p.node() == q.node() ? "a normal end was trapped" : "a normal end was trapped on another node");
  if (e.reason.what() == kind::kill) mark("a peer's own kill was trapped");
  if (e.reason.what() == kind::killed) mark("a killed peer was survived");
}

inline void check_told(const history& h, pid p, pid q, const std::vector<place>& all) {
  std::size_t links = 0;
  std::size_t over_link = 0;
  std::size_t truth = 0;
  for (const link_step& s : h.steps_of(p, q)) links += s.what != link_step::kind::unlink ? 1U : 0U;
  for (const place i : all) {
    if (h[i].flag) {
      check_told_by_link(h, i);
      ++over_link;
      if (h.ended_with(q, h[i].reason, i)) ++truth;
      continue;
    }
    const auto sent = h.exits_to.find(p);
    const bool known = sent != h.exits_to.end() && exit_unaccounted(h, q, p, h[i].reason, i);
    h.expect(known && h[i].reason.what() != kind::kill, "an exit signal came that nobody sent", i, p, q);
    if (h[i].reason.what() == kind::normal) mark("a normal signal was trapped");
  }
  h.expect(over_link <= links, "more exits over a link than links", all.back(), p, q);
  const exit_reason& why = h.life_of(q).reason.value_or(exit_reason{});
  if (why != exit_reason::noproc() && why != exit_reason::noconnection() && h.life_of(q).reason)
    h.expect(truth <= 1, "one end was told twice", all.back(), p, q);
}

/// Of a pair linked for certain, who lives on was told of the other's end.
inline void check_bereaved(const history& h, pid p, pid q) {
  const auto link = h.certain_link(p, q);
  if (!link || !h.lives_when_quiet(p) || h.life_of(q).born == never) return;
  const bool mine = link->by == p;
  const bool gone = h.ended_before(q, h.quiet);
  const bool lost = p.node() != q.node() && h.knows_of_loss(p.node(), q.node(), link->at);
  std::size_t times = 0;
  if (const auto found = h.told.find({p, q}); found != h.told.end())
    times = static_cast<std::size_t>(
        std::ranges::count_if(found->second, [&](place i) { return h[i].flag && i > link->at; }));
  if (times != 0 || (!gone && !lost)) return;
  if (!mine && h.may_lose(p.node(), q.node(), link->since)) return;  // perhaps the link never came
  // Only a normal end, and only to who did not trap when it came, is nothing.
  const bool normal = h.life_of(q).reason == exit_reason::normal();
  const bool ignored = normal && !h.life_of(p).traps_throughout(h.life_of(q).end, h.quiet);
  if (ignored) return mark("a normal end was ignored");
  h.refuse(normal ? "a normal end was not told to who traps" : "a link did not tell", h.quiet, p, q);
}

/// Races that the seeds should meet.
inline void mark_races(const history& h, const std::vector<link_step>& steps) {
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const link_step& a = steps[i - 1];
    const link_step& b = steps[i];
    if (h[b.at].at - h[a.at].at > std::chrono::milliseconds{1} || a.what != link_step::kind::unlink) continue;
    if (a.by != b.by && b.what == link_step::kind::unlink) mark("race: both sides unlink");
    if (a.by != b.by && b.what == link_step::kind::link) mark("race: one side unlinks, the other links");
    if (a.by == b.by && b.what == link_step::kind::link) mark("race: unlinked and linked anew");
  }
  for (const link_step& s : steps) {
    const pid other = h[s.at].other;
    const place end = h.life_of(other).end;
    if (s.what == link_step::kind::unlink && s.by == h[s.at].who && end != never && end > s.at &&
        h[end].at - h[s.at].at < std::chrono::milliseconds{1} && h.possibly_linked(s.by, other, s.at))
      mark("race: an end crosses an unlink");
  }
}

inline void check_links(const history& h) {
  for (const auto& [ends, all] : h.told) check_told(h, ends.first, ends.second, all);
  for (const auto& [ends, steps] : h.links) {
    check_bereaved(h, ends.first, ends.second);
    check_bereaved(h, ends.second, ends.first);
    mark_races(h, steps);
  }
  for (place i = 0; i < h.log.size(); ++i) {
    const entry& e = h[i];
    if (e.kind != what::linked) continue;
    const bool dead = e.who.node() == e.other.node() && h.ended_before(e.other, i);
    const bool must_throw = dead && !h.life_of(e.who).traps_at(i);
    if (e.flag) {
      mark("link: threw");
      h.expect(must_throw, "a link threw although it could be made", i, e.who, e.other);
    } else if (must_throw) {
      h.expect(h.possibly_linked(e.who, e.other, i), "a link to the dead did not throw", i, e.who, e.other);
    }
  }
}

// ---- 4. monitors

struct monitor_story {
  place set = never;
  pid target;
  bool at_birth = false;
  place down = never;
  place removed = never;  // by a demonitor that found it
  place flushed = never;
  place missed = never;  // by a demonitor that did not
};
using monitors = std::map<std::pair<pid, std::uint64_t>, monitor_story>;

inline void read_down(const history& h, place i, monitor_story& m) {
  const entry& e = h[i];
  h.expect(m.set != never && m.target == e.other, "a down of an unknown monitor", i, e.who, e.other);
  h.expect(m.down == never, "a monitor fired twice", i, e.who, e.other);
  h.expect(m.removed == never, "a down came after the monitor was removed", i, e.who, e.other);
  h.expect(m.flushed == never, "a down came after a flush", i, e.who, e.other);
  if (m.missed != never) mark("a down put aside came after a demonitor");
  m.down = i;
}

inline void read_demonitor(const history& h, place i, monitor_story& m) {
  const entry& e = h[i];
  if (e.flag) m.flushed = std::min(m.flushed, i);
  if (e.code == 1) {
    h.expect(m.down == never && m.removed == never, "a monitor was removed that was over", i, e.who, m.target);
    m.removed = i;
    if (h.ended_before(m.target, i)) mark("demonitored with the down on its way");
  } else if (m.down == never && m.removed == never && m.missed == never) {
    h.expect(!e.flag, "a flush found nothing where a down was due", i, e.who, m.target);
    m.missed = i;
  }
}

inline monitors read_monitors(const history& h) {
  monitors all;
  for (place i = 0; i < h.log.size(); ++i) {
    const entry& e = h[i];
    if (e.kind == what::monitored || (e.kind == what::spawned && e.number != 0)) {
      monitor_story& m = all[{e.who, e.number}];
      h.expect(m.set == never, "a monitor ref was given twice", i, e.who);
      m = {.set = i, .target = e.other, .at_birth = e.kind == what::spawned};
    } else if (e.kind == what::down) {
      read_down(h, i, all[{e.who, e.number}]);
    } else if (e.kind == what::demonitored) {
      read_demonitor(h, i, all[{e.who, e.number}]);
    }
  }
  return all;
}

inline void check_monitor(const history& h, pid owner, const monitor_story& m) {
  const node_id here = owner.node();
  const node_id there = m.target.node();
  if (m.down == never) {
    const bool over = m.removed != never || !h.lives_when_quiet(owner);
    const bool due = h.knows_of_loss(here, there, m.set) || h.ended_before(m.target, h.quiet);
    h.expect(over || !due, "a monitor did not fire", m.set, owner, m.target);
    return;
  }
  const exit_reason& why = h[m.down].reason;
  if (h.ended_with(m.target, why, m.down)) {
    if (ended_only_by(h, m.target, owner, m.set)) mark("down: the reason that its owner had given");
    return mark("down: the true reason");
  }
  if (why == exit_reason::noproc()) {
    mark("down: noproc");
    h.expect(h.ended_before(m.target, m.down), "noproc of a process that lives", m.down, owner, m.target);
    h.expect(!m.at_birth, "noproc from a monitor set at birth", m.down, owner, m.target);
    h.expect(h.arrived(owner, m.target, m.set) == never, "noproc although the monitor had arrived", m.down, owner,
             m.target);
    h.expect(!ended_only_by(h, m.target, owner, m.set), "noproc although its owner ended it later", m.down, owner,
             m.target);
    return;
  }
  mark("down: noconnection");
  const bool lost = h.may_know_of_loss(here, there, m.set);
  h.expect(why == exit_reason::noconnection() && lost, "a down with a wrong reason: " + why.to_string(), m.down, owner,
           m.target);
}

inline void check_monitors(const history& h) {
  for (const auto& [key, m] : read_monitors(h)) check_monitor(h, key.first, m);
}

}  // namespace coppice::random_programs
