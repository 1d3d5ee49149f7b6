// The trace of a world: what its lines say, whose events they are, and that nobody notices that it is made.
// Compiled alone: joined with others, its types would have other names.
#include <gtest/gtest.h>

#include <coppice/runtime/blocking.hpp>
#include <coppice/sim/explore.hpp>

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace std::chrono_literals;

struct put {
  int value;
};
struct get {
  using reply = int;
};
struct stop {};

task<> writer(self& me) {
  for (;;) {
    auto m = co_await me.receive<put, request<get>, stop>();
    if (auto* asked = std::get_if<request<get>>(&m)) asked->reply(7);
    if (std::holds_alternative<stop>(m)) co_return;
  }
}

task<> asks(self& me, pid whom) {
  const auto got = co_await call<get>(whom);
  (void)got;
  co_await me.sleep(1ms);
}

task<> names_itself(self& me) {
  const auto first = co_await me.receive<put>();
  (void)first;
  const result<void> named = me.register_as("late");
  require(named.has_value(), "the name is taken");
  const auto second = co_await me.receive<put>();
  (void)second;
}

struct calm_counter {
  using protocol = coppice::protocol<put>;
  task<> handle(put m, self& me) {
    co_await me.sleep(1ms);
    sum += m.value;
  }
  int sum = 0;
};

struct counter {
  int sum = 0;
  void handle(put m) { sum += m.value; }
};

/// What the events say, without times and nodes.
std::vector<std::string> texts(const std::vector<trace_event>& events) {
  std::vector<std::string> all;
  all.reserve(events.size());
  for (const trace_event& e : events) all.push_back(e.what);
  return all;
}
using lines = std::vector<std::string>;

bool has(const std::vector<trace_event>& events, std::string_view node, std::string_view what) {
  return std::ranges::any_of(events, [&](const trace_event& e) { return e.node == node && e.what == what; });
}

TEST(trace, a_line_says_when_where_who_and_what) {
  lines all;  // before the world, whose end adds a line
  world w{1};
  w.on_trace([&](std::string_view line) { all.emplace_back(line); });
  runtime& rt = w.add_node("store").rt();
  const pid p = rt.spawn({.name = "writer"}, writer).value();
  rt.send(p, put{1});
  w.note("of the test", 7);
  EXPECT_TRUE(w.run());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0], "1.000000000 store: node up, as number 1");
  EXPECT_EQ(all[1], "1.000000000 of the test 7");
  EXPECT_EQ(all[2], "1.000000100 store writer <1.1.0>: start");
  EXPECT_TRUE(all[3].ends_with(" store writer <1.1.0>: message put")) << all[3];
}

TEST(trace, a_process_is_shown_with_what_it_handles_and_how_it_ends) {
  world w{1};
  w.keep_trace();
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn({.name = "writer"}, writer).value();
  const pid client = rt.spawn({.label = "client"}, asks, p).value();
  EXPECT_TRUE(w.run());
  rt.send(p, stop{});
  EXPECT_TRUE(w.run());
  rt.send(p, put{1});
  EXPECT_TRUE(w.run());
  EXPECT_EQ(texts(w.last_events_of("writer", 10)),
            (lines{"start", "call get", "message stop", "ended: normal", "dead letter put"}));
  EXPECT_EQ(texts(w.last_events_of("client", 10)),
            (lines{"start", "reply", "check of a time limit", "check of a time limit", "ended: normal"}));
  EXPECT_EQ(texts(w.last_events_of(to_string(client), 1)), (lines{"ended: normal"}));
}

TEST(trace, only_the_last_thousand_processes_that_ended_still_have_their_names) {
  world w{1};
  w.keep_trace();
  runtime& rt = w.add_node().rt();
  const auto end_one = [&](const std::string& label) {
    const pid p = rt.spawn({.label = label}, writer).value();
    rt.send(p, stop{});
    EXPECT_TRUE(w.run());
    return p;
  };
  const auto dead_letter_to = [&](pid who) {
    rt.send(who, put{1});
    EXPECT_TRUE(w.run());
    return w.last_events(1).front();
  };
  const pid first = end_one("first");
  EXPECT_EQ(dead_letter_to(first).called, "first");
  const pid second = end_one("second");
  for (int i = 2; i <= 1000; ++i) (void)end_one("other");
  EXPECT_EQ(dead_letter_to(first).called, "");
  EXPECT_EQ(dead_letter_to(first).what, "dead letter put");
  EXPECT_EQ(dead_letter_to(second).called, "second");
}

TEST(trace, an_exit_signal_is_shown_with_its_reason) {
  world w{1};
  w.keep_trace();
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn({.name = "writer"}, writer).value();
  EXPECT_TRUE(w.run());
  rt.kill(p);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(texts(w.last_events_of("writer", 2)), (lines{"exit signal: kill", "ended: killed"}));
}

TEST(trace, a_process_without_name_and_label_is_called_after_its_class) {
  world w{1};
  w.keep_trace();
  runtime& rt = w.add_node().rt();
  const auto c = rt.spawn<counter>();
  rt.cast<put>(c, 1);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(texts(w.last_events_of("counter", 10)), (lines{"start", "message put"}));
}

TEST(trace, a_server_whose_handlers_wait_is_called_after_its_class) {
  world w{1};
  w.keep_trace();
  runtime& rt = w.add_node().rt();
  const auto c = rt.spawn<calm_counter>();
  rt.cast<put>(c, 1);
  EXPECT_TRUE(w.run());
  const lines seen = texts(w.last_events_of("calm_counter", 10));
  ASSERT_GE(seen.size(), 3U);
  EXPECT_EQ(seen[0], "start");
  EXPECT_EQ(seen[1], "message put");
  EXPECT_EQ(w.last_events_of("calm_counter", 1).front().called, "calm_counter");
}

TEST(trace, a_process_that_ran_before_the_trace_was_wanted_is_called_after_its_class) {
  world w{1};
  runtime& rt = w.add_node().rt();
  const auto c = rt.spawn<counter>();
  const auto waiting = rt.spawn<calm_counter>();
  const auto idle = rt.spawn<counter>();
  EXPECT_TRUE(w.run());
  w.keep_trace();
  rt.cast<put>(c, 1);
  rt.cast<put>(waiting, 1);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(texts(w.last_events_of("counter", 10)), (lines{"message put"}));
  EXPECT_EQ(w.last_events_of("calm_counter", 10).front().what, "message put");
  rt.kill(idle.id());
  EXPECT_TRUE(w.run());
  EXPECT_EQ(w.last_events_of("counter", 1).front().what, "ended: killed");
}

TEST(trace, events_from_before_a_process_had_its_name_are_found_under_it) {
  world w{1};
  w.keep_trace();
  runtime& rt = w.add_node().rt();
  const pid p = rt.spawn(names_itself);
  EXPECT_TRUE(w.run());
  rt.send(p, put{1});
  EXPECT_TRUE(w.run());
  rt.send(p, put{2});
  EXPECT_TRUE(w.run());
  EXPECT_EQ(texts(w.last_events_of("late", 10)), (lines{"start", "message put", "message put", "ended: normal"}));
}

TEST(trace, processes_that_had_a_name_one_after_the_other_are_all_found_under_it) {
  world w{1};
  w.keep_trace();
  runtime& rt = w.add_node().rt();
  for (int i = 0; i < 2; ++i) {
    const pid p = rt.spawn({.name = "writer"}, writer).value();
    rt.send(p, stop{});
    EXPECT_TRUE(w.run());
  }
  EXPECT_EQ(w.last_events_of("writer", 100).size(), 6U);
  EXPECT_EQ(w.last_events_of("writer", 2).size(), 2U);
  EXPECT_TRUE(w.last_events_of("nobody", 2).empty());
}

TEST(trace, a_process_that_is_frozen_with_mail_is_shown_as_frozen) {
  std::size_t frozen_with_mail = 0;  // the seed decides whether the message or the freeze comes first
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    world w{seed};
    w.keep_trace();
    runtime& rt = w.add_node().rt();
    const pid p = rt.spawn({.name = "writer"}, writer).value();
    w.settle();
    rt.send(p, put{1});
    EXPECT_TRUE(rt.freeze(p).has_value());
    const std::string last = w.last_events_of("writer", 1).front().what;
    EXPECT_TRUE(last == "frozen" || last == "message put") << last;
    if (last == "frozen") ++frozen_with_mail;
  }
  EXPECT_GT(frozen_with_mail, 0U);
}

int saves(node* n) {
  const open_options how{.write = true, .create = true};
  auto f = n->env().disk().open("/log", how);
  return f ? static_cast<int>((*f)->sync().has_value()) : 0;
}

task<> saves_in_lane(self&, lane* l, node* n) {
  const auto saved = co_await in_lane(*l, saves, n);
  (void)saved;
}

TEST(trace, lanes_disks_and_faults_of_a_node_are_shown_with_its_name) {
  world w{1};
  w.keep_trace();
  node& n = w.add_node("store");
  const auto journal = n.env().lanes().open("journal");
  n.rt().spawn(saves_in_lane, journal.get(), &n);
  EXPECT_TRUE(w.run());
  n.suspend(1ms);
  w.run_for(2ms);
  n.pause();
  n.resume();
  n.crash();
  const auto all = w.last_events(100);
  for (const std::string_view what :
       {"lane journal does a job", "disk: open /log", "disk: sync /log", "lane journal has done a job",
        "suspended for 1000000 ns", "no longer suspended", "paused", "resumed", "node down"})
    EXPECT_TRUE(has(all, "store", what)) << what;
}

TEST(trace, a_packet_is_shown_with_its_sender_its_receiver_and_its_type) {
  world w{1};
  w.keep_trace();
  node& client = w.add_node("client");
  node& store = w.add_node("store");
  const pid p = store.rt().spawn({.name = "writer"}, writer).value();
  client.rt().send(p, put{1});
  w.run_for(1s);
  w.partition(client, store);
  w.run_for(1min);
  const auto all = w.last_events(100);
  EXPECT_TRUE(has(all, "store", "packet 1 from client for <2.1.0>: put"));
  EXPECT_TRUE(has(all, "store", "message put"));
  EXPECT_TRUE(has(all, "client", "nothing passes to store"));
  EXPECT_TRUE(has(all, "client", "has lost its connection to store"));
}

TEST(trace, only_the_last_events_are_kept) {
  world w{1};
  w.keep_trace(3);
  for (std::uint64_t i = 1; i <= 10; ++i) w.note("number", i);
  EXPECT_EQ(texts(w.last_events(100)), (lines{"number 8", "number 9", "number 10"}));
  EXPECT_EQ(texts(w.last_events(1)), (lines{"number 10"}));
}

TEST(trace, fewer_events_are_kept_from_the_moment_on_that_fewer_are_wanted) {
  world w{1};
  w.keep_trace(10);
  for (std::uint64_t i = 1; i <= 5; ++i) w.note("number", i);
  w.keep_trace(2);
  EXPECT_EQ(texts(w.last_events(100)), (lines{"number 4", "number 5"}));
  w.note("number", 6);
  EXPECT_EQ(texts(w.last_events(100)), (lines{"number 5", "number 6"}));
  w.keep_trace(0);
  w.note("number", 7);
  EXPECT_TRUE(w.last_events(100).empty());
}

TEST(trace, nothing_is_kept_unless_somebody_asks) {
  world w{1};
  w.note("unheard");
  EXPECT_TRUE(w.last_events(10).empty());
}

// ---- the hash

task<> gossip(self& me, std::shared_ptr<std::vector<pid>> all, int rounds) {
  if (me.random() % 2 == 0) me.trap_exits();
  for (int i = 0; i < rounds; ++i) {
    const pid other = (*all)[me.random() % all->size()];
    me.send(other, put{i});
    if (me.random() % 8 == 0) me.link(other);
    if (me.random() % 20 == 0) me.exit(other, exit_reason::kill());
    if (me.random() % 4 == 0) co_await me.yield();
    const std::chrono::microseconds limit{me.random() % 3000};
    const auto got = co_await me.receive<put>(limit);
    (void)got;
  }
}

std::uint64_t hash_of(std::uint64_t seed, bool traced) {
  world w{seed};
  if (traced) w.keep_trace();
  const auto all = std::make_shared<std::vector<pid>>();
  for (int n = 0; n < 2; ++n) {
    runtime& rt = w.add_node().rt();
    for (int i = 0; i < 6; ++i) all->push_back(rt.spawn(gossip, all, 20));
  }
  for (int i = 0; i < 20; ++i) {
    w.run_for(w.chance().between(0us, 3ms));
    const pid who = (*all)[w.chance().below(all->size())];
    node& n = *w.find(who.node());
    if (w.chance().chance(0.5)) n.stick(who, 1ms);
    if (w.chance().chance(0.3)) (void)n.rt().freeze(who);
    if (w.chance().chance(0.3)) n.rt().thaw(who);
  }
  w.run();
  return w.trace_hash();
}

TEST(trace, a_world_that_is_traced_goes_the_same_way) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) EXPECT_EQ(hash_of(seed, true), hash_of(seed, false)) << seed;
}

// ---- the report of an exploration

void fails_with(world& w, std::vector<std::string> concerned) {
  runtime& rt = w.add_node("store").rt();
  const pid p = rt.spawn({.name = "writer"}, writer).value();
  rt.send(p, put{1});
  w.run();
  w.note("later");
  require(false, "a number was lost", std::move(concerned));
}

TEST(trace, a_report_shows_the_last_events_of_those_concerned) {
  const std::string report = explore({.name = "loses", .replay = "again"}, [](world& w) { fails_with(w, {"writer"}); });
  EXPECT_TRUE(
      report.starts_with("loses: seed 1: a number was lost\n  replay: COPPICE_SEED=1 again\n"
                         "  the last events of writer:\n    1.000000100 store writer <1.1.0>: start\n"))
      << report;
  EXPECT_TRUE(report.ends_with(" store writer <1.1.0>: message put")) << report;
}

TEST(trace, a_report_about_nobody_shows_the_last_events_of_the_run) {
  const std::string report = explore({.name = "loses", .events = 2}, [](world& w) { fails_with(w, {}); });
  EXPECT_NE(report.find("  the last events:\n    "), std::string::npos) << report;
  EXPECT_EQ(report.find("node up"), std::string::npos) << report;
  EXPECT_TRUE(report.ends_with(" later")) << report;
}

TEST(trace, a_report_about_one_who_did_nothing_shows_the_last_events_of_the_run) {
  const std::string report = explore({.name = "loses"}, [](world& w) { fails_with(w, {"reader"}); });
  EXPECT_TRUE(report.ends_with(" later")) << report;
}

TEST(trace, a_report_without_events_needs_no_further_run) {
  int runs = 0;
  const auto fails = [&](world& w) {
    ++runs;
    fails_with(w, {});
  };
  const std::string report = explore({.name = "loses", .replay = "again", .events = 0}, fails);
  EXPECT_EQ(report, "loses: seed 1: a number was lost\n  replay: COPPICE_SEED=1 again");
  EXPECT_EQ(runs, 1);
}

TEST(trace, the_second_run_of_a_seed_is_traced_so_that_its_failure_has_events) {
  std::vector<bool> traced;
  const auto fails_later = [&](world& w) {
    traced.push_back(w.traced());
    w.note("here");
    require(traced.size() < 2, "worn out");
  };
  const std::string report = explore({.name = "wear", .seeds = 1, .repeat_every = 1, .replay = "again"}, fails_later);
  EXPECT_EQ(report,
            "wear: seed 1: the second run of the same seed failed: worn out\n  replay: COPPICE_SEED=1 again\n"
            "  the last events:\n    1.000000000 here");
  EXPECT_EQ(traced, (std::vector<bool>{false, true}));
}

TEST(trace, a_report_says_if_the_run_for_its_events_did_not_fail) {
  int runs = 0;
  const auto fails_once = [&](world&) { require(++runs != 1, "once"); };
  const std::string report = explore({.name = "fickle", .replay = "again"}, fails_once);
  EXPECT_EQ(report,
            "fickle: seed 1: once\n  replay: COPPICE_SEED=1 again\n"
            "  no events: the seed was run once more for them, and did not fail");
}

}  // namespace
