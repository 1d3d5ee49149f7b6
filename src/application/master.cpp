// One application: its hooks and its top supervisor.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <coppice/runtime/detail/process_end.hpp>
#include <coppice/spec/detail/stop_ladder.hpp>
#include <coppice/supervision/detail/start_process.hpp>

#include "internal/state.hpp"

namespace coppice::detail {

std::string texts_of(const error& why) {
  std::string text;
  for (const error* e = &why; e != nullptr; e = e->cause()) {
    if (!text.empty()) text += ": ";
    text += e->text().empty() ? to_string(e->code()) : e->text();
  }
  return text;
}

std::vector<pid> family_of(kernel& k, std::vector<pid> roots) {
  const std::vector<process_info> all = k.snapshot();
  std::unordered_multimap<pid, pid> children;
  for (const process_info& p : all) children.emplace(p.parent, p.id);
  std::unordered_set<pid> seen(roots.begin(), roots.end());
  std::vector<pid> family;
  while (!roots.empty()) {
    const auto [first, last] = children.equal_range(roots.back());
    roots.pop_back();
    for (auto at = first; at != last; ++at) {
      if (!seen.insert(at->second).second) continue;
      family.push_back(at->second);
      roots.push_back(at->second);
    }
  }
  return family;
}

namespace {

/// Runs a hook. An exception becomes an error.
task<result<void>> try_hook(self& me, const application_hook& hook, hook_args args) {
  std::optional<error> failed;
  try {
    result<void> answer = co_await hook.run(me, std::move(args));
    co_return answer;
  } catch (...) {
    failed = error{errc::start_failed, reason_of_failure(*turn_here()).to_string()};
  }
  co_return std::unexpected{std::move(*failed)};
}

class master {
 public:
  master(self& me, std::shared_ptr<const program_state> program, std::size_t which)
      : me_{me}, program_{std::move(program)}, which_{which}, app_{program_->apps[which].app} {}

  task<> live() {
    const bool up = co_await start();
    if (!up) co_return;
    const bool by_itself = co_await wait_for_the_end();
    (void)co_await run_hook(app_.prep_stop, "prep_stop");
    if (!by_itself) co_await stop_top();
    (void)co_await run_hook(app_.stop, "stop");
    co_await kill_leftovers();
    report_the_end(by_itself);
  }

 private:
  /// How long to wait for a process that was killed before it is abandoned.
  static constexpr std::chrono::seconds abandon_after{5};
  /// Processes that were killed and have not ended yet.
  struct leftovers final : awaited_processes {
    std::unordered_map<pid, process_stop> open;
    [[nodiscard]] bool awaits(pid who) const override { return open.contains(who); }
  };

  task<bool> start() {
    if (app_.start) {
      const result<void> ready = co_await try_hook(me_, app_.start, program_->how.args);
      if (!ready) {
        co_await kill_leftovers();
        say({.what = master_report::kind::start_failed, .text = "its start hook failed: " + texts_of(ready.error())});
        co_return false;
      }
    }
    const result<pid> started = co_await start_top();
    if (started) {
      top_ = *started;
      say({.what = master_report::kind::started, .top = top_});
      co_return true;
    }
    const std::string why = texts_of(started.error());
    (void)co_await run_hook(app_.stop, "stop");
    co_await kill_leftovers();
    say({.what = master_report::kind::start_failed, .text = why});
    co_return false;
  }

  [[nodiscard]] child_spec top_spec() const {
    if (app_.root) return *app_.root;
    return child<supervisor>(supervisor_spec{.strategy = app_.strategy,
                                             .limit = app_.limit,
                                             .auto_shutdown = app_.auto_shutdown,
                                             .children = app_.supervise});
  }

  task<result<pid>> start_top() {
    me_.subscribe<supervisor_ended>();
    start_result started = co_await start_process(me_, top_spec());
    if (error* failed = std::get_if<error>(&started)) co_return std::unexpected{std::move(*failed)};
    if (const pid* who = std::get_if<pid>(&started)) co_return *who;
    co_return fail(errc::ignored, "its root supervisor had nothing to supervise");
  }

  /// True: the top supervisor has ended by itself. False: the controller asks for a stop.
  task<bool> wait_for_the_end() {
    for (;;) {
      auto m = co_await me_.receive<stop_order_for_master, reload_order_for_master, exited, supervisor_ended>();
      if (std::holds_alternative<stop_order_for_master>(m)) co_return false;
      if (std::holds_alternative<reload_order_for_master>(m)) {
        const bool reloaded = co_await run_hook(app_.reload, "reload");
        if (reloaded) me_.publish(config_changed{app_.name});
        continue;
      }
      if (auto* told = std::get_if<supervisor_ended>(&m)) {
        if (told->who == top_) last_words_ = std::move(*told);
        continue;
      }
      auto& x = std::get<exited>(m);
      if (x.from == me_.parent() && x.signalled) co_await follow_controller(x.reason);
      if (x.from != top_ || !x.linked) continue;  // a process that a hook has started
      why_ = std::move(x.reason);
      co_return true;
    }
  }

  task<> stop_top() {
    family_ = family_of(me_.host(), {me_.id()});  // before the stop: ended processes cannot be found
    process_stop stop{top_as_target(), shutdown::infinity(), std::nullopt};
    stop.advance(me_.host());
    for (;;) {
      const exited x = co_await me_.receive<exited>();
      if (x.from == top_ && x.linked) {
        if (x.reason.what() == exit_reason::kind::error && !x.reported)
          me_.log(log_parts::application, log_level::error,
                  "the top process of application " + in_quotes(app_.name) + " failed while it stopped",
                  {{"application", app_.name}, {"pid", to_string(top_)}, {"reason", x.reason.to_string()}});
        co_return;
      }
      if (x.from == me_.parent() && x.signalled) co_await follow_controller(x.reason);
    }
  }

  /// Ends this process and the top supervisor: the controller was killed and cannot ask for a stop any more.
  task<> follow_controller(exit_reason why) {
    carry_out(me_.host(), stop_step::kill, top_as_target(), std::nullopt);
    co_await me_.exit(std::move(why));
  }

  /// Runs a hook whose failure is only logged. False: it failed.
  task<bool> run_hook(const application_hook& hook, std::string_view name) {
    if (!hook) co_return true;
    const result<void> ran = co_await try_hook(me_, hook, program_->how.args);
    if (!ran)
      me_.log(log_parts::application, log_level::error,
              "the " + std::string{name} + " hook of application " + in_quotes(app_.name) + " failed",
              {{"application", app_.name}, {"reason", texts_of(ran.error())}});
    co_return ran.has_value();
  }

  /// Kills processes that the children and hooks of the application have spawned and left behind, as far as they can be
  /// found. Those that are stuck in their code are abandoned.
  task<> kill_leftovers() {
    std::vector<pid> known = std::exchange(family_, {});
    known.push_back(me_.id());
    if (top_) known.push_back(top_);
    std::ranges::copy(children_without_a_turn(),
                      std::back_inserter(known));  // before the snapshot, or one may be missed
    std::vector<pid> all = family_of(me_.host(), known);
    for (const pid who : known)
      if (who != me_.id() && me_.alive(who)) all.push_back(who);
    leftovers left;
    for (const pid who : all) {
      const stop_target target{.by = me_.id(), .who = who, .what = "process of application", .name = app_.name};
      if (left.open.emplace(who, process_stop{target, shutdown::brutal_kill(), abandon_after}).second) me_.monitor(who);
    }
    // The kill, and one attempt to abandon. A process that withstands both is left alone: the stop must end.
    for (int steps = 0; steps < 2 && !left.open.empty(); ++steps) {
      for (const pid who : all)  // parents before their children
        if (const auto found = left.open.find(who); found != left.open.end()) found->second.advance(me_.host());
      co_await collect_ends(left, me_.now() + abandon_after);
    }
    if (!left.open.empty())
      me_.log(log_parts::application, log_level::warning,
              "processes of an application did not end although they were killed",
              {{"application", app_.name}, {"count", std::to_string(left.open.size())}});
  }

  /// Linked processes that have not had a turn yet, for example because a hook has just spawned them. A snapshot does
  /// not contain them.
  [[nodiscard]] std::vector<pid> children_without_a_turn() {
    std::vector<pid> found;
    const std::optional<process_info> mine = me_.host().info(me_.id());
    if (!mine) return found;
    for (const pid who : mine->links)
      if (me_.alive(who) && !me_.host().info(who)) found.push_back(who);
    return found;
  }

  /// Waits until all of them have ended, or until the deadline. Removes those that have ended.
  task<> collect_ends(leftovers& left, time_point deadline) {
    while (!left.open.empty()) {
      const std::optional<process_end> end = co_await until_one_ended(left, deadline - me_.now());
      if (!end) co_return;
      left.open.erase(end->who);
    }
  }

  [[nodiscard]] stop_target top_as_target() const {
    return {.by = me_.id(), .who = top_, .what = "top supervisor of application", .name = app_.name};
  }

  void report_the_end(bool by_itself) {
    if (!by_itself) {
      say({.what = master_report::kind::stopped});
      return;
    }
    const bool done =
        why_.what() == exit_reason::kind::normal ||
        (last_words_ && last_words_->why == supervisor_ended::cause::done && !last_words_->reason.abnormal());
    std::string text = why_.to_string();
    if (last_words_) text = last_words_->text;
    if (last_words_ && !done) text += ": " + last_words_->reason.to_string();
    say({.what = master_report::kind::ended, .done = done, .text = std::move(text)});
  }

  void say(master_report n) {
    n.which = which_;
    me_.send(me_.parent(), std::move(n));
  }

  self& me_;
  std::shared_ptr<const program_state> program_;
  std::size_t which_;
  const application_options& app_;
  pid top_;
  std::vector<pid> family_;
  exit_reason why_;
  std::optional<supervisor_ended> last_words_;
};

}  // namespace

task<> application_master(self& me, std::shared_ptr<const program_state> program, std::size_t which) {
  me.trap_exits();
  master mine{me, std::move(program), which};
  co_await mine.live();
}

}  // namespace coppice::detail
