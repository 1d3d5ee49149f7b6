#pragma once
/// The bodies of the processes of a random program, and how they start each other.
#include "random_process.hpp"

namespace coppice::random_programs {

// ---- a process that is an object

class thing {
 public:
  using protocol = coppice::protocol<note, alarm, ask, quick, errand, wind_up>;

  thing(self& me, program* shared, int budget) : life_{*shared, me, budget} {
    if (life_.dice().chance(0.4)) {
      me.trap_exits();
      life_.write({.kind = what::trapped, .flag = true});
    }
    go_on(me);
  }
  void handle(note m, self& me) { see(me, m); }
  void handle(alarm m, self& me) { see(me, m); }
  void handle(errand m, self& me) { see(me, m); }
  void handle(exited m, self& me) { see(me, m); }
  void handle(down m, self& me) { see(me, m); }
  void handle(timer_fired m, self& me) { see(me, m); }
  void handle(wind_up) { life_.let_all_go(); }
  void handle(ask m, reply_to<std::uint64_t> to, self& me) {
    life_.take_later(me, m, std::move(to));
    go_on(me);
  }
  std::uint64_t handle(quick m, self& me) {
    go_on(me);  // may throw; then there is no answer
    return life_.take_now(m);
  }

 private:
  template <class M>
  void see(self& me, M& m) {
    life_.saw(me, m);
    go_on(me);
  }
  void go_on(self& me);
  life life_;
};

inline void thing::go_on(self& me) {
  if (life_.tired()) return;
  sim::dice& dice = life_.dice();
  for (std::uint64_t i = dice.below(4); i > 0; --i) life_.act(me);
  if (!dice.chance(0.03)) return;
  if (dice.chance(0.5)) {
    const exit_reason why = life_.shared().own_reason();
    life_.write({.kind = what::own_end, .reason = why});
    me.stop(why);
  } else {
    life_.write({.kind = what::own_end, .reason = exit_reason::shutdown("thrown")});
    throw exit_with{exit_reason::shutdown("thrown")};
  }
}

// ---- a process that is a coroutine

inline task<> take_any(self& me, life* mine) {
  const auto limit = mine->shared().some_time();
  const time_point since = me.now();
  mine->take_all(true);
  auto got =
      co_await me.receive<note, alarm, exited, down, timer_fired, errand, request<ask>, request<quick>, any_message>(
          limit);
  if (std::holds_alternative<timed_out>(got)) mine->write({.kind = what::waited, .span = limit, .since = since});
  std::visit([&](auto& m) { mine->saw(me, m); }, got);
}

/// Of one kind only; the rest is put aside.
template <class... Ms>
task<> take_some(self& me, life* mine) {
  const auto limit = mine->shared().some_time();
  const time_point since = me.now();
  mine->take_all(false);
  auto got = co_await me.receive<Ms...>(limit);
  if (std::holds_alternative<timed_out>(got)) mine->write({.kind = what::waited, .span = limit, .since = since});
  std::visit([&](auto& m) { mine->saw(me, m); }, got);
}

inline task<> take_selectively(self& me, life* mine) {
  switch (mine->dice().below(5)) {
    case 0: co_await take_some<note>(me, mine); break;
    case 1: co_await take_some<down>(me, mine); break;
    case 2: co_await take_some<exited>(me, mine); break;
    case 3: co_await take_some<alarm, timer_fired>(me, mine); break;
    default: co_await take_some<request<ask>, request<quick>>(me, mine); break;
  }
}

inline void call_over(life& mine, std::uint64_t id, const result<std::uint64_t>& got) {
  if (got)
    mine.write({.kind = what::call_over, .number = id, .code = *got == id ? answered_code : answered_code + 1});
  else
    mine.write({.kind = what::call_over,
                .number = id,
                .code = static_cast<int>(got.error().code().as<errc>().value()),
                .text = std::string{got.error().text()}});
}

inline task<> make_call(self& me, life* mine) {
  program& p = mine->shared();
  const pid to = p.dice.chance(0.04) ? me.id() : mine->someone();
  const std::uint64_t id = p.new_number();
  const bool is_object = std::ranges::find(p.objects, to) != p.objects.end();
  const mode chosen = p.dice.chance(0.3) ? mode::at_once : static_cast<mode>(p.dice.below(5));
  std::chrono::nanoseconds limit = p.dice.chance(0.05) ? default_call_timeout : p.some_time();
  // Not to who may be waiting for us: two that wait for each other wait for ever, and rightly so.
  if (is_object && p.dice.chance(0.2)) limit = forever;
  mine->write({.kind = what::called, .other = to, .number = id, .span = limit});
  const bool typed = is_object && p.dice.chance(0.5);
  const ref<thing> object{to};
  if (p.dice.chance(0.5)) {
    auto asking = typed ? object.call<ask>(id, chosen) : call<ask>(to, id, chosen);
    const result<std::uint64_t> got = co_await std::move(asking).within(limit);
    call_over(*mine, id, got);
  } else {
    auto asking = typed ? object.call<quick>(id, chosen) : call<quick>(to, id, chosen);
    const result<std::uint64_t> got = co_await std::move(asking).within(limit);
    call_over(*mine, id, got);
  }
}

inline task<> rest(self& me, life* mine) {
  if (mine->dice().chance(0.3)) {
    co_await me.yield();
    co_return;
  }
  const auto length = mine->shared().some_time();
  const time_point since = me.now();
  co_await me.sleep(length);
  mine->write({.kind = what::waited, .span = length, .since = since});
}

/// All ways to end but the return; true: that one.
inline task<bool> end_somehow(self& me, life* mine) {
  const exit_reason why = mine->shared().own_reason();
  switch (mine->dice().below(5)) {
    case 0: mine->write({.kind = what::own_end}); co_return true;
    case 1: mine->fail(mine->shared().new_text());
    case 2: mine->write({.kind = what::own_end, .reason = why}); throw exit_with{why};
    case 3: {
      mine->write({.kind = what::own_end, .reason = why});
      me.stop(why);
      co_await me.sleep(1ms);
      break;
    }
    default: {
      mine->write({.kind = what::own_end, .reason = why});
      co_await me.exit(why);
      break;
    }
  }
  mine->write({.kind = what::stray, .text = "it went on after its end"});
  co_return false;
}

/// Takes everything, for ever.
inline task<> wind_down(self& me, life* mine) {
  mine->let_all_go();
  mine->take_all(true);
  for (;;) {
    auto got =
        co_await me
            .receive<note, alarm, exited, down, timer_fired, errand, request<ask>, request<quick>, any_message>();
    std::visit([&](auto& m) { mine->saw(me, m); }, got);
  }
}

inline task<> actor(self& me, program* shared, int budget) {
  life mine{*shared, me, budget};
  if (mine.dice().chance(0.4)) {
    me.trap_exits();
    mine.write({.kind = what::trapped, .flag = true});
  }
  while (!mine.tired()) {
    mine.spend();
    const std::uint64_t next = mine.dice().below(100);
    if (next < 45) {
      for (std::uint64_t i = mine.dice().below(4); i > 0; --i) mine.act(me);
    } else if (next < 68) {
      co_await take_any(me, &mine);
    } else if (next < 76) {
      co_await take_selectively(me, &mine);
    } else if (next < 89) {
      co_await make_call(me, &mine);
    } else if (next < 98) {
      co_await rest(me, &mine);
    } else {
      const bool returns = co_await end_somehow(me, &mine);
      if (returns) co_return;
    }
  }
  co_await wind_down(me, &mine);
}

/// Writes to its like on other nodes, whatever happens to the connection, and does little else.
inline task<> writer(self& me, program* shared) {
  life mine{*shared, me, 100};
  me.trap_exits();
  mine.write({.kind = what::trapped, .flag = true});
  while (!mine.tired()) {
    mine.spend();
    mine.send_note(me, shared->writers[mine.dice().below(shared->writers.size())]);
    co_await take_any(me, &mine);
  }
  co_await wind_down(me, &mine);
}

// ---- starting them

inline void life::spawn(self& me) {
  if (!program_.room()) return;
  const int budget = static_cast<int>(20 + dice().below(150));
  program* shared = &program_;
  try {
    switch (dice().below(7)) {
      case 0: write({.kind = what::spawned, .other = me.spawn(actor, shared, budget)}); break;
      case 1: {
        const monitored child = me.spawn_monitor(actor, shared, budget);
        write({.kind = what::spawned, .other = child.who, .number = child.ref.value()});
        monitors_.push_back(child.ref);
        break;
      }
      case 2: {
        const pid child = me.spawn<thing>(shared, budget).id();
        write({.kind = what::spawned, .other = child});
        program_.objects.push_back(child);
        break;
      }
      case 3: {
        const pid child = me.spawn_link<thing>(shared, budget).id();
        write({.kind = what::spawned, .other = child, .flag = true, .server = true});
        program_.objects.push_back(child);
        break;
      }
      case 4: return spawn_with_name(me, budget);
      default: write({.kind = what::spawned, .other = me.spawn_link(actor, shared, budget), .flag = true}); break;
    }
    meet(program_.all.back());
  } catch (const std::bad_alloc&) {
    write({.kind = what::spawn_failed});
  }
}

inline void life::spawn_with_name(self& me, int budget) {
  const int name = static_cast<int>(dice().below(name_count));
  spawn_options options{.name = name_number(name), .link = dice().chance(0.5)};
  const bool linked = options.link;
  const result<pid> child = me.spawn(std::move(options), actor, &program_, budget);
  if (!child) {
    write({.kind = what::spawn_failed, .code = child.error().code() == errc::name_taken ? 1 : 2, .name = name});
    return;
  }
  write({.kind = what::spawned, .other = *child, .flag = linked, .name = name});
  meet(*child);
}

}  // namespace coppice::random_programs
