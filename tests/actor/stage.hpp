#pragma once
// A simulated node with actors that write down what happens to them, and do what the test tells them to.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <coppice/actor/actor.hpp>
#include <coppice/sim/world.hpp>

namespace coppice::theatre {

using namespace actor;
using namespace std::chrono_literals;
using lines = std::vector<std::string>;

class player;
/// What an actor shall do, in a handler of its own.
using deed = std::function<void(player&, context&)>;
struct act {
  deed run;
};
struct say {
  std::string text;
};

/// What the actors of a stage did, and what they shall do in their hooks.
struct script {
  lines log;
  std::map<std::string, std::deque<deed>> next;  // by "<name> <hook>", each once; a constructor is "made"
  std::map<std::string, deed> always;            // the same, every time
  std::map<std::string, pid> pids;
  std::map<std::string, exit_reason> heard;  // the reason in the last hook of that name
  std::vector<exit_reason> ends;             // by `terminated`

  lines take() { return std::exchange(log, {}); }
  [[nodiscard]] std::string name_of(pid who) const {
    for (const auto& [name, id] : pids)
      if (id == who) return name;
    return to_string(who);
  }
};

class player {
 public:
  using protocol = coppice::protocol<act, say>;
  player(context& me, script* book, std::string name) : book_{book}, name_{std::move(name)} { perform("made", me); }

  void handle(const act& m, context& me) { m.run(*this, me); }
  void handle(const say& m) {
    ++said;
    note(": " + m.text);
  }
  void handle(started, context& me) { hook("started", me); }
  void handle(const restarting& e, context& me) { hook("restarting", me, e.cause); }
  void handle(const stopping& e, context& me) { hook("stopping", me, e.reason); }
  void handle(const stopped& e, context& me) { hook("stopped", me, e.reason); }
  void handle(const terminated& e, context& me) {
    book_->ends.push_back(e.reason);
    hook("terminated " + book_->name_of(e.who), me);
  }
  void handle(receive_timeout, context& me) { hook("idle", me); }

  void note(const std::string& text) { book_->log.push_back(name_ + text); }
  [[nodiscard]] script& book() { return *book_; }
  int said = 0;  // by this instance

 private:
  void hook(const std::string& what, context& me, const exit_reason& why = {}) {
    note(" " + what);
    book_->heard[name_ + " " + what] = why;
    perform(what, me);
  }
  void perform(const std::string& what, context& me) {
    const std::string key = name_ + " " + what;
    if (const auto all = book_->always.find(key); all != book_->always.end()) all->second(*this, me);
    auto& once = book_->next[key];
    if (once.empty()) return;
    const deed d = std::move(once.front());
    once.pop_front();
    d(*this, me);
  }

  script* book_;
  std::string name_;
};

[[nodiscard]] inline deed throws(std::string text = "boom") {
  return [text](player&, context&) { throw std::runtime_error{text}; };
}
[[nodiscard]] inline props<player> part(script& book, const std::string& name, const actor_options& how = {}) {
  return props<player>(&book, name).with(how);
}
/// A child of whoever does it.
[[nodiscard]] inline deed spawns(std::string name, actor_options how = {}) {
  return [name, how](player& p, context& me) {
    const auto born = me.spawn({.name = name}, part(p.book(), name, how));
    if (!born) throw spawn_failed{born.error()};
    p.book().pids[name] = born->id();
  };
}

class stage {
 public:
  explicit stage(std::uint64_t seed = 1,
                 const runtime_options& options = {.processes = 1U << 16U, .level = log_level::off})
      : world_{seed}, node_{world_.add_node({}, options)} {
    rt().spawn(listens, this);
    settle();
  }
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  script book;
  std::vector<supervision_event> events;
  std::vector<dead_letter> dead;

  [[nodiscard]] runtime& rt() { return node_.rt(); }
  [[nodiscard]] sim::node& node() { return node_; }

  /// A top-level actor.
  void root(const std::string& name, const actor_options& how = {}) {
    book.pids[name] = spawn_actor(rt(), part(book, name, how)).id();
    settle();
  }
  /// A child of `parent`.
  void child(const std::string& parent, const std::string& name, const actor_options& how = {}) {
    act(parent, spawns(name, how));
  }
  [[nodiscard]] pid who(const std::string& name) { return book.pids.at(name); }
  [[nodiscard]] actor_ref<player> ref(const std::string& name) { return actor_ref<player>{who(name)}; }

  /// Without waiting for it.
  void tell(const std::string& name, deed d) { rt().cast<theatre::act>(ref(name), std::move(d)); }
  void tell(const std::string& name, const std::string& text) { rt().cast<theatre::say>(ref(name), text); }
  void act(const std::string& name, deed d) {
    tell(name, std::move(d));
    settle();
  }
  void say(const std::string& name, const std::string& text) {
    tell(name, text);
    settle();
  }
  void fail(const std::string& name, const std::string& text = "boom") { act(name, throws(text)); }
  void stop(const std::string& name) {
    stop_actor(rt(), who(name));
    settle();
  }
  /// How many `say` it has handled since its last restart; -1: it handles no mail.
  [[nodiscard]] int said(const std::string& name) {
    const auto seen = std::make_shared<int>(-1);
    act(name, [seen](player& p, context&) { *seen = p.said; });
    return *seen;
  }
  /// What it ended with; nothing: it lives.
  [[nodiscard]] std::optional<exit_reason> ended(const std::string& name) {
    const auto found = ended_.find(who(name));
    return found != ended_.end() ? std::optional{found->second} : std::nullopt;
  }
  /// How it ended, in a word.
  [[nodiscard]] std::string end_of(const std::string& name) {
    const auto why = ended(name);
    return why ? why->to_string() : "lives";
  }
  [[nodiscard]] lines dead_letters_to(const std::string& name) {
    lines found;
    for (const dead_letter& d : dead)
      if (d.to == who(name)) found.emplace_back(d.message);
    return found;
  }
  /// Whose failures were answered how, in their order.
  [[nodiscard]] lines answers() const {
    lines all;
    for (const supervision_event& e : events) all.push_back(e.name + " " + std::string{to_string(e.what)});
    return all;
  }
  /// Its code does not come back before that time has passed, from the next thing on that it has to handle.
  void stick(const std::string& name, std::chrono::nanoseconds time) { node_.stick(who(name), time); }

  /// All that can happen without time passing.
  void settle() { EXPECT_TRUE(world_.settle()); }
  void pass(std::chrono::nanoseconds time) { world_.run_for(time); }

 private:
  static task<> listens(self& me, stage* into) {
    me.subscribe<process_ended>();
    me.subscribe<dead_letter>();
    me.subscribe<supervision_event>();
    for (;;) {
      auto e = co_await me.receive<process_ended, dead_letter, supervision_event>();
      if (auto* end = std::get_if<process_ended>(&e)) into->ended_[end->who] = end->reason;
      if (auto* lost = std::get_if<dead_letter>(&e)) into->dead.push_back(*lost);
      if (auto* judged = std::get_if<supervision_event>(&e)) into->events.push_back(*judged);
    }
  }

  std::map<pid, exit_reason> ended_;
  sim::world world_;
  sim::node& node_;
};

/// The same with many orders of what happens at once.
template <class F>
void in_many_orders(F f) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    f(seed);
  }
}
/// Where a line stands; a test fails when it is not there, once.
[[nodiscard]] inline std::ptrdiff_t place(const lines& log, const std::string& line) {
  EXPECT_EQ(std::ranges::count(log, line), 1) << line;
  return std::ranges::find(log, line) - log.begin();
}

}  // namespace coppice::theatre
