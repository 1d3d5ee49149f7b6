// Applications that read their configuration again, and signals that a program uses for itself.
#include <gtest/gtest.h>

#include "troupe.hpp"

namespace {

using namespace coppice;

/// Notes what it is told by the event stream.
struct listener {
  static constexpr bool traps_exits = true;
  using protocol = coppice::protocol<config_changed, program_signal>;
  listener(self& me, journal* into) : book{into} {
    me.subscribe<config_changed>();
    me.subscribe<program_signal>();
  }
  void handle(const config_changed& e) const { book->note("changed " + e.application); }
  void handle(program_signal e) const { book->note("signal " + std::string{to_string(e.which)}); }
  journal* book;
};

/// An application with a hook and a process that listens.
application_options reloads(troupe& t, const std::string& name, application_hook hook) {
  application_options app{.name = name, .supervise = {child<listener>(&t.book)}};
  app.reload = std::move(hook);
  return app;
}

TEST(reload, by_hangup_runs_the_hook_and_tells_the_processes) {
  troupe t;
  t.start({application{reloads(t, "a", t.notes("reload a"))}, application{t.app("b")}});
  t.book.take();
  for (int i = 0; i < 2; ++i) {
    t.signal(os_signal::hangup);
    EXPECT_EQ(t.book.take(), (lines{"reload a", "changed a"}));
  }
  EXPECT_EQ(t.outcome(), "running");
  t.signal();
  EXPECT_EQ(t.code(), 0) << "the first signal that stops it is not a second one";
}

TEST(reload, that_fails_is_not_told_and_the_program_goes_on) {
  troupe t;
  const application_hook fails = []() -> result<void> { return fail(errc::invalid, "line 3: what?"); };
  t.start({application{reloads(t, "a", fails)}});
  t.signal(os_signal::hangup);
  EXPECT_EQ(t.book.take(), lines{});
  EXPECT_EQ(t.outcome(), "running");
}

TEST(reload, may_be_asked_for_by_a_process) {
  troupe t;
  t.start({application{reloads(t, "a", t.notes("reload a"))}});
  bool told = false;
  t.node.rt().spawn(+[](self& me, bool* into) -> task<> { co_return void(*into = reload_program(me)); }, &told);
  t.world.settle();
  EXPECT_TRUE(told);
  EXPECT_EQ(t.book.take(), (lines{"reload a", "changed a"}));
}

TEST(reload, of_an_application_that_is_starting_comes_when_it_is_up_and_of_one_that_waits_not_at_all) {
  troupe t;
  application_options slow = reloads(t, "a", t.notes("reload a"));
  slow.start = [](self& me) -> task<> { co_await me.sleep(1s); };
  t.start({application{slow}, application{reloads(t, "b", t.notes("reload b"))}});
  t.signal(os_signal::hangup);
  EXPECT_EQ(t.book.take(), lines{});
  t.world.run_for(2s);
  const lines seen = t.book.take();
  EXPECT_EQ(seen.front(), "reload a");
  EXPECT_EQ(std::ranges::count(seen, "reload b"), 0);
}

TEST(reload, is_over_before_a_stop_goes_on) {
  troupe t;
  application_options slow = reloads(t, "a", [&t](self& me) -> task<> {
    co_await me.sleep(1s);
    t.book.note("reload a");
  });
  slow.stop = t.notes("stop a");
  t.start({application{slow}});
  t.signal(os_signal::hangup);
  t.signal();
  t.world.run_for(2s);
  EXPECT_EQ(t.outcome(), "stopped");
  const lines seen = t.book.take();
  EXPECT_EQ(seen.front(), "reload a");
  EXPECT_EQ(seen.back(), "stop a");
}

TEST(reload, and_a_stop_by_the_same_signal_is_refused) {
  troupe t;
  t.start({application{reloads(t, "a", [] {})}}, {.stop_on = {os_signal::hangup}});
  EXPECT_EQ(t.outcome(), "refused");
  EXPECT_EQ(t.text(), "application \"a\" has a reload hook, and SIGHUP is in stop_on; leave one of them out");
}

TEST(program_signals, that_are_published_reach_who_subscribes) {
  troupe t;
  t.start({application{{.name = "a", .supervise = {child<listener>(&t.book)}}}},
          {.publish = {os_signal::user1, os_signal::user2, os_signal::hangup}});
  t.signal(os_signal::user1);
  t.signal(os_signal::user2);
  t.signal(os_signal::hangup);
  EXPECT_EQ(t.book.take(), (lines{"signal SIGUSR1", "signal SIGUSR2", "signal SIGHUP"}));
  EXPECT_EQ(t.outcome(), "running");
}

TEST(program_signals, that_are_not_published_are_left_to_the_system) {
  troupe t;
  t.start({application{t.app("a")}});
  t.signal(os_signal::user1);
  EXPECT_FALSE(t.node.up());
}

TEST(program_signals, cannot_stop_the_program_and_be_published) {
  troupe t;
  t.start({application{t.app("a")}}, {.publish = {os_signal::interrupt}});
  EXPECT_EQ(t.outcome(), "refused");
  EXPECT_EQ(t.text(), "SIGINT is in stop_on and in publish; leave it out of one of them");
}

}  // namespace
