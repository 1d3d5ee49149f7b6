// What hooks, deciders and constructors do to the very actor they run in: it takes effect behind them, once.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

struct crash {};
struct server {
  using protocol = coppice::protocol<crash>;
  static void handle(crash) { throw std::runtime_error{"crash"}; }
};
/// A process below `name`, known as "process".
void spawn_process(stage& s, const std::string& name) {
  s.act(name, [](player& p, context& me) {
    const auto born = me.spawn(child<server>());
    ASSERT_TRUE(born);
    p.book().pids["process"] = *born;
  });
}
void crash_process(stage& s) {
  s.rt().send(s.who("process"), crash{});
  s.settle();
}
deed stops_process() {
  return [](player& p, context& me) {
    me.stop(p.book().pids["process"]);
    p.note(" goes on");
  };
}
/// Of which a process that has failed waits for its restart.
actor_options patient() { return {.strategy = one_for_one({.wait = backoff{.first = 5s}})}; }

struct strict {
  using protocol = coppice::protocol<>;
  explicit strict(pid* k) : kid{k} {}
  void handle(started, context& me) const { *kid = me.spawn(child<server>()).value_or(pid{}); }
  static directive decide(const child_failure& f, context& me) {
    me.stop(f.child);
    return directive::restart;
  }
  pid* kid;
};
TEST(decider, that_stops_the_process_which_has_failed_may_answer_all_the_same) {
  stage s;
  pid kid;
  const auto a = spawn_actor(s.rt(), props<strict>(&kid));
  s.settle();
  s.rt().send(kid, crash{});
  s.settle();
  EXPECT_FALSE(s.rt().alive(kid));
  EXPECT_TRUE(s.rt().alive(a.id()));
}

/// "a" has a process that waits for its restart, and stops it in that hook.
void stop_process_in(stage& s, const std::string& hook) {
  s.root("a", patient());
  spawn_process(s, "a");
  crash_process(s);
  s.book.next["a " + hook].push_back(stops_process());
}

TEST(hook, restarting_that_stops_a_process_which_waits_is_over_before_the_next_instance_begins) {
  stage s;
  stop_process_in(s, "restarting");
  s.book.always["a started"] = [](player&, context& me) { (void)me.every(1s, theatre::say{"tick"}); };
  (void)s.book.take();
  s.fail("a");
  EXPECT_EQ(s.book.take(), (lines{"a restarting", "a goes on", "a started"}));
  s.pass(2500ms);
  EXPECT_EQ(s.book.take(), (lines{"a: tick", "a: tick"})) << "its timers are those of the new instance";
}

TEST(hook, stopping_that_stops_a_process_which_waits_is_over_before_stopped) {
  stage s;
  stop_process_in(s, "stopping");
  (void)s.book.take();
  s.stop("a");
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "a goes on", "a stopped"}));
}

/// Tells its process to stop when the time of its restart is over, which waits for that very handler.
struct hesitant {
  struct halt {};
  struct how_many {
    using reply = std::size_t;
  };
  using protocol = coppice::protocol<halt, how_many>;
  hesitant(runtime* r, pid* k, std::latch* b, std::latch* s) : rt{r}, kid{k}, born{b}, stops{s} {}
  void handle(started, context& me) const {
    *kid = me.spawn(child<server>()).value_or(pid{});
    born->count_down();
  }
  void handle(halt, context& me) const {
    const std::vector<pid> now = me.children();
    while (rt->counters().timers != 0) std::this_thread::yield();
    for (const pid each : now) me.stop(each);
    stops->count_down();
  }
  static std::size_t handle(how_many, context& me) { return me.children().size(); }
  runtime* rt;
  pid* kid;
  std::latch* born;
  std::latch* stops;
};
TEST(stop, of_a_process_that_is_restarted_in_that_moment_stops_the_new_one) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  pid kid;
  std::latch born{1};
  std::latch stops{1};
  const auto a = spawn_actor(rt, props<hesitant>(&rt, &kid, &born, &stops)
                                     .with({.strategy = one_for_one({.wait = backoff{.first = 100ms, .jitter = 0}})}));
  born.wait();
  const std::uint64_t spawned = rt.counters().spawned;
  rt.send(kid, crash{});
  while (rt.counters().timers == 0 && rt.counters().spawned == spawned) std::this_thread::yield();  // it waits, or did
  rt.cast<hesitant::halt>(a);
  stops.wait();
  for (bool gone = false; !gone;) {  // for ever, when the new one is left
    const result<std::size_t> left = rt.call(a.call<hesitant::how_many>());
    gone = left && *left == 0;
  }
}

// ---- fail(), which is as an exception

struct question {
  using reply = int;
};
struct pessimist {
  using protocol = coppice::protocol<question>;
  static int handle(question, context& me) {
    me.fail(exit_reason::error("bad state"));
    return 42;
  }
};
TEST(fail, in_a_handler_that_returns_a_value_gives_no_reply) {
  stage s;
  const auto a = spawn_actor(s.rt(), props<pessimist>());
  const auto heard = s.rt().call(a.call<question>());
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code(), errc::no_reply);
}

TEST(fail, in_on_init_makes_no_instance_and_is_run_again) {
  stage s;
  int inits = 0;
  s.root("a", {.on_init = {[&](context& me) {
                             if (++inits == 1) me.fail(exit_reason::error("not yet"));
                           },
                           [&](context&) { inits += 10; }}});
  EXPECT_EQ(inits, 12);
  EXPECT_EQ(s.book.take(), (lines{"a started"}));
}

TEST(fail, in_a_constructor_leaves_no_instance) {
  stage s;
  s.book.next["a made"].push_back([](player&, context& me) { me.fail(exit_reason::error("no luck")); });
  s.root("a", {.guardian = one_for_one({.decide = [](const child_failure&) { return directive::resume; }})});
  EXPECT_EQ(s.book.take(), (lines{"a started"})) << "there was nothing to resume";
  EXPECT_EQ(s.said("a"), 0);
}

struct nervous {
  using protocol = coppice::protocol<>;
  explicit nervous(script* b) : book{b} {}
  void handle(started, context& me) const { book->pids["c"] = me.spawn(part(*book, "c")).id(); }
  static directive decide(const child_failure&, context& me) {
    me.fail(exit_reason::error("first"));
    throw std::runtime_error{"second"};
  }
  script* book;
};
TEST(fail, in_a_decider_that_throws_as_well_is_one_failure) {
  stage s;
  const auto resumes = one_for_one({.decide = [](const child_failure&) { return directive::resume; }});
  (void)spawn_actor(s.rt(), props<nervous>(&s.book).with({.guardian = resumes}));
  s.settle();
  s.fail("c");
  EXPECT_EQ(s.said("c"), 0) << "it takes mail again";
}

// ---- restarts that were planned for others

TEST(all_for_one, restart_that_waits_is_forgotten_with_the_children_it_was_for) {
  stage s;
  s.root("p", {.strategy = all_for_one({.wait = backoff{.first = 10s, .cap = 10s}})});
  s.book.always["p started"] = [](player& p, context& me) {
    for (const char* name : {"a", "b"}) p.book().pids[name] = me.spawn(part(p.book(), name)).id();
  };
  s.act("p", s.book.always["p started"]);
  s.fail("a");
  s.pass(5s);
  s.fail("p");
  s.pass(4s);
  s.fail("a");  // another one: the time of the first is over in a second
  (void)s.book.take();
  s.pass(9s);
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(2s);
  const lines heard = s.book.take();
  EXPECT_EQ(std::ranges::count(heard, "b started"), 1);
  EXPECT_EQ(std::ranges::count(heard, "a started"), 1);
}

TEST(all_for_one, restart_that_waits_is_not_lost_with_those_that_were_to_be_restarted_first) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("p", {.strategy = custom_strategy([](const child_failure& f) {
                   return judgement{.what = directive::restart, .all = true, .after = f.name == "a" ? 400ms : 200ms};
                 })});
    for (const char* name : {"a", "b", "c"}) s.child("p", name);
    s.tell("a", throws());
    s.tell("b", throws());
    s.settle();
    s.stop("b");
    s.pass(1s);
    EXPECT_EQ(s.said("a"), 0) << "it takes mail";
    EXPECT_EQ(s.said("c"), 0) << "it takes mail";
  });
}

TEST(all_for_one, restart_that_waits_ends_when_all_children_it_would_restart_are_stopping) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("p", {.strategy = custom_strategy([](const child_failure& f) {
                   return judgement{.what = directive::restart, .all = true, .after = f.name == "a" ? 400ms : 200ms};
                 })});
    for (const char* name : {"a", "b"}) s.child("p", name);
    for (const char* name : {"a", "b"}) s.child(name, std::string{name} + " below");
    s.tell("a", throws());
    s.tell("b", throws());
    s.settle();
    for (const char* name : {"a below", "b below"}) s.stick(name, 1s);  // so that they take a while to stop
    s.act("p", [](player& p, context& me) {
      for (const char* name : {"a", "b"}) me.stop(p.book().pids[name]);
    });
    s.fail("p");
    s.pass(5s);
    EXPECT_EQ(s.said("p"), 0);
  });
}

TEST(backoff, is_kept_when_a_child_without_an_instance_is_resumed_from_above) {
  stage s;
  s.root("top", {.strategy = one_for_one({.decide = [](const child_failure&) { return directive::resume; }})});
  s.child(
      "top", "p",
      {.strategy = one_for_one(
           {.decide = [](const child_failure& f) { return f.restarts == 0 ? directive::escalate : directive::restart; },
            .wait = backoff{.first = 5s}})});
  s.book.next["c made"].push_back(throws());
  s.child("p", "c");
  (void)s.book.take();
  s.pass(4s);
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(2s);
  EXPECT_EQ(s.book.take(), lines{"c started"});
}

// ---- what was sent on after its call was answered

struct mumbles {
  using protocol = coppice::protocol<question>;
  explicit mumbles(pid to) : other{to} {}
  void handle(question m, context& me) const {
    me.reply(1);
    me.forward(other, m);
  }
  pid other;
};
struct answers_seven {
  using protocol = coppice::protocol<question>;
  static int handle(question) { return 7; }
};
struct curious {
  using protocol = coppice::protocol<int>;
  curious(pid to, std::vector<int>* into) : whom{to}, mail{into} {}
  void handle(started, context& me) const {
    me.reenter_after(me.call(coppice::call<question>(whom)),
                     [into = mail](const result<int>& r, context&) { into->push_back(r.value_or(0)); });
  }
  void handle(int stray) const { mail->push_back(100 + stray); }
  pid whom;
  std::vector<int>* mail;
};
TEST(forward, of_a_call_that_was_answered_brings_its_caller_no_mail) {
  stage s;
  std::vector<int> heard;
  const pid last = spawn_actor(s.rt(), props<answers_seven>()).id();
  const pid middle = spawn_actor(s.rt(), props<mumbles>(last)).id();
  (void)spawn_actor(s.rt(), props<curious>(middle, &heard));
  s.settle();
  EXPECT_EQ(heard, std::vector<int>{1});
}

// ---- orders, right after a suspension

struct flood {
  struct go {};
  using protocol = coppice::protocol<crash, go>;
  flood(script* book, pid* k) : book_{book}, kid{k} {}
  void handle(started, context& me) const { *kid = me.spawn(part(*book_, "c")).id(); }
  void handle(crash, context& me) const { me.send(*kid, act{throws()}); }
  static directive decide(const child_failure&, context& me) {
    me.send(me.id(), go{});
    return directive::resume;
  }
  void handle(go, context& me) const {  // right behind the order to go on
    for (int i = 0; i < 500; ++i) me.send(*kid, say{"work"});
    me.stop(*kid);
  }
  script* book_;
  pid* kid;
};
TEST(stop, overtakes_the_mail_of_an_actor_that_was_suspended_a_moment_ago) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    pid kid;
    const auto p = spawn_actor(s.rt(), props<flood>(&s.book, &kid));
    s.settle();
    s.rt().cast<crash>(p);
    s.settle();
    const lines heard = s.book.take();
    EXPECT_LT(std::ranges::count(heard, "c: work"), 10);
    EXPECT_EQ(heard.back(), "c stopped");
  });
}

}  // namespace
