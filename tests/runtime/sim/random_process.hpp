#pragma once
/// The processes of a random program: coroutines and objects that do whatever the dice say, and write down what they
/// did and what they saw. Nothing here judges; see random_model.hpp.
#include <optional>
#include <stdexcept>
#include <variant>

#include <coppice/runtime/no_such_process.hpp>

#include "random_log.hpp"

namespace coppice::random_programs {

using namespace std::chrono_literals;

struct note {
  pid from;
  std::uint64_t number;
};
struct alarm {
  std::uint64_t id;
};
struct ask {
  using reply = std::uint64_t;
  std::uint64_t id;
  mode how;
};
/// As `ask`; objects answer it with the value their handler returns.
struct quick {
  using reply = std::uint64_t;
  std::uint64_t id;
  mode how;
};
/// Somebody else's answer to give.
struct errand {
  reply_to<std::uint64_t> to;
  std::uint64_t id;
};
/// To objects, which can't look whether the time to wind up has come.
struct wind_up {};

inline constexpr int name_count = 3;
inline std::string name_number(int n) { return "name" + std::to_string(n); }

/// What the processes of one run share: chance, who is there, and the log.
class program {
 public:
  explicit program(sim::world& w) : world{w}, dice{w.seed() * 0xd1342543de82ef95ULL + 1} {}

  void write(entry e) {
    e.at = world.now();
    world.note(name_of(e.kind), e.who.index(), e.other.index(), e.number);
    if (e.kind == what::spawned) all.push_back(e.other);
    if (e.kind == what::gone && living_ != 0) --living_;
    if (e.kind == what::spawned) ++living_;
    log.push_back(std::move(e));
  }
  [[nodiscard]] bool room() const { return !draining && living_ < 24 && all.size() < 160; }
  [[nodiscard]] std::uint64_t new_number() { return ++numbers_; }
  [[nodiscard]] std::uint64_t next_note(pid from, pid to) { return ++notes_[{from, to}]; }
  [[nodiscard]] std::string new_text() { return "reason " + std::to_string(new_number()); }
  [[nodiscard]] pid anyone() {
    const std::size_t among = dice.chance(0.8) ? std::min<std::size_t>(all.size(), 10) : all.size();
    return among == 0 ? pid{} : all[all.size() - 1 - dice.below(among)];
  }
  [[nodiscard]] exit_reason signal_reason() {
    switch (dice.below(11)) {
      case 0: return exit_reason::normal();
      case 1: return exit_reason::shutdown();
      case 2: return exit_reason::shutdown(new_text());
      case 3:
      case 4: return exit_reason::kill();
      case 5: return exit_reason::killed();
      default: return exit_reason::error(new_text());
    }
  }
  [[nodiscard]] exit_reason own_reason() {
    switch (dice.below(6)) {
      case 0: return exit_reason::normal();
      case 1: return exit_reason::shutdown();
      case 2: return exit_reason::shutdown(new_text());
      case 3: return exit_reason::kill();
      default: return exit_reason::error(new_text());
    }
  }
  /// Mostly short, so that timers, packets and turns meet.
  [[nodiscard]] std::chrono::nanoseconds some_time() {
    switch (dice.below(12)) {
      case 0:
      case 1: return 0ns;
      case 2: return dice.between(1ms, 60ms);
      case 3:
      case 4: return dice.between(1ns, 5us);
      default: return dice.between(1us, 3ms);
    }
  }

  sim::world& world;
  sim::dice dice;
  std::vector<entry> log;
  std::vector<pid> all;
  std::vector<pid> objects;
  std::vector<pid> writers;
  bool draining = false;

 private:
  std::map<std::pair<pid, pid>, std::uint64_t> notes_;
  std::uint64_t numbers_ = 0;
  std::size_t living_ = 0;
};

/// What one process knows, does and sees. Destroyed with its body, which writes the end of the process down.
class life {
 public:
  life(program& shared, self& me, int budget) : program_{shared}, me_{me.id()}, budget_{budget} {
    if (const pid parent = me.parent()) meet(parent);
  }
  life(const life&) = delete;
  life& operator=(const life&) = delete;
  ~life() { write({.kind = what::gone}); }

  [[nodiscard]] program& shared() { return program_; }
  [[nodiscard]] sim::dice& dice() { return program_.dice; }
  [[nodiscard]] bool tired() const { return budget_ <= 0 || program_.draining; }
  void spend() { --budget_; }
  void take_all(bool full) { full_ = full; }
  void write(entry e) {
    e.who = me_;
    program_.write(std::move(e));
  }
  /// Mostly somebody we met, so that the same two have much to do with each other.
  [[nodiscard]] pid someone() {
    if (!friends_.empty() && dice().chance(0.65)) return friends_[dice().below(friends_.size())];
    return program_.anyone();
  }

  /// One operation of those that need no waiting.
  void act(self& me);
  void send_note(self& me, pid to) {
    const std::uint64_t number = program_.next_note(me_, to);
    me.send(to, note{me_, number});
    write({.kind = what::sent, .other = to, .number = number});
  }
  void let_all_go() {
    for (const held& h : held_) write({.kind = what::let_go, .number = h.id});
    held_.clear();
  }
  /// Ends the process by an exception, whose text becomes that of the reason.
  [[noreturn]] void fail(const std::string& text) {
    write({.kind = what::own_end, .reason = exit_reason::error(text), .flag = true});
    throw std::runtime_error{text};
  }

  // -- what it sees
  void saw(self&, note& m) {
    write({.kind = what::got, .other = m.from, .number = m.number, .full = full_});
    meet(m.from);
  }
  void saw(self&, alarm& m) { write({.kind = what::rang, .number = m.id, .full = full_}); }
  void saw(self& me, exited& m) {
    write({.kind = what::told, .other = m.from, .reason = m.reason, .flag = m.linked, .full = full_});
    look_up_all(me);
  }
  void saw(self& me, down& m) {
    write({.kind = what::down, .other = m.who, .number = m.ref.value(), .reason = m.reason, .full = full_});
    look_up_all(me);
  }
  void saw(self&, timer_fired& m) { write({.kind = what::timed, .number = m.ref.value(), .full = full_}); }
  void saw(self&, errand& m) { give(m.to, m.id); }
  void saw(self& me, request<ask>& m) { take(me, m, m.message.id, m.message.how); }
  void saw(self& me, request<quick>& m) { take(me, m, m.message.id, m.message.how); }
  void saw(self&, any_message& m) { write({.kind = what::stray, .text = std::string{m.type()}}); }
  void saw(self&, timed_out&) {}

  /// A request taken by an object.
  void take_later(self& me, ask m, reply_to<std::uint64_t> to);
  [[nodiscard]] std::uint64_t take_now(quick m);

 private:
  struct held {
    reply_to<std::uint64_t> to;
    std::uint64_t id;
  };
  struct message_timer {
    std::uint64_t id;
    timer_ref ref;
  };

  void meet(pid other) {
    if (!other || other == me_ || std::ranges::find(friends_, other) != friends_.end()) return;
    if (friends_.size() < 4)
      friends_.push_back(other);
    else
      friends_[dice().below(friends_.size())] = other;
  }
  template <class M>
  void take(self& me, request<M>& m, std::uint64_t id, mode how);
  void give(reply_to<std::uint64_t>& to, std::uint64_t id) {
    const bool taken = to.reply(id);
    write({.kind = what::answered, .number = id, .flag = taken});
  }
  void pass_on(self& me, reply_to<std::uint64_t> to, std::uint64_t id);

  void send_notes(self& me);
  void link(self& me, pid to);
  void unlink(self& me, pid to);
  void relink(self& me);
  void watch(self& me, pid to);
  void unwatch(self& me);
  void set_trap(self& me);
  void send_exit(self& me, pid to);
  void watch_and_end(self& me);
  void use_name(self& me);
  void look_up_all(self& me);
  void arm(self& me);
  void cancel(self& me);
  void use_held(self& me);
  void spawn(self& me);
  void spawn_with_name(self& me, int budget);

  program& program_;
  pid me_;
  int budget_;
  bool full_ = true;
  std::vector<pid> friends_;
  std::vector<monitor_ref> monitors_;
  std::vector<timer_ref> timers_;
  std::vector<message_timer> messages_;
  std::vector<held> held_;
};

// ---- operations

inline void life::act(self& me) {
  spend();
  switch (dice().below(40)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: return send_notes(me);
    case 6:
    case 7:
    case 8:
    case 9: return link(me, someone());
    case 10:
    case 11:
    case 12: return unlink(me, someone());
    case 13:
    case 14:
    case 15: return relink(me);
    case 16:
    case 17:
    case 18: return watch(me, someone());
    case 19:
    case 20: return unwatch(me);
    case 21:
    case 22: return set_trap(me);
    case 23:
    case 24: return send_exit(me, dice().chance(0.06) ? me_ : someone());
    case 25:
    case 26: return use_name(me);
    case 27:
    case 28:
    case 29: return arm(me);
    case 30:
    case 31: return cancel(me);
    case 32:
    case 33:
    case 34: return use_held(me);
    case 35: return watch_and_end(me);
    default: return spawn(me);
  }
}

inline void life::send_notes(self& me) {
  const pid to = someone();
  const bool many = dice().chance(0.01);
  for (std::uint64_t i = many ? 70 + dice().below(80) : 1 + dice().below(3); i > 0; --i) send_note(me, to);
  if (!many) return;
  mark("a flood of notes");  // and something behind it that must not overtake
  if (dice().chance(0.3)) return link(me, to);
  if (dice().chance(0.3)) return watch(me, to);
  send_exit(me, to);
}

inline void life::link(self& me, pid to) {
  if (to == me_) return;
  bool threw = false;
  try {
    me.link(to);
  } catch (const no_such_process&) {
    threw = true;
  }
  write({.kind = what::linked, .other = to, .flag = threw});
  if (!threw) meet(to);
}

inline void life::unlink(self& me, pid to) {
  if (to == me_) return;
  me.unlink(to);
  write({.kind = what::unlinked, .other = to});
}

/// In one breath, so that old signals meet new links.
inline void life::relink(self& me) {
  const pid to = someone();
  const std::uint64_t how = dice().below(4);
  if (how != 0) unlink(me, to);
  link(me, to);
  if (how == 1) unlink(me, to);
}

inline void life::watch(self& me, pid to) {
  if (to == me_) return;
  const monitor_ref ref = me.monitor(to);
  write({.kind = what::monitored, .other = to, .number = ref.value()});
  monitors_.push_back(ref);
}

inline void life::unwatch(self& me) {
  if (monitors_.empty()) return;
  const std::size_t i = dice().below(monitors_.size());
  const bool flushes = dice().chance(0.5);
  const bool there = me.demonitor(monitors_[i], flushes ? self::flush::yes : self::flush::no);
  write({.kind = what::demonitored, .number = monitors_[i].value(), .flag = flushes, .code = there ? 1 : 0});
}

inline void life::set_trap(self& me) {
  const bool on = dice().chance(0.7);
  me.trap_exits(on ? trap::on : trap::off);
  write({.kind = what::trapped, .flag = on});
}

inline void life::send_exit(self& me, pid to) {
  const exit_reason why = to == me_ && dice().chance(0.5) ? exit_reason::normal() : program_.signal_reason();
  me.exit(to, why);
  write({.kind = what::exit_sent, .other = to, .reason = why});
}

/// In one breath: the end comes behind the monitor and the link.
inline void life::watch_and_end(self& me) {
  const pid to = someone();
  if (dice().chance(0.7)) watch(me, to);
  if (dice().chance(0.5)) link(me, to);
  if (dice().chance(0.3)) send_note(me, to);
  if (to != me_) send_exit(me, to);
}

inline void life::use_name(self& me) {
  const int name = static_cast<int>(dice().below(name_count));
  if (dice().chance(0.25)) {
    const bool there = me.unregister(name_number(name));
    write({.kind = what::unnamed, .flag = there, .name = name});
    return;
  }
  const result<void> done = me.register_as(name_number(name));
  const int code = done ? 0 : done.error().code() == errc::name_taken ? 1 : 2;
  write({.kind = what::named, .code = code, .name = name});
}

inline void life::look_up_all(self& me) {
  for (int name = 0; name < name_count; ++name)
    write({.kind = what::looked_up, .other = me.where(name_number(name)), .name = name});
}

inline void life::arm(self& me) {
  const auto after = program_.some_time();
  if (dice().chance(0.5)) {
    const timer_ref ref = me.start_timer(after);
    write({.kind = what::timer, .number = ref.value(), .span = after});
    timers_.push_back(ref);
    return;
  }
  const pid to = someone();
  const std::uint64_t id = program_.new_number();
  const timer_ref ref = me.send_after(after, to, alarm{id});
  write({.kind = what::armed, .other = to, .number = id, .span = after});
  messages_.push_back({id, ref});
}

inline void life::cancel(self& me) {
  if (dice().chance(0.5)) {
    if (timers_.empty()) return;
    const timer_ref ref = timers_[timers_.size() - 1 - dice().below(std::min<std::size_t>(timers_.size(), 3))];
    const bool done = me.cancel(ref);
    write({.kind = what::cancelled, .number = ref.value(), .flag = done});
    return;
  }
  if (messages_.empty()) return;
  const message_timer& m = messages_[messages_.size() - 1 - dice().below(std::min<std::size_t>(messages_.size(), 3))];
  const bool done = me.cancel(m.ref);
  write({.kind = what::cancelled, .number = m.id, .flag = done, .code = 1});
}

// ---- answers

inline void life::use_held(self& me) {
  if (held_.empty()) return;
  const std::size_t i = dice().below(held_.size());
  held one = std::move(held_[i]);
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  switch (dice().below(4)) {
    case 0: write({.kind = what::let_go, .number = one.id}); break;
    case 1: pass_on(me, std::move(one.to), one.id); break;
    default: give(one.to, one.id);
  }
}

/// To an object, since a coroutine may be the one that waits for the answer; of this node, since a handle can't be
/// sent to other machines. Perhaps it has ended.
inline void life::pass_on(self& me, reply_to<std::uint64_t> to, std::uint64_t id) {
  write({.kind = what::let_go, .number = id});  // from here on nobody may ever answer
  if (program_.objects.empty()) return;
  const pid other = program_.objects[dice().below(program_.objects.size())];
  if (other.node() == me_.node()) me.send(other, errand{std::move(to), id});
}

template <class M>
void life::take(self& me, request<M>& m, std::uint64_t id, mode how) {
  if (how == mode::later && tired()) how = mode::at_once;
  write({.kind = what::took, .number = id, .code = static_cast<int>(how)});
  meet(m.caller());
  switch (how) {
    case mode::at_once:
      m.reply(id);
      write({.kind = what::answered, .number = id, .flag = true});
      break;
    case mode::later: held_.push_back({m.defer(), id}); break;
    case mode::by_another: pass_on(me, m.defer(), id); break;
    case mode::drop: write({.kind = what::let_go, .number = id}); break;
    case mode::fail_in_it: fail("failed in request " + std::to_string(id));
  }
}

inline void life::take_later(self& me, ask m, reply_to<std::uint64_t> to) {
  if (m.how == mode::later && tired()) m.how = mode::at_once;
  write({.kind = what::took, .number = m.id, .code = static_cast<int>(m.how)});
  meet(to.caller());
  switch (m.how) {
    case mode::at_once: return give(to, m.id);
    case mode::later: return held_.push_back({std::move(to), m.id});
    case mode::by_another: return pass_on(me, std::move(to), m.id);
    case mode::drop: return write({.kind = what::let_go, .number = m.id});
    case mode::fail_in_it: fail("failed in request " + std::to_string(m.id));
  }
}

inline std::uint64_t life::take_now(quick m) {
  const bool fails = m.how == mode::fail_in_it;
  write({.kind = what::took, .number = m.id, .code = static_cast<int>(fails ? m.how : mode::at_once)});
  if (fails) fail("failed in request " + std::to_string(m.id));
  write({.kind = what::answered, .number = m.id, .flag = true});
  return m.id;
}

}  // namespace coppice::random_programs
