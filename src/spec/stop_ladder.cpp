#include <string>

#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>

namespace coppice::detail {

std::string_view name_of(stop_step step) noexcept {
  switch (step) {
    case stop_step::ask: return "ask";
    case stop_step::kill: return "kill";
    case stop_step::abandon: return "abandon";
  }
  return "unknown";
}

namespace {

std::string name_of(const stop_target& target) {
  std::string text{target.what};
  if (!target.name.empty()) text += " '" + std::string{target.name} + "'";
  return text;
}

void log_line(kernel& k, log_level level, stop_step step, const stop_target& target, const std::string& text) {
  k.log(log_parts::supervision, level, name_of(target) + text,
        {{"pid", to_string(target.who)}, {"by", to_string(target.by)}, {"step", std::string{name_of(step)}}});
}

}  // namespace

void log_step(kernel& k, stop_step step, const stop_target& target, std::optional<std::chrono::nanoseconds> waited) {
  // The first step is the normal case. Each later step means that the process did not stop in time.
  const bool frozen = step == stop_step::ask && k.is_frozen(target.who);
  const log_level level = !waited && !frozen           ? log_level::debug
                          : step == stop_step::abandon ? log_level::error
                                                       : log_level::warning;
  if (!k.logs(level, log_parts::supervision)) return;
  switch (step) {
    case stop_step::ask:
      log_line(k, level, step, target,
               frozen ? " was asked to stop, but is frozen: it can't stop before a thaw" : " was asked to stop");
      return;
    case stop_step::kill:
      log_line(k, level, step, target,
               waited ? " did not stop within " + to_string(*waited) + " and was killed" : " was killed");
      return;
    case stop_step::abandon:
      log_line(k, level, step, target,
               " did not end within " + to_string(waited.value_or(std::chrono::nanoseconds{0})) +
                   " after it was killed, because its code does not return; it was abandoned");
      return;
  }
}

bool carry_out(kernel& k, stop_step step, const stop_target& target, std::optional<std::chrono::nanoseconds> waited,
               const exit_reason& ask_with) {
  switch (step) {
    case stop_step::ask: k.send_exit(target.who, {target.by, ask_with, false}); break;
    case stop_step::kill: k.send_exit(target.who, {target.by, exit_reason::kill(), false}); break;
    case stop_step::abandon:
      // `abandon` has no effect on a process that has returned from its code; the kill ends that process.
      if (!k.abandon(target.who)) return false;
      break;
  }
  log_step(k, step, target, waited);
  return step == stop_step::abandon;
}

taken_step take_step(kernel& k, stop_ladder& ladder, const stop_limits& limits, const stop_target& target,
                     const exit_reason& ask_with) {
  const std::optional<stop_step> before = ladder.taken();
  const std::optional<std::chrono::nanoseconds> waited = ladder.waited(limits);
  const stop_rung rung = ladder.next(limits);
  const bool abandoned = carry_out(k, rung.what, target, waited, ask_with);
  const bool in_vain = rung.what == stop_step::abandon && !abandoned && before != stop_step::abandon;
  // A process that is not alive here is still in its destructors: its end has not been reported yet.
  if (in_vain && k.logs(log_level::error, log_parts::supervision))
    log_line(k, log_level::error, rung.what, target,
             " did not end within " + to_string(*waited) + " after it was killed and can't be abandoned: " +
                 (k.alive(target.who) ? "it is about to end" : "it is ending; perhaps a destructor does not return"));
  return {rung.wait, abandoned};
}

std::chrono::nanoseconds process_stop::advance(kernel& k, const exit_reason& ask_with) {
  const taken_step taken = take_step(k, ladder_, limits_, target_, ask_with);
  abandoned_ = taken.abandoned || abandoned_;
  return taken.wait;
}

}  // namespace coppice::detail
