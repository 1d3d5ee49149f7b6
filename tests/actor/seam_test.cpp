// Actors below supervisors, and supervisors below actors.
#include <coppice/supervision/tree.hpp>

#include "stage.hpp"
#include "supervision/family.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

/// A node with a supervisor, workers, and actors that write into `play`.
struct theatre {
  explicit theatre(std::uint64_t seed = 1) : f{seed} {}
  script play;
  family f;

  [[nodiscard]] child_spec actor_child(const std::string& id, const actor_options& how = {}) {
    play.always[id + " made"] = [id](player& p, context& me) { p.book().pids[id] = me.id(); };
    return child<any_actor>(part(play, id, how)).with({.id = id});
  }
  void act(const std::string& name, deed d) {
    f.rt().send(play.pids[name], coppice::theatre::act{std::move(d)});
    f.settle();
  }
  void fail(const std::string& name) { act(name, throws()); }
  /// A top-level actor.
  void root(const std::string& name, const actor_options& how = {}) {
    play.pids[name] = spawn_actor(f.rt(), part(play, name, how)).id();
    f.settle();
  }
  /// Gives an actor a child that is not an actor.
  void give(const std::string& parent, child_spec spec) {
    act(parent, [spec](player& p, context& me) { p.book().pids[spec.id] = me.spawn(spec).value_or(pid{}); });
  }
  [[nodiscard]] std::vector<pid> children_of(const std::string& name) {
    std::vector<pid> all;
    act(name, [&](player&, context& me) { all = me.children(); });
    return all;
  }
  [[nodiscard]] std::string drawing(pid root) {
    const auto into = std::make_shared<tree_node>();
    f.rt().spawn(
        +[](self& me, pid at, std::shared_ptr<tree_node> seen) -> task<> { *seen = co_await look_at_tree(me, at); },
        root, into);
    f.settle();
    return draw(*into);
  }
};

// ---- actors below a supervisor

struct careless {
  using protocol = coppice::protocol<>;
  static constexpr child_defaults supervision{.restart = restart::temporary, .shutdown = 2s};
};
TEST(supervised_actor, states_its_defaults_beside_its_class) {
  const child_spec spec = child<any_actor>(props<careless>());
  EXPECT_EQ(spec.restart, restart::temporary);
  EXPECT_EQ(spec.shutdown, shutdown{2s});
  EXPECT_EQ(spec.type, child_type::actor);
}

TEST(supervised_actor, is_started_in_its_turn_and_stopped_in_reverse) {
  theatre t;
  ASSERT_TRUE(t.f.start({.children = {t.actor_child("a"), t.actor_child("b"), t.f.child("w"), t.actor_child("c")}}));
  EXPECT_EQ(t.play.take(), (lines{"a started", "b started", "c started"}));
  EXPECT_EQ(t.f.state(), "a:running b:running w:running c:running");
  t.f.stop();
  EXPECT_EQ(t.play.take(), (lines{"c stopping", "c stopped", "b stopping", "b stopped", "a stopping", "a stopped"}));
  EXPECT_EQ(t.play.heard["a stopping"], exit_reason::shutdown());
  EXPECT_EQ(t.f.ended(), exit_reason::shutdown());
}

TEST(supervised_actor, that_fails_ends_with_the_reason_and_the_supervisor_starts_another) {
  theatre t;
  ASSERT_TRUE(t.f.start({.children = {t.actor_child("a"), t.actor_child("b")}}));
  const pid first = t.play.pids["a"];
  t.act("a", spawns("x"));
  t.play.take();
  t.fail("a");
  EXPECT_EQ(t.play.take(), (lines{"a stopping", "x stopping", "x stopped", "a stopped", "a started"}));
  EXPECT_NE(t.play.pids["a"], first);
  const auto info = t.f.ask(which_child(t.f.tree, "a"));
  EXPECT_EQ(info->restarts, 1U);
  EXPECT_EQ(info->last_reason->text(), "boom");
  EXPECT_EQ(info->type, child_type::actor);
}

TEST(supervised_actor, with_a_guardian_is_mended_without_the_supervisor) {
  theatre t;
  ASSERT_TRUE(t.f.start(
      {.children = {t.actor_child("a", {.guardian = one_for_one({.limit = {.restarts = 1, .within = 1h}})})}}));
  const pid first = t.play.pids["a"];
  t.play.take();
  t.fail("a");
  EXPECT_EQ(t.play.take(), (lines{"a restarting", "a started"}));
  EXPECT_EQ(t.f.ask(which_child(t.f.tree, "a"))->restarts, 0U);
  t.fail("a");
  EXPECT_EQ(t.play.take(), (lines{"a stopping", "a stopped", "a started"})) << "what it does not answer goes up";
  EXPECT_NE(t.play.pids["a"], first);
  EXPECT_EQ(t.f.ask(which_child(t.f.tree, "a"))->restarts, 1U);
}

TEST(supervised_actor, that_ends_normally_is_done_if_it_is_transient) {
  theatre t;
  ASSERT_TRUE(t.f.start({.children = {t.actor_child("a").with({.restart = restart::transient})}}));
  t.act("a", [](player&, context& me) { me.stop(); });
  EXPECT_EQ(t.f.state(), "a:undefined");
}

TEST(supervised_actor, whose_start_fails_fails_the_start_of_the_supervisor) {
  for (const char* where : {"a made", "a started"}) {
    theatre t;
    const child_spec a = t.actor_child("a");
    t.play.always[where] = throws("no way");
    EXPECT_FALSE(t.f.start({.children = {t.f.child("w"), a}})) << where;
    EXPECT_EQ(t.f.book.lines, (lines{"start w", "stop w shutdown"})) << where;
  }
}

TEST(supervised_actor, that_stops_itself_at_the_start_has_not_started) {
  theatre t;
  const child_spec a = t.actor_child("a");
  t.play.next["a started"] = {[](player&, context&) { throw exit_with{exit_reason::error("not today")}; }};
  EXPECT_FALSE(t.f.start({.children = {a}}));
}

TEST(supervised_actor, whose_guardian_mends_the_start_has_started) {
  for (const directive d : {directive::restart, directive::resume})
    for (const char* where : {"a made", "a started"}) {
      theatre t;
      const child_spec a = t.actor_child("a", {.guardian = one_for_one({.decide = [d](const auto&) { return d; }})});
      t.play.next[where] = {throws("not yet")};
      EXPECT_TRUE(t.f.start({.children = {a, t.f.child("w")}})) << to_string(d) << " in " << where;
      EXPECT_EQ(t.f.state(), "a:running w:running") << to_string(d) << " in " << where;
    }
}

TEST(supervised_actor, that_does_not_stop_in_time_is_killed_and_its_children_end) {
  theatre t;
  ASSERT_TRUE(t.f.start({.children = {t.actor_child("a").with({.shutdown = 1s})}}));
  t.act("a", spawns("x"));
  t.f.node().stick(t.play.pids["x"], 1h);
  t.f.stop();
  t.f.pass(2s);
  EXPECT_EQ(t.f.ended(), exit_reason::shutdown());
  EXPECT_FALSE(t.f.rt().alive(t.play.pids["a"]));
  t.f.pass(2h);
  EXPECT_FALSE(t.f.rt().alive(t.play.pids["x"]));
}

TEST(supervised_actor, has_a_parent_it_can_see) {
  theatre t;
  ASSERT_TRUE(t.f.start({.children = {t.actor_child("a")}}));
  t.act("a", [&](player& p, context& me) {
    EXPECT_EQ(me.parent(), t.f.tree.id());
    p.note(" looked");
  });
  EXPECT_EQ(t.play.log.back(), "a looked");
}

TEST(supervised_actor, that_waits_for_its_guardian_ends_at_once_with_the_supervisor) {
  theatre t;
  ASSERT_TRUE(
      t.f.start({.children = {t.actor_child("a", {.guardian = exponential_backoff({.first = 1h, .cap = 1h})})}}));
  t.act("a", spawns("x"));
  t.fail("a");
  t.play.take();
  t.f.stop();
  EXPECT_EQ(t.play.take(), (lines{"a stopping", "x stopping", "x stopped", "a stopped"}));
  EXPECT_EQ(t.f.ended(), exit_reason::shutdown());
}

TEST(supervised_actor, gives_its_name_to_the_names_of_its_children) {
  theatre t;
  ASSERT_TRUE(t.f.start({.children = {t.actor_child("a").with({.name = "shop"})}}));
  t.act("a", spawns("till"));
  EXPECT_EQ(t.f.rt().where("shop/till"), t.play.pids["till"]);
  t.fail("a");
  EXPECT_EQ(t.f.rt().where("shop"), t.play.pids["a"]);
  EXPECT_EQ(t.f.rt().where("shop/till"), pid{});
}

// ---- supervisors below an actor

[[nodiscard]] child_spec group(theatre& t, restart_limit limit = {.restarts = 9, .within = 1h}) {
  supervisor_spec spec{.limit = limit, .children = {t.f.child("v"), t.f.child("w")}};
  return child<supervisor>(spec).with({.id = "group"});
}

TEST(actor_with_a_supervisor, stops_it_and_waits_for_it) {
  theatre t;
  t.root("p");
  t.give("p", group(t));
  EXPECT_EQ(t.f.book.take(), (lines{"start v", "start w"}));
  t.play.take();
  stop_actor(t.f.rt(), t.play.pids["p"]);
  t.f.settle();
  EXPECT_EQ(t.f.book.take(), (lines{"stop w shutdown", "stop v shutdown"}));
  EXPECT_EQ(t.play.take(), (lines{"p stopping", "p stopped"}));
  EXPECT_FALSE(t.f.rt().alive(t.play.pids["group"]));
}

TEST(actor_with_a_supervisor, stops_it_at_its_restart) {
  theatre t;
  t.root("p");
  t.give("p", group(t));
  t.f.book.take();
  t.fail("p");
  EXPECT_EQ(t.f.book.take(), (lines{"stop w shutdown", "stop v shutdown"}));
  EXPECT_EQ(t.play.log.back(), "p started");
}

TEST(actor_with_a_supervisor, is_not_asked_about_what_that_mends_itself) {
  theatre t;
  t.root("p", {.strategy = one_for_one({.decide = [](const auto&) -> directive { throw 1; }})});
  t.give("p", group(t));
  t.play.take();
  t.f.crash("v");
  EXPECT_EQ(t.f.book.take(), (lines{"start v", "start w", "stop v error", "start v"}));
  EXPECT_EQ(t.play.take(), lines{});
}

TEST(actor_with_a_supervisor, starts_another_when_it_is_killed) {
  for (const directive d : {directive::restart, directive::resume}) {
    theatre t;
    t.root("p", {.strategy = one_for_one({.decide = [d](const auto&) { return d; }})});
    t.give("p", group(t));
    t.f.book.take();
    t.f.rt().kill(t.play.pids["group"]);
    t.f.settle();
    std::vector<pid> children;
    t.act("p", [&](player&, context& me) { children = me.children(); });
    ASSERT_EQ(children.size(), 1U) << to_string(d);
    EXPECT_NE(children[0], t.play.pids["group"]);
    EXPECT_TRUE(t.f.rt().alive(children[0]));
    EXPECT_EQ(std::ranges::count(t.f.book.lines, "start v"), 1);
  }
}

TEST(actor_with_a_supervisor, decides_when_that_gives_up) {
  theatre t;
  lines asked;
  t.root("p", {.strategy = one_for_one({.decide = [&](const child_failure& f) {
                 asked.push_back(std::string{f.name} + " " + f.reason.to_string());
                 return directive::restart;
               }})});
  t.give("p", group(t, {.restarts = 0, .within = 1h}));
  t.f.book.take();
  t.f.crash("v");
  EXPECT_EQ(asked, (lines{"group shutdown"}));
  EXPECT_EQ(t.f.book.take(), (lines{"stop v error", "stop w shutdown", "start v", "start w"}));
}

TEST(actor_with_a_supervisor, may_escalate_its_end) {
  theatre t;
  t.root("g");
  t.act("g", spawns("p", {.strategy = one_for_one({.decide = [](const auto&) { return directive::escalate; }})}));
  t.give("p", group(t));
  t.play.take();
  t.f.rt().kill(t.play.pids["group"]);
  t.f.settle();
  EXPECT_EQ(t.play.take(), (lines{"p restarting", "p started"}));
  t.act("p", [](player&, context& me) { EXPECT_TRUE(me.children().empty()); });
}

TEST(actor_with_a_process, starts_it_again_when_its_own_failure_over_it_is_answered_by_resume) {
  theatre t;
  t.root("p", {.strategy = one_for_one({.decide = [](const auto&) -> directive { throw 1; }}),
               .guardian = one_for_one({.decide = [](const auto&) { return directive::resume; }})});
  t.give("p", t.f.child("v"));
  t.f.book.take();
  t.f.crash("v");
  EXPECT_EQ(t.f.book.take(), (lines{"stop v error", "start v"}));
  std::vector<pid> left;
  t.act("p", [&](player&, context& me) { left = me.children(); });
  EXPECT_EQ(left, std::vector<pid>{t.f.who("v")});
}

TEST(actor_with_a_process, starts_it_again_when_it_keeps_it_over_its_own_restart) {
  theatre t;
  t.root("p", {.strategy = one_for_one({.decide = [](const auto&) -> directive { throw 1; }}), .keep_children = true});
  t.act("p", spawns("a"));
  t.give("p", t.f.child("v"));
  t.f.book.take();
  t.play.take();
  t.f.crash("v");
  EXPECT_EQ(t.f.book.take(), (lines{"stop v error", "start v"}));
  EXPECT_EQ(t.play.take(), (lines{"p restarting", "p started"}));
  bool answered = false;
  t.act("a", [&](player&, context&) { answered = true; });
  EXPECT_TRUE(answered) << "the other one goes on";
}

TEST(actor_with_a_process, receives_its_own_end_once_while_that_waits_for_its_restart) {
  for (const bool restarts : {false, true}) {
    theatre t;
    t.root("p", {.strategy = one_for_one({.wait = backoff{.first = 1h, .cap = 1h}})});
    t.give("p", t.f.child("v"));
    t.f.crash("v");
    t.play.take();
    if (restarts)
      t.fail("p");
    else
      t.act("p", [](player&, context& me) { me.stop(); });
    EXPECT_EQ(t.play.take(), restarts ? (lines{"p restarting", "p started"}) : (lines{"p stopping", "p stopped"}));
    t.f.book.take();
    t.f.pass(2h);
    EXPECT_EQ(t.f.book.take(), lines{}) << "and the wait is over";
  }
}

TEST(actor_with_a_process, starts_it_again_with_the_others_in_all_for_one) {
  theatre t;
  t.root("p", {.strategy = all_for_one()});
  t.act("p", spawns("a"));
  t.give("p", t.f.child("v"));
  t.f.book.take();
  t.fail("a");
  EXPECT_EQ(t.f.book.take(), (lines{"stop v shutdown", "start v"}));
  t.play.take();
  t.f.crash("v");
  EXPECT_EQ(t.play.take(), (lines{"a restarting", "a started"}));
  EXPECT_EQ(t.f.book.take(), (lines{"stop v error", "start v"}));
}

TEST(actor_with_a_process, judges_its_failure_when_it_is_resumed_itself) {
  theatre t;
  t.root("g", {.strategy = one_for_one({.decide = [](const auto&) { return directive::resume; }})});
  t.act("g", spawns("p"));
  t.give("p", t.f.child("v"));
  t.f.node().stick(t.play.pids["g"], 1s);
  t.fail("p");
  t.f.book.take();
  t.f.crash("v");
  EXPECT_EQ(t.f.book.take(), (lines{"stop v error"}));
  t.f.pass(2s);
  EXPECT_EQ(t.f.book.take(), (lines{"start v"}));
}

TEST(actor_with_a_process, may_stop_or_poison_it_by_its_pid) {
  for (const bool poison : {false, true}) {
    theatre t;
    t.root("p");
    t.give("p", t.f.child("v"));
    t.f.book.take();
    t.act("p", [poison](player& p, context& me) {
      const pid v = p.book().pids["v"];
      poison ? me.poison(v) : me.stop(v);
    });
    EXPECT_EQ(t.f.book.take(), (lines{"stop v shutdown"})) << poison;
    EXPECT_EQ(t.children_of("p").size(), 0U) << poison;
  }
}

TEST(actor_with_a_process, decides_about_a_failed_start_of_another_as_about_any_failure) {
  for (const auto wait : {0s, 1s}) {
    theatre t;
    lines asked;
    strategy_options how{.limit = {.restarts = 3, .within = 1h}, .decide = [&](const child_failure& f) {
                           asked.emplace_back(f.reason.text());
                           return directive::restart;
                         }};
    if (wait > 0s) how.wait = backoff{.first = wait, .cap = wait};
    t.root("p", {.strategy = one_for_one(how)});
    t.give("p", t.f.child("v"));
    t.f.world().fail_at("spawn.allocate", 1);
    t.f.crash("v");
    t.f.pass(10s);
    t.f.world().fail_at("spawn.allocate", 0);
    ASSERT_EQ(asked.size(), 4U);
    EXPECT_EQ(asked[0], "crash");
    for (const std::size_t i : {1U, 2U, 3U}) EXPECT_TRUE(asked[i].starts_with("can't start 'v'")) << asked[i];
    EXPECT_EQ(t.children_of("p").size(), 0U) << "the limit is reached";
    EXPECT_EQ(t.play.take(), lines{"p started"}) << "and its parent goes on";
  }
}

TEST(actor_with_a_process, handles_its_mail_while_one_cant_be_started_without_limit) {
  theatre t;
  t.root("p", {.strategy = always_restart()});
  t.give("p", t.f.child("v"));
  t.f.world().fail_at("spawn.allocate", 1);
  t.f.rt().kill(t.f.who("v"));
  t.f.pass(10ms);
  bool handled = false;
  t.act("p", [&](player&, context&) { handled = true; });
  t.f.world().fail_at("spawn.allocate", 0);
  EXPECT_TRUE(handled);
  t.f.pass(10ms);
  EXPECT_EQ(t.children_of("p"), std::vector<pid>{t.f.who("v")});
}

TEST(actor_with_a_process, keeps_one_that_cant_be_started_while_it_waits_for_a_decision_itself) {
  theatre t;
  t.root("g", {.strategy = one_for_one({.decide = [](const auto&) { return directive::resume; }})});
  t.act("g", spawns("p", {.strategy = one_for_one({.wait = backoff{.first = 1s, .cap = 1s}})}));
  t.give("p", t.f.child("v"));
  t.f.crash("v");
  t.f.node().stick(t.play.pids["g"], 5s);
  t.fail("p");
  t.f.world().fail_at("spawn.allocate", 1);
  t.f.pass(2s);
  t.f.world().fail_at("spawn.allocate", 0);
  t.f.book.take();
  t.f.pass(10s);
  EXPECT_EQ(t.f.book.take(), lines{"start v"}) << "the failed start was decided about when p was resumed";
  EXPECT_EQ(t.children_of("p"), std::vector<pid>{t.f.who("v")});
}

TEST(actor_with_a_process, keeps_one_that_cant_be_started_when_its_parent_stops) {
  theatre t;
  t.root("p", {.strategy = all_for_one({.wait = backoff{.first = 1h, .cap = 1h}})});
  t.give("p", t.f.child("v"));
  t.f.world().fail_at("spawn.allocate", 1);
  t.f.crash("v");
  t.f.pass(1h + 1min);
  t.f.world().fail_at("spawn.allocate", 0);
  stop_actor(t.f.rt(), t.play.pids["p"]);
  t.f.settle();
  EXPECT_EQ(t.play.take(), (lines{"p started", "p stopping", "p stopped"}));
  EXPECT_FALSE(t.f.rt().alive(t.play.pids["p"]));
}

TEST(actor_with_a_process, starts_it_again_when_its_end_was_escalated_and_answered_by_resume) {
  theatre t;
  t.root("g", {.strategy = one_for_one({.decide = [](const auto&) { return directive::resume; }})});
  t.act("g", spawns("p", {.strategy = one_for_one({.decide = [](const auto&) { return directive::escalate; }})}));
  t.give("p", t.f.child("v"));
  t.f.book.take();
  t.f.crash("v");
  EXPECT_EQ(t.f.book.take(), (lines{"stop v error", "start v"}));
  EXPECT_EQ(t.children_of("p"), std::vector<pid>{t.f.who("v")});
}

/// The error with which an actor refuses to start a spec.
[[nodiscard]] error refusal_of(const child_spec& spec, theatre& t) {
  error why{errc::timeout, "not refused"};
  t.root("p");
  t.act("p", [&](player&, context& me) {
    if (const auto started = me.spawn(spec); !started) why = started.error();
  });
  return why;
}

TEST(actor_with_a_process, refuses_a_spec_without_an_id) {
  theatre t;
  child_spec nameless = t.f.child("v");
  nameless.id.clear();
  const error why = refusal_of(nameless, t);
  EXPECT_EQ(why.code(), errc::invalid);
  EXPECT_NE(why.text().find("id"), std::string::npos) << why;
}

task<start_result> starts_nothing(self&) { co_return start_result{}; }

TEST(actor_with_a_process, refuses_a_spec_with_a_start_function) {
  theatre t;
  const error why = refusal_of(child(starts_nothing).with({.id = "v"}), t);
  EXPECT_EQ(why.code(), errc::invalid);
  EXPECT_EQ(why.text(), "'v' has a start function, which only a supervisor can run");
}

TEST(actor_with_a_process, refuses_the_spec_of_an_actor) {
  theatre t;
  const error why = refusal_of(t.actor_child("a"), t);
  EXPECT_EQ(why.code(), errc::invalid);
  EXPECT_EQ(why.text(), "'a' is an actor: spawn its props, and it is supervised as one");
}

TEST(actor_with_a_process, outlives_one_that_ends_while_it_restarts_or_restarts_that) {
  for (const bool by_sibling : {false, true})
    in_many_orders([&](std::uint64_t seed) {
      theatre t{seed};
      t.root("p", {.strategy = all_for_one()});
      t.act("p", spawns("a"));
      t.give("p", t.f.child("v"));
      t.f.rt().send(t.f.who("v"), worker::finish{exit_reason::error("crash")});
      t.f.rt().send(t.play.pids[by_sibling ? "a" : "p"], act{throws()});
      t.f.settle();
      std::vector<pid> left;
      bool answered = false;
      t.act("p", [&](player&, context& me) {
        answered = true;
        left = me.children();
      });
      EXPECT_TRUE(answered);
      for (const pid who : left) EXPECT_TRUE(t.f.rt().alive(who));
      EXPECT_EQ(left.size(), by_sibling ? 2U : 0U);
    });
}

TEST(actor_with_a_process, forgets_it_when_that_is_done) {
  theatre t;
  t.root("p", {.strategy = one_for_one({.decide = [](const auto&) -> directive { throw 1; }})});
  t.give("p", t.f.child("v"));
  t.f.finish("v", exit_reason::normal());
  std::size_t left = 9;
  t.act("p", [&](player&, context& me) { left = me.children().size(); });
  EXPECT_EQ(left, 0U);
}

TEST(actor_with_a_process, kills_one_that_does_not_end_in_time) {
  theatre t;
  t.root("p");
  t.give("p", t.f.child("v", {.shutdown = 1s}, true, true));
  t.act("p", [](player&, context& me) { me.stop(); });
  EXPECT_EQ(t.play.log.back(), "p stopping");
  t.f.pass(2s);
  EXPECT_EQ(t.play.log.back(), "p stopped");
}

// ---- the picture

TEST(tree_view, shows_actors_below_supervisors_and_supervisors_below_actors) {
  theatre t;
  ASSERT_TRUE(t.f.start({.limit = {.restarts = 9}, .children = {t.actor_child("shop"), t.f.child("u")}}));
  t.act("shop", spawns("till"));
  t.give("shop", group(t));
  t.fail("till");
  const std::string text = t.drawing(t.f.tree.id());
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    rows.push_back(text.substr(at, text.find('\n', at) - at));
  ASSERT_EQ(rows.size(), 7U) << text;
  EXPECT_TRUE(rows[1].starts_with("├─ shop      actor ")) << text;
  EXPECT_TRUE(rows[2].starts_with("│  ├─ till   actor ")) << text;
  EXPECT_NE(rows[2].find("restarts 1  last: error: std::runtime_error: boom"), std::string::npos) << text;
  EXPECT_TRUE(rows[3].starts_with("│  └─ group  supervisor ")) << text;
  EXPECT_TRUE(rows[4].starts_with("│     ├─ v   worker ")) << text;
  EXPECT_TRUE(rows[6].starts_with("└─ u         worker ")) << text;
}

TEST(tree_view, shows_a_process_below_an_actor_that_waits_for_its_restart) {
  theatre t;
  t.root("p", {.strategy = one_for_one({.wait = backoff{.first = 1h, .cap = 1h}})});
  t.give("p", t.f.child("v"));
  t.f.crash("v");
  const auto all = t.f.ask(call<calls::which_children>(t.play.pids["p"]));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().state, child_state::restarting);
  EXPECT_EQ(all->front().who, pid{});
  EXPECT_EQ(all->front().last_reason, exit_reason::error("crash"));
}

TEST(tree_view, shows_how_long_a_process_below_an_actor_runs_without_the_time_its_predecessor_took_to_stop) {
  theatre t;
  t.f.pass(1h);
  t.root("p", {.strategy = all_for_one()});
  t.give("p", t.f.child("v", {.shutdown = 1h}, true, true));
  t.act("p", spawns("a"));
  t.f.pass(1min);
  const auto at_first = t.f.ask(call<calls::which_children>(t.play.pids["p"]));
  ASSERT_TRUE(at_first);
  EXPECT_GE(at_first->front().uptime, 1min);
  EXPECT_LT(at_first->front().uptime, 2min);
  t.fail("a");
  t.f.pass(1h + 1min);
  const auto all = t.f.ask(call<calls::which_children>(t.play.pids["p"]));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->front().id, "v");
  EXPECT_EQ(all->front().state, child_state::running);
  EXPECT_LE(all->front().uptime, 1min);
  EXPECT_GT(all->front().uptime, 0s);
}

}  // namespace
