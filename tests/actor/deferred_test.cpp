// Answers that are given later than their handler returns, from anywhere.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

using later = reply_to<std::string>;
/// Where a deferred answer is kept beyond its actor.
using shelf = std::shared_ptr<std::vector<later>>;

struct release {};
struct crash {};

/// Defers the answers to all questions. `out`: a shelf of somebody else, in the place of its own.
class slow {
 public:
  using protocol = coppice::protocol<question, release, crash>;
  explicit slow(shelf out = nullptr) : shelf_{out ? std::move(out) : std::make_shared<std::vector<later>>()} {}
  void handle(const question&, context& me) { shelf_->push_back(me.defer<std::string>()); }
  void handle(release) {
    for (later& l : std::exchange(*shelf_, {})) l.reply("at last");
  }
  static void handle(crash) { throw std::runtime_error{"crash"}; }

 private:
  shelf shelf_;
};

std::string word(const result<std::string>& r) { return r ? *r : "error " + std::string{to_string(r.error().code())}; }

/// A caller: `asks.to(who)`, then what it got, if it did, in `asks.got`.
class caller {
 public:
  explicit caller(stage& s) : s_{s}, who_{s.enter("caller")} { (void)s.heard(); }
  void ask(pid whom) {
    s_.in(who_, [whom, to = got](context& me) {
      me.reenter_after(me.call(coppice::call<question>(whom, "?").within(1min)),
                       [to](const result<std::string>& r, context&) { to->push_back(word(r)); });
    });
  }
  std::shared_ptr<lines> got = std::make_shared<lines>();

 private:
  stage& s_;
  player_ref who_;
};

TEST(deferred_answer, is_given_by_a_later_message) {
  stage s;
  caller asks{s};
  const auto a = spawn_actor(s.rt, props<slow>());
  asks.ask(a.id());
  EXPECT_EQ(*asks.got, lines{});
  s.rt.cast<release>(a);
  s.world.settle();
  EXPECT_EQ(*asks.got, lines{"at last"});
}

TEST(deferred_answer, is_given_from_outside_once) {
  stage s;
  caller asks{s};
  const auto kept = std::make_shared<std::vector<later>>();
  asks.ask(spawn_actor(s.rt, props<slow>(kept)).id());
  ASSERT_EQ(kept->size(), 1U);
  later second = kept->front();
  EXPECT_TRUE(kept->front().reply("from outside"));
  EXPECT_FALSE(second.reply("again"));
  s.world.settle();
  EXPECT_EQ(*asks.got, lines{"from outside"});
}

TEST(deferred_answer, that_is_dropped_by_a_restart_gives_no_reply) {
  stage s;
  caller asks{s};
  const auto a = spawn_actor(s.rt, props<slow>());
  asks.ask(a.id());
  s.rt.cast<crash>(a);
  s.world.settle();
  EXPECT_EQ(*asks.got, lines{"error no_reply"});
}

TEST(deferred_answer, that_is_kept_elsewhere_outlives_a_restart) {
  stage s;
  caller asks{s};
  const auto kept = std::make_shared<std::vector<later>>();
  const auto a = spawn_actor(s.rt, props<slow>(kept));
  asks.ask(a.id());
  s.rt.cast<crash>(a);
  s.rt.cast<release>(a);
  s.world.settle();
  EXPECT_EQ(*asks.got, lines{"at last"});
}

TEST(deferred_answer, of_an_actor_that_ends_first_is_exited) {
  for (const bool killed : {false, true}) {
    stage s;
    caller asks{s};
    const auto kept = std::make_shared<std::vector<later>>();
    const auto a = spawn_actor(s.rt, props<slow>(kept));
    asks.ask(a.id());
    if (killed)
      s.rt.kill(a.id());
    else
      stop_actor(s.rt, a);
    s.world.settle();
    EXPECT_EQ(*asks.got, lines{"error exited"});
    EXPECT_FALSE(kept->front().reply("too late"));
  }
}

TEST(deferred_answer, that_waits_in_a_continuation_of_an_actor_that_stops_is_exited) {
  for (const bool answered_meanwhile : {false, true}) {
    stage s;
    caller asks{s};
    const auto kept = std::make_shared<std::vector<later>>();
    const auto far = spawn_actor(s.rt, props<slow>(kept));
    player_ref below;
    const auto a = spawn_actor(
        s.rt, props<behaving>([&, far] {
          return behaviour{[&](started, context& me) { below = me.spawn(s.role("below")); },
                           [far](const question&, context& me) {
                             const auto mine = std::make_shared<later>(me.defer<std::string>());
                             me.reenter_after(me.call(far.call<question>("?").within(1min)),
                                              [mine](const result<std::string>&, context&) { mine->reply("done"); });
                           }};
        }));
    asks.ask(a.id());
    ASSERT_EQ(kept->size(), 1U);
    s.world.nodes().front().stick(below.id(), 1s);  // so that the end takes a while
    stop_actor(s.rt, a);
    s.pass(100ms);
    if (answered_meanwhile) kept->front().reply("too late");
    s.pass(2s);
    EXPECT_EQ(*asks.got, lines{"error exited"});
  }
}

TEST(deferred_answer, is_no_longer_the_handlers_to_give) {
  stage s;
  caller asks{s};
  const auto a = spawn_actor(s.rt, props<behaving>([book = s.book] {
                               return behaviour{[book](const question&, context& me) {
                                 later l = me.defer<std::string>();
                                 me.reply(std::string{"too early"});  // a dead letter
                                 EXPECT_THROW((void)me.defer<std::string>(), std::logic_error);
                                 l.reply("the one");
                               }};
                             }));
  const std::uint64_t before = s.dead_letters();
  asks.ask(a.id());
  EXPECT_EQ(*asks.got, lines{"the one"});
  EXPECT_EQ(s.dead_letters(), before + 1);
}

TEST(messages, that_are_answered_twice_make_a_dead_letter_of_the_second_answer) {
  stage s;
  caller asks{s};
  const auto a = spawn_actor(s.rt, props<behaving>([] {
                               return behaviour{[](const question&, context& me) {
                                 me.reply(std::string{"first"});
                                 me.reply(std::string{"second"});
                               }};
                             }));
  const std::uint64_t before = s.dead_letters();
  asks.ask(a.id());
  EXPECT_EQ(*asks.got, lines{"first"});
  EXPECT_EQ(s.dead_letters(), before + 1);
}

TEST(deferred_answer, needs_a_call_that_waits_for_that_type) {
  stage s;
  caller asks{s};
  const auto tries = [book = s.book]<class R>(std::type_identity<R>, context& me) {
    try {
      (void)me.defer<R>();
    } catch (const std::logic_error& x) {
      book->push_back(x.what());
    }
  };
  const auto a =
      spawn_actor(s.rt, props<behaving>([=] {
                    return behaviour{[=](const question&, context& me) { tries(std::type_identity<int>{}, me); },
                                     [=](const note&, context& me) { tries(std::type_identity<std::string>{}, me); }};
                  }));
  asks.ask(a.id());
  EXPECT_EQ(*asks.got, lines{"error no_reply"});
  s.rt.send(a.id(), note{"x"});
  const lines heard = s.heard();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_TRUE(heard[0].starts_with("context::defer: nobody waits for a int as the answer to")) << heard[0];
  EXPECT_TRUE(heard[1].ends_with("note")) << heard[1];
}

}  // namespace
