#pragma once
// Two servers that do the same, one with plain handlers and one whose handlers are coroutines, and a simulated node in
// which a process starts one of them and writes down what it sees.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <coppice/behaviour/server.hpp>
#include <coppice/sim/world.hpp>

namespace coppice {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

/// No timer is later than this.
inline constexpr std::chrono::milliseconds a_tick{10};

/// What happened, in order.
struct diary {
  lines all;
  void add(std::string line) { all.push_back(std::move(line)); }
  lines take() { return std::exchange(all, {}); }
  [[nodiscard]] bool has(std::string_view line) const { return std::ranges::find(all, line) != all.end(); }
};

/// What a server of the workshop does.
struct settings {
  std::string init = "ok";       // or ignore, fail, stop, stop_normal, throw, exit, hang
  std::string on_continue = "";  // "": not asked for; or ok, again, throw, stop, hang
  std::string terminate = "ok";  // or throw, hang
  bool constructor_throws = false;
  bool traps = true;
  std::chrono::nanoseconds idle = forever;
  int mail_in_init = 0;
};

struct echo {
  using reply = int;
  int n = 0;
};
struct note {
  std::string text;
};
struct finish {
  using reply = int;
  exit_reason why;
};
struct fail_now {
  using reply = int;
  bool by_exit = false;
};
struct go_on {};
struct later {
  using reply = int;
};
struct settle_later {
  int n = 0;
};
struct refuse {
  using reply = int;
};
struct let_idle {
  std::chrono::nanoseconds time;
};
struct unlink_parent {};

/// What the two kinds have in common.
class craft {
 public:
  craft(self& me, diary* into, settings s) : book_{into}, how_{std::move(s)} {
    if (how_.constructor_throws) throw std::runtime_error{"no material"};
    me.trap_exits(how_.traps ? trap::on : trap::off);
  }

 protected:
  init_result begin(self& me) {
    book_->add("init");
    for (int i = 1; i <= how_.mail_in_init; ++i) me.send(me.id(), note{std::to_string(i)});
    if (!how_.on_continue.empty()) continue_next(me);
    if (how_.init == "ignore") return init_result::ignore();
    if (how_.init == "fail") return init_result::fail(error{errc::invalid, "refused"});
    if (how_.init == "stop") return init_result::stop(exit_reason::error("no luck"));
    if (how_.init == "stop_normal") return init_result::stop(exit_reason::normal());
    if (how_.init == "throw") throw std::runtime_error{"out of luck"};
    if (how_.init == "exit") throw exit_with{exit_reason::error("left")};
    return init_result::ok();
  }
  void end(const exit_reason& why) const {
    book_->add("terminate " + why.to_string());
    if (how_.terminate == "throw") throw std::runtime_error{"no broom"};
  }
  void go_on_now(self& me) {
    book_->add("continue");
    const std::string what = std::exchange(how_.on_continue, "ok");
    if (what == "again") continue_next(me);
    if (what == "throw") throw std::runtime_error{"not now"};
    if (what == "stop") me.stop(exit_reason::shutdown());
  }
  [[noreturn]] static void fall(const fail_now& m) {
    if (m.by_exit) throw exit_with{exit_reason::shutdown("by hand")};
    throw std::runtime_error{"asked to fail"};
  }
  void see(const exited& x) const { book_->add("exited " + x.reason.to_string()); }

  diary* book_;
  settings how_;
  std::optional<reply_to<int>> open_;
};

using craft_protocol =
    protocol<echo, note, finish, fail_now, go_on, later, settle_later, refuse, let_idle, unlink_parent>;

class plain : craft {
 public:
  using protocol = craft_protocol;
  using craft::craft;
  init_result init(self& me) { return begin(me); }
  void terminate(const exit_reason& why) const { end(why); }
  void handle_continue(self& me) { go_on_now(me); }
  [[nodiscard]] std::chrono::nanoseconds idle_after() const { return how_.idle; }
  void handle(became_idle) const { book_->add("idle"); }
  static int handle(echo m) { return m.n; }
  void handle(note m) const { book_->add("note " + m.text); }
  static int handle(finish m, self& me) {
    me.stop(std::move(m.why));
    return 7;
  }
  static int handle(fail_now m) { fall(m); }
  static void handle(go_on, self& me) { continue_next(me); }
  void handle(later, reply_to<int> to) { open_ = std::move(to); }
  void handle(settle_later m) {
    if (open_) open_->reply(m.n);
    open_.reset();
  }
  static result<int> handle(refuse) { return fail(errc::invalid, "not for sale"); }
  void handle(let_idle m) { how_.idle = m.time; }
  static void handle(unlink_parent, self& me) { me.unlink(me.parent()); }
  void handle(exited x) const { see(x); }
};

class waiting : craft {
 public:
  using protocol = craft_protocol;
  using craft::craft;
  task<init_result> init(self& me) {
    co_await me.yield();
    if (how_.init == "hang") co_await me.sleep(1h);
    co_return begin(me);
  }
  task<void> terminate(const exit_reason& why, self& me) {
    co_await me.yield();
    if (how_.terminate == "hang") co_await me.sleep(1h);
    end(why);
  }
  task<void> handle_continue(self& me) {
    co_await me.yield();
    if (how_.on_continue == "hang") co_await me.sleep(1h);
    go_on_now(me);
  }
  [[nodiscard]] std::chrono::nanoseconds idle_after() const { return how_.idle; }
  task<void> handle(became_idle, self& me) {
    co_await me.yield();
    book_->add("idle");
  }
  static task<int> handle(echo m, self& me) {
    co_await me.yield();
    co_return m.n;
  }
  task<void> handle(note m, self& me) {
    co_await me.yield();
    book_->add("note " + m.text);
  }
  static task<int> handle(finish m, self& me) {
    me.stop(std::move(m.why));
    co_await me.yield();
    co_return 7;
  }
  static task<int> handle(fail_now m, self& me) {
    co_await me.yield();
    fall(m);
  }
  static task<void> handle(go_on, self& me) {
    continue_next(me);
    co_await me.yield();
  }
  void handle(later, reply_to<int> to) { open_ = std::move(to); }
  task<void> handle(settle_later m, self& me) {
    co_await me.yield();
    if (open_) open_->reply(m.n);
    open_.reset();
  }
  static task<result<int>> handle(refuse, self& me) {
    co_await me.yield();
    co_return fail(errc::invalid, "not for sale");
  }
  void handle(let_idle m) { how_.idle = m.time; }
  static void handle(unlink_parent, self& me) { me.unlink(me.parent()); }
  task<void> handle(exited x, self& me) {
    co_await me.yield();
    see(x);
  }
};

/// How the process that starts the server does it.
struct starter_settings {
  bool traps = true;
  bool links = true;
  std::string name = "";
  std::chrono::nanoseconds within = forever;
};

template <class T>
class workshop {
 public:
  diary book;

  [[nodiscard]] runtime& rt() { return node_.rt(); }
  [[nodiscard]] sim::world& world() { return world_; }
  void settle() { EXPECT_TRUE(world_.settle()); }
  void pass(std::chrono::nanoseconds time) { world_.run_for(time); }

  /// A process starts a server, and waits for it.
  void start(settings how = {}, starter_settings by = {}) {
    started.reset();
    starter_ended.reset();
    rt().spawn(watches, &book, std::move(how), std::move(by), this);
    settle();
    if (started && *started) server = **started;
  }
  /// What the starter got; nothing: it still waits, or it has ended.
  std::optional<result<ref<T>>> started;
  /// What the starter has ended with.
  std::optional<exit_reason> starter_ended;
  ref<T> server;
  pid starter;

  /// The starter tells the server to exit.
  void tell(exit_reason why) {
    rt().send(starter, order{.why = std::move(why)});
    settle();
  }
  /// The starter ends by itself.
  void end_starter(exit_reason why) {
    rt().send(starter, order{.why = std::move(why), .end_yourself = true});
    settle();
  }

  /// Calls from a process of its own; the answer is nothing until it is there.
  template <class M, class... Args>
  std::shared_ptr<std::optional<result<reply_of<M>>>> begin(Args&&... args) {
    auto answer = std::make_shared<std::optional<result<reply_of<M>>>>();
    rt().spawn(calls<M, std::decay_t<Args>...>, &book, server, answer, std::forward<Args>(args)...);
    return answer;
  }
  template <class M, class... Args>
  result<reply_of<M>> call(Args&&... args) {
    auto answer = begin<M>(std::forward<Args>(args)...);
    settle();
    return *answer ? **answer : fail(errc::timeout, "no answer yet");
  }
  template <class M, class... Args>
  void cast(Args&&... args) {
    rt().template cast<M>(server, std::forward<Args>(args)...);
    settle();
  }
  /// Calls `stop` from a process of its own.
  std::shared_ptr<std::optional<result<void>>> begin_stop(exit_reason why = {}, std::chrono::nanoseconds t = forever) {
    auto answer = std::make_shared<std::optional<result<void>>>();
    rt().spawn(stops, server, std::move(why), t, answer);
    settle();
    return answer;
  }
  [[nodiscard]] bool alive() { return rt().alive(server.id()); }

 private:
  struct order {
    exit_reason why;
    bool end_yourself = false;
  };
  static task<> starts(self& me, diary* book, settings how, starter_settings by, workshop* shop) {
    shop->starter = me.id();
    if (by.traps) me.trap_exits();
    const spawn_options options{.name = by.name, .link = by.links, .within = by.within};
    result<ref<T>> made = co_await coppice::start<T>(me, options, book, std::move(how));
    shop->started = made;
    book->add(made ? "started" : "not started");
    for (;;) {
      auto m = co_await me.receive<exited, order>();
      if (auto* x = std::get_if<exited>(&m)) {
        book->add("starter: exited " + x->reason.to_string());
        continue;
      }
      auto& todo = std::get<order>(m);
      if (todo.end_yourself) co_await me.exit(todo.why);
      me.exit(made->id(), todo.why);
    }
  }
  static task<> watches(self& me, diary* book, settings how, starter_settings by, workshop* shop) {
    me.spawn_monitor(starts, book, std::move(how), std::move(by), shop);
    const down d = co_await me.receive<down>();
    shop->starter_ended = d.reason;
  }
  template <class M, class... Args>
  static task<> calls(self&, diary* book, ref<T> to, std::shared_ptr<std::optional<result<reply_of<M>>>> into,
                      Args... args) {
    *into = co_await to.template call<M>(std::move(args)...);
    book->add("answered");
  }
  static task<> stops(self& me, ref<T> who, exit_reason why, std::chrono::nanoseconds time,
                      std::shared_ptr<std::optional<result<void>>> into) {
    *into = co_await stop(me, who, std::move(why), time);
  }

  sim::world world_{1};
  sim::node& node_ = world_.add_node();
};

using both_kinds = testing::Types<plain, waiting>;
struct kind_names {
  template <class T>
  static std::string GetName(int) {
    return std::is_same_v<T, plain> ? "plain" : "waiting";
  }
};

}  // namespace coppice
