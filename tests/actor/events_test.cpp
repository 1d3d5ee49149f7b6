// What observers see: dead letters and supervision events, on the event stream and in the log.
#include <gtest/gtest.h>

#include <mutex>

#include <coppice/runtime/runtime.hpp>
#include <coppice/spec/child.hpp>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

TEST(supervision_events, say_who_failed_why_and_what_was_answered) {
  stage s;
  const auto a = s.enter("a", {.strategy = one_for_one({.limit = {.restarts = 1, .within = 1h}})});
  player_ref c;
  s.in(a, [&](context& me) { c = *me.spawn({.name = "child"}, s.role("c")); });
  const auto listener = spawn_actor(s.rt, props<behaving>([book = s.book] {
                                      return behaviour{[](started, context& me) { me.subscribe<supervision_event>(); },
                                                       [book](const supervision_event& e, context&) {
                                                         book->push_back(e.name + " " + std::string{to_string(e.what)} +
                                                                         " " + std::string{e.reason.text()});
                                                       }};
                                    }));
  (void)s.heard();
  for (int i = 0; i < 2; ++i) s.in(c, [](context&) { throw std::runtime_error{"no luck"}; });
  lines heard = s.heard();
  std::erase_if(heard, [](const auto& l) { return l.starts_with("c:"); });
  EXPECT_EQ(heard, (lines{"child restart no luck", "child stop no luck"}));
  EXPECT_TRUE(s.rt.alive(listener.id()));
}

struct notes final : log_sink {
  void write(const log_record& r) override {
    const std::scoped_lock lock{mutex};
    std::string line{r.text};
    for (const auto& f : r.fields) line += " " + std::string{f.key} + "=" + f.value;
    all.push_back(std::move(line));
    levels.push_back(r.level);
  }
  std::mutex mutex;
  lines all;
  std::vector<log_level> levels;
};

TEST(log, of_floods_is_throttled_and_says_how_many_it_left_out) {
  const auto sink = std::make_shared<notes>();
  sim::world w{1};
  runtime& rt = w.add_node("n", {.processes = 1000, .level = log_level::info, .log = sink}).rt();
  const auto send_many = [&](int n) {
    for (int i = 0; i < n; ++i) rt.send(pid::from_parts(rt.host().node(), 900, 0), note{"x"});
    w.settle();
  };
  send_many(500);
  EXPECT_EQ(sink->all.size(), 10U);
  EXPECT_TRUE(sink->all[0].starts_with("dead letter to=<")) << sink->all[0];
  w.run_for(2s);
  send_many(1);
  ASSERT_EQ(sink->all.size(), 12U);
  EXPECT_EQ(sink->all[10], "dead letter not_logged=490");
}

TEST(log, of_a_message_without_a_handler_is_a_warning_that_names_both) {
  const auto sink = std::make_shared<notes>();
  sim::world w{1};
  runtime& rt = w.add_node("n", {.processes = 1000, .level = log_level::warning, .log = sink}).rt();
  const auto a = spawn_actor(rt, {.name = "deaf"}, props<behaving>([] { return behaviour{[](started, context&) {}}; }));
  ASSERT_TRUE(a);
  rt.send(a->id(), whisper{});
  w.settle();
  EXPECT_EQ(sink->all, (lines{"no handler for a message; is it in the protocol of the receiver? pid=" +
                              to_string(a->id()) + " name=deaf message=coppice::studio::whisper"}));
  EXPECT_EQ(rt.counters().dead_letters, 1U);
  rt.kill(a->id());
  w.settle();
  rt.send(a->id(), whisper{});  // nobody is there: that is not its fault
  w.settle();
  EXPECT_EQ(sink->all.size(), 1U);
  EXPECT_EQ(rt.counters().dead_letters, 2U);
}

TEST(log, of_an_actor_names_it) {
  const auto sink = std::make_shared<notes>();
  sim::world w{1};
  runtime& rt = w.add_node("n", {.processes = 1000, .level = log_level::info, .log = sink}).rt();
  (void)spawn_actor(rt, {.name = "me"}, props<behaving>([] {
                      return behaviour{[](started, context& me) { me.log(log_level::info, "hello", {{"n", "1"}}); }};
                    }));
  w.settle();
  EXPECT_EQ(sink->all, (lines{"hello actor=me n=1"}));
}

TEST(log, of_a_failure_is_a_warning_when_it_is_mended_and_an_error_when_it_ends_the_actor) {
  const auto sink = std::make_shared<notes>();
  sim::world w{1};
  runtime& rt = w.add_node("n", {.processes = 1000, .level = log_level::info, .log = sink}).rt();
  const auto book = std::make_shared<lines>();
  const auto a = spawn_actor(rt, props<player>("a", book).with({.guardian = one_for_one({.limit = {.restarts = 1}})}));
  rt.cast<act>(a, [](context&) { throw std::runtime_error{"no luck"}; });
  w.settle();
  ASSERT_EQ(sink->levels, (std::vector{log_level::warning}));
  rt.cast<act>(a, [](context&) { throw std::runtime_error{"no luck"}; });
  w.settle();
  ASSERT_EQ(sink->levels, (std::vector{log_level::warning, log_level::error}));
  EXPECT_TRUE(sink->all[0].starts_with("actor failed")) << sink->all[0];
  for (const std::string& line : sink->all) EXPECT_TRUE(line.contains("no luck")) << line;
}

task<> fails_later(self& me) {
  co_await me.sleep(1s);
  throw std::runtime_error{"no luck"};
}
TEST(log, of_the_failure_of_a_child_that_is_a_process_is_one_line) {
  const auto sink = std::make_shared<notes>();
  sim::world w{1};
  runtime& rt = w.add_node("n", {.processes = 1000, .level = log_level::info, .log = sink}).rt();
  const auto book = std::make_shared<lines>();
  const auto a = spawn_actor(rt, props<player>("a", book));
  rt.cast<act>(a, [](context& me) { EXPECT_TRUE(me.spawn(child(fails_later).with({.id = "c"}))); });
  w.run_for(1500ms);
  ASSERT_EQ(sink->levels, (std::vector{log_level::error}));
  EXPECT_TRUE(sink->all[0].starts_with("process ended")) << sink->all[0];
  rt.cast<act>(a, [&rt](context& me) { rt.kill(me.children().front()); });
  w.settle();
  ASSERT_EQ(sink->levels, (std::vector{log_level::error, log_level::warning})) << "no process logs that it was killed";
}

}  // namespace
