#include "internal/child_process.hpp"

#include <coppice/supervision/detail/start_process.hpp>

namespace coppice::detail {

namespace {

result<pid> spawn_by(self& me, const start_order& order, std::uint64_t number) {
  try {
    birth with{.parent = me.id(), .linked = true, .ack = number};
    if (!order.name.empty()) with.called = birth::by(order.name, {});
    return order.start.how().spawn(me.host(), std::move(with));
  } catch (...) {
    return fail(errc::start_failed, reason_of_failure(*turn_here()).to_string());
  }
}

task<start_result> run_start_function(self& me, const recipe& how) {
  std::optional<error> failed;
  try {
    start_result started = co_await how.run(me);
    co_return started;
  } catch (...) {
    failed = error{errc::start_failed, reason_of_failure(*turn_here()).to_string()};
  }
  co_return start_result{*failed};
}

/// Takes nothing: it only looks.
struct onlooker : waiter {
  death_watcher& deaths;
  explicit onlooker(death_watcher& d) noexcept : waiter{&how}, deaths{d} {}
  static bool take(waiter& w, coroutine&, envelope& e) {
    if (e.type == &plain<exited>) static_cast<onlooker&>(w).deaths.saw(static_cast<letter<exited>&>(e).body);
    return false;
  }
  static constexpr wait_type how{.take = &take, .expire = nullptr};
};

}  // namespace

void look_at_deaths_put_aside(self& me, death_watcher& deaths) {
  onlooker looks{deaths};
  (void)static_cast<coroutine&>(me).take_saved(looks);
}

namespace {

/// For a child whose start took too long: it is killed, and abandoned when it is stuck even then.
task<void> end_late_start(self& me, pid who, std::optional<std::chrono::nanoseconds> abandon_after,
                          death_watcher& deaths) {
  me.kill(who);
  for (;;) {
    const start_outcome last = co_await starting(who, 0, abandon_after.value_or(no_timeout), {}, &deaths);
    if (last.what != start_outcome::kind::timed_out) co_return;
    me.host().abandon(who);
  }
}

// The rare ways are functions of their own, so that the frame of the usual one is small.

task<start_result> start_by_function(self& me, const recipe& how) {
  start_result started = co_await run_start_function(me, how);
  if (const pid* who = std::get_if<pid>(&started); who != nullptr && !*who)
    started = error{errc::start_failed, "the start function answered with nobody; ignored{} is an answer, too"};
  co_return started;
}

task<start_result> start_by_spawn(self& me, start_order order, death_watcher& deaths,
                                  std::optional<std::chrono::nanoseconds> abandon_after) {
  const bool waits = order.start.how().how == recipe::kind::handshake;
  const std::uint64_t number = waits ? new_start_number(me) : 0;
  const result<pid> spawned = spawn_by(me, order, number);
  if (!spawned) co_return start_result{spawned.error()};
  const pid who = *spawned;
  me.host().adopt(me.process(), me.id(), who, true, {});
  if (!waits) co_return start_result{who};
  start_outcome out = co_await starting(who, number, order.within, {}, &deaths);
  if (out.what == start_outcome::kind::ready) co_return start_result{who};
  if (out.what == start_outcome::kind::timed_out) co_await end_late_start(me, who, abandon_after, deaths);
  if (out.what == start_outcome::kind::ignored) co_return start_result{ignored{}};
  co_return start_result{out.to_error(who)};
}

}  // namespace

task<start_result> start_process(self& me, start_order order, death_watcher& deaths,
                                 std::optional<std::chrono::nanoseconds> abandon_after) {
  const recipe& how = order.start.how();
  return how.how == recipe::kind::function ? start_by_function(me, how)
                                           : start_by_spawn(me, order, deaths, abandon_after);
}

task<start_result> start_process(self& me, child_spec spec) {
  struct nobody_else final : death_watcher {
    void saw(const exited&) override {}
  };
  nobody_else others;
  const start_order order{spec.start, spec.name, spec.start_within};
  start_result started = co_await start_process(me, order, others, std::nullopt);
  co_return started;
}

namespace {

/// Waits for the end of a child that was told to end.
class stopping : public timed_waiter {
 public:
  stopping(pid who, monitor_ref watched, std::chrono::nanoseconds timeout, death_watcher& deaths) noexcept
      : timed_waiter{how, timeout}, who_{who}, watched_{watched}, deaths_{deaths} {}
  /// Nothing: the time was over.
  std::optional<exit_reason> await_resume() { return std::move(why_); }

 private:
  static bool take(waiter& w, coroutine&, envelope& e) {
    auto& mine = static_cast<stopping&>(w);
    if (e.type == &plain<exited>) {
      const exited& x = static_cast<letter<exited>&>(e).body;
      if (x.from != mine.who_ || !x.linked) return mine.deaths_.saw(x), false;
      mine.why_ = take_body<exited>(e).reason;
      return true;
    }
    if (e.type == &plain<child_ended>) {
      if (static_cast<letter<child_ended>&>(e).body.who != mine.who_) return false;
      mine.why_ = take_body<child_ended>(e).reason;
      return true;
    }
    if (e.type != &plain<down> || static_cast<letter<down>&>(e).body.ref != mine.watched_) return false;
    mine.why_ = take_body<down>(e).reason;
    return true;
  }
  static constexpr wait_type how{.take = &take, .expire = [](waiter&) {}};
  pid who_;
  monitor_ref watched_;
  death_watcher& deaths_;
  std::optional<exit_reason> why_;
};

}  // namespace

monitor_ref watch_leaving(self& me, pid who) {
  return me.host().will_tell(me.process(), who) ? monitor_ref{} : me.monitor(who);
}

std::optional<stopped_process> stop_at_once(self& me, pid who, shutdown how) {
  const bool brutal = how.is_brutal();
  if (!me.host().end_idle(me.process(), who, brutal ? exit_reason::kill() : exit_reason::shutdown()))
    return std::nullopt;
  return stopped_process{.reason = brutal ? exit_reason::killed() : exit_reason::shutdown()};
}

namespace {
/// One that is still there when its time is over.
task<stopped_process> kill_process(self& me, pid who, monitor_ref watched,
                                   std::optional<std::chrono::nanoseconds> abandon_after, death_watcher& deaths) {
  me.kill(who);
  stopped_process out;
  std::optional<exit_reason> why = co_await stopping(who, watched, abandon_after.value_or(no_timeout), deaths);
  while (!why) {
    // It is in its code and does not come out; or it has just come out, and the kill does its work.
    out.abandoned = me.host().abandon(who) || out.abandoned;
    why = co_await stopping(who, watched, *abandon_after, deaths);
  }
  out.reason = *why;
  co_return out;
}
}  // namespace

// The link is kept: should this process die meanwhile, the child does not outlive it.
task<stopped_process> stop_process(self& me, pid who, shutdown how,
                                   std::optional<std::chrono::nanoseconds> abandon_after, death_watcher& deaths) {
  const monitor_ref watched = watch_leaving(me, who);
  stopped_process out;
  std::optional<exit_reason> why;
  if (!how.is_brutal()) {
    me.exit(who, exit_reason::shutdown());
    why = co_await stopping(who, watched, how.time(), deaths);
  }
  if (why)
    out.reason = std::move(*why);
  else
    out = co_await kill_process(me, who, watched, abandon_after, deaths);
  if (watched) me.demonitor(watched);
  co_return out;
}

}  // namespace coppice::detail
