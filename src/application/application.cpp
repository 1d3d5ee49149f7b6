#include <algorithm>
#include <cstdio>
#include <system_error>

#include "internal/state.hpp"

namespace coppice {

// ---- words

std::string_view to_string(program_end what) noexcept {
  switch (what) {
    case program_end::done: return "done";
    case program_end::stopped: return "stopped";
    case program_end::gave_up: return "gave_up";
    case program_end::refused: return "refused";
    case program_end::start_failed: return "start_failed";
    case program_end::not_in_time: return "not_in_time";
    case program_end::stopped_hard: return "stopped_hard";
  }
  return "unknown";
}
std::string_view to_string(application_state state) noexcept {
  switch (state) {
    case application_state::waiting: return "waiting";
    case application_state::starting: return "starting";
    case application_state::running: return "running";
    case application_state::stopping: return "stopping";
    case application_state::ended: return "ended";
  }
  return "unknown";
}

int program_outcome::exit_code() const noexcept {
  constexpr int killed = 9;  // SIGKILL
  switch (what) {
    case program_end::done:
    case program_end::stopped: return own_code.value_or(0);
    case program_end::gave_up: return 1;
    case program_end::refused: return 2;
    case program_end::start_failed: return 3;
    case program_end::not_in_time: return 4;
    case program_end::stopped_hard: break;
  }
  return 128 + (signal ? number_of(*signal) : killed);
}

// ---- a running program

running_program::running_program(runtime& rt, std::shared_ptr<detail::program_state> state) noexcept
    : rt_{&rt}, state_{std::move(state)} {}
running_program::running_program(running_program&&) noexcept = default;
running_program& running_program::operator=(running_program&&) noexcept = default;
running_program::~running_program() = default;

std::optional<program_outcome> running_program::ended() const {
  auto outcome = state_->ended();
  if (outcome || !controller_ || rt_->alive(controller_)) return outcome;
  state_->end_with_controller();  // it was killed before it began
  return state_->ended();
}
program_outcome running_program::wait() {
  // When the controller has ended, its name is free for the next program. A wait ends early if its helper is killed.
  while (controller_ && rt_->alive(controller_)) rt_->wait(controller_);
  signals_.reset();
  return *ended();
}
void running_program::stop() { rt_->send(controller_, detail::stop_asked{}); }
void running_program::kill() { rt_->send(controller_, detail::kill_asked{}); }
pid running_program::controller() const noexcept { return controller_; }
runtime_handle running_program::handle() const noexcept { return rt_->handle(); }

namespace {
template <class M>
bool tell_controller(self& me, M message) {
  const pid controller = me.where(program_name);
  if (controller) me.send(controller, std::move(message));
  return static_cast<bool>(controller);
}
}  // namespace

bool stop_program(self& me) { return tell_controller(me, detail::stop_asked{}); }
bool stop_program(self& me, int exit_code) {
  if (exit_code < 0 || exit_code > largest_own_code)
    throw std::invalid_argument{"the exit code of a program is from 0 to " + std::to_string(largest_own_code) +
                                ", not " + std::to_string(exit_code)};
  return tell_controller(me, detail::stop_asked{exit_code});
}
bool reload_program(self& me) { return tell_controller(me, detail::reload_asked{}); }
pending_call<calls::which_applications> which_applications(self& me) {
  return call<calls::which_applications>(me.where(program_name));
}

// ---- several

namespace {

std::shared_ptr<detail::program_state> refused(program_outcome why) {
  run_options none;  // named: g++ 12 at -O2 takes the members of an unnamed one for uninitialized
  auto state = std::make_shared<detail::program_state>(std::vector<detail::planned>{}, std::move(none));
  state->end(std::move(why));
  return state;
}

bool contains(const std::vector<os_signal>& all, os_signal s) { return std::ranges::find(all, s) != all.end(); }

std::optional<std::string> wrong_with(const run_options& how, const std::vector<application>& all) {
  if (how.stop_within && how.stop_within->count() < 0)
    return "stop_within is " + to_string(*how.stop_within) + "; it must not be negative";
  for (const os_signal s : how.publish)
    if (contains(how.stop_on, s))
      return std::string{to_string(s)} + " is in stop_on and in publish; leave it out of one of them";
  for (const application& a : all)
    if (a.options().reload && contains(how.stop_on, os_signal::hangup))
      return "application " + detail::in_quotes(a.options().name) +
             " has a reload hook, and SIGHUP is in stop_on; leave one of them out";
  return std::nullopt;
}

/// The signals that the program receives.
std::vector<os_signal> wanted_signals(const run_options& how, const std::vector<application>& all) {
  std::vector<os_signal> wanted = how.stop_on;
  std::ranges::copy(how.publish, std::back_inserter(wanted));
  const bool reloads =
      std::ranges::any_of(all, [](const application& a) { return static_cast<bool>(a.options().reload); });
  if (reloads && !contains(wanted, os_signal::hangup)) wanted.push_back(os_signal::hangup);
  return wanted;
}

/// Makes the runtime and runs the program on it. Exceptions become outcomes.
program_outcome run_on_own_runtime(const applications& all, run_options how) try {
  // What still hangs after the stop in order must not make the program last much longer.
  if (how.stop_within)
    how.runtime.stop_within =
        std::min(how.runtime.stop_within, std::chrono::ceil<std::chrono::milliseconds>(*how.stop_within));
  runtime rt{how.runtime};
  running_program running = all.start(rt, std::move(how));
  program_outcome out = running.wait();
  return out;
} catch (const std::invalid_argument& x) {
  return {.what = program_end::refused, .text = std::string{"the options of the runtime are invalid: "} + x.what()};
} catch (const std::exception& x) {
  return {.what = program_end::start_failed, .text = std::string{"the program could not be started: "} + x.what()};
}

}  // namespace

result<void> applications::check() const {
  const auto planned = detail::plan(all_);
  if (!planned) return std::unexpected{planned.error()};
  return {};
}

result<std::vector<std::string>> applications::start_order() const {
  const auto planned = detail::plan(all_);
  if (!planned) return std::unexpected{planned.error()};
  std::vector<std::string> names;
  for (const auto& each : *planned) names.push_back(each.app.name);
  return names;
}

running_program applications::start(runtime& rt, run_options how) const {
  if (const auto wrong = wrong_with(how, all_)) return {rt, refused({.what = program_end::refused, .text = *wrong})};
  auto planned = detail::plan(all_);
  if (!planned) return {rt, refused({.what = program_end::refused, .text = std::string{planned.error().text()}})};
  std::vector<std::shared_ptr<detail::runtime_place>> places;
  for (const application& a : all_) places.push_back(a.place_);
  running_program made{rt,
                       std::make_shared<detail::program_state>(std::move(*planned), std::move(how), std::move(places))};
  // Subscribes before the first child is started: a signal may arrive as soon as a child is up.
  const auto relay = std::make_shared<detail::signal_relay>();
  const std::vector<os_signal> signals = wanted_signals(made.state_->how, all_);
  if (!signals.empty())
    made.signals_ =
        rt.host().env().os_signals().subscribe(signals, [&rt, relay](os_signal s) { relay->receive(rt, s); });
  const auto spawned =
      rt.spawn({.name = std::string{program_name}, .label = "applications"}, detail::program_controller, made.state_);
  if (!spawned) {
    made.signals_.reset();
    made.state_->end({.what = program_end::start_failed,
                      .text = "this runtime accepts no further program: " + spawned.error().to_string()});
    return made;
  }
  made.controller_ = *spawned;
  made.state_->lead_handles_to(rt.host().weak_from_this());
  relay->connect(rt, *spawned);
  return made;
}

runtime_handle applications::handle() const noexcept { return all_.empty() ? runtime_handle{} : all_.front().handle(); }

int applications::run(run_options how) const {
  // Checked before the runtime is made, so that a refused program starts no threads.
  const auto sensible = check();
  const program_outcome out =
      sensible ? run_on_own_runtime(*this, std::move(how))
               : program_outcome{.what = program_end::refused, .text = std::string{sensible.error().text()}};
  if (!out.text.empty()) std::fputs(("coppice: " + out.text + "\n").c_str(), stderr);
  return out.exit_code();
}

int applications::run() const {
  const run_options plain;  // named: g++ 12 at -O2 takes the members of an unnamed one for uninitialized
  return run(plain);
}

// ---- one

result<void> application::check() const { return applications{*this}.check(); }
int application::run() const { return applications{*this}.run(); }
int application::run(run_options how) const { return applications{*this}.run(std::move(how)); }
running_program application::start(runtime& rt, run_options how) const {
  return applications{*this}.start(rt, std::move(how));
}

}  // namespace coppice
