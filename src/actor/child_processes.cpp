#include "internal/child_processes.hpp"

#include <coppice/spec/child_spec.hpp>

#include "internal/ends_of_others.hpp"
#include "internal/fault_handling.hpp"

namespace coppice::detail {

void ensure_may_spawn(const actor_core& me) {
  if (!me.is_active())
    throw spawn_failed{error{errc::stopped, to_string(me.id()) + " is stopping or restarting, and starts no children"}};
}

void add_child(actor_core& me, turn& t, child_record c) {
  const pid who = c.who;
  c.place = me.parts().children.next_place();
  c.running_since = t.k->now();
  me.parts().children.add(std::move(c));
  t.k->adopt(*t.p, me.id(), who, true, {});
  if (me.settings->watch_children) ends_of_others{me, t}.watch(who);
}

result<pid> child_processes::start(const child_spec& spec) {
  ensure_may_spawn(me_);
  if (const auto wrong = check(spec); !wrong) return std::unexpected{wrong.error()};
  if (spec.type == child_type::actor)
    return coppice::fail(errc::invalid, "'" + spec.id + "' is an actor: spawn its props, and it is supervised as one");
  if (spec.start.how().how == recipe::kind::function)
    return coppice::fail(errc::invalid, "'" + spec.id + "' has a start function, which only a supervisor can run");
  const result<pid> started = spawn(spec);
  if (started)
    add_child(me_, t_,
              {.who = *started,
               .name = spec.id,
               .spec = std::make_shared<const child_spec>(spec),
               .shutdown = spec.shutdown.value_or(default_shutdown(spec.type))});
  return started;
}

result<pid> child_processes::spawn(const child_spec& spec) {
  birth with{.parent = me_.id(), .linked = true};
  if (!spec.name.empty()) with.called = birth::by(spec.name, {});
  if (spec.mailbox) with.policy = make_policy_of_spec(*spec.mailbox);
  return spec.start.how().spawn(host(), std::move(with));
}

void child_processes::start_again(child_record& ended) {
  result<pid> started = coppice::fail(errc::start_failed);
  try {
    started = spawn(*ended.spec);
  } catch (...) {  // for example an argument that could not be copied
    started = coppice::fail(errc::start_failed, reason_of_failure(t_).to_string());
  }
  ended.stopping = ended.start_again = false;
  ended.stop_steps = {};
  ended.stop_wait = 0;
  ended.stop_limit = {};
  ++ended.instance;
  ended.failure_is_open = !started;
  if (!started) return note_failed_start(ended, started.error());
  child_record c = me_.parts().children.remove(ended.who);
  c.who = *started;
  c.running_since = host().now();
  host().adopt(*t_.p, me_.id(), *started, true, {});
  me_.parts().children.add(std::move(c));
  if (me_.settings->watch_children) ends_of_others{me_, t_}.watch(*started);
}

/// The strategy decides about a failed start as about any other failure. The failure is reported by a timer and not by
/// a signal, because signals overtake mail: a start that fails again and again would keep the actor from its mail.
void child_processes::note_failed_start(child_record& c, const error& why) {
  host().disarm(c.restart_timer);
  c.restart_timer = arm_signal(
      host(), me_.id(), std::chrono::nanoseconds{0},
      {signals::child_failed{.child = c.who,
                             .instance = c.instance,
                             .has_instance = false,
                             .reason = exit_reason::error("can't start '" + c.name + "': " + why.to_string())}});
}

bool is_failure(const child_spec& spec, const exit_reason& reason) {
  const bool gave_up = spec.type == child_type::supervisor && spec.restart == restart::permanent &&
                       reason.what() == exit_reason::kind::shutdown;
  return reason.abnormal() || gave_up;
}

void answer_which_children(actor_core& me, turn& t, envelope& request) {
  const auto asked = take_body<request_body<calls::which_children>>(request);
  std::vector<child_info> all;
  const time_point now = t.k->now();
  constexpr std::chrono::nanoseconds none{0};
  if (me.rare)
    for (const child_record* c : me.rare->children.in_order()) {
      const bool down = c->spec && !t.k->alive(c->who);  // a process that waits for its restart
      const auto waits = c->failure_is_open || down ? t.k->remaining(c->restart_timer).value_or(none) : none;
      all.push_back({.id = c->name.empty() ? to_string(c->who) : c->name,
                     .who = down ? pid{} : c->who,
                     .state = down || waits.count() > 0 ? child_state::restarting : child_state::running,
                     .type = c->spec ? c->spec->type : child_type::actor,
                     .restarts = c->restarts,
                     .last_reason = c->last_failure,
                     .uptime = down ? none : now - c->running_since,
                     .waits = waits});
    }
  answer<std::vector<child_info>>(*t.k, asked.caller, asked.call, std::move(all));
}

}  // namespace coppice::detail
