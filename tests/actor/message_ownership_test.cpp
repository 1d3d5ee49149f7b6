// A message and a call have one owner at any time: they are destroyed once and answered once, whatever handlers and
// middleware do with them.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

/// Keeps count of those of its kind.
class counted {
 public:
  explicit counted(int& alive) : alive_{&alive} { ++*alive_; }
  counted(const counted& other) : alive_{other.alive_} { ++*alive_; }
  counted& operator=(const counted&) = delete;
  ~counted() { --*alive_; }

 private:
  int* alive_;
};

struct number {
  using reply = long;
};

/// An actor without a class, with these handlers.
template <class... Fs>
props<behaving> handling(Fs... handlers) {
  return props<behaving>([handlers...] { return behaviour{handlers...}; });
}
props<behaving> handing_on_to(pid who) {
  return handling([who](any_message m, context& me) { me.forward(who, std::move(m)); });
}
props<behaving> giving_numbers() {
  return handling([](number, context& me) { me.reply(7L); });
}

using next_step = std::function<void()>;
actor_options when_sending(std::function<void(const next_step&)> what) {
  actor_options options;
  options.on_send.emplace_back([what](context&, pid, const message_view&, const next_step& next) { what(next); });
  return options;
}
template <class M>
actor_options when_receiving(std::function<void(const next_step&)> what) {
  actor_options options;
  options.on_receive.emplace_back([what](context&, const message_view& m, const next_step& next) {
    if (m.get_if<M>() != nullptr)
      what(next);
    else
      next();
  });
  return options;
}
void twice(const next_step& next) {
  next();
  next();
}
void throws(const next_step&) { throw std::runtime_error{"middleware"}; }
void keeps_it(const next_step&) {}

// ---- messages

struct fails_with_all {
  using protocol = coppice::protocol<>;
  void handle(const any_message&, context&) { throw std::runtime_error{"no"}; }
};
struct takes_all {
  using protocol = coppice::protocol<>;
  explicit takes_all(int& taken) : taken_{&taken} {}
  void handle(const any_message&, context&) { ++*taken_; }

 private:
  int* taken_;
};

TEST(message, is_destroyed_once_when_the_handler_for_the_rest_throws) {
  stage s;
  int alive = 0;
  const auto by_class = spawn_actor(s.rt, props<fails_with_all>());
  s.rt.cast<counted>(by_class, alive);
  s.world.settle();
  EXPECT_EQ(alive, 0);
  const auto by_behaviour = spawn_actor(s.rt, handling([](any_message, context&) { throw std::runtime_error{"no"}; }));
  s.rt.cast<counted>(by_behaviour, alive);
  s.world.settle();
  EXPECT_EQ(alive, 0);
}

TEST(message, is_given_to_the_handler_for_the_rest_once_when_middleware_goes_on_twice) {
  stage s;
  int alive = 0;
  int taken = 0;
  const auto by_class = spawn_actor(s.rt, props<takes_all>(std::ref(taken)).with(when_receiving<counted>(twice)));
  s.rt.cast<counted>(by_class, alive);
  s.world.settle();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(taken, 1);
  const auto by_behaviour =
      spawn_actor(s.rt, handling([&](any_message, context&) { ++taken; }).with(when_receiving<counted>(twice)));
  s.rt.cast<counted>(by_behaviour, alive);
  s.world.settle();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(taken, 2);
}

TEST(message, is_destroyed_once_when_middleware_throws_before_the_handler_and_after_it) {
  for (const bool before : {true, false}) {
    stage s;
    int alive = 0;
    int taken = 0;
    const auto a = spawn_actor(
        s.rt, props<takes_all>(std::ref(taken)).with(when_receiving<counted>([before](const next_step& next) {
          if (!before) next();
          throw std::runtime_error{"middleware"};
        })));
    s.rt.cast<counted>(a, alive);
    s.world.settle();
    EXPECT_EQ(alive, 0) << before;
    EXPECT_EQ(taken, before ? 0 : 1);
  }
}

TEST(message, that_is_handed_on_by_middleware_that_goes_on_twice_comes_once) {
  stage s;
  const auto b = s.enter("b");
  int alive = 0;
  int taken = 0;
  const auto all = spawn_actor(s.rt, props<takes_all>(std::ref(taken)));
  const auto to_b = spawn_actor(s.rt, handing_on_to(b.id()).with(when_sending(twice)));
  const auto to_all = spawn_actor(s.rt, handing_on_to(all.id()).with(when_sending(twice)));
  (void)s.heard();
  s.rt.cast<note>(to_b, "x");
  EXPECT_EQ(s.heard(), (lines{"b: x"}));
  s.rt.cast<counted>(to_all, alive);
  s.world.settle();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(taken, 1);
}

TEST(message, that_middleware_does_not_hand_on_is_destroyed_once) {
  for (const auto what : {throws, keeps_it}) {
    stage s;
    int alive = 0;
    int taken = 0;
    const auto all = spawn_actor(s.rt, props<takes_all>(std::ref(taken)));
    const auto a = spawn_actor(s.rt, handing_on_to(all.id()).with(when_sending(what)));
    s.rt.cast<counted>(a, alive);
    s.world.settle();
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(taken, 0);
  }
}

TEST(message, can_be_handed_on_only_once) {
  for (const bool to_the_stash : {true, false}) {
    stage s;
    const auto b = s.enter("b");
    const auto a = spawn_actor(s.rt, handling([b, to_the_stash](any_message m, context& me) {
                                 me.forward(b, std::move(m));
                                 // NOLINTBEGIN(bugprone-use-after-move): that is the point
                                 if (to_the_stash)
                                   EXPECT_THROW(me.stash(std::move(m)), std::logic_error);
                                 else
                                   EXPECT_THROW(me.forward(b, std::move(m)), std::logic_error);
                                 // NOLINTEND(bugprone-use-after-move)
                               }));
    (void)s.heard();
    s.rt.cast<note>(a, "x");
    EXPECT_EQ(s.heard(), (lines{"b: x"}));
  }
}

// ---- calls

/// The caller gets the error `no_reply` at once.
template <class M>
void expect_no_reply(stage& s, actor_ref<behaving> who) {
  const time_point before = s.world.now();
  const auto answer = s.rt.call(who.template call<M>());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), errc::no_reply) << answer.error();
  EXPECT_LT(s.world.now() - before, 1ms) << "it need not wait for that";
}

TEST(call, that_is_answered_twice_has_the_first_answer_and_the_second_is_a_dead_letter) {
  stage s;
  const auto a = s.enter("a");
  const auto b = spawn_actor(s.rt, handling([](question, context& me) {
                               me.reply(std::string{"first"});
                               me.reply(std::string{"second"});
                             }));
  (void)s.heard();
  EXPECT_EQ(s.rt.call(b.call<question>("x")), "first");
  s.world.settle();
  EXPECT_EQ(s.dead_letters(), 1U);
  s.in(a, [b, book = s.book](context& me) {
    me.reenter_after(me.call(b.call<question>("x")),
                     [book](const result<std::string>& r, context&) { book->push_back("got " + r.value_or("error")); });
  });
  EXPECT_EQ(s.heard(), (lines{"got first"})) << "and the second is no message";
  EXPECT_EQ(s.dead_letters(), 2U);
}

struct asks_for_text {
  using reply = std::string;
};

TEST(call, that_is_forwarded_as_one_with_another_reply_has_no_reply) {
  stage s;
  const auto a = s.enter("a");
  const auto numbers = spawn_actor(s.rt, giving_numbers());
  const auto middle =
      spawn_actor(s.rt, handling([numbers](asks_for_text, context& me) { me.forward(numbers, number{}); }));
  (void)s.heard();
  expect_no_reply<asks_for_text>(s, middle);
  s.in(a, [middle, book = s.book](context& me) {
    me.reenter_after(me.call(middle.call<asks_for_text>()), [book](const result<std::string>& r, context&) {
      book->push_back(r ? "got " + *r : std::string{to_string(r.error().code())});
    });
  });
  EXPECT_EQ(s.heard(), (lines{std::string{to_string(errc::no_reply)}}));
}

TEST(call, that_middleware_does_not_hand_on_has_no_reply) {
  for (const auto what : {throws, keeps_it}) {
    stage s;
    const auto numbers = spawn_actor(s.rt, giving_numbers());
    expect_no_reply<number>(s, spawn_actor(s.rt, handing_on_to(numbers.id()).with(when_sending(what))));
  }
}

TEST(call, that_is_handed_on_by_middleware_that_goes_on_twice_has_its_answer) {
  stage s;
  const auto numbers = spawn_actor(s.rt, giving_numbers());
  const auto a = spawn_actor(s.rt, handing_on_to(numbers.id()).with(when_sending(twice)));
  EXPECT_EQ(s.rt.call(a.call<number>()), 7L);
  s.world.settle();
  EXPECT_EQ(s.dead_letters(), 0U);
}

TEST(call, that_middleware_does_not_let_in_has_no_reply) {
  for (const auto what : {throws, keeps_it}) {
    stage s;
    expect_no_reply<number>(s, spawn_actor(s.rt, giving_numbers().with(when_receiving<number>(what))));
  }
}

}  // namespace
