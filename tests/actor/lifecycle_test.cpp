// Start, stop and restart of an actor, and the messages it gets about them.
#include "line_keeper.hpp"
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

// ---- birth

TEST(actor_life, starts_before_any_mail) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.book.pids["a"] = spawn_actor(s.rt(), part(s.book, "a")).id();
    s.tell("a", "hello");
    s.settle();
    EXPECT_EQ(s.book.take(), (lines{"a started", "a: hello"}));
  });
}

TEST(actor_life, of_a_child_starts_before_the_mail_of_its_parent) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("p");
    s.act("p", [](player& p, context& me) {
      spawns("a")(p, me);
      me.send(me.child("a"), say{"first"});
      me.send(p.book().pids["a"], say{"second"});
    });
    EXPECT_EQ(s.book.take(), (lines{"p started", "a started", "a: first", "a: second"}));
  });
}

// ---- stop

TEST(actor_stop, is_heard_before_and_after_the_children_stop) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("p");
    s.child("p", "a");
    s.child("a", "g");
    s.child("p", "b");
    s.book.take();
    s.stop("p");
    const lines log = s.book.take();
    ASSERT_EQ(log.size(), 8U);
    EXPECT_EQ(log.front(), "p stopping");
    EXPECT_EQ(log.back(), "p stopped");
    EXPECT_LT(place(log, "a stopping"), place(log, "g stopping"));
    EXPECT_LT(place(log, "g stopped"), place(log, "a stopped"));
    EXPECT_LT(place(log, "b stopping"), place(log, "b stopped"));
    EXPECT_EQ(s.end_of("p"), "normal");
    EXPECT_EQ(s.end_of("g"), "shutdown");
  });
}

TEST(actor_stop, asks_the_last_child_first) {
  // One worker takes processes up in the order in which they got mail, apart from the newest of them.
  script book;
  runtime rt{{.workers = 1, .level = log_level::off}};
  book.always["p started"] = [](player& p, context& me) {
    for (const char* name : {"a", "b", "c", "d"}) spawns(name)(p, me);
  };
  const auto p = spawn_actor(rt, part(book, "p"));
  (void)rt.run(
      +[](self& me, pid who) -> task<> {
        me.monitor(who);
        stop_actor(me, who);
        (void)co_await me.receive<down>();
      },
      p.id());
  EXPECT_LT(place(book.log, "c stopping"), place(book.log, "b stopping"));
  EXPECT_EQ(book.log.back(), "p stopped");
}

TEST(actor_stop, shows_the_children_first_and_none_of_them_at_the_end) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.child("p", "b");
  std::vector<std::size_t> seen;
  for (const char* hook : {"p stopping", "p stopped"})
    s.book.always[hook] = [&](player&, context& me) { seen.push_back(me.children().size()); };
  s.stop("p");
  EXPECT_EQ(seen, (std::vector<std::size_t>{2, 0}));
}

TEST(actor_stop, waits_for_a_slow_child_without_taking_mail) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.stick("a", 1s);
  s.stop("p");
  s.say("p", "late");
  EXPECT_EQ(s.book.log.back(), "p stopping");
  EXPECT_EQ(s.end_of("p"), "lives");
  s.pass(2s);
  EXPECT_EQ(s.book.log.back(), "p stopped");
  EXPECT_EQ(s.dead_letters_to("p"), (lines{"coppice::theatre::say"}));
}

TEST(actor_stop, ends_timers_and_the_receive_timeout_also_while_it_waits_for_a_child) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.act("p", [](player&, context& me) {
    me.set_receive_timeout(100ms);
    (void)me.every(100ms, say{"tick"});
  });
  s.stick("a", 5s);
  s.book.take();
  s.stop("p");
  s.pass(4s);
  EXPECT_EQ(s.book.take(), (lines{"p stopping"}));
  s.pass(2s);
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "a stopped", "p stopped"}));
}

TEST(actor_stop, overtakes_the_mail_which_becomes_dead_letters) {
  stage s;
  s.root("a");
  s.book.take();
  s.act("a", [](player& p, context& me) {
    me.send(me.id(), say{"one"});
    me.send(me.id(), say{"two"});
    me.stop();
    p.note(" goes on");
  });
  EXPECT_EQ(s.book.take(), (lines{"a goes on", "a stopping", "a stopped"}));
  EXPECT_EQ(s.dead_letters_to("a"), (lines{"coppice::theatre::say", "coppice::theatre::say"}));
  EXPECT_EQ(s.end_of("a"), "normal");
}

TEST(actor_stop, is_heard_once_however_often_it_is_asked_for) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.stick("a", 1s);
  s.book.take();
  s.stop("p");
  s.stop("p");
  s.pass(2s);
  EXPECT_EQ(std::ranges::count(s.book.log, "p stopping"), 1);
  EXPECT_EQ(std::ranges::count(s.book.log, "p stopped"), 1);
}

TEST(actor_stop, tells_the_reason) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.act("a", [](player&, context&) { throw exit_with{exit_reason::error("enough")}; });
  EXPECT_EQ(s.book.heard["a stopping"], exit_reason::error("enough"));
  EXPECT_EQ(s.book.heard["a stopped"], exit_reason::error("enough"));
  EXPECT_EQ(s.ended("a"), exit_reason::error("enough"));
  EXPECT_TRUE(s.events.empty()) << "that is no failure";
  EXPECT_EQ(s.end_of("p"), "lives");
}

TEST(actor_stop, by_exit_with_in_started_is_not_a_failure_either) {
  stage s;
  s.root("p");
  s.book.next["a started"] = {[](player&, context&) { throw exit_with{exit_reason::shutdown("not today")}; }};
  s.child("p", "a");
  EXPECT_EQ(s.ended("a"), exit_reason::shutdown("not today"));
  EXPECT_TRUE(s.events.empty());
}

TEST(actor_stop, by_exit_with_in_the_constructor_notifies_nobody) {
  stage s;
  s.root("p");
  s.book.next["a made"] = {[](player&, context&) { throw exit_with{exit_reason::shutdown("not today")}; }};
  s.child("p", "a");
  EXPECT_EQ(s.ended("a"), exit_reason::shutdown("not today"));
  EXPECT_EQ(s.book.take(), (lines{"p started"}));
}

TEST(actor_stop, by_exit_with_when_somebody_else_has_ended) {
  stage s;
  s.root("a");
  s.root("b");
  s.act("a", [&](player&, context& me) { me.watch(s.who("b")); });
  s.book.next["a terminated b"] = {[](player&, context&) { throw exit_with{exit_reason::error("lonely")}; }};
  s.stop("b");
  EXPECT_EQ(s.ended("a"), exit_reason::error("lonely"));
}

TEST(actor_stop, of_a_child_is_heard_once_by_a_parent_that_watches_and_not_by_others) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("p");
    s.child("p", "a");
    s.child("p", "b");
    s.act("p", [&](player&, context& me) {
      me.watch(s.who("a"));
      me.watch(s.who("a"));
    });
    s.stop("a");
    s.stop("b");
    EXPECT_EQ(std::ranges::count(s.book.log, "p terminated a"), 1);
    EXPECT_EQ(std::ranges::count(s.book.log, "p terminated b"), 0);
  });
}

TEST(actor_stop, is_not_caused_by_a_normal_exit_of_somebody_else) {
  stage s;
  s.root("a");
  s.rt().exit(s.who("a"), exit_reason::normal());
  EXPECT_EQ(s.said("a"), 0);
}

TEST(actor_stop, by_an_exit_signal_runs_the_hooks) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.book.take();
  s.rt().exit(s.who("p"), exit_reason::shutdown("bye"));
  s.settle();
  EXPECT_EQ(s.book.take(), (lines{"p stopping", "a stopping", "a stopped", "p stopped"}));
  EXPECT_EQ(s.ended("p"), exit_reason::shutdown("bye"));
}

TEST(actor_stop, goes_on_when_the_hooks_throw) {
  stage s;
  s.root("g");
  s.child("g", "p");
  s.child("p", "a");
  s.act("g", [&](player&, context& me) { me.watch(s.who("p")); });
  for (const char* hook : {"p stopping", "p stopped", "a stopping", "a stopped"}) s.book.always[hook] = throws();
  s.book.take();
  s.stop("p");
  EXPECT_EQ(s.book.take(), (lines{"p stopping", "a stopping", "a stopped", "p stopped", "g terminated p"}));
  EXPECT_EQ(s.end_of("p"), "normal") << "the reason stays what it was";
  EXPECT_TRUE(s.events.empty()) << "nobody is asked";
}

TEST(actor_stop, logs_the_exceptions_of_its_hooks) {
  const auto log = std::make_shared<line_keeper>("hook");
  stage s{1, {.processes = 1U << 16U, .level = log_level::error, .log = log}};
  s.root("p");
  for (const char* hook : {"p stopping", "p stopped"}) s.book.always[hook] = throws();
  s.stop("p");
  EXPECT_EQ(log->lines,
            (lines{"error exception in life-cycle hook ignored", "error exception in life-cycle hook ignored"}));
}

TEST(actor_stop, allows_no_more_children) {
  stage s;
  s.root("p");
  for (const char* hook : {"p stopping", "p stopped"})
    s.book.always[hook] = [](player& p, context& me) {
      EXPECT_THROW(spawns("late")(p, me), spawn_failed);
      EXPECT_THROW((void)me.spawn(part(p.book(), "late")), spawn_failed);
      p.note(" tried");
    };
  s.book.take();
  s.stop("p");
  EXPECT_EQ(s.book.take(), (lines{"p stopping", "p tried", "p stopped", "p tried"}));
}

TEST(actor_kill, stops_the_children_and_is_not_heard) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.child("a", "g");
  s.book.take();
  s.rt().kill(s.who("p"));
  s.settle();
  EXPECT_EQ(s.ended("p"), exit_reason::killed());
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "g stopping", "g stopped", "a stopped"}));
  EXPECT_FALSE(s.rt().alive(s.who("g")));
}

TEST(actor_kill, stops_children_that_are_suspended_as_well) {
  stage s;
  s.root("g", {.strategy = one_for_one({.wait = backoff{.first = 1h, .cap = 1h}})});
  s.child("g", "p");
  s.child("p", "a");
  s.fail("p");
  s.say("a", "hello");
  s.book.take();
  s.rt().kill(s.who("p"));
  s.settle();
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "a stopped"}));
  EXPECT_EQ(s.dead_letters_to("a"), (lines{"coppice::theatre::say"}));
}

TEST(actor_kill, reaches_a_child_that_has_not_begun_before_its_mail) {
  int early = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    stage s{seed};
    s.root("p");
    bool exit_was_queued = false;
    s.book.next["a started"] = {[&](player&, context&) { exit_was_queued = !s.rt().alive(s.who("p")); }};
    s.act("p", [&](player& p, context& me) {
      spawns("a")(p, me);
      me.cast<say>(s.ref("a"), "hello");
      s.rt().kill(me.id());
    });
    if (!exit_was_queued) continue;
    EXPECT_EQ(s.book.take(), (lines{"p started", "a started", "a stopping", "a stopped"})) << seed;
    ++early;
  }
  EXPECT_GT(early, 0);
}

TEST(actor_kill, of_a_child_frees_its_place_and_its_name) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.rt().kill(s.who("a"));
  s.settle();
  s.child("p", "a");
  s.act("p", [](player& p, context& me) { EXPECT_EQ(me.children(), std::vector<pid>{p.book().pids["a"]}); });
  EXPECT_EQ(s.end_of("p"), "lives");
}

// ---- poison

TEST(actor_poison, lets_what_came_before_be_handled_here_and_below) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.book.take();
  s.act("p", [&](player&, context& me) {
    me.send(me.id(), say{"one"});
    me.send(s.who("a"), say{"two"});
    me.poison(me.id());
    me.send(me.id(), say{"three"});
  });
  const lines log = s.book.take();
  EXPECT_LT(place(log, "p: one"), place(log, "p stopping"));
  EXPECT_LT(place(log, "a: two"), place(log, "a stopping"));
  EXPECT_LT(place(log, "a stopped"), place(log, "p stopped"));
  EXPECT_EQ(log.size(), 6U);
  EXPECT_EQ(s.dead_letters_to("p"), (lines{"coppice::theatre::say"}));
  EXPECT_EQ(s.end_of("p"), "normal");
}

TEST(actor_poison, waits_with_the_mail_while_the_actor_is_suspended) {
  stage s;
  s.root("p", {.strategy = one_for_one({.wait = backoff{.first = 1s, .cap = 1s}})});
  s.child("p", "a");
  s.fail("a");
  s.book.take();
  s.tell("a", "before");
  poison_actor(s.rt(), s.who("a"));
  s.tell("a", "behind");
  s.settle();
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(2s);
  EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started", "a: before", "a stopping", "a stopped"}));
}

/// Ends in its own way when somebody wants it to.
struct polite {
  using protocol = coppice::protocol<say>;
  explicit polite(lines& log) : log_{&log} {}
  void handle(const say&) {}
  void handle(const exited&) { throw exit_with{exit_reason::normal()}; }
  void handle(restarting) { log_->emplace_back("restarting"); }
  void handle(const stopping& e) { log_->push_back("stopping " + e.reason.to_string()); }

 private:
  lines* log_;
};

TEST(actor_stop, by_exit_with_in_the_handler_of_an_exit_signal_is_not_a_failure) {
  stage s;
  lines log;
  const pid a = spawn_actor(s.rt(), props<polite>(std::ref(log))).id();
  s.settle();
  s.rt().exit(a, exit_reason::error("somebody wants it to"));
  s.settle();
  EXPECT_EQ(log, (lines{"stopping " + exit_reason::normal().to_string()}));
  EXPECT_FALSE(s.rt().alive(a));
  EXPECT_TRUE(s.events.empty()) << "nobody has to decide";
}

}  // namespace
