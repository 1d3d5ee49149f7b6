// Who decides when a child fails, and which children the decision applies to.
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

[[nodiscard]] decider always_says(directive what) {
  return [what](const child_failure&) { return what; };
}
/// "p" with that strategy and three children.
void family(stage& s, actor_strategy how) {
  s.root("p", {.strategy = std::move(how)});
  for (const char* name : {"a", "b", "c"}) s.child("p", name);
  s.book.take();
}
[[nodiscard]] std::ptrdiff_t count(const stage& s, const std::string& line) {
  return std::ranges::count(s.book.log, line);
}

// ---- one_for_one

TEST(one_for_one_strategy, is_the_default_and_restarts_who_failed) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.child("p", "b");
  s.book.take();
  s.fail("a");
  EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started"}));
}

TEST(one_for_one_strategy, is_for_the_children_of_the_actor_not_for_itself) {
  stage s;
  s.root("g", {.strategy = one_for_one({.decide = always_says(directive::restart)})});
  s.child("g", "p", {.strategy = one_for_one({.decide = always_says(directive::stop)})});
  s.child("p", "a");
  s.fail("a");
  s.fail("p");
  EXPECT_EQ(s.answers(), (lines{"a stop", "p restart"}));
}

// ---- all_for_one

TEST(all_for_one_strategy, restarts_all_children) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, all_for_one());
    for (const char* name : {"a", "b", "c"}) s.say(name, "before");
    s.book.take();
    s.fail("b");
    for (const char* name : {"a", "b", "c"}) {
      EXPECT_EQ(count(s, std::string{name} + " restarting"), 1) << name;
      EXPECT_EQ(s.said(name), 0) << name;
    }
    EXPECT_EQ(s.answers(), (lines{"b restart"}));
    EXPECT_EQ(s.book.heard["a restarting"], s.book.heard["b restarting"]) << "all hear the one cause";
  });
}

TEST(all_for_one_strategy, stops_all_children_with_the_reason) {
  stage s;
  family(s, all_for_one({.decide = always_says(directive::stop)}));
  s.fail("b", "hopeless");
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(s.ended(name)->text(), "hopeless") << name;
  EXPECT_EQ(s.said("p"), 0);
}

TEST(all_for_one_strategy, resumes_only_the_one_that_failed) {
  stage s;
  family(s, all_for_one({.decide = always_says(directive::resume)}));
  s.say("a", "before");
  s.book.take();
  s.fail("b");
  EXPECT_EQ(s.book.take(), lines{});
  EXPECT_EQ(s.said("b"), 0);
  EXPECT_EQ(s.said("a"), 1);
}

TEST(all_for_one_strategy, escalates_with_the_reason_of_the_one_that_failed) {
  stage s;
  s.root("g");
  s.child("g", "p", {.strategy = all_for_one({.decide = always_says(directive::escalate)})});
  s.child("p", "a");
  s.child("p", "b");
  s.fail("a", "up");
  EXPECT_EQ(s.answers(), (lines{"a escalate", "p restart"}));
  EXPECT_EQ(s.book.heard["p restarting"].text(), "up");
}

TEST(all_for_one_strategy, restarts_all_when_a_child_without_an_instance_is_to_be_resumed) {
  stage s;
  s.root("g", {.strategy = one_for_one({.decide = [](const child_failure&) { return directive::resume; }})});
  s.child("g", "p", {.strategy = all_for_one({.decide = [](const child_failure&) { return directive::escalate; }})});
  for (const char* name : {"a", "b"}) s.child("p", name);
  s.book.next["c made"].push_back(throws());
  s.book.take();
  s.child("p", "c");
  const lines log = s.book.take();
  for (const char* line : {"a restarting", "a started", "b restarting", "b started", "c started"})
    (void)place(log, line);
  for (const char* name : {"p", "a", "b", "c"}) EXPECT_EQ(s.said(name), 0) << name << " takes mail";
}

TEST(all_for_one_strategy, suspends_the_others_first) {
  stage s;
  family(s, all_for_one({.wait = backoff{.first = 1s}}));
  s.child("a", "x");
  s.book.take();
  s.fail("b");
  for (const char* name : {"a", "x", "c"}) s.say(name, "hello");
  EXPECT_EQ(s.book.take(), lines{}) << "while b waits, they do";
  s.pass(2s);
  EXPECT_EQ(count(s, "a: hello"), 1);
  EXPECT_EQ(count(s, "c: hello"), 1);
  EXPECT_EQ(s.end_of("x"), "shutdown");
  EXPECT_EQ(s.dead_letters_to("x"), (lines{"coppice::theatre::say"}));
}

TEST(all_for_one_strategy, lets_no_old_instance_of_a_sibling_take_mail_while_its_children_stop) {
  stage s;
  family(s, all_for_one());
  s.child("a", "x");
  s.stick("x", 1s);
  s.fail("b");
  s.book.take();
  s.say("a", "hello");
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(2s);
  EXPECT_EQ(s.book.take(), (lines{"x stopping", "x stopped", "a started", "a: hello"}));
}

TEST(all_for_one_strategy, answers_two_failures_at_once_with_one_restart) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, all_for_one());
    s.stick("p", 1s);
    s.tell("a", throws("first"));
    s.tell("b", throws("second"));
    s.settle();
    s.pass(2s);
    EXPECT_EQ(s.events.size(), 1U);
    for (const char* name : {"a", "b", "c"}) {
      EXPECT_EQ(count(s, std::string{name} + " restarting"), 1) << name;
      EXPECT_EQ(s.said(name), 0) << name;
    }
    s.fail("b");
    EXPECT_EQ(s.events.size(), 2U) << "the next one counts again";
  });
}

TEST(all_for_one_strategy, restarts_a_sibling_once_that_still_waits_for_its_children) {
  stage s;
  family(s, all_for_one());
  s.child("a", "x");
  s.stick("x", 1s);
  s.fail("b");
  s.fail("b");
  s.say("a", "hello");
  s.book.take();
  s.pass(2s);
  EXPECT_EQ(s.book.take(), (lines{"x stopping", "x stopped", "a started", "a: hello"}))
      << "the one under way does for both";
  s.fail("b");
  EXPECT_EQ(s.said("a"), 0) << "and the next is one again";
}

TEST(all_for_one_strategy, leaves_nobody_suspended_whatever_fails_when) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, all_for_one({.limit = unlimited}));
    for (int i = 0; i < 3; ++i)
      for (const char* name : {"a", "b", "c"}) s.tell(name, throws());
    s.settle();
    for (const char* name : {"a", "b", "c"}) EXPECT_EQ(s.said(name), 0) << name;
  });
}

TEST(all_for_one_strategy, does_nothing_to_a_child_that_is_stopping) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    family(s, all_for_one());
    s.child("c", "x");
    s.stick("x", 1s);
    s.stop("c");
    s.fail("a");
    EXPECT_EQ(s.said("a"), 0);
    s.pass(2s);
    EXPECT_EQ(s.end_of("c"), "normal");
    EXPECT_EQ(s.said("b"), 0);
  });
}

// ---- the other kinds

TEST(always_restart_strategy, knows_no_limit_and_no_siblings) {
  stage s;
  family(s, always_restart());
  for (int i = 0; i < 100; ++i) s.fail("a");
  EXPECT_EQ(count(s, "a started"), 100);
  EXPECT_EQ(count(s, "b started"), 0);
  EXPECT_EQ(s.end_of("a"), "lives");
}

struct stillborn {
  using protocol = coppice::protocol<say>;
  stillborn() { throw std::runtime_error{"never"}; }
  static void handle(const say&) {}
};

TEST(always_restart_strategy, of_one_that_never_starts_holds_up_nobody) {
  script book;
  runtime rt{{.workers = 1, .level = log_level::off}};
  book.always["p started"] = [](player&, context& me) { me.spawn(props<stillborn>()); };
  const auto p = spawn_actor(rt, part(book, "p", {.strategy = always_restart()}));
  const auto other = spawn_actor(rt, part(book, "other"));
  rt.cast<say>(p, "hello");
  rt.cast<say>(other, "hello");
  poison_actor(rt, other);
  rt.wait(other.id());
  poison_actor(rt, p);
  rt.wait(p.id());
  EXPECT_EQ(std::ranges::count(book.log, "other: hello"), 1);
  EXPECT_LT(place(book.log, "p: hello"), place(book.log, "p stopped"));
}

TEST(always_stop_strategy, leaves_it_to_the_parent_to_start_another_of_the_same_name) {
  stage s;
  s.root("p", {.strategy = always_stop()});
  s.child("p", "a");
  const pid first = s.who("a");
  s.act("p", [&](player&, context& me) { me.watch(first); });
  s.book.next["p terminated a"] = {spawns("a")};
  s.book.take();
  s.fail("a");
  EXPECT_EQ(s.book.take(), (lines{"a stopping", "a stopped", "p terminated a", "a started"}));
  EXPECT_NE(s.who("a"), first);
}

TEST(actor_name, of_a_child_is_taken_until_its_end_is_known) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.child("a", "x");
  s.stick("x", 1s);
  s.stop("a");
  s.act("p", [&](player& p, context& me) {
    const auto again = me.spawn({.name = "a"}, part(p.book(), "a"));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), errc::name_taken);
    EXPECT_EQ(again.error().running, s.who("a"));
  });
  s.pass(2s);
  s.child("p", "a");
  EXPECT_EQ(s.said("a"), 0);
}

// ---- a strategy of one's own

TEST(custom_strategy_, decides_what_to_whom_and_when) {
  stage s;
  judgement next;
  family(s, custom_strategy([&](const child_failure&) { return next; }));
  next = {.what = directive::restart, .all = true};
  s.fail("a");
  EXPECT_EQ(count(s, "c restarting"), 1);
  next = {.what = directive::restart, .after = 5s};
  s.book.take();
  s.fail("a");
  s.pass(4s);
  EXPECT_EQ(s.book.take(), lines{});
  s.pass(2s);
  EXPECT_EQ(s.book.take(), (lines{"a restarting", "a started"}));
  EXPECT_EQ(s.events.back().after, 5s);
  next = {.what = directive::resume};
  s.say("a", "one");
  s.fail("a");
  EXPECT_EQ(s.said("a"), 1);
  next = {.what = directive::stop, .all = true};
  s.fail("b");
  for (const char* name : {"a", "b", "c"}) EXPECT_FALSE(s.rt().alive(s.who(name))) << name;
}

TEST(custom_strategy_, sees_how_often_it_has_restarted_a_child) {
  stage s;
  std::vector<std::size_t> seen;
  family(s, custom_strategy([&](const child_failure& f) {
           seen.push_back(f.restarts);
           return judgement{.what = f.restarts < 3 ? directive::restart : directive::stop};
         }));
  for (int i = 0; i < 4; ++i) s.fail("a");
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_FALSE(s.rt().alive(s.who("a")));
}

TEST(custom_strategy_, that_throws_fails_the_parent) {
  stage s;
  s.root("g");
  s.child("g", "p", {.strategy = custom_strategy([](const child_failure&) -> judgement { throw 1; })});
  s.child("p", "a");
  s.fail("a");
  EXPECT_EQ(s.answers(), (lines{"p restart"}));
  EXPECT_EQ(s.events[0].reason.exception_type(), "int");
}

// ---- deciders

TEST(decider_, by_the_type_of_the_exception) {
  stage s;
  s.root("p", {.strategy = one_for_one(
                   {.decide = decide_by(directive::stop, on<std::out_of_range>(directive::resume),
                                        on<std::logic_error>(directive::restart), on<int>(directive::resume))})});
  for (const char* name : {"a", "b"}) s.child("p", name);
  s.act("a", [](player&, context&) { throw std::out_of_range{"derived"}; });
  s.act("a", [](player&, context&) { throw std::invalid_argument{"of the base"}; });
  s.act("a", [](player&, context&) { throw 1; });
  s.act("a", [](player&, context&) { throw std::runtime_error{"neither"}; });
  s.act("b", [](player&, context& me) { me.fail(exit_reason::error("no exception")); });
  EXPECT_EQ(s.answers(), (lines{"a resume", "a restart", "a resume", "a stop", "b stop"}));
}

TEST(decider_, that_throws_escalates_its_own_exception) {
  in_many_orders([](std::uint64_t seed) {
    stage s{seed};
    s.root("g", {.strategy = one_for_one({.decide = always_says(directive::resume)})});
    s.child("g", "p", {.strategy = one_for_one({.decide = [](const child_failure&) -> directive {
                         throw std::domain_error{"can't say"};
                       }})});
    s.child("p", "a");
    s.child("p", "b");
    s.fail("a", "first");
    EXPECT_EQ(s.answers(), (lines{"p resume"}));
    EXPECT_EQ(s.events[0].reason.exception_type(), "std::domain_error");
    EXPECT_EQ(s.events[0].reason.text(), "can't say");
    for (const char* name : {"a", "b", "p"}) EXPECT_EQ(s.said(name), 0) << name << " goes on";
  });
}

/// Decides itself, and remembers.
class strict {
 public:
  using protocol = coppice::protocol<act>;
  explicit strict(script* book) : book_{book} {}
  void handle(const act& m, context& me) {
    player stand_in{me, book_, "strict"};
    m.run(stand_in, me);
  }
  directive decide(const child_failure& f) {
    book_->log.push_back("asked about " + std::string{f.name});
    return ++asked_ < 2 ? directive::resume : directive::restart;
  }

 private:
  script* book_;
  int asked_ = 0;
};

TEST(decider_, of_the_class_comes_before_that_of_the_strategy_which_keeps_its_limit) {
  stage s;
  s.book.pids["p"] =
      spawn_actor(s.rt(),
                  props<strict>(&s.book).with({.strategy = one_for_one({.limit = {.restarts = 1, .within = 1h},
                                                                        .decide = always_says(directive::stop)})}))
          .id();
  s.child("p", "a");
  for (int i = 0; i < 3; ++i) s.fail("a");
  EXPECT_EQ(s.answers(), (lines{"a resume", "a restart", "a stop"}));
  EXPECT_EQ(std::ranges::count(s.book.log, "asked about a"), 3);
}

/// Has another one for each that fails.
struct generous {
  using protocol = coppice::protocol<act>;
  explicit generous(script* b) : book{b} {}
  void handle(const act& m, context& me) const {
    player stand_in{me, book, "generous"};
    m.run(stand_in, me);
  }
  directive decide(const child_failure& f, context& me) const {
    EXPECT_EQ(me.child(f.name), f.child) << "it is still there";
    book->pids["another"] = me.spawn(part(*book, "another")).id();
    return directive::stop;
  }
  script* book;
};

TEST(decider_, of_the_class_may_use_its_context) {
  stage s;
  s.book.pids["p"] = spawn_actor(s.rt(), props<generous>(&s.book)).id();
  s.child("p", "a");
  s.fail("a");
  EXPECT_EQ(s.answers(), (lines{"a stop"}));
  EXPECT_FALSE(s.rt().alive(s.who("a")));
  EXPECT_EQ(s.said("another"), 0);
}

// ---- events and nonsense

TEST(supervision_events, tell_parent_child_reason_and_answer_before_it_is_done) {
  stage s;
  family(s, one_for_one());
  s.fail("a", "why");
  ASSERT_EQ(s.events.size(), 1U);
  EXPECT_EQ(s.events[0].parent, s.who("p"));
  EXPECT_EQ(s.events[0].child, s.who("a"));
  EXPECT_EQ(s.events[0].name, "a");
  EXPECT_EQ(s.events[0].reason.text(), "why");
  EXPECT_EQ(s.events[0].what, directive::restart);
  EXPECT_EQ(s.events[0].after, 0s);
}

TEST(supervision_events, come_from_every_kind_of_strategy) {
  for (const actor_strategy& how :
       {one_for_one(), all_for_one(), exponential_backoff(), always_restart(), always_stop(),
        custom_strategy([](const child_failure&) { return judgement{.what = directive::resume}; })}) {
    stage s;
    family(s, how);
    s.fail("a", "why");
    ASSERT_EQ(s.events.size(), 1U);
    EXPECT_EQ(s.events[0].child, s.who("a"));
    EXPECT_EQ(s.events[0].reason.text(), "why");
  }
}

TEST(strategy_nonsense, is_refused_where_it_is_written) {
  EXPECT_THROW((void)one_for_one({.limit = {.restarts = -1, .within = 1s}}), std::invalid_argument);
  EXPECT_THROW((void)all_for_one({.limit = {.restarts = 1, .within = 0s}}), std::invalid_argument);
  EXPECT_THROW((void)one_for_one({.limit = {.restarts = 1, .within = -1s}}), std::invalid_argument);
  EXPECT_THROW((void)one_for_one({.wait = backoff{.first = 0s}}), std::invalid_argument);
  EXPECT_THROW((void)exponential_backoff({.first = 2s, .cap = 1s}), std::invalid_argument);
  EXPECT_THROW((void)exponential_backoff({.first = 1s, .jitter = 2}), std::invalid_argument);
  EXPECT_THROW((void)exponential_backoff({}, {.restarts = -3, .within = 1s}), std::invalid_argument);
  EXPECT_THROW((void)custom_strategy({}), std::invalid_argument);
  EXPECT_NO_THROW((void)one_for_one({.limit = {.restarts = 0, .within = 1s}}));
}

}  // namespace
