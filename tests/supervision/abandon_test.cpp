// Children that are stuck in code that does not come back; and supervisors on real threads.
#include <gtest/gtest.h>
#include <runtime/support.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

TEST(abandoned_child, is_given_up_when_abandon_after_has_passed_since_its_kill) {
  family f;
  f.listen();
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.shutdown = 2s})}, .abandon_after = 3s}));
  f.settle();
  f.events.clear();
  f.book.take();
  f.stick(f.who("b"), 1h);
  const auto done = f.begin(terminate_child(f.tree, "b"));
  f.pass(5s - 2 * a_tick);
  EXPECT_FALSE(*done) << "two seconds to stop, three to be killed";
  f.pass(3s + 4 * a_tick);
  ASSERT_TRUE(*done);
  EXPECT_TRUE(**done);
  EXPECT_FALSE(f.rt().alive(f.who("b")));
  ASSERT_EQ(f.events.size(), 1U);
  EXPECT_EQ(f.events[0].what, supervisor_event::kind::abandoned);
  EXPECT_EQ(f.events[0].child, "b");
  EXPECT_EQ(f.ask(which_child(f.tree, "b"))->last_reason, exit_reason::abandoned());
  EXPECT_TRUE(f.ask(restart_child(f.tree, "b"))) << "the supervisor goes on";
  EXPECT_EQ(f.state(), "a:running b:running");
}

TEST(abandoned_child, does_not_keep_its_supervisor_from_ending) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("b", {.shutdown = 1s}), f.child("c")}, .abandon_after = 1s}));
  f.book.take();
  f.stick(f.who("b"), 24h);
  f.stop();
  f.pass(1min);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
  EXPECT_EQ(f.book.take(), (lines{"stop c shutdown", "stop a shutdown"}));
}

TEST(abandoned_child, does_not_keep_a_group_from_being_restarted) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .children = {f.child("a"), f.child("b", {.shutdown = shutdown::brutal_kill()})},
                       .abandon_after = 1s}));
  f.stick(f.who("b"), 24h);
  f.crash("a");
  f.pass(1min);
  EXPECT_EQ(f.state(), "a:running b:running");
}

TEST(abandoned_child, whose_start_took_too_long_is_reported_and_named_in_the_error) {
  family f;
  f.listen();
  ASSERT_TRUE(f.start({.children = {f.child("a")}, .abandon_after = 1s}));
  f.settle();
  f.events.clear();
  f.book.starts["b"] = {"hang"};
  const auto started = f.begin(start_child(f.tree, f.child("b", {.start_within = 2s})));
  f.settle();
  pid stuck{};
  for (const process_info& p : f.rt().snapshot())
    if (p.parent == f.tree.id() && p.id != f.who("a")) stuck = p.id;
  ASSERT_TRUE(stuck);
  f.stick(stuck, 1h);
  f.pass(1min);
  ASSERT_TRUE(*started);
  EXPECT_EQ((*started)->error().root().text(),
            to_string(stuck) + " did not start within 2s (start_within) and was abandoned");
  ASSERT_EQ(f.events.size(), 1U);
  EXPECT_EQ(f.events[0].what, supervisor_event::kind::abandoned);
  EXPECT_EQ(f.events[0].child, "b");
}

TEST(stuck_child, is_waited_for_unless_it_may_be_abandoned) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = 1s})}}));
  f.stick(f.who("a"), 1h);
  f.stop();
  f.pass(59min);
  EXPECT_FALSE(f.ended());
  f.pass(2min);
  EXPECT_EQ(f.ended(), exit_reason::shutdown());
}

TEST(stuck_child, that_comes_back_in_time_is_just_killed) {
  family f;
  f.listen();
  ASSERT_TRUE(f.start({.children = {f.child("a", {.shutdown = 1s})}, .abandon_after = 10s}));
  f.stick(f.who("a"), 5s);
  const auto done = f.begin(terminate_child(f.tree, "a"));
  f.pass(5s + a_tick);
  ASSERT_TRUE(*done);
  EXPECT_EQ(f.ask(which_child(f.tree, "a"))->last_reason, exit_reason::killed());
  for (const supervisor_event& e : f.events) EXPECT_NE(e.what, supervisor_event::kind::abandoned);
}

// ---- real threads

struct hang {};
struct counter {
  struct bump {
    using reply = int;
  };
  struct crash {};
  using protocol = coppice::protocol<bump, crash, hang>;
  explicit counter(trap_door* d = nullptr) : door{d} {}
  int handle(bump) { return ++value; }
  static void handle(crash) { throw std::runtime_error{"asked to"}; }
  void handle(hang) const { door->fall_in(); }
  trap_door* door;
  int value = 0;
};

TEST(supervisor_on_threads, gives_up_a_child_that_is_stuck_in_native_code) {
  trap_door door;
  runtime rt{quiet()};
  const auto tree = start_supervisor(
      rt, {.children = {child<counter>(&door).with({.id = "a", .shutdown = 1ms}), child<counter>().with({.id = "b"})},
           .abandon_after = 1ms});
  ASSERT_TRUE(tree);
  const pid stuck = rt.call(which_child(*tree, "a"))->who;
  rt.send(stuck, hang{});
  door.wait_until_inside();
  EXPECT_TRUE(rt.call(terminate_child(*tree, "a")));
  EXPECT_FALSE(rt.alive(stuck));
  EXPECT_EQ(rt.call(which_child(*tree, "a"))->last_reason, exit_reason::abandoned());
  EXPECT_TRUE(rt.call(restart_child(*tree, "a")));
  EXPECT_EQ(rt.call(count_children(*tree))->active, 2U);
  EXPECT_TRUE(stop(rt, *tree));
  door.open();
}

/// Its destructor does not return before the door is open.
struct ends_slowly {
  struct finish {};
  using protocol = coppice::protocol<finish>;
  explicit ends_slowly(trap_door* d) : door{d} {}
  ends_slowly(const ends_slowly&) = delete;
  ends_slowly& operator=(const ends_slowly&) = delete;
  ~ends_slowly() { door->fall_in(); }
  static void handle(finish, self& me) { me.stop(exit_reason::normal()); }
  trap_door* door;
};

class error_counter final : public log_sink {
 public:
  void write(const log_record& r) override {
    if (r.text.find("perhaps a destructor does not return") != std::string_view::npos) ++count;
  }
  std::atomic<int> count{0};
};

task<> terminates(self&, ref<supervisor> tree, std::string id, std::atomic<bool>* done) {
  const result<void> stopped = co_await terminate_child(tree, std::move(id));
  *done = stopped.has_value();
}

class supervisor_of_a_slow_destructor : public testing::TestWithParam<bool> {};

TEST_P(supervisor_of_a_slow_destructor, says_that_the_child_cannot_be_abandoned) {
  const bool idle = GetParam();
  trap_door door;
  const auto log = std::make_shared<error_counter>();
  runtime rt{{.workers = 2, .level = log_level::error, .log = log}};
  const auto tree = start_supervisor(
      rt, {.children = {child<ends_slowly>(&door).with({.id = "a", .shutdown = 1ms})}, .abandon_after = 1ms});
  ASSERT_TRUE(tree);
  if (!idle) {
    rt.send(rt.call(which_child(*tree, "a"))->who, ends_slowly::finish{});
    door.wait_until_inside();
  }
  std::atomic<bool> done{false};
  rt.spawn(terminates, *tree, std::string{"a"}, &done);
  while (log->count == 0) std::this_thread::yield();
  EXPECT_FALSE(done);
  door.open();
  while (!done) std::this_thread::yield();
  EXPECT_EQ(log->count, 1) << "not at each attempt";
}
INSTANTIATE_TEST_SUITE_P(of_a_child, supervisor_of_a_slow_destructor, testing::Bool(), [](const auto& idle) {
  return std::string{idle.param ? "that_is_idle" : "that_has_ended_by_itself"};
});

pid wait_for_another(runtime& rt, ref<supervisor> tree, const std::string& id, pid before) {
  for (;;) {
    const auto info = rt.call(which_child(tree, id));
    if (!info) return {};
    if (info->who && info->who != before) return info->who;
    std::this_thread::yield();
  }
}

TEST(supervisor_on_threads, restarts_from_the_initial_state) {
  runtime rt{quiet()};
  const auto tree = start_supervisor(rt, {.name = "tree"}, {.children = {child<counter>()}});
  ASSERT_TRUE(tree);
  EXPECT_EQ(rt.where("tree"), tree->id());
  EXPECT_EQ(start_supervisor(rt, {.name = "tree"}, {}).error().code(), errc::name_taken);
  const ref<counter> first{rt.call(which_child(*tree, "counter"))->who};
  EXPECT_EQ(rt.call(first.call<counter::bump>()), 1);
  EXPECT_EQ(rt.call(first.call<counter::bump>()), 2);
  rt.cast<counter::crash>(first);
  const ref<counter> second{wait_for_another(rt, *tree, "counter", first.id())};
  EXPECT_EQ(rt.call(second.call<counter::bump>()), 1);
  EXPECT_TRUE(stop(rt, *tree));
  EXPECT_FALSE(rt.alive(second.id()));
  EXPECT_EQ(rt.call(which_children(*tree)).error().code(), errc::noproc);
}

TEST(supervisor_on_threads, answers_all_calls_from_plain_threads) {
  runtime rt{quiet()};
  const auto tree = start_supervisor(rt, {.limit = {.restarts = 1000, .within = 1h}});
  ASSERT_TRUE(tree);
  EXPECT_TRUE(rt.call(start_child(*tree, child<counter>().with({.id = "a"}))));
  EXPECT_EQ(rt.call(start_child(*tree, child<counter>().with({.id = "a"}))).error().code(),
            supervision_errc::already_started);
  EXPECT_TRUE(rt.call(terminate_child(*tree, "a")));
  EXPECT_TRUE(rt.call(restart_child(*tree, "a")));
  EXPECT_TRUE(rt.call(get_childspec(*tree, "a")));
  EXPECT_EQ(rt.call(exit_history(*tree, "a"))->size(), 1U);
  EXPECT_TRUE(rt.call(upgrade(*tree, {.children = {child<counter>().with({.id = "b"})}})));
  EXPECT_EQ(rt.call(which_children(*tree))->size(), 2U);
  EXPECT_TRUE(rt.call(terminate_child(*tree, "a")));
  EXPECT_TRUE(rt.call(delete_child(*tree, "a")));
  EXPECT_TRUE(stop(rt, *tree));
}

TEST(supervisor_on_threads, keeps_up_with_many_crashes_at_once) {
  constexpr int many = 50;
  runtime rt{quiet()};
  std::vector<child_spec> children;
  for (int i = 0; i < many; ++i) children.push_back(child<counter>().with({.id = std::to_string(i)}));
  const auto tree =
      start_supervisor(rt, {.limit = {.restarts = 10 * many, .within = 1h}, .children = std::move(children)});
  ASSERT_TRUE(tree);
  const auto before = rt.call(which_children(*tree));
  for (const child_info& c : *before) rt.kill(c.who);
  for (const child_info& c : *before) {
    const pid next = wait_for_another(rt, *tree, c.id, c.who);
    EXPECT_TRUE(next);
  }
  EXPECT_EQ(rt.call(count_children(*tree))->active, static_cast<std::size_t>(many));
  EXPECT_TRUE(stop(rt, *tree));
  EXPECT_EQ(start_supervisor(rt, {.children = {{}}}).error().code(), errc::invalid);
}

}  // namespace
