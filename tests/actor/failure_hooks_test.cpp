// What the hooks of an actor that has failed are told: the cause, and the sender of the message that could not be
// handled.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

struct bad {
  using reply = int;
};
struct sorry {
  std::string hook;
};
struct spawn_child {
  std::shared_ptr<lines> book;
};

/// Fails at `bad`, and tells its sender so in the hooks.
class apologetic {
 public:
  using protocol = coppice::protocol<bad, act, spawn_child>;
  explicit apologetic(std::shared_ptr<lines> book) : book_{std::move(book)} {}
  int handle(bad) { throw std::runtime_error{"boom"}; }
  static void handle(const act& m, context& me) { m.what(me); }
  void handle(const spawn_child& m, context& me) const { (void)me.spawn({.name = "child"}, props<apologetic>(m.book)); }
  void handle(const restarting& m, context& me) { note("restarting", m.cause, me); }
  void handle(const stopping& m, context& me) { note("stopping", m.reason, me); }
  void handle(const stopped& m, context& me) { note("stopped", m.reason, me); }

 private:
  void note(const std::string& hook, const exit_reason& why, context& me) {
    book_->push_back(hook + " " + why.to_string() + (me.sender() ? " for somebody" : ""));
    if (me.sender()) me.reply(sorry{hook});
  }
  std::shared_ptr<lines> book_;
};

class asker {
 public:
  using protocol = coppice::protocol<sorry>;
  asker(actor_ref<apologetic> whom, std::shared_ptr<lines> into) : whom_{whom}, book_{std::move(into)} {}
  void handle(started, context& me) const { me.send_from(me.id(), whom_, bad{}); }
  void handle(const sorry& m) { book_->push_back("sorry " + m.hook); }

 private:
  actor_ref<apologetic> whom_;
  std::shared_ptr<lines> book_;
};

task<> calls_it(self&, actor_ref<apologetic> who, std::shared_ptr<lines> into) {
  const auto got = co_await who.call<bad>();
  into->push_back(got ? "answer" : std::string{to_string(got.error().code())});
}

struct scene : stage {
  explicit scene(const actor_options& options = {}) : who{spawn_actor(rt, props<apologetic>(book).with(options))} {
    world.settle();
  }
  actor_ref<apologetic> who;
};
const std::string boom = "error: std::runtime_error: boom (handling ";

TEST(failure_hooks, know_the_sender_of_the_message_that_failed_and_can_reply) {
  scene s;
  (void)spawn_actor(s.rt, props<asker>(s.who, s.book));
  const lines heard = s.heard();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_TRUE(heard[0].starts_with("restarting " + boom)) << heard[0];
  EXPECT_TRUE(heard[0].ends_with(" for somebody")) << heard[0];
  EXPECT_EQ(heard[1], "sorry restarting");
  stop_actor(s.rt, s.who.id());
  EXPECT_EQ(s.heard(), (lines{"stopping normal", "stopped normal"})) << "the failure is over";
}

TEST(failure_hooks, of_an_actor_that_is_stopped_for_its_failure_know_the_sender) {
  scene s{{.guardian = always_stop()}};
  (void)spawn_actor(s.rt, props<asker>(s.who, s.book));
  const lines heard = s.heard();
  ASSERT_EQ(heard.size(), 4U);
  EXPECT_TRUE(heard[0].starts_with("stopping ") && heard[0].ends_with(" for somebody")) << heard[0];
  EXPECT_TRUE(heard[1].starts_with("stopped ") && heard[1].ends_with(" for somebody")) << heard[1];
  EXPECT_EQ(heard[2] + ", " + heard[3], "sorry stopping, sorry stopped");
}

TEST(failure_hooks, of_a_failure_that_was_resumed_are_forgotten) {
  scene s{{.guardian = one_for_one({.decide = [](const auto&) { return directive::resume; }})}};
  (void)spawn_actor(s.rt, props<asker>(s.who, s.book));
  EXPECT_EQ(s.heard(), lines{});
  stop_actor(s.rt, s.who.id());
  EXPECT_EQ(s.heard(), (lines{"stopping normal", "stopped normal"}));
}

TEST(failure_hooks, of_a_call_do_not_answer_it_twice) {
  scene s;
  s.rt.spawn(calls_it, s.who, s.book);
  const lines heard = s.heard();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(std::ranges::count(heard, "no_reply"), 1) << "the caller has its answer, and the reply is a dead letter";
  EXPECT_EQ(s.dead_letters(), 1U);
}

TEST(failure_hooks, of_an_actor_that_fails_by_itself_know_the_sender) {
  scene s;
  const auto boss = s.enter("boss");
  s.in(boss, [&](context& me) {
    me.send_from(me.id(), s.who, act{[](context& it) { it.fail(exit_reason::error("enough")); }});
  });
  EXPECT_EQ(s.heard(), (lines{"boss: started", "restarting error: enough for somebody"}));
}

TEST(failure_hooks, of_a_child_whose_failure_restarted_its_parent_are_told_its_own_failure) {
  const auto escalates = one_for_one({.decide = [](const auto&) { return directive::escalate; }});
  scene s{{.strategy = escalates, .keep_children = true}};
  s.rt.cast<spawn_child>(s.who, s.book);
  s.world.settle();
  pid child;
  s.rt.cast<act>(s.who, [&](context& me) { child = me.child("child"); });
  s.world.settle();
  s.rt.send(child, bad{});
  const lines heard = s.heard();
  ASSERT_EQ(heard.size(), 2U);
  for (const std::string& line : heard) EXPECT_TRUE(line.starts_with("restarting " + boom)) << line;
}

}  // namespace
