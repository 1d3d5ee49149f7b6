// Applications start in order and stop in reverse, with their hooks.
#include "troupe.hpp"

namespace {

using namespace coppice;

const lines both_up{"start storage", "+storage.child", "start web", "+web.child"};
const lines both_down{"prep_stop web", "-web.child", "stop web", "prep_stop storage", "-storage.child", "stop storage"};

TEST(applications, start_in_order_and_stop_in_reverse) {
  troupe t;
  t.start({application{t.app("web", {"storage"})}, application{t.app("storage")}});
  EXPECT_EQ(t.book.take(), both_up);
  EXPECT_EQ(t.outcome(), "running");
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.book.take(), both_down);
  EXPECT_EQ(t.outcome(), "stopped");
  EXPECT_EQ(t.code(), 0);
  EXPECT_EQ(t.processes(), 0U);
}

TEST(applications, stop_their_children_in_reverse_too) {
  troupe t;
  t.start({application{{.name = "a", .supervise = {t.child("1"), t.child("2"), t.child("3")}}}});
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.book.take(), (lines{"+1", "+2", "+3", "-3", "-2", "-1"}));
}

TEST(applications, are_stopped_one_after_the_other_however_long_each_takes) {
  troupe t;
  t.start({application{{.name = "first", .supervise = {t.child("1", {}, 4s)}}},
           application{{.name = "second", .supervise = {t.child("2", {.shutdown = 1h}, 30min)}}}});
  t.running->stop();
  t.world.run_for(29min);
  EXPECT_EQ(t.book.take(), (lines{"+1", "+2"}));
  t.world.run_for(2min);
  EXPECT_EQ(t.book.take(), (lines{"-2", "-1"}));
  EXPECT_EQ(t.code(), 0);
}

TEST(applications, may_have_a_root_supervisor_of_their_own) {
  troupe t;
  const supervisor_spec tree{.strategy = strategy::one_for_all, .children = {t.child("1"), t.child("2")}};
  t.start({application{{.name = "a", .root = child<supervisor>(tree)}}});
  EXPECT_EQ(t.book.take(), (lines{"+1", "+2"}));
  t.crash("1");
  EXPECT_EQ(t.book.take(), (lines{"-1", "-2", "+1", "+2"}));
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.book.take(), (lines{"-2", "-1"}));
  EXPECT_EQ(t.code(), 0);
}

TEST(applications, restart_a_child_and_only_that_one) {
  troupe t;
  t.start({application{{.name = "a", .supervise = {t.child("1"), t.child("2")}}}});
  t.book.take();
  t.crash("1");
  EXPECT_EQ(t.book.take(), (lines{"-1", "+1"}));
  EXPECT_EQ(t.outcome(), "running");
}

// ---- hooks

task<> waits_a_second(self& me) { co_await me.sleep(1s); }
result<void> says_no() { return fail(errc::invalid, "not today"); }
task<result<void>> says_no_later(self& me) {
  co_await me.sleep(1s);
  co_return fail(errc::invalid, "not today either");
}

TEST(hooks, may_wait) {
  troupe t;
  auto app = t.app("a");
  app.start = waits_a_second;
  // Captures are safe: the hook lives as long as the program.
  app.stop = [book = &t.book](self& me) -> task<> {  // NOLINT(cppcoreguidelines-avoid-capturing-lambda-coroutines)
    co_await me.sleep(1s);
    book->note("slept");
  };
  t.start({application{app}});
  EXPECT_EQ(t.book.take(), lines{});
  t.world.run_for(2s);
  EXPECT_EQ(t.book.take(), lines{"+a.child"});
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.outcome(), "running");
  t.world.run_for(2s);
  EXPECT_EQ(t.book.take(), (lines{"prep_stop a", "-a.child", "slept"}));
  EXPECT_EQ(t.code(), 0);
}

TEST(hooks, get_the_arguments_of_the_program_when_they_ask) {
  troupe t;
  auto app = t.app("a");
  app.start = [&](self&, const std::vector<std::string>& args) { t.book.note(args.at(0) + args.at(1)); };
  t.start({application{app}}, {.args = {"x", "y"}});
  EXPECT_EQ(t.book.take(), (lines{"xy", "+a.child"}));
}

TEST(hooks, that_refuse_the_start_refuse_the_application) {
  for (const application_hook& hook :
       {application_hook{says_no}, application_hook{says_no_later},
        application_hook{[] { throw std::runtime_error{"not today, I said"}; }},
        application_hook{[](self& me) -> task<> { co_await me.exit(exit_reason::error("not today, leave me")); }}}) {
    troupe t;
    auto app = t.app("a");
    app.start = hook;
    t.start({application{app}});
    t.world.run_for(2s);
    EXPECT_EQ(t.outcome(), "start_failed");
    EXPECT_EQ(t.text().find("application \"a\" could not be started: its "), 0U) << t.text();
    EXPECT_NE(t.text().find("not today"), std::string::npos) << t.text();
    EXPECT_EQ(t.book.take(), lines{}) << "neither a child nor another hook";
  }
}

TEST(hooks, that_fail_while_stopping_do_not_hold_the_stop) {
  troupe t;
  auto app = t.app("a");
  app.prep_stop = says_no;
  app.stop = [] { throw std::runtime_error{"boom"}; };
  t.start({application{app}, application{t.app("b")}});
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.code(), 0);
  EXPECT_EQ(t.book.take(),
            (lines{"start a", "+a.child", "start b", "+b.child", "prep_stop b", "-b.child", "stop b", "-a.child"}));
}

TEST(hooks, run_in_the_same_order_when_the_top_supervisor_ends_by_itself) {
  troupe t;
  auto app = t.app("a");
  app.limit = {.restarts = 0};
  t.start({application{app}});
  t.book.take();
  t.crash("a.child");
  EXPECT_EQ(t.book.take(), (lines{"-a.child", "prep_stop a", "stop a"}));
}

TEST(hooks, stop_runs_when_start_has_run_and_a_child_could_not_be_started) {
  troupe t;
  t.book.starts["a.child"] = {"fail"};
  t.start({application{t.app("a")}});
  EXPECT_EQ(t.book.take(), (lines{"start a", "stop a"}));
}

// ---- leftovers

task<> lingers(self& me) { co_await me.sleep(1000h); }
struct spawns_and_forgets {
  struct nothing {};
  static void handle(nothing) {}
  static void init(self& me) { me.spawn(lingers); }
};
task<> spawns_one(self& me) {
  me.spawn(lingers);
  co_await me.sleep(1000h);
}

TEST(applications, kill_processes_that_were_left_to_themselves) {
  troupe t;
  application_options app = t.app("a");
  app.restart = restart::temporary;
  app.supervise.push_back(child<spawns_and_forgets>());
  app.start = [](self& me) { me.spawn(spawns_one); };
  t.start({application{t.app("b")}, application{app}});
  const std::size_t with_both = t.processes();
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(with_both, 1U + 2U + 2U + 2U + 1U + 3U)
      << "controller, masters, tops, children, servers, left to themselves";
  EXPECT_EQ(t.processes(), 0U);
}

// ---- views

TEST(applications, can_be_asked_for) {
  troupe t;
  t.book.starts["b.child"] = {"hang"};
  t.start({application{t.app("a")}, application{t.app("b")}, application{t.app("c")}});
  const auto all = t.node.rt().call(call<calls::which_applications>(t.node.rt().where(program_name)));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ((*all)[0].name, "a");
  EXPECT_EQ((*all)[0].state, application_state::running);
  EXPECT_TRUE(t.node.rt().alive((*all)[0].top));
  EXPECT_EQ((*all)[1].state, application_state::starting);
  EXPECT_EQ((*all)[2].state, application_state::waiting);
}

task<> collects(self& me, lines* into) {
  me.subscribe<application_event>();
  for (;;) {
    const application_event e = co_await me.receive<application_event>();
    into->push_back(e.name + " " + std::string{to_string(e.now)});
  }
}

TEST(applications, publish_what_becomes_of_them) {
  lines seen;
  troupe t;
  t.node.rt().spawn(collects, &seen);
  t.world.settle();
  t.start({application{t.app("a")}, application{t.app("b")}});
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(seen, (lines{"a starting", "a running", "b starting", "b running", "b stopping", "b ended", "a stopping",
                         "a ended"}));
}

TEST(applications, are_one_program_on_a_runtime_at_a_time) {
  troupe t;
  t.start({application{t.app("a")}});
  running_program second = application{t.app("b")}.start(t.node.rt());
  EXPECT_EQ(second.wait().what, program_end::start_failed);
  t.running->stop();
  EXPECT_EQ(t.running->wait().exit_code(), 0);
  running_program third = application{t.app("b")}.start(t.node.rt());
  t.world.settle();
  EXPECT_FALSE(third.ended());
  third.stop();
  EXPECT_EQ(third.wait().exit_code(), 0);
}

TEST(hooks, that_fail_leave_no_processes_behind) {
  troupe t;
  application_options bad{.name = "bad", .restart = restart::temporary};
  pid left{};
  bad.start = [&left](self& me) -> result<void> {
    left = me.spawn_link(lingers);
    return fail(errc::invalid, "no");
  };
  t.start({application{bad}, application{t.app("good")}});
  t.world.run_for(1s);
  EXPECT_EQ(t.outcome(), "running");
  EXPECT_FALSE(t.node.rt().alive(left));
}

}  // namespace
