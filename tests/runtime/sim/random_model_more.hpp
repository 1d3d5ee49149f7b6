#pragma once
/// What must hold of a log, continued: names, calls (with the words of `errc`), timers, and what
/// can be seen from outside when all is quiet.
#include "random_model.hpp"

namespace coppice::random_programs {

// ---- 5. names: operations on them take effect at once, so that the model knows exactly who has which

class names_model {
 public:
  explicit names_model(const history& h) : h_{h} {}

  void read(place at) {
    const entry& e = h_[at];
    switch (e.kind) {
      case what::spawned:
        if (e.name >= 0) give(at, e.other, e.name);
        return;
      case what::spawn_failed:
        if (e.code == 1) h_.expect(holder(e.who, e.name) != pid{}, "a free name was refused", at, e.who);
        return;
      case what::named: return read_named(at, e);
      case what::unnamed: {
        h_.expect(e.flag == (holder(e.who, e.name) != pid{}), "unregister gave a wrong answer", at, e.who);
        holders_.erase({e.who.node(), e.name});
        return;
      }
      case what::looked_up:
        h_.expect(holder(e.who, e.name) == e.other, "a name led to the wrong process", at, e.who, e.other);
        return;
      case what::gone:
      case what::abandoned:
        if (std::erase_if(holders_, [&](const auto& held) { return held.second == e.who; }) != 0)
          released_.insert(e.who);
        return;
      case what::crashed: std::erase_if(holders_, [&](const auto& held) { return held.first.first == e.here; }); return;
      default: return;
    }
  }
  [[nodiscard]] std::string name_of(pid who) const {
    for (const auto& [key, held_by] : holders_)
      if (held_by == who) return "name" + std::to_string(key.second);
    return {};
  }

 private:
  [[nodiscard]] pid holder(pid asker, int name) const {
    const auto found = holders_.find({asker.node(), name});
    return found == holders_.end() ? pid{} : found->second;
  }
  void give(place at, pid who, int name) {
    h_.expect(holder(who, name) == pid{}, "a name has two holders", at, who, holder(who, name));
    h_.expect(!h_.ended_before(who, at), "a dead process got a name", at, who);
    h_.expect(name_of(who).empty(), "a process has two names", at, who);
    holders_[{who.node(), name}] = who;
    if (!released_.empty()) mark("a name was given after its holder had ended");
  }
  void read_named(place at, const entry& e) {
    if (e.code == 0) return give(at, e.who, e.name);
    if (e.code == 1) {
      mark("a name was taken");
      h_.expect(holder(e.who, e.name) != pid{}, "a free name was refused", at, e.who);
    } else {
      h_.expect(!name_of(e.who).empty(), "a process without a name was refused one", at, e.who);
    }
  }

  const history& h_;
  std::map<std::pair<node_id, int>, pid> holders_;
  std::set<pid> released_;
};

// ---- 6. calls

struct call_story {
  place asked = never;
  place over = never;
  place taken = never;
  place answered = never;
  place let_go = never;
  int how = 0;
};
using calls = std::map<std::uint64_t, call_story>;

inline calls read_calls(const history& h) {
  calls all;
  for (place i = 0; i < h.log.size(); ++i) {
    const entry& e = h[i];
    switch (e.kind) {
      case what::called: all[e.number].asked = i; break;
      case what::call_over:
        h.expect(all[e.number].over == never, "a call ended twice", i, e.who);
        all[e.number].over = i;
        break;
      case what::took:
        h.expect(all[e.number].taken == never, "a request was taken twice", i, e.who);
        all[e.number].taken = i;
        all[e.number].how = e.code;
        break;
      case what::answered:
        if (!e.flag) mark("an answer came too late to be given");
        if (!e.flag) break;
        h.expect(all[e.number].answered == never, "a call was answered twice", i, e.who);
        all[e.number].answered = i;
        break;
      case what::let_go: all[e.number].let_go = std::min(all[e.number].let_go, i); break;
      default: break;
    }
  }
  return all;
}

inline void check_timed_out_call(const history& h, const call_story& c) {
  const entry& ask = h[c.asked];
  const pid caller = ask.who;
  const pid callee = ask.other;
  const time_point deadline = ask.at + ask.span;
  h.expect(ask.span != forever && h[c.over].at >= deadline, "a call gave up early", c.over, caller, callee);
  if (c.answered != never && c.answered > c.over) mark("a late answer vanished");
  if (ask.span.count() <= 0 || caller.node() != callee.node()) return;
  // Its answer, or the end of the callee, was in the mailbox before the time was over.
  const bool answered = c.answered != never && h[c.answered].at < deadline;
  h.expect(!answered, "a call gave up although it was answered", c.over, caller, callee);
  const lifetime& l = h.life_of(callee);
  const bool told = l.end != never && l.end > c.asked && !l.abandoned && h[l.end].at < deadline;
  h.expect(!told, "a call gave up although its callee had ended", c.over, caller, callee);
}

inline void check_unanswered_call(const history& h, const call_story& c, errc code) {
  const entry& ask = h[c.asked];
  const pid caller = ask.who;
  const pid callee = ask.other;
  const lifetime& l = h.life_of(callee);
  const std::string& text = h[c.over].text;
  switch (code) {
    case errc::noproc:
      mark("call: noproc");
      h.expect(l.end < c.over, "noproc from a process that lives", c.over, caller, callee);
      h.expect(c.taken == never, "noproc from a process that took the request", c.over, caller, callee);
      // Requests in its queue when it ended are answered with its reason.
      h.expect(l.end < c.asked || caller.node() != callee.node(), "noproc from a process that had the request", c.over,
               caller, callee);
      return;
    case errc::noconnection:
      mark("call: noconnection");
      h.expect(h.may_lose(caller.node(), callee.node(), c.asked), "no connection, but it was there", c.over, caller,
               callee);
      return;
    case errc::exited:
      mark("call: exited");
      h.expect(l.end < c.over, "exited, but the callee lives", c.over, caller, callee);
      h.expect(!l.reason || l.reason->to_string() == text, "a wrong reason of the callee's end: " + text, c.over,
               caller, callee);
      return;
    case errc::no_reply: {
      mark("call: no_reply");
      // The words of errc: "dropped without an answer by a process that lives on". A normal end is such a drop, too.
      const bool in_hand = l.abandoned && l.end < c.over;
      const bool normal = l.end < c.over && l.reason == exit_reason::normal();
      h.expect(c.let_go < c.over || normal || in_hand, "no_reply, but nobody dropped it", c.over, caller, callee);
      return;
    }
    default: h.refuse("a call failed for no reason: " + std::string{to_string(code)}, c.over, caller, callee);
  }
}

inline void check_calls(const history& h) {
  for (const auto& [id, c] : read_calls(h)) {
    const entry& ask = h[c.asked];
    if (c.over == never) {
      h.expect(!h.lives_when_quiet(ask.who), "a call never ended", c.asked, ask.who, ask.other);
      continue;
    }
    const int code = h[c.over].code;
    if (ask.who == ask.other) {
      mark("call: calling_self");
      h.expect(code == static_cast<int>(errc::calling_self), "a process called itself", c.over, ask.who);
    } else if (code == answered_code) {
      mark("call: answered");
      h.expect(c.answered < c.over, "an answer that nobody gave", c.over, ask.who, ask.other);
    } else if (code == static_cast<int>(errc::timeout)) {
      mark("call: timeout");
      check_timed_out_call(h, c);
    } else {
      h.expect(code < answered_code, "an answer to another call", c.over, ask.who, ask.other);
      h.expect(c.answered >= c.over || ask.who.node() != ask.other.node(), "an error in place of an answer", c.over,
               ask.who, ask.other);
      check_unanswered_call(h, c, static_cast<errc>(code));
    }
  }
}

// ---- 7. timers: never early, once, never after a cancel

struct timer_story {
  place set = never;
  place fired = never;
  place cancelled = never;
};

inline void read_cancel(const history& h, place i, timer_story& t) {
  const entry& e = h[i];
  h.expect(t.set != never, "a timer was cancelled that was never set", i, e.who);
  const time_point due = h[t.set].at + h[t.set].span;
  const bool over = t.cancelled != never || t.fired != never;
  if (e.flag) {
    // The receiver of a message may be another process, so that one only says that it was not sent.
    h.expect(!over, "a timer was cancelled that was over", i, e.who);
    if (e.at >= due && e.code == 0) mark("cancelled with the timeout on its way");
    mark(e.code == 0 ? "timer: cancelled" : "message: cancelled");
    t.cancelled = i;
  } else if (e.code == 0) {
    mark("timer: cancelled too late");
    h.expect(over, "a timer that was not over could not be cancelled", i, e.who);
  } else {
    mark("message: cancelled too late");
    h.expect(over || e.at >= due, "a message that was not sent could not be cancelled", i, e.who);
  }
}

inline void read_fired(const history& h, place i, timer_story& t) {
  const entry& e = h[i];
  h.expect(t.set != never, "a timer fired that was never set", i, e.who);
  h.expect(t.fired == never, "a timer fired twice", i, e.who);
  h.expect(t.cancelled == never, "a timer fired after it was cancelled", i, e.who);
  h.expect(e.at >= h[t.set].at + h[t.set].span, "a timer fired early", i, e.who);
  t.fired = i;
}

inline void check_timers(const history& h) {
  std::map<std::pair<pid, std::uint64_t>, timer_story> timers;
  std::map<std::uint64_t, timer_story> messages;
  for (place i = 0; i < h.log.size(); ++i) {
    const entry& e = h[i];
    switch (e.kind) {
      case what::timer:
        h.expect(timers[{e.who, e.number}].set == never, "a timer ref was given twice", i, e.who);
        timers[{e.who, e.number}].set = i;
        break;
      case what::timed: read_fired(h, i, timers[{e.who, e.number}]); break;
      case what::armed: messages[e.number].set = i; break;
      case what::rang:
        read_fired(h, i, messages[e.number]);
        h.expect(h[messages[e.number].set].other == e.who, "a message went to somebody else", i, e.who);
        break;
      case what::cancelled:
        if (e.code == 0)
          read_cancel(h, i, timers[{e.who, e.number}]);
        else
          read_cancel(h, i, messages[e.number]);
        break;
      case what::waited: h.expect(e.at >= e.since + e.span, "a wait was over early", i, e.who); break;
      default: break;
    }
  }
  for (const auto& [key, t] : timers)
    if (h.lives_when_quiet(key.first))
      h.expect(t.fired != never || t.cancelled != never, "a timer never fired", t.set, key.first);
  for (const auto& [id, t] : messages) {
    const entry& set = h[t.set];
    if (!h.lives_when_quiet(set.other) || set.who.node() != set.other.node()) continue;
    h.expect(t.fired != never || t.cancelled != never, "a delayed message never came", t.set, set.other, set.who);
  }
}

// ---- 8. when all is quiet: what the runtime shows is what the log says

inline void check_quiet_links(const history& h, const std::map<pid, process_info>& seen) {
  const auto has = [&](pid a, pid b) {
    const auto found = seen.find(a);
    return found != seen.end() && std::ranges::find(found->second.links, b) != found->second.links.end();
  };
  for (const auto& [who, info] : seen)
    for (const pid other : info.links) {
      h.expect(h.lives_when_quiet(other), "a link to a process that is gone", h.quiet, who, other);
      h.expect(has(other, who), "a link that only one side knows", h.quiet, who, other);
    }
  for (const auto& [ends, steps] : h.links) {
    const auto [a, b] = ends;
    if (!h.lives_when_quiet(a) || !h.lives_when_quiet(b)) continue;
    if (h.certainly_not_linked(a, b)) h.expect(!has(a, b), "a link that was removed", h.quiet, a, b);
    const auto link = h.certain_link(a, b);
    if (link && !h.may_lose(a.node(), b.node(), link->since)) h.expect(has(a, b), "a link was lost", h.quiet, a, b);
  }
}

inline void check_quiet(const history& h, const std::map<pid, process_info>& seen) {
  for (const auto& [who, l] : h.lives)
    h.expect(h.lives_when_quiet(who) == seen.contains(who), "alive here and dead there", h.quiet, who);
  names_model names{h};
  for (place i = 0; i < h.quiet; ++i) names.read(i);
  std::map<pid, std::uint32_t> watching;
  std::map<pid, std::uint32_t> watched;
  for (const auto& [key, m] : read_monitors(h)) {
    if (!h.lives_when_quiet(key.first) || m.down < h.quiet || m.removed < h.quiet) continue;
    ++watching[key.first];
    ++watched[m.target];
  }
  for (const auto& [who, info] : seen) {
    h.expect(info.traps_exits == h.life_of(who).traps_at(h.quiet), "a wrong trap flag", h.quiet, who);
    h.expect(info.name == names.name_of(who), "a wrong name: " + info.name, h.quiet, who);
    h.expect(info.parent == h.life_of(who).parent, "a wrong parent", h.quiet, who, info.parent);
    h.expect(info.mailbox == 0, "mail is left", h.quiet, who);
    h.expect(info.monitors == watching[who], "a wrong number of monitors", h.quiet, who);
    h.expect(info.monitored == watched[who], "monitored by a wrong number", h.quiet, who);
  }
  check_quiet_links(h, seen);
}

inline void check_names(const history& h) {
  names_model names{h};
  for (place i = 0; i < h.log.size(); ++i) names.read(i);
}

}  // namespace coppice::random_programs
