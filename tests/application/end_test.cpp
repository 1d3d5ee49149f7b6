// How programs end: restart types, failing starts, signals, limits; and the exit codes of all of them.
#include <line_keeper.hpp>

#include "troupe.hpp"

namespace {

using namespace coppice;

application_options fragile(troupe& t, const std::string& name, restart how) {
  application_options app = t.app(name);
  app.limit = {.restarts = 0};
  app.restart = how;
  return app;
}
/// Whose work is done with its child.
application_options short_lived(troupe& t, const std::string& name, restart how) {
  application_options app = t.app(name);
  app.supervise = {t.child(name + ".child", {.restart = restart::transient, .significant = true})};
  app.auto_shutdown = auto_shutdown::any_significant;
  app.restart = how;
  return app;
}

const lines a_and_b_down{"prep_stop b", "-b.child", "stop b", "prep_stop a", "-a.child", "stop a"};

// ---- the top supervisor gives up

TEST(exit_code, is_1_when_the_supervisor_of_a_permanent_application_gives_up) {
  troupe t;
  t.start({application{fragile(t, "a", restart::permanent)}, application{t.app("b")}});
  t.book.take();
  t.crash("a.child");
  EXPECT_EQ(t.book.take(), (lines{"-a.child", "prep_stop a", "stop a", "prep_stop b", "-b.child", "stop b"}));
  EXPECT_EQ(t.outcome(), "gave_up");
  EXPECT_EQ(t.code(), 1);
  EXPECT_EQ(t.text(),
            "application \"a\" ended: the supervisor gives up: more than 0 restarts within 5s; the last was for child "
            "'a.child': error: crash");
  EXPECT_EQ(t.processes(), 0U);
}

TEST(exit_code, is_1_for_the_second_crash_within_five_seconds_by_default) {
  troupe t;
  t.start({application{t.app("a")}});
  t.crash("a.child");
  EXPECT_EQ(t.outcome(), "running");
  t.world.run_for(6s);
  t.crash("a.child");
  EXPECT_EQ(t.outcome(), "running") << "the first is forgotten";
  t.world.run_for(4s);
  t.crash("a.child");
  EXPECT_EQ(t.code(), 1);
}

TEST(exit_code, is_1_when_the_supervisor_of_a_transient_application_gives_up) {
  troupe t;
  t.start({application{fragile(t, "a", restart::transient)}, application{t.app("b")}});
  t.crash("a.child");
  EXPECT_EQ(t.outcome(), "gave_up");
}

TEST(exit_code, is_1_when_the_controller_is_killed_before_it_begins) {
  troupe t;
  running_program p = applications{application{t.app("a")}}.start(t.node.rt());
  (void)t.node.rt().host().freeze({.root = p.controller(), .subtree = false}, {});
  EXPECT_FALSE(p.ended());
  t.node.rt().kill(p.controller());
  t.world.settle();
  EXPECT_TRUE(p.ended());
  EXPECT_EQ(p.wait().exit_code(), 1);
}

TEST(exit_code, is_1_when_a_top_supervisor_is_killed) {
  troupe t;
  t.start({application{t.app("a")}});
  const auto all = t.node.rt().call(call<calls::which_applications>(t.node.rt().where(program_name)));
  ASSERT_TRUE(all);
  t.node.rt().kill(all->front().top);
  t.world.settle();
  EXPECT_EQ(t.code(), 1);
  EXPECT_EQ(t.text(), "application \"a\" ended: killed");
}

TEST(temporary_application, that_gives_up_does_not_affect_the_others) {
  troupe t;
  t.start({application{fragile(t, "a", restart::temporary)}, application{t.app("b")}});
  t.book.take();
  t.crash("a.child");
  EXPECT_EQ(t.book.take(), (lines{"-a.child", "prep_stop a", "stop a"}));
  EXPECT_EQ(t.outcome(), "running");
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.book.take(), (lines{"prep_stop b", "-b.child", "stop b"}));
  EXPECT_EQ(t.code(), 0);
}

TEST(temporary_application, ends_the_program_with_0_when_it_was_the_last_and_there_are_only_such) {
  troupe t;
  t.start({application{fragile(t, "a", restart::temporary)}, application{fragile(t, "b", restart::temporary)}});
  t.crash("a.child");
  EXPECT_EQ(t.outcome(), "running");
  t.crash("b.child");
  EXPECT_EQ(t.outcome(), "done");
  EXPECT_EQ(t.code(), 0);
}

// ---- it is done

TEST(exit_code, is_0_when_the_only_application_is_done) {
  troupe t;
  t.start({application{short_lived(t, "a", restart::permanent)}});
  t.book.take();
  t.finish("a.child", exit_reason::normal());
  EXPECT_EQ(t.book.take(), (lines{"-a.child", "prep_stop a", "stop a"}));
  EXPECT_EQ(t.outcome(), "done");
  EXPECT_EQ(t.code(), 0);
  EXPECT_EQ(t.text(), "");
  EXPECT_EQ(t.processes(), 0U);
}

TEST(exit_code, is_0_when_all_transient_applications_are_done_and_the_temporary_ones_are_stopped_then) {
  troupe t;
  auto temporary = t.app("c");
  temporary.restart = restart::temporary;
  t.start({application{short_lived(t, "a", restart::transient)}, application{short_lived(t, "b", restart::transient)},
           application{temporary}});
  t.finish("a.child", exit_reason::normal());
  EXPECT_EQ(t.outcome(), "running");
  t.book.take();
  t.finish("b.child", exit_reason::normal());
  EXPECT_EQ(t.book.take(), (lines{"-b.child", "prep_stop b", "stop b", "prep_stop c", "-c.child", "stop c"}));
  EXPECT_EQ(t.outcome(), "done");
  EXPECT_EQ(t.code(), 0);
}

TEST(exit_code, is_1_when_a_permanent_application_is_done_before_the_others) {
  troupe t;
  t.start({application{short_lived(t, "a", restart::permanent)}, application{t.app("b")}});
  t.finish("a.child", exit_reason::normal());
  EXPECT_EQ(t.outcome(), "gave_up");
  EXPECT_NE(t.text().find("and it is permanent"), std::string::npos) << t.text();
}

TEST(exit_code, is_1_when_a_significant_child_has_failed_for_good) {
  troupe t;
  auto app = short_lived(t, "a", restart::transient);
  app.supervise = {t.child("a.child", {.restart = restart::temporary, .significant = true})};
  t.start({application{app}});
  t.crash("a.child");
  EXPECT_EQ(t.outcome(), "gave_up");
  EXPECT_NE(t.text().find("error: crash"), std::string::npos) << t.text();
}

TEST(done, is_enough_for_those_that_depend_on_it) {
  troupe t;
  auto migration = short_lived(t, "migration", restart::transient);
  auto slow = t.app("slow");
  slow.start = [](self& me) -> task<> { co_await me.sleep(1s); };
  t.start({application{migration}, application{slow}, application{t.app("web", {"migration"})}});
  t.finish("migration.child", exit_reason::normal());
  t.world.run_for(2s);
  EXPECT_EQ(t.book.all.back(), "+web.child");
  EXPECT_EQ(t.outcome(), "running");
}

TEST(done, while_others_are_still_starting_counts_once_they_are_up) {
  troupe t;
  auto slow = short_lived(t, "slow", restart::transient);
  slow.start = [](self& me) -> task<> { co_await me.sleep(1s); };
  t.start({application{short_lived(t, "a", restart::transient)}, application{slow}});
  t.finish("a.child", exit_reason::normal());
  t.world.run_for(2s);
  EXPECT_EQ(t.outcome(), "running");
  t.finish("slow.child", exit_reason::normal());
  EXPECT_EQ(t.outcome(), "done");
}

// ---- it can't be started

TEST(exit_code, is_3_when_an_application_can_not_be_started_and_the_others_are_stopped_in_reverse) {
  troupe t;
  t.book.starts["c.child"] = {"throw"};
  t.start({application{t.app("a")}, application{t.app("b")}, application{t.app("c")}, application{t.app("d")}});
  lines expected{"start a", "+a.child", "start b", "+b.child", "start c", "stop c"};
  expected.insert(expected.end(), a_and_b_down.begin(), a_and_b_down.end());
  EXPECT_EQ(t.book.take(), expected);
  EXPECT_EQ(t.outcome(), "start_failed");
  EXPECT_EQ(t.code(), 3);
  EXPECT_EQ(t.text(),
            "application \"c\" could not be started: child 'c.child' could not be started: error: std::runtime_error: "
            "out of luck");
  EXPECT_EQ(t.processes(), 0U);
}

TEST(temporary_application, that_cannot_be_started_does_not_affect_those_that_do_not_need_it) {
  troupe t;
  auto extra = t.app("extra");
  extra.restart = restart::temporary;
  t.book.starts["extra.child"] = {"fail"};
  t.start({application{extra}, application{t.app("a")}});
  EXPECT_EQ(t.book.take(), (lines{"start extra", "stop extra", "start a", "+a.child"}));
  EXPECT_EQ(t.outcome(), "running");
}

TEST(temporary_application, that_can_not_be_started_keeps_others_that_need_it_down_and_the_rest_starts_one_by_one) {
  troupe t;
  std::vector<application> all;
  t.book.starts["a.child"] = {"fail"};
  for (const auto& [name, needs] : std::vector<std::pair<std::string, std::string>>{{"a", ""}, {"b", "a"}, {"c", ""}}) {
    auto app = t.app(name);
    if (!needs.empty()) app.depends_on = {needs};
    app.restart = restart::temporary;
    all.emplace_back(app);
  }
  auto last = t.app("d");
  last.start = [](self& me) -> task<> { co_await me.sleep(1s); };
  all.insert(all.end() - 1, application{last});
  t.start(applications{all});
  EXPECT_EQ(t.book.take(), (lines{"start a", "stop a"}));
  t.world.run_for(2s);
  EXPECT_EQ(t.book.take(), (lines{"+d.child", "start c", "+c.child"}));
}

TEST(temporary_application, that_can_not_be_started_is_missed_by_those_that_need_it) {
  troupe t;
  auto extra = t.app("extra");
  extra.restart = restart::temporary;
  t.book.starts["extra.child"] = {"fail"};
  t.start({application{extra}, application{t.app("a", {"extra"})}});
  EXPECT_EQ(t.code(), 3);
  EXPECT_EQ(t.text(),
            "application \"a\" could not be started: it depends on \"extra\", which is not running: it could not be "
            "started");
}

TEST(exit_code, is_3_when_a_root_supervisor_has_nothing_to_do) {
  troupe t;
  const std::function<std::optional<supervisor_spec>()> nothing = [] { return std::nullopt; };
  t.start({application{{.name = "a", .root = child<supervisor>(nothing)}}});
  EXPECT_EQ(t.code(), 3);
  EXPECT_EQ(t.text(), "application \"a\" could not be started: its root supervisor had nothing to supervise");
}

// ---- codes of the program's own

/// A child that stops the program with these codes, and then ends.
task<> stops_with(self& me, std::vector<int> codes) {
  for (const int code : codes) EXPECT_TRUE(stop_program(me, code));
  co_return;
}
application_options stopper(troupe& t, std::vector<int> codes) {
  application_options app = t.app("a");
  app.supervise.push_back(child(stops_with, std::move(codes)).with({.id = "stopper", .restart = restart::transient}));
  return app;
}

TEST(exit_code, of_the_programs_own_replaces_0_and_the_first_one_wins) {
  troupe t;
  t.start({application{stopper(t, {5, 6})}});
  EXPECT_EQ(t.outcome(), "stopped");
  EXPECT_EQ(t.code(), 5);
  EXPECT_EQ(t.book.take(), (lines{"start a", "+a.child", "prep_stop a", "-a.child", "stop a"}))
      << "it stopped in order";
}

TEST(exit_code, of_the_programs_own_is_kept_when_the_work_is_done_meanwhile) {
  troupe t;
  const child_options last{.id = "last", .restart = restart::transient, .significant = true};
  t.start({application{{.name = "a",
                        .supervise = {child(stops_with, std::vector<int>{7}).with(last)},
                        .auto_shutdown = auto_shutdown::any_significant}}});
  EXPECT_EQ(t.code(), 7);
}

TEST(exit_code, of_the_programs_own_does_not_hide_a_failure) {
  troupe t;
  auto stubborn = stopper(t, {5});
  stubborn.supervise.front() = t.child("a.child", {.shutdown = shutdown::infinity()}, 1000h);
  t.start({application{stubborn}}, {.stop_within = 1s});
  t.world.run_for(2s);
  EXPECT_EQ(t.outcome(), "not_in_time");
  EXPECT_EQ(t.code(), 4);
}

TEST(exit_code, of_the_programs_own_is_from_0_to_125) {
  troupe t;
  t.node.rt().spawn(+[](self& me) -> task<> {
    for (const int code : {-1, 126, 143, 256})
      EXPECT_THROW((void)stop_program(me, code), std::invalid_argument) << code;
    for (const int code : {0, 1, 125}) EXPECT_FALSE(stop_program(me, code)) << "no program runs";
    co_return;
  });
  t.world.settle();
}

// ---- signals

TEST(signal, the_first_stops_all_in_order_with_0) {
  for (const os_signal s : {os_signal::terminate, os_signal::interrupt}) {
    troupe t;
    t.start({application{t.app("a")}, application{t.app("b")}});
    t.book.take();
    t.signal(s);
    EXPECT_EQ(t.book.take(), a_and_b_down);
    EXPECT_EQ(t.outcome(), "stopped");
    EXPECT_EQ(t.running->ended()->signal, s);
    EXPECT_EQ(t.code(), 0);
  }
}

TEST(signal, the_second_kills_all_at_once_with_128_and_its_number) {
  const std::vector<std::pair<os_signal, int>> codes{{os_signal::terminate, 143}, {os_signal::interrupt, 130}};
  for (const auto& [s, code] : codes) {
    troupe t;
    auto stubborn = t.app("b");
    stubborn.supervise = {t.child("b.child", {.shutdown = shutdown::infinity()}, 1000h)};
    t.start({application{t.app("a")}, application{stubborn}});
    t.book.take();
    t.signal(os_signal::terminate);
    t.world.run_for(1h);
    EXPECT_EQ(t.outcome(), "running");
    EXPECT_EQ(t.book.take(), lines{"prep_stop b"});
    t.signal(s);
    EXPECT_EQ(t.outcome(), "stopped_hard");
    EXPECT_EQ(t.code(), code);
    EXPECT_EQ(t.book.take(), lines{}) << "nothing of theirs runs";
    EXPECT_EQ(t.processes(), 0U);
  }
}

TEST(signal, after_which_an_earlier_subscriber_has_restarted_the_node_does_not_reach_the_program_of_before) {
  troupe t;
  const auto first = t.node.env().os_signals().subscribe({os_signal::terminate}, [&](os_signal) { t.node.restart(); });
  t.start({application{t.app("a")}});
  t.book.take();
  t.signal();
  EXPECT_TRUE(t.node.up());
  EXPECT_EQ(t.processes(), 0U);
  EXPECT_EQ(t.book.take(), lines{}) << "a crash stops nothing in order";
}

TEST(signal, that_comes_while_the_program_starts_stops_what_was_started) {
  troupe t;
  auto slow = t.app("b");
  slow.start = [](self& me) -> task<> { co_await me.sleep(1s); };
  t.start({application{t.app("a")}, application{slow}, application{t.app("c")}});
  t.signal();
  t.world.run_for(2s);
  EXPECT_EQ(t.book.take(), (lines{"start a", "+a.child", "+b.child", "prep_stop b", "-b.child", "stop b", "prep_stop a",
                                  "-a.child", "stop a"}));
  EXPECT_EQ(t.code(), 0);
}

TEST(signal, the_second_ends_a_start_that_hangs) {
  troupe t;
  t.book.starts["b.child"] = {"hang"};
  t.start({application{t.app("a")}, application{t.app("b")}});
  t.signal();
  EXPECT_EQ(t.outcome(), "running");
  t.signal(os_signal::interrupt);
  EXPECT_EQ(t.code(), 130);
  EXPECT_EQ(t.processes(), 0U);
}

TEST(signal, the_first_while_the_program_is_stopping_anyway_is_not_a_second_one) {
  troupe t;
  auto slow = t.app("b");
  slow.supervise = {t.child("b.child", {.shutdown = 1h}, 10s)};
  t.start({application{fragile(t, "a", restart::permanent)}, application{slow}});
  t.crash("a.child");
  t.signal();
  EXPECT_EQ(t.outcome(), "running");
  t.world.run_for(11s);
  EXPECT_EQ(t.outcome(), "gave_up") << "that is why it stopped";
  EXPECT_EQ(t.code(), 1);
}

TEST(signal, hangup_stops_a_program_only_when_it_was_told_so) {
  troupe t;
  t.start({application{t.app("a")}}, {.stop_on = {os_signal::hangup}});
  t.signal(os_signal::hangup);
  EXPECT_EQ(t.code(), 0);
  troupe other;
  other.start({application{other.app("a")}});
  other.signal(os_signal::hangup);
  EXPECT_FALSE(other.node.up()) << "nobody listens: the system ends it";
}

TEST(signal, is_left_to_the_system_when_the_program_is_told_to_leave_them_alone) {
  troupe t;
  t.start({application{t.app("a")}}, {.stop_on = {}});
  t.signal();
  EXPECT_FALSE(t.node.up());
}

// ---- asked for

struct asks_to_stop {
  struct now {};
  using protocol = coppice::protocol<now>;
  static void handle(now, self& me) { EXPECT_TRUE(stop_program(me)); }
};

TEST(stop_program, stops_it_in_order_from_inside) {
  troupe t;
  auto app = t.app("b");
  app.supervise.push_back(child<asks_to_stop>().with({.name = "asks"}));
  t.start({application{t.app("a")}, application{app}});
  t.book.take();
  t.node.rt().send("asks", asks_to_stop::now{});
  t.world.settle();
  EXPECT_EQ(t.book.take(), a_and_b_down);
  EXPECT_EQ(t.code(), 0);
}

TEST(stop, may_be_asked_for_twice_and_is_still_in_order) {
  troupe t;
  t.start({application{t.app("a")}, application{t.app("b")}});
  t.book.take();
  t.running->stop();
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.book.take(), a_and_b_down);
  EXPECT_EQ(t.code(), 0);
}

struct fails_at_its_stop {
  struct nothing {};
  static constexpr bool traps_exits = true;
  static void terminate(const exit_reason&) { throw std::runtime_error{"out of luck"}; }
  static void handle(nothing) {}
};

TEST(stop, logs_a_top_process_that_fails_meanwhile_and_goes_on) {
  troupe t;
  const auto log = std::make_shared<line_keeper>();
  sim::node& logged = t.world.add_node("logged", {.processes = 1U << 12U, .level = log_level::error, .log = log});
  application_options own{.name = "b", .stop = t.notes("stop b")};
  own.root = child<fails_at_its_stop>().with({.type = child_type::supervisor});
  running_program running = applications{application{t.app("a")}, application{own}}.start(logged.rt());
  t.world.settle();
  t.book.take();
  running.stop();
  t.world.settle();
  EXPECT_EQ(log->lines, (lines{"error the top process of application \"b\" failed while it stopped"}));
  EXPECT_EQ(t.book.take(), (lines{"stop b", "prep_stop a", "-a.child", "stop a"}));
  ASSERT_TRUE(running.ended());
  EXPECT_EQ(running.ended()->exit_code(), 0);
}

TEST(kill, ends_it_at_once_with_137) {
  troupe t;
  t.start({application{t.app("a")}});
  t.book.take();
  t.running->kill();
  t.world.settle();
  EXPECT_EQ(t.book.take(), lines{});
  EXPECT_EQ(t.code(), 137);
  EXPECT_EQ(t.processes(), 0U);
}

TEST(stop_within, kills_what_is_left_after_that_time_with_4) {
  troupe t;
  auto stubborn = t.app("b");
  stubborn.supervise = {t.child("b.child", {.shutdown = shutdown::infinity()}, 1000h)};
  t.start({application{t.app("a")}, application{stubborn}}, {.stop_within = 10s});
  t.book.take();
  t.signal();
  t.world.run_for(9s);
  EXPECT_EQ(t.outcome(), "running");
  t.world.run_for(2s);
  EXPECT_EQ(t.outcome(), "not_in_time");
  EXPECT_EQ(t.code(), 4);
  EXPECT_EQ(t.text(), "not stopped within 10s and killed: \"a\", \"b\"");
  EXPECT_EQ(t.book.take(), lines{"prep_stop b"});
  EXPECT_EQ(t.processes(), 0U);
}

TEST(stop_within, keeps_the_exit_code_of_what_went_wrong_before) {
  troupe t;
  auto stubborn = t.app("b");
  stubborn.supervise = {t.child("b.child", {.shutdown = shutdown::infinity()}, 1000h)};
  t.start({application{fragile(t, "a", restart::permanent)}, application{stubborn}}, {.stop_within = 10s});
  t.crash("a.child");
  t.world.run_for(11s);
  EXPECT_EQ(t.code(), 1);
  EXPECT_NE(t.text().find("; not stopped within 10s and killed: \"b\""), std::string::npos) << t.text();
}

TEST(stop_within, does_not_matter_to_a_program_that_stops_in_time) {
  troupe t;
  t.start({application{t.app("a")}}, {.stop_within = 0s});
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.code(), 0);
}

// ---- what else may end them

TEST(master, that_is_killed_while_its_top_supervisor_starts_takes_it_along) {
  troupe t;
  t.book.starts["b.child"] = {"hang"};
  t.start({application{t.app("a")}, application{t.app("b", {"a"})}});
  EXPECT_EQ(t.book.take(), (lines{"start a", "+a.child", "start b"}));
  pid master{};
  for (const process_info& p : t.node.rt().snapshot())
    if (p.label == "application b") master = p.id;
  ASSERT_TRUE(master);
  t.node.rt().kill(master);
  t.world.settle();
  EXPECT_EQ(t.outcome(), "start_failed");
  EXPECT_EQ(t.processes(), 0U) << "its child never returns from init";
}

TEST(controller, and_masters_do_not_believe_exits_that_somebody_sent) {
  troupe t;
  t.start({application{t.app("a")}});
  t.book.take();
  const pid controller = t.running->controller();
  const pid top = t.node.rt().info(t.book.pids["a.child"])->parent;
  const pid master = t.node.rt().info(top)->parent;
  const exit_reason forged = exit_reason::error("forged");
  t.node.rt().send(controller, exited{.from = t.book.pids["a.child"], .reason = forged});
  t.node.rt().send(controller, exited{.from = master, .reason = forged, .linked = true});
  t.node.rt().send(master, exited{.from = controller, .reason = forged, .linked = true});
  t.node.rt().send(master, exited{.from = top, .reason = forged, .linked = true});
  t.world.settle();
  EXPECT_EQ(t.outcome(), "running");
  EXPECT_EQ(t.book.take(), lines{});
  t.running->stop();
  t.world.settle();
  EXPECT_EQ(t.outcome(), "stopped");
}

TEST(controller, whose_process_is_killed_leaves_nothing_behind) {
  troupe t;
  t.start({application{t.app("a")}, application{t.app("b")}});
  t.node.rt().kill(t.running->controller());
  t.world.settle();
  EXPECT_EQ(t.code(), 1);
  EXPECT_EQ(t.processes(), 0U);
}

TEST(controller, that_is_told_to_exit_stops_in_order) {
  troupe t;
  t.start({application{t.app("a")}, application{t.app("b")}});
  t.book.take();
  t.node.rt().exit(t.running->controller(), exit_reason::shutdown());
  t.world.settle();
  EXPECT_EQ(t.book.take(), a_and_b_down);
  EXPECT_EQ(t.code(), 0);
}

TEST(program, that_waits_in_the_simulation_lets_it_run) {
  troupe t;
  t.start({application{short_lived(t, "a", restart::permanent)}});
  t.node.rt().send_after(1h, t.book.pids["a.child"], part::finish{exit_reason::normal()});
  EXPECT_EQ(t.running->wait().what, program_end::done);
}

}  // namespace
