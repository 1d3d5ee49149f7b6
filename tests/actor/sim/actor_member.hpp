#pragma once
/// The members of a random hierarchy: they do what their mail says, fail at random, and write down which hooks and
/// messages reach them.
#include <stdexcept>

#include "actor_log.hpp"

namespace coppice::random_actors {

enum class deed : std::uint8_t {
  nothing,
  fail,
  fail_softly,
  finish,
  stop_self,
  stash,
  unstash,
  unstash_one,
  become,
  unbecome,
  watch,
  unwatch,
  spawn,
  stop_other,
  poison_other,
  chat,
  ask,
  tick,
};
inline constexpr std::size_t deeds = 18;

struct note {
  pid from{};
  std::uint64_t number = 0;
  int level = 0;
  deed what = deed::nothing;
  [[nodiscard]] int priority() const { return level; }
};
struct question {
  using reply = std::uint64_t;
  std::uint64_t number = 0;
};
struct probe {
  std::uint64_t number = 0;
};
struct tick {
  std::uint64_t instance = 0;
};

class member;
/// Spawns one and everybody who looks after it knows.
[[nodiscard]] pid spawn_child(program& p, context& me, const plan& what);

/// Directives as the dice have them, and what is written down of that. It may throw.
inline judgement decide(program& p, const rules& by, pid decider, const child_failure& f) {
  if (p.unlucky()) {
    mark("a decider failed");
    p.speechless.insert({f.child, id_of(f.reason)});
    throw std::runtime_error{"f" + std::to_string(p.fails(decider, true, false))};
  }
  std::uint64_t all = 0;
  for (const std::uint64_t w : by.weights) all += w;
  std::uint64_t pick = p.dice.below(all);
  std::size_t which = 0;
  while (pick >= by.weights.at(which)) pick -= by.weights.at(which++);
  judgement j{.what = static_cast<directive>(which)};
  if (by.what == rules::kind::custom) {
    j.all = by.all && p.dice.chance(0.5);
    if (p.dice.chance(0.3)) j.after = p.dice.between(1ns, 200ms);
  }
  p.words[{f.child, id_of(f.reason)}] = {j, f.restarts, p.world.now()};
  return j;
}

class member {
 public:
  using protocol = coppice::protocol<note, question, probe, tick>;

  member(context& me, program* p, plan what) : p_{p}, what_{std::move(what)}, me_{me.id()} {
    life& l = mine();
    p_->check(l.living == 0, to_string(me_) + " has two instances at once");
    ++l.attempts;
    p_->write(me_, entry::kind::attempt);
    if (l.attempts > 1) {
      if (!what_->keeps_children)
        for (const pid child : l.children)
          p_->check(!p_->rt->alive(child), to_string(me_) + " is restarted before its child " + to_string(child));
      p_->unstash(me_, static_cast<std::size_t>(-1));
    }
    if (p_->unlucky()) {
      mark("a constructor failed");
      throw std::runtime_error{"f" + std::to_string(p_->fails(me_, false, false))};
    }
    number_ = l.attempts;
    l.living = number_;
    p_->write(me_, entry::kind::born);
  }
  ~member() {
    p_->write(me_, entry::kind::destroyed);
    mine().living = 0;
  }
  member(const member&) = delete;
  member& operator=(const member&) = delete;

  void handle(started, context& me) {
    p_->write(me_, entry::kind::started);
    const std::vector<pid> there = me.children();
    for (const pid child : mine().children) {
      if (!p_->rt->alive(child)) continue;
      mark("children lived on");
      p_->check(std::ranges::count(there, child) == 1, to_string(me_) + " has lost its child " + to_string(child));
    }
    if (there.empty())
      for (const plan& child : what_->children)
        if (p_->spawns_left > 0) (void)spawn_child(*p_, me, child);
    maybe_fail("started");
  }
  void handle(const restarting& e, context& me) {
    here();
    p_->write(me_, entry::kind::restarting, e.cause);
    if (!what_->keeps_children)  // those that are stopped for it are nobody's to watch
      for (const pid child : me.children()) mine().watching.erase(child);
    if (p_->dice.chance(0.2)) unstash(me, static_cast<std::size_t>(-1));
    fail_quietly("restarting");
  }
  void handle(const stopping& e) {
    here();
    p_->write(me_, entry::kind::stopping, e.reason);
    fail_quietly("stopping");
  }
  void handle(const stopped& e, context& me) {
    here();
    p_->write(me_, entry::kind::stopped, e.reason);
    p_->check(me.children().empty(), to_string(me_) + " has stopped with children");
    for (const pid child : mine().children)
      p_->check(!p_->rt->alive(child), to_string(me_) + " has stopped before its child " + to_string(child));
    fail_quietly("stopped");
  }
  void handle(const terminated& e, context& me) {
    here();
    life& l = mine();
    p_->check(l.watching.erase(e.who) == 1,
              to_string(me_) + " hears of the end of " + to_string(e.who) + ", which it does not watch");
    p_->check(!p_->rt->alive(e.who), to_string(me_) + " hears of the end of one that lives");
    const std::uint64_t sent = l.letters.sent_by[e.who];
    p_->check(me.dropped() > 0 || l.letters.seen_of[e.who] == sent,
              "the end of " + to_string(e.who) + " overtakes its mail to " + to_string(me_));
    if (sent > 0) mark("mail before an end");
    maybe_fail("terminated");
  }
  void handle(note m, context& me) {
    p_->check(!became_, to_string(me_) + " has a behaviour, and its class gets the mail");
    take(m, me);
  }
  void handle(question m, context& me) {
    p_->check(!became_, to_string(me_) + " has a behaviour, and its class gets the question");
    answer(m, me);
  }
  void handle(probe m) { mine().probed = m.number; }
  void handle(tick m) {
    here();
    p_->check(m.instance == number_, to_string(me_) + " hears the timer of an earlier instance");
    maybe_fail("a timer");
  }

 protected:
  [[nodiscard]] program& shared() { return *p_; }
  [[nodiscard]] const plan& planned() const { return what_; }
  [[nodiscard]] pid id() const { return me_; }

 private:
  [[nodiscard]] life& mine() { return p_->lives.at(me_); }
  void here() { p_->check(mine().living == number_, to_string(me_) + ": an instance that is gone hears something"); }
  void maybe_fail(std::string_view where) {
    if (p_->unlucky()) fail_now(where);
  }
  [[noreturn]] void fail_now(std::string_view where) {
    mark("failed in " + std::string{where});
    throw std::runtime_error{"f" + std::to_string(p_->fails(me_, true, false))};
  }
  void fail_quietly(std::string_view where) {
    if (!p_->unlucky()) return;
    mark("failed in " + std::string{where});
    throw std::runtime_error{"f" + std::to_string(p_->fails(me_, true, true))};
  }
  void take(note& m, context& me);
  void act(const note& m, context& me);
  void answer(const question& m, context& me);
  void chat(context& me);
  void ask(context& me);
  void become(context& me);
  void unstash(context& me, std::size_t how_many) {
    p_->unstash(me_, how_many);
    how_many == 1 ? me.unstash() : me.unstash_all();
  }

  program* p_;
  plan what_;
  pid me_;
  std::uint64_t number_ = 0;
  bool became_ = false;
};

/// One that answers for its children itself.
class deciding : public member {
 public:
  using member::member;
  directive decide(const child_failure& f) {
    return random_actors::decide(shared(), planned()->strategy, id(), f).what;
  }
};

inline void member::take(note& m, context& me) {
  here();
  const letter_key key{m.from, m.number};
  const bool again = p_->present(me_, key, m.level);
  if (!p_->calm && m.what == deed::stash && (!again || p_->dice.chance(0.2))) {
    mine().letters.stash.push_back(key);
    me.stash(std::move(m));
    mark(again ? "stashed again" : "stashed");
    return maybe_fail("stash");
  }
  ++mine().letters.consumed;
  if (!p_->calm) act(m, me);
}

inline void member::act(const note& m, context& me) {
  life& l = mine();
  const pid other = p_->someone();
  switch (m.what) {
    case deed::fail: return fail_now("receive");
    case deed::fail_softly: return me.fail(exit_reason::error("f" + std::to_string(p_->fails(me_, true, false))));
    case deed::finish: l.told = true; throw exit_with{exit_reason::normal()};
    case deed::stop_self: l.told = true; return me.stop();
    case deed::unstash: return unstash(me, static_cast<std::size_t>(-1));
    case deed::unstash_one: return unstash(me, 1);
    case deed::become: return become(me);
    case deed::unbecome: became_ = false; return me.unbecome();
    case deed::watch:
      if (other != me_) l.watching.insert(other);
      return me.watch(other);
    case deed::unwatch: {
      const pid who = l.watching.empty() ? other : *l.watching.begin();
      l.watching.erase(who);
      me.unwatch(who);
      return maybe_fail("receive");
    }
    case deed::spawn:
      if (p_->spawns_left > 0)
        (void)spawn_child(*p_, me, what_->children.empty() ? std::make_shared<const plant>() : what_->children.front());
      return;
    case deed::stop_other: p_->lives.at(other).told = true; return me.stop(other);
    case deed::poison_other: p_->lives.at(other).told = true; return me.poison(other);
    case deed::chat: return chat(me);
    case deed::ask: return ask(me);
    case deed::tick: (void)me.after(p_->dice.between(1us, 50ms), tick{number_}); return;
    default: return maybe_fail("receive");
  }
}

inline void member::chat(context& me) {
  const pid other = p_->someone();
  for (std::uint64_t n = 1 + p_->dice.below(4); n > 0 && p_->chats_left > 0; --n) {
    --p_->chats_left;
    const pid to = p_->dice.chance(0.8) ? other : p_->someone();
    const note m{.from = me_,
                 .number = p_->number_for(me_, to),
                 .level = static_cast<int>(p_->dice.below(8)),
                 .what = static_cast<deed>(p_->dice.below(deeds))};
    switch (p_->dice.below(3)) {
      case 0: me.send(to, m); break;
      case 1: me.send_from(me.id(), to, m); break;
      default: me.cast<note>(actor_ref<member>{to}, m); break;
    }
  }
  maybe_fail("receive");
}

inline void member::ask(context& me) {
  const pid to = p_->someone();
  const std::uint64_t number = ++p_->numbers;
  p_->questions[number] = {me_, number_};
  const auto timeout = p_->dice.chance(0.4) ? forever : p_->dice.between(0ns, 2s);
  const auto f = me.call(actor_ref<member>{to}.call<question>(number).within(timeout));
  program* p = p_;
  me.reenter_after(f, [p, number, instance = number_](const result<std::uint64_t>& got, context& them) {
    const life& l = p->lives.at(them.id());
    p->check(p->questions.erase(number) == 1, "a continuation runs twice");
    p->check(l.living == instance, "a continuation runs in another instance");
    p->check(!got || *got == number, "the answer to another question");
    mark(got ? "answered" : "an error for an answer");
    if (!p->unlucky()) return;
    mark("failed in a continuation");
    throw std::runtime_error{"f" + std::to_string(p->fails(them.id(), true, false))};
  });
}

inline void member::answer(const question& m, context& me) {
  here();
  if (p_->dice.chance(0.1)) return;  // none at all
  if (p_->dice.chance(0.2)) {
    const pid other = p_->someone();
    return me.forward(other, m);
  }
  if (p_->dice.chance(0.5)) me.reply(m.number);
  maybe_fail("a question");
  me.reply(m.number);
}

inline void member::become(context& me) {
  became_ = true;
  mark("became");
  const auto check = [this, number = number_] {
    p_->check(became_ && number == number_, to_string(me_) + " has the behaviour of an earlier instance");
  };
  me.become(behaviour{[this, check](note m, context& them) { check(), take(m, them); },
                      [this, check](question m, context& them) { check(), answer(m, them); },
                      [this](probe m) { handle(m); }, [this](tick m) { handle(m); }});
}

}  // namespace coppice::random_actors
