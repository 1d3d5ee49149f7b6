#pragma once
/// A program made of supervised parts: started in order, stopped in order, with an exit code that says how it went.
///
///     int main() {
///       return coppice::application{{
///           .name = "demo",
///           .supervise = {coppice::child<counter>(41)},
///       }}.run();
///     }
///
/// Several, with what they need from each other; they are started in this order and stopped in the reverse one:
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

  /// Its children: started in this order, stopped in the reverse one, under a supervisor of the application's own.
  std::vector<child_spec> supervise{};
  /// How that supervisor answers the end of a child, and when it gives up. Defaults: `one_for_one`, 1 restart in 5
  /// seconds, never done.
  coppice::strategy strategy = coppice::strategy::one_for_one;
  restart_limit limit{};
  coppice::auto_shutdown auto_shutdown = coppice::auto_shutdown::never;
  /// A supervisor that takes the place of the list and of the three settings: `child<my_tree>(...)`, or
  /// `child<supervisor>(spec)`. Giving both is refused. Of the spec, the start, `name` and `start_within` count: it is
  /// not restarted, and is waited for without end when it is stopped. Default: none.
  std::optional<child_spec> root{};

  /// What the end of its top supervisor means for the program, if nobody stopped it. Nothing restarts an application.
  ///  permanent  the program stops, with an exit code that says so; unless all others are done as well
  ///  transient  when it is done, the others go on; otherwise as permanent
  ///  temporary  a line in the log; and so when it can't be started
  /// It is done when the supervisor ended normally, or because its significant children have (`auto_shutdown`).
  coppice::restart restart = coppice::restart::permanent;

  /// Names of applications that must be up, or done, before this one is started. Default: none.
  std::vector<std::string> depends_on{};

  /// Before the first child is started. When it fails, the application can't be started.
  application_hook start{};
  /// Before the children are stopped; or after the supervisor ended by itself. Its failure is logged, and the stop goes
  /// on.
  application_hook prep_stop{};
  /// After the children have been stopped, whenever `start` was not refused. Its failure is logged.
  application_hook stop{};
};

/// How the whole program is run.
struct run_options {
  /// Of the runtime that `run` makes; `start` is given one.
  runtime_options runtime{};
  /// Signals that stop the program: the first in order, the second at once. The others, and all when this is empty, do
  /// what they always do. Default: SIGTERM and SIGINT.
  std::vector<os_signal> stop_on{os_signal::terminate, os_signal::interrupt};
  /// How long a stop in order may take, all in all; then the rest is killed. Children have limits of their own
  /// (`shutdown`). Default: as long as it takes.
  std::optional<std::chrono::nanoseconds> stop_within{};
  /// Handed to hooks that ask for them: `{argv + 1, argv + argc}`.
  std::vector<std::string> args{};
};

/// One application. Nothing happens before `run` or `start`.
class application {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): so that applications{{...}, {...}} reads well
  application(application_options options) : options_{std::move(options)} {}
  [[nodiscard]] const application_options& options() const noexcept { return options_; }
  /// As `applications::check`, `run` and `start` with this one alone.
  [[nodiscard]] result<void> check() const;
  int run() const;
  int run(run_options how) const;
  [[nodiscard]] program start(runtime& rt, run_options how = {}) const;

 private:
  application_options options_;
};

/// Several applications that make one program.
class applications {
 public:
  applications(std::initializer_list<application> all) : all_{all} {}
  explicit applications(std::vector<application> all) : all_{std::move(all)} {}

  /// Whether they would be started, without starting anything. Error: `invalid`, with a text that names all that is
  /// wrong and where: names that are missing or double, unknown dependencies and circles of them, children that no
  /// supervisor would take, a list and a root.
  [[nodiscard]] result<void> check() const;
  /// Their names in the order in which they would be started: each after what it depends on, otherwise as given.
  [[nodiscard]] result<std::vector<std::string>> start_order() const;

  /// For `main`: makes a runtime, runs the program until it ends, and gives its exit code; see `outcome`. What went
  /// wrong is also told in a line on standard error. Throws nothing; what the options of the runtime throw is
  /// `refused`.
  int run() const;
  int run(run_options how) const;
  /// On a runtime of yours, a simulated one too. Returns at once; `program` tells how it goes. On one runtime there is
  /// one program at a time: a second one has `start_failed`. Throws `std::system_error` when there is no thread to hear
  /// signals, and `std::bad_alloc`.
  [[nodiscard]] program start(runtime& rt, run_options how = {}) const;

 private:
  std::vector<application> all_;
};

}  // namespace coppice
