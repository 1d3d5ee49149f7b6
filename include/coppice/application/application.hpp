#pragma once
/// A program made of supervised parts, which are started and stopped in order. Its exit code says how it ended.
///
///     int main() {
///       return coppice::application{{
///           .name = "demo",
///           .supervise = {coppice::child<counter>(41)},
///       }}.run();
///     }
///
/// Several applications with their dependencies, which give the order of the start; they stop in the reverse order:
///
///     const application storage{{.name = "storage", .supervise = {child<database>(url)}}};
///     const application web{{.name = "web", .supervise = {child<web_server>(8080)}, .depends_on = {"storage"}}};
///     return applications{web, storage}.run();
#include <coppice/application/hook.hpp>
#include <coppice/application/program.hpp>
#include <coppice/supervision/supervisor.hpp>

namespace coppice {

struct application_options {
  /// Unique in its program, and not empty.
  std::string name{};

  /// Its children, under a supervisor of the application; started in this order and stopped in the reverse one.
  std::vector<child_spec> supervise{};
  /// What that supervisor does when a child ends, and when it gives up. Defaults: `one_for_one`, 1 restart in 5
  /// seconds, no automatic shutdown.
  coppice::strategy strategy = coppice::strategy::one_for_one;
  restart_limit limit{};
  coppice::auto_shutdown auto_shutdown = coppice::auto_shutdown::never;
  /// A supervisor instead of the list and the three settings: `child<my_tree>(...)`, or `child<supervisor>(spec)`.
  /// Giving both is refused. Of this spec only the start, `name` and `start_within` are used: the supervisor is not
  /// restarted, and its stop has no time limit. Default: none.
  std::optional<child_spec> root{};

  /// What happens to the program if the top supervisor ends by itself. An application is never restarted.
  ///  permanent  the program stops, with exit code 0 if this application and all others are done, otherwise with 1
  ///  transient  if this application is done, the others go on; otherwise as permanent
  ///  temporary  the others go on, also if this application cannot be started
  /// An application is done if its top supervisor ended normally, or because its significant children ended
  /// (`auto_shutdown`).
  coppice::restart restart = coppice::restart::permanent;

  /// Names of applications that must be running or done before this one is started. Default: none.
  std::vector<std::string> depends_on{};

  /// Runs before the first child is started. If it fails, the application is not started.
  application_hook start{};
  /// Runs before the children are stopped, or after the supervisor has ended by itself. A failure is logged, and the
  /// stop goes on.
  application_hook prep_stop{};
  /// Runs after the children have ended, also if they could not be started, but not if the hook `start` failed. A
  /// failure is logged.
  application_hook stop{};
  /// Runs when SIGHUP arrives or `reload_program` is called, while the children run: reads the configuration again. If
  /// it succeeds, `config_changed` is published; a failure is logged. A program in which no application has this hook
  /// does not receive SIGHUP.
  application_hook reload{};
};

/// How the whole program is run.
struct run_options {
  /// The options of the runtime that `run` makes. Not used by `start`.
  runtime_options runtime{};
  /// Signals that stop the program: the first one in order, the second one at once. Other signals have their usual
  /// effect. Default: SIGTERM and SIGINT.
  std::vector<os_signal> stop_on{os_signal::terminate, os_signal::interrupt};
  /// Signals that are published on the event stream as `program_signal`. A signal that stops the program cannot be
  /// among them. Default: none.
  std::vector<os_signal> publish{};
  /// How long a stop in order may take in total, whatever caused it; then the remaining processes are killed. `run`
  /// waits as long again, at most, for code that hangs. Children have own limits (`shutdown`). Default: without limit.
  std::optional<std::chrono::nanoseconds> stop_within{};
  /// Passed to hooks that have a parameter for them: `{argv + 1, argv + argc}`.
  std::vector<std::string> args{};
};

/// One application. Nothing happens before `run` or `start`.
class application {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): so that applications{{...}, {...}} reads well
  application(application_options options) : options_{std::move(options)} {}
  [[nodiscard]] const application_options& options() const noexcept { return options_; }
  /// As the functions of `applications`, for a program of this application alone.
  [[nodiscard]] result<void> check() const;
  int run() const;
  int run(run_options how) const;
  [[nodiscard]] running_program start(runtime& rt, run_options how = {}) const;
  /// The runtime that this application runs on, for other threads; usable at any time. Until the program is started,
  /// and again when its runtime has ended, `send` and `cast` return false and `call` completes with the error
  /// `stopped`. Copies of an application share their runtime: that of the last start.
  [[nodiscard]] runtime_handle handle() const noexcept { return runtime_handle{place_}; }

 private:
  friend class applications;
  application_options options_;
  std::shared_ptr<detail::runtime_place> place_ = std::make_shared<detail::runtime_place>();
};

/// Several applications that make one program.
class applications {
 public:
  applications(std::initializer_list<application> all) : all_{all} {}
  explicit applications(std::vector<application> all) : all_{std::move(all)} {}

  /// Checks the program without starting anything. Error: `invalid`, with all faults and their places: missing and
  /// duplicate names, unknown dependencies, faults of children and of supervisors below them, a list and a root
  /// together. Dependencies that form a cycle are found only if there are no other faults.
  [[nodiscard]] result<void> check() const;
  /// The names in the order of the start: each behind those it depends on, otherwise in the order given.
  [[nodiscard]] result<std::vector<std::string>> start_order() const;

  /// For `main`: makes a runtime, runs the program until it ends, and returns its exit code; see `program_end`. Writes
  /// a line to standard error if something went wrong. Throws nothing; with invalid options of the runtime the program
  /// is `refused`.
  int run() const;
  int run(run_options how) const;
  /// Starts the program on an existing runtime, real or simulated, and returns at once. A runtime has one program at a
  /// time: a second one ends with `start_failed`. Throws `std::system_error` if the thread for signals cannot be
  /// started, and `std::bad_alloc`.
  [[nodiscard]] running_program start(runtime& rt, run_options how = {}) const;
  /// As `application::handle`, which leads to the same runtime.
  [[nodiscard]] runtime_handle handle() const noexcept;

 private:
  std::vector<application> all_;
};

}  // namespace coppice
