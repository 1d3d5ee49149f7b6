#include "play.hpp"

#include <coppice/runtime/observe.hpp>
#include <coppice/sim/world.hpp>

#include "worker.hpp"

namespace otp_trace {
namespace {

using coppice::result;
using coppice::self;
using coppice::task;
using supervisor = coppice::ref<coppice::supervisor>;
using namespace std::chrono_literals;

/// The process that plays a scenario. It is the parent of the root supervisor.
class player {
 public:
  player(const scenario& s, coppice::sim::node& where) : scenario_{s}, node_{where}, stage_{s} {}
  [[nodiscard]] const std::string& trace() const noexcept { return stage_.trace(); }
  [[nodiscard]] bool finished() const noexcept { return finished_; }

  task<> play(self& me) {
    me.trap_exits();
    stage_.say("> start");
    co_await start_root(me);
    co_await report(me);
    for (const step& s : scenario_.steps) {
      stage_.say("> " + s.text);
      co_await take(me, s);
      co_await report(me);
    }
    stage_.say("> end");
    co_await shut_down(me);
    co_await settle(me);
    stage_.say(".");
    finished_ = true;
  }

 private:
  task<> start_root(self& me) {
    me.subscribe<coppice::process_ended>();
    const std::function<coppice::supervisor_spec()> init = [this] { return tree::init(&stage_, scenario_.root); };
    const coppice::spawn_options named{.name = scenario_.root, .label = {}, .link = true};
    const auto begun = co_await coppice::start<coppice::supervisor>(me, named, init);
    stage_.say("= " + word_for(begun));
    if (begun) stage_.has_begun(scenario_.root, begun->id());
    me.unsubscribe<coppice::process_ended>();
    // On OTP 25 the starter of a process that fails to start also receives its exit signal. In Coppice it does not, so
    // the end of the root is taken from the event.
    for (;;) {
      auto mail = co_await me.receive<coppice::process_ended>(0ns);
      const auto* end = std::get_if<coppice::process_ended>(&mail);
      if (end == nullptr) break;
      if (end->name == scenario_.root) root_end_ = end->reason;
    }
  }

  // -- the steps

  task<> take(self& me, const step& s) {
    switch (s.what) {
      case step::kind::crash: to_worker(s.target, "crash"); break;
      case step::kind::exit: to_worker(s.target, s.reason); break;
      case step::kind::kill: kill(me, s.target); break;
      case step::kind::wait:
        co_await me.sleep(s.time);
        stage_.say("= ok");
        break;
      case step::kind::stop:
        stage_.say("= ok");
        co_await shut_down(me);
        break;
      case step::kind::burst: co_await burst(me, s); break;
      default: co_await call(s);
    }
  }

  void to_worker(const std::string& id, std::string_view reason) {
    const coppice::pid who = living(id);
    stage_.say(who ? "= ok" : "= no_process");
    if (who) tell(who, reason);
  }

  static void tell(coppice::pid who, std::string_view reason) {
    coppice::ref<worker>{who}.cast<worker::end>(reason_for(reason));
  }

  void kill(self& me, const std::string& id) {
    const coppice::pid who = living(id);
    stage_.say(who ? "= ok" : "= no_process");
    if (who) me.kill(who);
  }

  task<> call(const step& s) {
    if (s.how) stage_.give_spec(s.child, *s.how);
    const supervisor called{living(s.target)};
    std::string answer = "no_process";
    if (called) answer = co_await ask(called, s);
    stage_.say("= " + answer);
  }

  task<std::string> ask(supervisor called, const step& s) {
    switch (s.what) {
      case step::kind::start_child: {
        coppice::child_spec spec = stage_.child(s.child);
        const auto began = co_await start_child(called, std::move(spec));
        co_return word_for(began);
      }
      case step::kind::terminate_child: {
        const auto ended = co_await terminate_child(called, s.child);
        co_return word_for(ended);
      }
      case step::kind::restart_child: {
        const auto began = co_await restart_child(called, s.child);
        co_return began ? "ok" : word_for(as_said(began.error()));
      }
      case step::kind::delete_child: {
        const auto deleted = co_await delete_child(called, s.child);
        co_return word_for(deleted);
      }
      default: break;
    }
    const auto counted = co_await count_children(called);
    co_return word_for(counted);
  }

  // -- a burst: the supervisor is held in a call until all signals of the burst have arrived

  task<> burst(self& me, const step& s) {
    const supervisor held{living(s.target)};
    if (!held) {
      stage_.say("= no_process");
      co_return;
    }
    step first;
    first.what = step::kind::count;
    std::vector<std::string> answers(s.parts.size() + 1);
    node_.stick(held.id(), (s.parts.size() + 2) * 1ms);
    co_await send_call(me, held, first, answers[0]);
    for (std::size_t i = 0; i < s.parts.size(); ++i) {
      const step& part = s.parts[i];
      if (part.what == step::kind::crash || part.what == step::kind::exit || part.what == step::kind::kill) {
        co_await end_worker(me, part, answers[i + 1]);
      } else {
        if (part.how) stage_.give_spec(part.child, *part.how);
        co_await send_call(me, held, part, answers[i + 1]);
      }
    }
    co_await me.sleep(2ms);
    co_await settle(me);
    std::string line;
    for (std::size_t i = 1; i < answers.size(); ++i) line += (i == 1 ? "= " : ", ") + answers[i];
    stage_.say(line);
  }

  /// Makes the call in a process of its own, so that the reply is recorded before anything else happens.
  task<> send_call(self& me, supervisor held, const step& s, std::string& answer) {
    me.spawn(ask_in_burst, this, held, &s, &answer);
    co_await me.sleep(100us);
  }

  static task<> ask_in_burst(self&, player* p, supervisor held, const step* s, std::string* answer) {
    *answer = co_await p->ask(held, *s);
  }

  task<> end_worker(self& me, const step& s, std::string& answer) {
    const coppice::pid who = living(s.target);
    answer = who ? "ok" : "no_process";
    if (!who) co_return;
    me.monitor(who);
    if (s.what == step::kind::kill) {
      me.kill(who);
    } else {
      tell(who, s.what == step::kind::crash ? "crash" : s.reason);
    }
    co_await me.receive<coppice::down>();
  }

  // -- answers

  template <class T>
  static std::string word_for(const result<T>& r) {
    return r ? "ok" : word_for(r.error());
  }

  static std::string word_for(const result<coppice::child_counts>& r) {
    if (!r) return word_for(r.error());
    return "specs:" + std::to_string(r->specs) + " active:" + std::to_string(r->active) +
           " supervisors:" + std::to_string(r->supervisors) + " workers:" + std::to_string(r->workers);
  }

  /// The error as OTP's restart_child returns it: the error of the start itself. OTP's start_child wraps that error.
  static const coppice::error& as_said(const coppice::error& e) {
    return e.code() == coppice::errc::start_failed && e.cause() != nullptr ? *e.cause() : e;
  }

  static std::string word_for(const coppice::error& e) {
    using coppice::errc;
    const std::optional<errc> code = e.code().as<errc>();
    if (!code) return "error " + std::string{e.code().word()};
    switch (*code) {
      case errc::noproc:
      case errc::exited: return "exit";
      case errc::start_failed: return "error failed";
      case errc::duplicate_id: return "error duplicate_child_name";
      default: return "error " + std::string{to_string(*code)};
    }
  }

  task<> shut_down(self& me) {
    const coppice::pid root = living(scenario_.root);
    if (!root) co_return;
    me.exit(root, coppice::exit_reason::shutdown());
    const auto end = co_await me.receive<coppice::exited>();
    root_end_ = end.reason;
  }

  // -- the state after a step

  [[nodiscard]] coppice::pid living(const std::string& id) const {
    const coppice::pid who = stage_.last(id);
    return node_.rt().alive(who) ? who : coppice::pid{};
  }

  /// Waits until nothing happens any more. A sleep lets all pending events happen, and a supervisor that waits for the
  /// end of a child answers only afterwards. What it does then may cause work in the supervisor above it, so two rounds
  /// in a row must leave the trace unchanged.
  task<> settle(self& me) {
    for (int quiet = 0; quiet < 2; ++quiet) {
      const std::size_t seen = stage_.trace().size();
      co_await me.sleep(1ms);
      co_await ask_all(scenario_.root);
      if (stage_.trace().size() != seen) quiet = -1;
    }
  }

  /// Waits for an answer of every supervisor from `id` downwards, and updates their pids.
  task<> ask_all(std::string id) {
    const supervisor asked{living(id)};
    if (asked) {
      const auto children = co_await which_children(asked);
      if (children)
        for (const coppice::child_info& c : *children)
          if (c.type == coppice::child_type::supervisor && c.who) stage_.has_begun(c.id, c.who);
    }
    for (const std::string& below : stage_.supervisors_below(id)) co_await ask_all(below);
  }

  task<> report(self& me) {
    co_await settle(me);
    co_await show(scenario_.root);
    if (!root_end_) {
      auto end = co_await me.receive<coppice::exited>(0ns);
      if (auto* x = std::get_if<coppice::exited>(&end)) root_end_ = x->reason;
    }
    if (root_end_) stage_.say("! root exited " + otp_trace::word_for(*root_end_));
    root_end_.reset();
  }

  task<> show(std::string id) {
    const supervisor shown{living(id)};
    std::string line = "| " + id;
    if (shown) {
      const auto children = co_await which_children(shown);
      for (const coppice::child_info& c : children.value()) line += " " + c.id + ":" + word_for(c.state);
    } else {
      line += " down";
    }
    stage_.say(line);
    for (const std::string& below : stage_.supervisors_below(id)) co_await show(below);
  }

  static std::string word_for(coppice::child_state state) {
    switch (state) {
      case coppice::child_state::running: return "alive";
      case coppice::child_state::restarting: return "restarting";
      case coppice::child_state::undefined: break;
    }
    return "undefined";
  }

  const scenario& scenario_;
  coppice::sim::node& node_;
  stage stage_;
  std::optional<coppice::exit_reason> root_end_;  // why the root ended, until that is printed
  bool finished_ = false;
};

task<> perform(self& me, player* p) { co_await p->play(me); }

}  // namespace

std::string play(const scenario& s, std::uint64_t seed) {
  coppice::sim::world world{seed};
  coppice::sim::node& node = world.add_node();
  player p{s, node};
  node.rt().spawn(perform, &p);
  if (!world.run_until([&] { return p.finished(); }))
    throw std::runtime_error{"the scenario does not end; its trace so far is\n" + p.trace()};
  std::string trace = p.trace();
  node.crash();  // before the player is destroyed, because the processes use it
  return trace;
}

}  // namespace otp_trace
