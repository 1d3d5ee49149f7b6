// Top-level actors: they have no parent, and a guardian decides when they fail.
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

[[nodiscard]] actor_options guarded(actor_strategy how) { return {.guardian = std::move(how)}; }
[[nodiscard]] decider always_says(directive what) {
  return [what](const child_failure&) { return what; };
}

TEST(top_level_actor, is_restarted_ten_times_in_ten_seconds_then_stopped) {
  stage s;
  s.root("a");
  s.book.take();
  for (int i = 0; i < 10; ++i) {
    s.fail("a");
    EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started"})) << i;
  }
  s.fail("a", "the last straw");
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "a stopped"}));
  EXPECT_EQ(s.ended("a")->text(), "the last straw");
}

TEST(top_level_actor, that_fails_more_slowly_lives) {
  stage s;
  s.root("a");
  for (int i = 0; i < 40; ++i) {
    s.fail("a");
    s.pass(1100ms);
  }
  EXPECT_EQ(s.said("a"), 0);
}

TEST(top_level_actor, whose_constructor_always_fails_ends_with_the_reason) {
  stage s;
  s.book.always["a made"] = throws("never");
  s.root("a");
  EXPECT_EQ(s.ended("a")->text(), "never");
  EXPECT_EQ(s.events.size(), 11U);
  EXPECT_EQ(s.book.take(), lines{});
}

TEST(top_level_actor, has_no_parent_and_outlives_who_spawned_it) {
  stage s;
  s.rt().spawn(
      +[](self& me, stage* on) -> task<> {
        on->book.pids["a"] = spawn_actor(me, part(on->book, "a")).id();
        throw std::runtime_error{"gone"};
        co_return;
      },
      &s);
  s.settle();
  pid parent = s.who("a");
  s.act("a", [&](player&, context& me) { parent = me.parent(); });
  EXPECT_EQ(parent, pid{});
  EXPECT_EQ(s.said("a"), 0);
}

TEST(top_level_actor, decides_for_its_children_not_for_itself) {
  stage s;
  s.root("a", {.strategy = always_stop()});
  s.child("a", "x");
  s.fail("a");
  EXPECT_EQ(s.said("a"), 0) << "restarted by the default";
}

TEST(top_level_actor, to_which_a_child_escalates_is_restarted_and_nothing_else_happens) {
  stage s;
  s.root("other");
  s.book.always["p started"] = spawns("a");
  s.root("p", {.strategy = one_for_one({.decide = always_says(directive::escalate)})});
  for (int i = 0; i < 10; ++i) {
    s.fail("a");
    EXPECT_EQ(s.said("a"), 0) << "a new one, " << i;
  }
  s.fail("a", "too much");
  EXPECT_EQ(s.ended("p")->text(), "too much");
  EXPECT_FALSE(s.rt().alive(s.who("a")));
  EXPECT_EQ(s.said("other"), 0);
}

// ---- guardians

TEST(guardian, answers_by_resume) {
  stage s;
  s.root("a", guarded(one_for_one({.decide = always_says(directive::resume)})));
  s.child("a", "x");
  s.say("a", "one");
  for (int i = 0; i < 20; ++i) s.fail("a");
  EXPECT_EQ(s.said("a"), 1);
  EXPECT_EQ(s.said("x"), 0) << "those below go on as well";
}

TEST(guardian, answers_by_restart_with_its_own_limit) {
  stage s;
  s.root("a", guarded(one_for_one({.limit = {.restarts = 2, .within = 1h}})));
  s.fail("a");
  s.fail("a");
  EXPECT_EQ(s.said("a"), 0);
  s.fail("a", "third");
  EXPECT_EQ(s.ended("a")->text(), "third");
}

TEST(guardian, answers_by_stop) {
  stage s;
  s.root("a", guarded(always_stop()));
  s.child("a", "x");
  s.book.take();
  s.fail("a", "at once");
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "x stopping", "x stopped", "a stopped"}));
  EXPECT_EQ(s.ended("a")->text(), "at once");
}

TEST(guardian, that_escalates_ends_the_actor_with_the_reason_and_nobody_else) {
  stage s;
  s.root("other");
  s.root("a", guarded(one_for_one({.decide = always_says(directive::escalate)})));
  s.fail("a", "nobody above");
  EXPECT_EQ(s.ended("a")->text(), "nobody above");
  EXPECT_EQ(s.said("other"), 0);
}

TEST(guardian, that_throws_ends_the_actor_with_what_it_threw) {
  stage s;
  s.root("a", guarded(one_for_one({.decide = [](const auto&) -> directive { throw std::domain_error{"who, me?"}; }})));
  s.fail("a", "first");
  EXPECT_EQ(s.ended("a")->exception_type(), "std::domain_error");
}

TEST(guardian, may_be_a_strategy_of_ones_own_and_sees_the_actor) {
  stage s;
  std::vector<child_failure> seen;
  s.root("a", guarded(custom_strategy([&](const child_failure& f) {
           seen.push_back(f);
           return judgement{.what = directive::restart, .after = seen.size() == 1 ? 0s : 5s};
         })));
  s.fail("a");
  EXPECT_EQ(s.said("a"), 0);
  s.fail("a", "second");
  s.pass(4s);
  EXPECT_EQ(s.said("a"), -1);
  s.pass(2s);
  EXPECT_EQ(s.said("a"), 0);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1].child, s.who("a"));
  EXPECT_EQ(seen[1].restarts, 1U);
  EXPECT_EQ(seen[1].reason.text(), "second");
}

TEST(guardian, of_ones_own_that_answers_for_all_means_the_one_there_is) {
  stage s;
  s.root("other");
  s.root("a", guarded(custom_strategy([](const child_failure& f) {
           return judgement{.what = f.restarts == 0 ? directive::restart : directive::stop, .all = true};
         })));
  s.child("a", "x");
  s.fail("a");
  EXPECT_EQ(s.said("a"), 0);
  s.fail("a", "enough");
  EXPECT_EQ(s.ended("a")->text(), "enough");
  EXPECT_EQ(s.said("other"), 0);
}

struct lenient {
  using protocol = coppice::protocol<act>;
  static void handle(const act&) { throw std::runtime_error{"boom"}; }
  static directive decide(const child_failure&) { return directive::resume; }
};

TEST(guardian, is_not_the_class_of_the_actor_itself) {
  stage s;
  s.book.pids["a"] = spawn_actor(s.rt(), props<lenient>().with(guarded(always_stop()))).id();
  s.fail("a");
  EXPECT_FALSE(s.rt().alive(s.who("a")));
}

TEST(guardian, shared_by_two_actors_counts_for_each) {
  stage s;
  const actor_strategy one = one_for_one({.limit = {.restarts = 1, .within = 1h}});
  s.root("a", guarded(one));
  s.root("b", guarded(one));
  s.root("c");
  s.fail("a");
  s.fail("b");
  EXPECT_EQ(s.said("a"), 0);
  EXPECT_EQ(s.said("b"), 0);
  for (int i = 0; i < 3; ++i) s.fail("c");
  EXPECT_EQ(s.said("c"), 0) << "who has none is not touched by those of others";
}

TEST(guardian, says_what_it_has_decided) {
  stage s;
  s.root("a", guarded(always_stop()));
  s.fail("a", "why");
  ASSERT_EQ(s.events.size(), 1U);
  EXPECT_EQ(s.events[0].parent, s.who("a"));
  EXPECT_EQ(s.events[0].child, s.who("a"));
  EXPECT_EQ(s.events[0].what, directive::stop);
  EXPECT_EQ(s.events[0].reason.text(), "why");
}

TEST(guardian, makes_no_sense_for_a_child_or_with_all_for_one) {
  EXPECT_THROW((void)props<player>(nullptr, "a").with(guarded(all_for_one())), std::invalid_argument);
  stage s;
  s.root("p");
  s.act("p", [](player& p, context& me) {
    const auto one = part(p.book(), "a", guarded(one_for_one()));
    EXPECT_THROW((void)me.spawn(one), std::invalid_argument);
    EXPECT_THROW((void)me.spawn({.name = "a"}, one), std::invalid_argument);
    EXPECT_TRUE(me.children().empty());
    p.note(" tried");
  });
  EXPECT_EQ(s.book.log.back(), "p tried");
}

// ---- the end of the runtime

struct counted {
  using protocol = coppice::protocol<say>;
  explicit counted(std::shared_ptr<std::atomic<int>> n) : alive{std::move(n)} { ++*alive; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --*alive; }
  void handle(started, context& me) const {
    if (me.parent() == pid{})
      for (int i = 0; i < 3; ++i) me.spawn(props<counted>(alive));
  }
  static void handle(const say&) { throw std::runtime_error{"boom"}; }
  std::shared_ptr<std::atomic<int>> alive;
};

TEST(runtime_end, destroys_every_instance_once) {
  const auto alive = std::make_shared<std::atomic<int>>(0);
  {
    runtime rt{{.workers = 2, .level = log_level::off}};
    for (int i = 0; i < 20; ++i) {
      const auto a = spawn_actor(rt, props<counted>(alive));
      if (i % 2 == 0) rt.cast<say>(a, "fail");
      if (i % 5 == 0) stop_actor(rt, a.id());
    }
  }
  EXPECT_EQ(*alive, 0);
}

}  // namespace
