// The order in which applications start and stop, and what their ends mean for the program.
#include <algorithm>

#include "internal/state.hpp"

namespace coppice::detail {

namespace {

class controller {
 public:
  controller(self& me, std::shared_ptr<program_state> program)
      : me_{me}, program_{std::move(program)}, apps_(program_->apps.size()) {}

  /// False: the program has ended.
  [[nodiscard]] bool running() const noexcept { return !over_; }
  void begin() { start_next(); }

  void handle(const master_report& n) {
    one& app = apps_[n.which];
    if (app.state == application_state::ended) return;
    switch (n.what) {
      case master_report::kind::started: handle_started(n); return;
      case master_report::kind::start_failed: handle_failed_start(n.which, n.text); return;
      case master_report::kind::ended: handle_ended(n.which, n.done, n.text); return;
      case master_report::kind::stopped: break;
    }
    become(n.which, application_state::ended);
    stop_next();
  }

  /// The last message of a master arrives before the exit of the master. A master without a last message was killed.
  void handle(const exited& x) {
    if (!x.signalled) return;
    const auto found = std::ranges::find(apps_, x.from, &one::master);
    if (found == apps_.end() || !x.linked) {
      if (!x.linked && x.reason.what() != exit_reason::kind::normal)
        stop({.what = program_end::stopped}, "its controller received an exit signal");
      return;
    }
    if (found->state == application_state::ended) return;
    const auto which = static_cast<std::size_t>(found - apps_.begin());
    const std::string text = "its own process ended: " + x.reason.to_string();
    if (found->state == application_state::starting) {
      // Its top supervisor is not known yet, and does not notice the end of its parent while it starts a child.
      for (const pid who : family_of(me_.host(), {x.from})) me_.kill(who);
      handle_failed_start(which, text);
      return;
    }
    me_.kill(found->top);
    handle_ended(which, false, text);
  }

  void handle(signal_received s) {
    if (std::ranges::find(program_->how.stop_on, s.which) != program_->how.stop_on.end())
      handle_stop_signal(s);
    else
      handle_other_signal(s.which);
  }
  void handle(stop_asked asked) {
    if (!own_code_) own_code_ = asked.code;
    stop({.what = program_end::stopped}, "a stop was requested");
  }
  /// An application that is starting reloads when it is up, because it may have read its configuration already.
  void handle(reload_asked) {
    for (std::size_t i = 0; i < apps_.size(); ++i)
      if (app(i).reload && at_work(i)) me_.send(apps_[i].master, reload_order_for_master{});
  }
  void handle(kill_asked) { end_hard({.what = program_end::stopped_hard, .text = "it was killed"}); }
  void handle(timer_fired t) {
    if (t.ref != limit_) return;
    std::string late;
    for (std::size_t i = 0; i < apps_.size(); ++i)
      if (at_work(i)) late += (late.empty() ? "" : ", ") + in_quotes(name_of(i));
    const std::string text = "not stopped within " + to_string(*program_->how.stop_within) + " and killed: " + late;
    if (outcome_.exit_code() == 0) {
      end_hard({.what = program_end::not_in_time, .text = text, .signal = outcome_.signal});
      return;
    }
    outcome_.text += "; " + text;
    end_hard(std::move(outcome_));
  }
  void handle(request<calls::which_applications>& asked) {
    std::vector<application_info> all;
    for (std::size_t i = 0; i < apps_.size(); ++i)
      all.push_back({.name = name_of(i), .state = apps_[i].state, .restart = app(i).restart, .top = apps_[i].top});
    asked.reply(std::move(all));
  }

 private:
  struct one {
    application_state state = application_state::waiting;
    pid master{};
    pid top{};
    bool done = false;  // once ended: it has done its work
    std::string why{};  // once ended: why it is not running
  };

  [[nodiscard]] const application_options& app(std::size_t i) const { return program_->apps[i].app; }
  [[nodiscard]] const std::string& name_of(std::size_t i) const { return app(i).name; }
  [[nodiscard]] bool temporary(std::size_t i) const { return app(i).restart == restart::temporary; }
  [[nodiscard]] bool at_work(std::size_t i) const {
    return apps_[i].state != application_state::waiting && apps_[i].state != application_state::ended;
  }

  void become(std::size_t i, application_state now, std::string text = {}) {
    ensure(may_follow(apps_[i].state, now), "an application went to a state that cannot follow its last one");
    apps_[i].state = now;
    if (now == application_state::ended) apps_[i].top = {};
    me_.log(log_parts::application, log_level::info,
            "application " + in_quotes(name_of(i)) + ": " + std::string{to_string(now)}, {{"application", name_of(i)}});
    me_.publish(application_event{.now = now, .name = name_of(i), .text = std::move(text)});
  }

  void handle_stop_signal(signal_received s) {
    const std::string name{to_string(s.which)};
    if (++signals_ > 1) {
      end_hard({.what = program_end::stopped_hard,
                .text = name + " was the second signal: stopped at once",
                .signal = s.which});
      return;
    }
    if (stopping_)
      me_.log(log_parts::application, log_level::warning,
              name + ": the program is stopping already; another signal stops it at once");
    else
      stop({.what = program_end::stopped, .signal = s.which}, name);
  }

  void handle_other_signal(os_signal s) {
    const auto& published = program_->how.publish;
    if (std::ranges::find(published, s) != published.end()) me_.publish(program_signal{s});
    if (s == os_signal::hangup) handle(reload_asked{});
  }

  // -- up

  void start_next() {
    while (next_ < apps_.size() && !stopping_)
      if (begin_start(next_++)) return;
    if (!stopping_) end_if_done();
  }

  /// False: the application cannot be started, and `cannot_start` has handled that.
  bool begin_start(std::size_t i) {
    if (const auto missing = missing_for(i)) return cannot_start(i, *missing), false;
    become(i, application_state::starting);
    const auto made = me_.spawn({.label = "application " + name_of(i), .link = true}, application_master,
                                std::shared_ptr<const program_state>{program_}, i);
    if (!made) return cannot_start(i, made.error().to_string()), false;
    apps_[i].master = *made;
    return true;
  }

  /// Why the application cannot be started; nothing if all those it depends on are running or have done their work.
  [[nodiscard]] std::optional<std::string> missing_for(std::size_t i) const {
    for (const std::size_t needed : program_->apps[i].needs) {
      const one& other = apps_[needed];
      if (other.state == application_state::running || other.done) continue;
      return "it depends on " + in_quotes(name_of(needed)) + ", which is not running: " + other.why;
    }
    return std::nullopt;
  }

  void continue_with_next() {
    if (stopping_)
      stop_next();
    else
      start_next();
  }

  void handle_started(const master_report& n) {
    apps_[n.which].top = n.top;
    become(n.which, application_state::running);
    continue_with_next();
  }

  void handle_failed_start(std::size_t i, const std::string& why) {
    cannot_start(i, why);
    continue_with_next();
  }

  void cannot_start(std::size_t i, const std::string& why) {
    apps_[i].why = "it could not be started";
    become(i, application_state::ended, why);
    const std::string text = "application " + in_quotes(name_of(i)) + " could not be started: " + why;
    me_.log(log_parts::application, temporary(i) ? log_level::warning : log_level::error, text,
            {{"application", name_of(i)}});
    if (!temporary(i)) stop({.what = program_end::start_failed, .text = text}, text);
  }

  // -- an application ended by itself

  void handle_ended(std::size_t i, bool done, const std::string& why) {
    const bool by_us = apps_[i].state == application_state::stopping;
    apps_[i].done = done;
    apps_[i].why = "it has ended";
    become(i, application_state::ended, why);
    const std::string text = "application " + in_quotes(name_of(i)) + " ended: " + why;
    const log_level level = temporary(i) ? log_level::warning : log_level::error;
    if (!by_us) me_.log(log_parts::application, done ? log_level::info : level, text, {{"application", name_of(i)}});
    if (stopping_) {
      stop_next();
      return;
    }
    if (!temporary(i) && !done)
      stop({.what = program_end::gave_up, .text = text}, text);
    else if (app(i).restart == restart::permanent && !all_done())
      stop({.what = program_end::gave_up, .text = text + ", and it is permanent"}, text);
    else
      end_if_done();
  }

  /// Temporary applications count only if there are no others.
  [[nodiscard]] bool all_done() const {
    bool others = false;
    for (std::size_t i = 0; i < apps_.size(); ++i) {
      others = others || !temporary(i);
      if (!temporary(i) && !apps_[i].done) return false;
    }
    return others || std::ranges::all_of(apps_, [](const one& a) { return a.state == application_state::ended; });
  }
  void end_if_done() {
    if (next_ == apps_.size() && all_done()) stop({.what = program_end::done}, "all applications are done");
  }

  // -- down

  void stop(program_outcome out, const std::string& why) {
    if (stopping_) return;
    stopping_ = true;
    outcome_ = std::move(out);
    // A failure was logged before. A signal is logged as a warning, so that its sender sees that it was received.
    me_.log(log_parts::application, outcome_.what == program_end::stopped ? log_level::warning : log_level::info,
            "the program stops in order: " + why + (signals_ > 0 ? "; a second signal stops it at once" : ""));
    if (program_->how.stop_within) limit_ = me_.start_timer(*program_->how.stop_within);
    stop_next();
  }

  /// Stops the application that was started last of those still running. An application that is starting is stopped
  /// when it is up. When no application is left, the program ends.
  void stop_next() {
    if (over_) return;
    for (std::size_t i = next_; i-- > 0;) {
      if (!at_work(i)) continue;
      if (apps_[i].state != application_state::running) return;
      become(i, application_state::stopping);
      me_.send(apps_[i].master, stop_order_for_master{});
      return;
    }
    end(std::move(outcome_));
  }

  void end_hard(program_outcome out) {
    me_.log(log_parts::application, log_level::warning, "the program stops at once", {{"reason", out.text}});
    // Parents first, so that they do not see their children end and restart them.
    std::vector<pid> all{me_.id()};
    for (const one& a : apps_)
      for (const pid who : {a.master, a.top})
        if (who) all.push_back(who);
    std::ranges::copy(family_of(me_.host(), all), std::back_inserter(all));
    for (const pid who : all)
      if (who != me_.id()) me_.kill(who);
    end(std::move(out));
  }

  void end(program_outcome out) {
    over_ = true;
    if (out.exit_code() == 0) out.own_code = own_code_;
    program_->end(std::move(out));
  }

  self& me_;
  std::shared_ptr<program_state> program_;
  std::vector<one> apps_;      // in the order of their start
  std::size_t next_ = 0;       // the next application to start
  program_outcome outcome_{};  // set when the stop begins
  std::optional<int> own_code_{};
  timer_ref limit_{};
  int signals_ = 0;
  bool stopping_ = false;
  bool over_ = false;
};

/// Sets an outcome when the controller ends, however it ends, so that nobody waits for ever.
class outcome_guard {
 public:
  explicit outcome_guard(std::shared_ptr<program_state> program) : program_{std::move(program)} {}
  outcome_guard(const outcome_guard&) = delete;
  outcome_guard& operator=(const outcome_guard&) = delete;
  ~outcome_guard() { program_->end_with_controller(); }

 private:
  std::shared_ptr<program_state> program_;
};

}  // namespace

task<> program_controller(self& me, std::shared_ptr<program_state> program) {
  const outcome_guard whatever_happens{program};
  me.trap_exits();
  program->lead_handles_to(me.host().weak_from_this());  // those that it starts may use them at once
  controller mine{me, program};
  mine.begin();
  while (mine.running()) {
    auto m = co_await me.receive<master_report, exited, signal_received, stop_asked, reload_asked, kill_asked,
                                 timer_fired, request<calls::which_applications>>();
    std::visit([&](auto& each) { mine.handle(each); }, m);
  }
}

}  // namespace coppice::detail
