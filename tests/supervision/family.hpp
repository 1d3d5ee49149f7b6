#pragma once
// A simulated node with a supervisor, workers that write down what happens to them, and a way to ask from the test.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <coppice/sim/world.hpp>
#include <coppice/supervision/supervisor.hpp>

namespace coppice {

using namespace std::chrono_literals;

/// What the workers of a family did, and what their next starts shall do.
struct journal {
  std::vector<std::string> lines;
  std::map<std::string, std::deque<std::string>> starts;  // "fail", "refuse", "ignore", "throw", "hang" or "ok", by id
  std::map<std::string, pid> pids;                        // of the newest process of each id

  std::vector<std::string> take() { return std::exchange(lines, {}); }
};

/// Says what it does; polite unless told otherwise.
struct worker {
  struct finish {
    exit_reason why;
  };
  struct ping {
    using reply = int;
  };
  using protocol = coppice::protocol<finish, ping>;
  static constexpr bool traps_exits = false;  // the constructor decides

  worker(self& me, journal* into, std::string who, bool trap, bool is_stubborn)
      : book{into}, id{std::move(who)}, stubborn{is_stubborn} {
    me.trap_exits(trap ? coppice::trap::on : coppice::trap::off);
  }
  task<init_result> init(self& me) {
    auto& plan = book->starts[id];
    const std::string next = plan.empty() ? "ok" : plan.front();
    if (!plan.empty()) plan.pop_front();
    if (next != "ok") book->lines.push_back(next + " " + id);
    if (next == "fail") co_return init_result::stop(exit_reason::error("failed"));
    if (next == "refuse") co_return init_result::fail(error{errc::invalid, "refused"});
    if (next == "ignore") co_return init_result::ignore();
    if (next == "throw") throw std::runtime_error{"out of luck"};
    if (next == "hang") co_await me.sleep(1h);
    book->lines.push_back("start " + id);
    book->pids[id] = me.id();
    co_return init_result::ok();
  }
  task<void> terminate(const exit_reason& why, self& me) {
    book->lines.push_back("stop " + id + " " + std::string{to_string(why.what())});
    while (stubborn && why.what() == exit_reason::kind::shutdown) co_await me.sleep(1h);
  }
  static void handle(finish m, self& me) { me.stop(std::move(m.why)); }
  static int handle(ping) { return 1; }

  journal* book;
  std::string id;
  bool stubborn;
};

class family {
 public:
  explicit family(std::uint64_t seed = 1, runtime_options options = {.processes = 1U << 16U, .level = log_level::off})
      : world_{seed}, node_{world_.add_node({}, std::move(options))} {}

  [[nodiscard]] runtime& rt() { return node_.rt(); }
  [[nodiscard]] sim::node& node() { return node_; }
  [[nodiscard]] sim::world& world() { return world_; }
  journal book;

  [[nodiscard]] child_spec child(const std::string& id, const child_options& how = {}, bool trap = true,
                                 bool stubborn = false) {
    return coppice::child<worker>(&book, id, trap, stubborn).with({.id = id}).with(how);
  }

  /// Starts the supervisor, as the child of a process of the test.
  result<ref<supervisor>> start(supervisor_spec spec) {
    started_.reset();
    ended_.reset();
    parent_ = rt().spawn(parent, std::move(spec), &started_, &ended_);
    settle();
    return catch_up();
  }
  /// What came of the start meanwhile.
  result<ref<supervisor>> catch_up() {
    if (started_ && *started_) tree = **started_;
    return started_ ? *started_ : fail(errc::timeout, "the supervisor has not started");
  }
  /// What the supervisor ended with; nothing: it lives.
  [[nodiscard]] const std::optional<exit_reason>& ended() const { return ended_; }
  /// Its parent tells it to end.
  void stop(exit_reason why = exit_reason::shutdown()) {
    rt().send(parent_, tell{std::move(why)});
    settle();
  }

  template <class M>
  result<reply_of<M>> ask(pending_call<M> call) {
    auto answer = begin(std::move(call));
    settle();
    if (!*answer) return fail(errc::timeout, "no answer yet");
    return **answer;
  }
  /// The same without waiting.
  template <class M>
  std::shared_ptr<std::optional<result<reply_of<M>>>> begin(pending_call<M> call) {
    auto answer = std::make_shared<std::optional<result<reply_of<M>>>>();
    rt().spawn(asking<M>, std::move(call), answer);
    return answer;
  }

  [[nodiscard]] pid who(const std::string& id) { return book.pids[id]; }
  void finish(const std::string& id, exit_reason why) {
    rt().send(who(id), worker::finish{std::move(why)});
    settle();
  }
  void crash(const std::string& id) { finish(id, exit_reason::error("crash")); }
  void kill(const std::string& id) {
    rt().kill(who(id));
    settle();
  }
  /// All that can happen without time passing.
  void settle() { EXPECT_TRUE(world_.settle()); }
  void pass(std::chrono::nanoseconds time) { world_.run_for(time); }
  /// Its code does not come back before that time has passed.
  void stick(pid who, std::chrono::nanoseconds time) {
    node_.stick(who, time);
    rt().send(who, poke{});
    settle();
  }
  /// Until it is so; false: it is not, within a while.
  bool until(const std::function<bool()>& so) { return world_.run_until(so, 1s); }
  /// From here on what supervisors tell is kept.
  void listen() {
    rt().spawn(listens, &events);
    settle();
  }
  std::vector<supervisor_event> events;
  /// `a:running b:undefined`
  std::string state() {
    const auto all = ask(which_children(tree));
    if (!all) return "down";
    std::string text;
    for (const child_info& c : *all) text += (text.empty() ? "" : " ") + c.id + ":" + std::string{to_string(c.state)};
    return text;
  }

  ref<supervisor> tree;

 private:
  struct tell {
    exit_reason why;
  };
  struct poke {};  // nobody handles it
  static task<> parent(self& me, supervisor_spec spec, std::optional<result<ref<supervisor>>>* started,
                       std::optional<exit_reason>* ended) {
    me.trap_exits();
    const spawn_options linked{.link = true};
    result<ref<supervisor>> made = co_await coppice::start<supervisor>(me, linked, std::move(spec));
    *started = made;
    if (!made) co_return;
    for (;;) {
      auto m = co_await me.receive<exited, tell>();
      if (auto* x = std::get_if<exited>(&m)) {
        *ended = x->reason;
        co_return;
      }
      me.exit(made->id(), std::get<tell>(m).why);
    }
  }
  static task<> listens(self& me, std::vector<supervisor_event>* into) {
    me.subscribe<supervisor_event>();
    for (;;) {
      auto e = co_await me.receive<supervisor_event>();
      into->push_back(std::move(e));
    }
  }
  template <class M>
  static task<> asking(self&, pending_call<M> call, std::shared_ptr<std::optional<result<reply_of<M>>>> into) {
    *into = co_await std::move(call);
  }

  std::optional<result<ref<supervisor>>> started_;
  std::optional<exit_reason> ended_;
  sim::world world_;
  sim::node& node_;
  pid parent_;
};

using lines = std::vector<std::string>;

/// No timer is later than this.
inline constexpr std::chrono::milliseconds a_tick{10};
/// Starts that all fail.
inline std::deque<std::string> always(const std::string& how) { return std::deque<std::string>(100'000, how); }

}  // namespace coppice
