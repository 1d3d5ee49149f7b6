// What counts as a failure, and what happens until the parent has decided.
#include "stage.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::theatre;

/// Answers every failure of its children so, and writes down what it was told.
struct judge_notes {
  std::vector<child_failure> seen;
  [[nodiscard]] actor_options answers(directive what) {
    return {.strategy = one_for_one({.decide = [this, what](const child_failure& f) {
              seen.push_back(f);
              return what;
            }})};
  }
};

TEST(actor_failure, is_an_exception_of_any_type) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::resume));
  s.child("p", "a");
  s.fail("a", "text");
  s.act("a", [](player&, context&) { throw 42; });
  ASSERT_EQ(notes.seen.size(), 2U);
  EXPECT_EQ(notes.seen[0].reason.exception_type(), "std::runtime_error");
  EXPECT_EQ(notes.seen[0].reason.text(), "text");
  EXPECT_EQ(notes.seen[0].reason.message(), "coppice::theatre::act");
  EXPECT_EQ(notes.seen[1].reason.exception_type(), "int");
  EXPECT_EQ(notes.seen[1].reason.what(), exit_reason::kind::error);
}

TEST(actor_failure, is_seen_by_the_decider_with_the_child_its_name_and_the_exception) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::restart));
  s.child("p", "a");
  s.fail("a", "one");
  s.fail("a", "two");
  ASSERT_EQ(notes.seen.size(), 2U);
  const child_failure& f = notes.seen[1];
  EXPECT_EQ(f.child, s.who("a"));
  EXPECT_EQ(notes.seen[0].restarts, 0U);
  EXPECT_EQ(f.restarts, 1U);
  try {
    std::rethrow_exception(f.what);
  } catch (const std::runtime_error& x) {
    EXPECT_STREQ(x.what(), "two");
  }
}

TEST(actor_failure, names_the_child_as_it_was_spawned) {
  stage s;
  lines names;
  s.root("p", {.strategy = one_for_one({.decide = [&](const child_failure& f) {
                 names.emplace_back(f.name);
                 return directive::restart;
               }})});
  s.child("p", "a");
  s.fail("a");
  s.act("p", [](player& p, context& me) { p.book().pids["x"] = me.spawn(part(p.book(), "x")).id(); });
  s.fail("x");
  EXPECT_EQ(names, (lines{"a", ""}));
  ASSERT_EQ(s.events.size(), 2U);
  EXPECT_EQ(s.events[0].name, "a");
}

TEST(actor_failure, without_an_exception_costs_none) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::restart));
  s.child("p", "a");
  s.book.take();
  s.act("a", [](player& p, context& me) {
    me.fail(exit_reason::error("in my own words"));
    p.note(" goes on to the end of its handler");
  });
  ASSERT_EQ(notes.seen.size(), 1U);
  EXPECT_EQ(notes.seen[0].reason, exit_reason::error("in my own words"));
  EXPECT_EQ(notes.seen[0].what, nullptr);
  EXPECT_EQ(s.book.take(), (lines{"a goes on to the end of its handler", "a restarting", "a started"}));
}

TEST(actor_failure, comes_once_the_first_counts) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::resume));
  s.child("p", "a");
  s.act("a", [](player&, context& me) {
    me.fail(exit_reason::error("first"));
    me.fail(exit_reason::error("second"));
    throw std::runtime_error{"third"};
  });
  ASSERT_EQ(notes.seen.size(), 1U);
  EXPECT_EQ(notes.seen[0].reason, exit_reason::error("first"));
  EXPECT_EQ(s.said("a"), 0) << "and one answer is enough";
}

TEST(actor_failure, drops_the_message_whatever_the_answer) {
  for (const directive d : {directive::resume, directive::restart, directive::stop}) {
    stage s;
    judge_notes notes;
    s.root("p", notes.answers(d));
    s.child("p", "a");
    int tries = 0;
    s.act("a", [&](player&, context&) {
      ++tries;
      throw std::runtime_error{"boom"};
    });
    EXPECT_EQ(tries, 1) << to_string(d);
    EXPECT_EQ(s.dead_letters_to("a"), lines{}) << "it was received";
  }
}

TEST(actor_failure, keeps_the_mail_until_it_is_answered) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.stick("p", 1s);
  s.fail("a");
  s.say("a", "hello");
  EXPECT_EQ(s.book.log.back(), "a started") << "its parent is busy";
  s.pass(2s);
  EXPECT_EQ(s.book.log.back(), "a: hello");
}

TEST(actor_failure, is_answered_ahead_of_the_mail_of_the_parent_which_goes_on) {
  stage s;
  s.root("p", {.strategy = one_for_one({.decide = [&](const child_failure&) {
                 s.book.log.emplace_back("p decides");
                 return directive::restart;
               }})});
  s.child("p", "a");
  s.book.take();
  s.stick("p", 1s);
  for (const char* text : {"one", "two", "three"}) s.tell("p", text);
  s.fail("a");
  s.pass(2s);
  const lines log = s.book.take();
  EXPECT_LT(place(log, "p decides"), place(log, "p: two"));
  EXPECT_EQ(std::ranges::count(log, "p: three"), 1);
  EXPECT_EQ(std::ranges::count(log, "a started"), 1);
}

TEST(actor_failure, in_the_handler_of_an_end_is_one) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::restart));
  s.root("other");
  s.child("p", "a");
  s.act("a", [&](player&, context& me) { me.watch(s.who("other")); });
  s.book.next["a terminated other"] = {throws("alone")};
  s.stop("other");
  ASSERT_EQ(notes.seen.size(), 1U);
  EXPECT_EQ(notes.seen[0].reason.message(), "coppice::actor::terminated");
}

TEST(actor_failure, in_a_continuation_or_a_receive_timeout_is_one) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::restart));
  s.root("other");
  s.child("p", "a");
  s.act("a", [&](player&, context& me) {
    me.reenter_after(me.stop_future(s.who("other")), [](const auto&, context&) { throw std::runtime_error{"then"}; });
  });
  s.book.next["a idle"] = {throws("idle")};
  s.act("a", [](player&, context& me) { me.set_receive_timeout(1s); });
  s.pass(5s);
  ASSERT_EQ(notes.seen.size(), 2U);
  EXPECT_EQ(notes.seen[0].reason.text(), "then");
  EXPECT_EQ(notes.seen[1].reason.text(), "idle");
}

TEST(actor_failure, in_middleware_is_one) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::resume));
  s.child("p", "a", {.on_receive = {[](context&, const message_view& m, const std::function<void()>& next) {
                       if (const say* text = m.get_if<say>(); text != nullptr && text->text == "bad")
                         throw std::invalid_argument{"refused"};
                       next();
                     }}});
  s.say("a", "bad");
  s.say("a", "good");
  ASSERT_EQ(notes.seen.size(), 1U);
  EXPECT_EQ(notes.seen[0].reason.exception_type(), "std::invalid_argument");
  EXPECT_EQ(s.book.log.back(), "a: good");
}

// ---- at the start

TEST(actor_failure, in_the_constructor_is_one_of_the_child_not_of_its_parent) {
  stage s;
  judge_notes notes;
  s.root("p", notes.answers(directive::restart));
  s.book.next["a made"] = {throws("not yet"), throws("not yet")};
  s.child("p", "a");
  s.say("a", "hello");
  EXPECT_EQ(s.book.take(), (lines{"p started", "a started", "a: hello"})) << "there was nobody to hear of a restart";
  ASSERT_EQ(notes.seen.size(), 2U);
  EXPECT_EQ(notes.seen[0].reason.text(), "not yet");
  EXPECT_EQ(notes.seen[1].restarts, 1U);
}

TEST(actor_failure, in_the_constructor_answered_by_resume_is_a_restart_and_counts) {
  stage s;
  s.root("p", {.strategy = one_for_one({.limit = {.restarts = 2, .within = 1min},
                                        .decide = [](const child_failure&) { return directive::resume; }})});
  s.book.always["a made"] = throws("never");
  s.child("p", "a");
  EXPECT_EQ(s.events.size(), 3U);
  EXPECT_EQ(s.events[0].what, directive::restart);
  EXPECT_EQ(s.events[2].what, directive::stop);
  ASSERT_TRUE(s.ended("a"));
  EXPECT_EQ(s.ended("a")->text(), "never");
  EXPECT_EQ(s.book.take(), (lines{"p started"})) << "no instance, no hooks";
}

TEST(actor_failure, in_the_constructor_of_a_restart_answered_by_resume_is_a_restart) {
  stage s;
  int asked = 0;
  s.root("p", {.strategy = one_for_one({.decide = [&](const child_failure&) {
                 return asked++ == 0 ? directive::restart : directive::resume;
               }})});
  s.child("p", "a");
  s.book.next["a made"] = {throws("again")};
  s.fail("a");
  s.say("a", "hello");
  EXPECT_EQ(s.answers(), (lines{"a restart", "a restart"}));
  EXPECT_EQ(s.said("a"), 1);
}

TEST(actor_failure, in_started_counts_like_any_other) {
  stage s;
  s.root("p", {.strategy = one_for_one({.limit = {.restarts = 2, .within = 1min}})});
  s.book.always["a started"] = throws("never");
  s.child("p", "a");
  EXPECT_EQ(s.book.take(), (lines{"p started", "a started", "a restarting", "a started", "a restarting", "a started",
                                  "a stopping", "a stopped"}));
  EXPECT_EQ(s.ended("a")->text(), "never");
  EXPECT_EQ(s.ended("a")->message(), "coppice::actor::started");
}

TEST(actor_failure, in_started_after_a_restart_is_another_one_and_the_mail_waits) {
  stage s;
  s.root("p");
  s.child("p", "a");
  s.book.next["a started"] = {throws("second"), throws("third")};
  s.book.take();
  s.act("a", [](player&, context& me) {
    me.send(me.id(), say{"mail"});
    throw std::runtime_error{"first"};
  });
  EXPECT_EQ(s.book.take(),
            (lines{"a restarting", "a started", "a restarting", "a started", "a restarting", "a started", "a: mail"}));
  EXPECT_EQ(s.events.size(), 3U);
}

TEST(actor_failure, in_on_init_is_one_and_the_hooks_run_again) {
  stage s;
  s.root("p");
  int runs = 0;
  s.child("p", "a", {.on_init = {[&](context&) {
                       if (++runs == 1) throw std::runtime_error{"first"};
                     }}});
  EXPECT_EQ(runs, 2);
  s.fail("a");
  EXPECT_EQ(runs, 2) << "once it went well, it is over";
  EXPECT_EQ(s.events.size(), 2U);
}

TEST(actor_failure, of_a_constructor_that_has_spawned_takes_the_children_along) {
  stage s;
  s.root("p");
  s.book.always["a made"] = spawns("g");
  s.book.next["a made"] = {throws()};
  s.child("p", "a");
  EXPECT_EQ(std::ranges::count(s.book.log, "g started"), 2);
  EXPECT_EQ(std::ranges::count(s.book.log, "g stopped"), 1);
  EXPECT_EQ(s.said("g"), 0);
}

TEST(actor_spawn, that_fails_in_the_parents_own_code_is_a_failure_of_the_parent) {
  stage s;
  s.root("p");
  s.book.take();
  s.act("p", [](player& p, context& me) { (void)me.spawn({.name = "a/b"}, part(p.book(), "a")); });
  EXPECT_EQ(s.book.take(), (lines{"p restarting", "p started"}));
}

// ---- who asked

struct question {
  using reply = int;
};
struct clumsy {
  using protocol = coppice::protocol<question>;
  static int handle(question) { throw std::runtime_error{"no idea"}; }
};

TEST(actor_failure, is_told_at_once_to_who_made_the_call) {
  runtime rt{{.workers = 2, .level = log_level::off}};
  const auto who = spawn_actor(rt, props<clumsy>());
  const auto answer = rt.call(who.call<question>());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), errc::no_reply);
  EXPECT_TRUE(answer.error().to_string().contains("no idea")) << answer.error().to_string();
  EXPECT_TRUE(rt.alive(who.id()));
}

}  // namespace
