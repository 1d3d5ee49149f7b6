// One application: its hooks and its top supervisor (reference facts 170-173).
#include <unordered_map>
#include <unordered_set>

#include <coppice/supervision/detail/start_process.hpp>

#include "internal/state.hpp"

namespace coppice::detail {

std::string story(const error& why) {
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

/// Another failure than an answer of the hook becomes one.
task<result<void>> try_hook(self& me, const application_hook& hook, hook_args args) {
  std::optional<error> failed;
  try {
    result<void> said = co_await hook.run(me, std::move(args));
    co_return said;
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
    co_await run_last_hook(app_.prep_stop, "prep_stop");
    if (!by_itself) co_await stop_top();
    co_await run_last_hook(app_.stop, "stop");
    co_await kill_leftovers();
    report_the_end(by_itself);
  }

 private:
  /// For what was killed and does not end: then it is stuck in its code.
  static constexpr std::chrono::seconds patience{5};

  task<bool> start() {
    if (app_.start) {
      const result<void> ready = co_await try_hook(me_, app_.start, program_->how.args);
      if (!ready) {
        say({.what = news::kind::start_failed, .text = "its start hook failed: " + story(ready.error())});
        co_return false;
      }
    }
    const result<pid> started = co_await start_top();
    if (started) {
      top_ = *started;
      say({.what = news::kind::started, .top = top_});
      co_return true;
    }
    const std::string why = story(started.error());
    co_await run_last_hook(app_.stop, "stop");
    co_await kill_leftovers();
    say({.what = news::kind::start_failed, .text = why});
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
    co_return fail(errc::ignored, "its root supervisor had nothing to do");
  }

  /// True: the top supervisor has ended by itself. False: the controller wants it to.
  task<bool> wait_for_the_end() {
    for (;;) {
      auto m = co_await me_.receive<stop_order_for_master, exited, supervisor_ended>();
      if (std::holds_alternative<stop_order_for_master>(m)) co_return false;
      if (auto* told = std::get_if<supervisor_ended>(&m)) {
        if (told->who == top_) last_words_ = std::move(*told);
        continue;
      }
      auto& x = std::get<exited>(m);
      if (x.from == me_.parent() && x.signalled) {  // the controller was killed: nobody will ask for a stop any more
        me_.kill(top_);
        co_await me_.exit(std::move(x.reason));
      }
      if (x.from != top_ || !x.linked) continue;  // what hooks have started is their own business
      why_ = std::move(x.reason);
      co_return true;
    }
  }

  task<> stop_top() {
    family_ = family_of(me_.host(), {me_.id()});  // while it is known who spawned whom
    me_.exit(top_, exit_reason::shutdown());
    for (;;) {
      const exited x = co_await me_.receive<exited>();
      if (x.from == top_ && x.linked) co_return;
      if (x.from != me_.parent() || !x.signalled) continue;
      me_.kill(top_);
      co_await me_.exit(x.reason);
    }
  }

  task<> run_last_hook(const application_hook& hook, std::string_view name) {
    if (!hook) co_return;
    const result<void> ran = co_await try_hook(me_, hook, program_->how.args);
    if (!ran)
      me_.log(log_level::error, "the " + std::string{name} + " hook of application " + in_quotes(app_.name) + " failed",
              {{"application", app_.name}, {"reason", story(ran.error())}});
  }

  /// Processes that its children have spawned and left to themselves, as far as that can be seen.
  task<> kill_leftovers() {
    std::vector<pid> known = std::exchange(family_, {});
    known.push_back(me_.id());
    if (top_) known.push_back(top_);
    std::vector<pid> left = family_of(me_.host(), known);
    for (const pid who : known)
      if (who != me_.id() && me_.alive(who)) left.push_back(who);
    std::unordered_set<monitor_ref> open;
    for (const pid who : left) {
      open.insert(me_.monitor(who));
      me_.kill(who);
    }
    for (const time_point limit = me_.now() + patience; !open.empty();) {
      auto m = co_await me_.receive<down>(limit - me_.now());
      if (const down* d = std::get_if<down>(&m)) {
        open.erase(d->ref);
        continue;
      }
      me_.log(log_level::warning, "processes of an application that has stopped do not end, although they were killed",
              {{"application", app_.name}, {"count", std::to_string(open.size())}});
      co_return;
    }
  }

  void report_the_end(bool by_itself) {
    if (!by_itself) {
      say({.what = news::kind::stopped});
      return;
    }
    const bool done =
        why_.what() == exit_reason::kind::normal ||
        (last_words_ && last_words_->why == supervisor_ended::cause::done && !last_words_->reason.abnormal());
    std::string text = why_.to_string();
    if (last_words_) text = last_words_->text;
    if (last_words_ && !done) text += ": " + last_words_->reason.to_string();
    say({.what = news::kind::ended, .done = done, .text = std::move(text)});
  }

  void say(news n) {
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
