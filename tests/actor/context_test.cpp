// What an actor can do in its handlers.
#include <gtest/gtest.h>

#include <coppice/supervision/supervisor.hpp>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

// ---- names and children

TEST(spawning, gives_children_in_the_order_of_their_spawns) {
  stage s;
  const auto a = s.enter("a");
  std::vector<pid> spawned;
  s.in(a, [&](context& me) {
    for (int i = 0; i < 10; ++i) spawned.push_back(me.spawn(s.role("c")).id());
    EXPECT_EQ(me.children(), spawned);
  });
  s.in(a, [&](context& me) { me.stop(spawned[3]); });
  spawned.erase(spawned.begin() + 3);
  s.in(a, [&](context& me) { EXPECT_EQ(me.children(), spawned); });
}

TEST(spawning, with_a_name_registers_it_below_the_parent) {
  stage s;
  const auto a = spawn_actor(s.rt, {.name = "top"}, s.role("a"));
  ASSERT_TRUE(a);
  s.in(*a, [&](context& me) {
    EXPECT_EQ(me.path(), "top");
    const auto c = me.spawn({.name = "child"}, s.role("c"));
    ASSERT_TRUE(c);
    EXPECT_EQ(me.child("child"), c->id());
    EXPECT_EQ(me.where("top/child"), c->id());
    EXPECT_EQ(me.child("nobody"), pid{});
  });
  const auto b = s.enter("b");
  s.in(b, [&](context& me) {
    const auto c = me.spawn({.name = "child"}, s.role("c"));
    ASSERT_TRUE(c) << "unique among the children of one parent only";
    EXPECT_EQ(me.where(to_string(me.id()) + "/child"), c->id());
  });
}

TEST(spawning, with_a_taken_name_is_an_error_that_carries_the_running_actor) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [&](context& me) {
    const auto first = me.spawn({.name = "child"}, s.role("c"));
    const auto second = me.spawn({.name = "child"}, s.role("d"));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), errc::name_taken);
    EXPECT_EQ(second.error().running, first->id());
    EXPECT_EQ(me.children().size(), 1U);
  });
  EXPECT_EQ(std::ranges::count(s.heard(), "d: started"), 0) << "nothing of it was made";
  const auto top = spawn_actor(s.rt, {.name = "top"}, s.role("t"));
  const auto again = spawn_actor(s.rt, {.name = "top"}, s.role("t"));
  EXPECT_EQ(again.error().running, top->id());
}

TEST(spawning, refuses_names_that_would_confuse) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [&](context& me) {
    for (const char* bad : {"", "$1", "x/y"})
      EXPECT_THROW((void)me.spawn({.name = bad}, s.role("c")), std::invalid_argument);
  });
  EXPECT_EQ(spawn_actor(s.rt, {.name = ""}, s.role("t")).error().code(), errc::invalid);
}

TEST(spawning, with_a_prefix_finds_a_name) {
  stage s;
  const auto a = s.enter("a");
  player_ref first;
  player_ref second;
  s.in(a, [&](context& me) {
    first = *me.spawn({.prefix = "worker-"}, s.role("c"));
    second = *me.spawn({.prefix = "worker-"}, s.role("c"));
  });
  EXPECT_NE(first.id(), second.id());
  EXPECT_TRUE(s.rt.info(first.id())->name.starts_with(to_string(a.id()) + "/worker-"));
}

TEST(spawning, refuses_a_guardian_below_the_top) {
  stage s;
  const auto a = s.enter("a");
  s.in(a, [&](context& me) {
    EXPECT_THROW(me.spawn(s.role("c").with({.guardian = one_for_one()})), std::invalid_argument);
    EXPECT_TRUE(me.children().empty());
  });
}

struct from_context {
  using protocol = coppice::protocol<>;
  from_context(context& me, std::string name, std::shared_ptr<lines> book) {
    book->push_back(name + " made in " + std::string{me.id() ? "its actor" : "nobody"});
  }
};

TEST(props, copy_their_arguments_for_every_instance_and_may_take_the_context) {
  stage s;
  (void)spawn_actor(s.rt, props<from_context>("x", s.book));
  EXPECT_EQ(s.heard(), (lines{"x made in its actor"}));
  int made = 0;
  const auto a =
      spawn_actor(s.rt, props<player>::from([&] { return player{"made " + std::to_string(++made), s.book}; }));
  EXPECT_EQ(s.heard(), (lines{"made 1: started"}));
  s.in(a, [](context&) { throw 1; });
  EXPECT_EQ(s.heard(), (lines{"made 1: restarting", "made 2: started"}));
}

TEST(props, hooks_run_once_before_the_first_instance) {
  stage s;
  const auto hook = [book = s.book](std::string word) { return [book, word](context&) { book->push_back(word); }; };
  const auto a = spawn_actor(s.rt, s.role("a").with({.on_init = {hook("first")}}).with({.on_init = {hook("second")}}));
  EXPECT_EQ(s.heard(), (lines{"first", "second", "a: started"}));
  s.in(a, [](context&) { throw 1; });
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "a: started"}));
}

// ---- messages

TEST(messages, know_their_sender_when_they_were_requested) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a, [b](context& me) {
    me.cast<note>(b, "sent");
    me.send_from(me.id(), b, note{"requested"});
    me.send_from(me.id(), b.id(), note{"by pid"});
    me.send_from(b.id(), b, note{"as b"});
  });
  EXPECT_EQ(s.heard(),
            (lines{"b: sent", "b: requested from somebody", "b: by pid from somebody", "b: as b from somebody"}));
}

TEST(messages, are_answered_to_their_sender) {
  stage s;
  const auto a = s.enter("a");
  const auto b =
      spawn_actor(s.rt, props<behaving>([] {
                    return behaviour{[](const note& m, context& me) { me.reply(std::string{m.text + "!"}); }};
                  }));
  (void)s.heard();
  s.in(a, [b](context& me) { me.send_from(me.id(), b, note{"x"}); });
  EXPECT_EQ(s.heard(), (lines{"a: text x!"}));
  s.rt.cast<note>(b, "nobody asks");
  (void)s.heard();
  EXPECT_EQ(s.dead_letters(), 1U) << "the answer to nobody";
}

TEST(messages, may_be_answered_from_the_first_and_the_last_hook) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  s.in(a, [](context& me) {
    const pid parent = me.id();
    me.spawn(props<behaving>([parent] {
      return behaviour{[parent](started, context& c) {
                         c.send(parent, std::string{"hello"});
                         c.stop();
                       },
                       [parent](stopping, context& c) { c.send(parent, std::string{"bye"}); },
                       [parent](stopped, context& c) { c.send(parent, std::string{"gone"}); }};
    }));
  });
  EXPECT_EQ(s.heard(), (lines{"a: text hello", "a: text bye", "a: text gone"}));
}

TEST(messages, are_forwarded_as_they_came) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  const auto middle = spawn_actor(s.rt, props<behaving>([b] {
                                    return behaviour{[b](note m, context& me) { me.forward(b, std::move(m)); },
                                                     [b](any_message m, context& me) { me.forward(b, std::move(m)); }};
                                  }));
  (void)s.heard();
  s.in(a, [middle](context& me) {
    me.send_from(me.id(), middle, note{"x"});
    me.cast<note>(middle, "y");
    me.call(middle.call<question>("q")).pipe_to(me.id());
  });
  EXPECT_EQ(s.heard(), (lines{"b: x from somebody", "b: y", "a: text q"}));
}

TEST(messages, an_answer_of_the_wrong_type_is_an_error_for_the_caller) {
  stage s;
  const auto a = s.enter("a");
  const auto b =
      spawn_actor(s.rt, props<behaving>([] { return behaviour{[](question, context& me) { me.reply(7); }}; }));
  const auto c = spawn_actor(s.rt, props<behaving>([] { return behaviour{[](question, context&) {}}; }));
  (void)s.heard();
  s.in(a, [b](context& me) { me.call(b.call<question>("q")).pipe_to(me.id()); });
  EXPECT_EQ(s.heard(), (lines{"a: error no_reply"}));
  s.in(a, [c](context& me) { me.call(c.call<question>("q").within(forever)).pipe_to(me.id()); });
  EXPECT_EQ(s.heard(), (lines{"a: error no_reply"})) << "and so is none at all, at once";
}

task<> asks_twice(self& me, player_ref who, lines* got) {
  const auto first = co_await who.call<question>("typed");
  got->push_back(*first);
  const auto second = co_await call<question>(who.id(), "by pid");
  got->push_back(*second);
  me.send(who.id(), note{"from a process"});
}

TEST(messages, come_from_plain_processes_too) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  lines got;
  s.rt.spawn(asks_twice, a, &got);
  EXPECT_EQ(s.heard(), (lines{"a: from a process"}));
  EXPECT_EQ(got, (lines{"typed", "by pid"}));
}

struct unknown {};

TEST(dead_letters, are_what_nobody_handles_and_what_is_left_at_the_end) {
  stage s;
  const auto a = s.enter("a");
  s.rt.send(a.id(), unknown{});
  s.world.settle();
  EXPECT_EQ(s.dead_letters(), 1U);
  for (int i = 0; i < 3; ++i) s.tell(a, "left");
  stop_actor(s.rt, a.id());
  (void)s.heard();
  EXPECT_EQ(s.dead_letters(), 4U) << "an order to stop goes before the mail";
  s.tell(a, "too late");
  s.world.settle();
  EXPECT_EQ(s.dead_letters(), 5U);
}

TEST(poison, does_not_wait_for_a_child_that_has_failed) {
  stage s;
  const auto a = s.enter("a", {.strategy = exponential_backoff({.first = 1h, .cap = 1h})});
  player_ref c;
  s.in(a, [&](context& me) { c = me.spawn(s.role("c")); });
  s.in(c, [](context&) { throw 1; });
  (void)s.heard();
  poison_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "c: stopping", "c: stopped", "a: stopped"}));
}

// ---- middleware

TEST(middleware, of_receiving_sees_all_messages_from_the_outside_in) {
  stage s;
  const auto layer = [book = s.book](std::string word) {
    return [book, word](context&, const message_view& m, const std::function<void()>& next) {
      const auto* text = m.get_if<note>();
      book->push_back(word + " " + std::string{m.type().substr(m.type().rfind(':') + 1)} +
                      (text ? " " + text->text : ""));
      if (text == nullptr || text->text != "stop") next();
    };
  };
  const auto a = spawn_actor(s.rt, s.role("a").with({.on_receive = {layer("outer"), layer("inner")}}));
  s.tell(a, "x");
  s.tell(a, "stop");
  EXPECT_EQ(s.heard(), (lines{"outer started", "inner started", "a: started", "outer note x", "inner note x", "a: x",
                              "outer note stop"}));
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(),
            (lines{"outer stopping", "inner stopping", "a: stopping", "outer stopped", "inner stopped", "a: stopped"}));
}

TEST(middleware, that_throws_fails_the_actor) {
  stage s;
  const auto a =
      spawn_actor(s.rt, s.role("a").with({.on_receive = {[](context&, const message_view& m, const auto& next) {
                                            if (m.get_if<note>() != nullptr) throw 1;
                                            next();
                                          }}}));
  (void)s.heard();
  s.tell(a, "x");
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "a: started"}));
}

TEST(middleware, of_sending_sees_all_ways_to_send) {
  stage s;
  const auto b = s.enter("b");
  const auto a = spawn_actor(
      s.rt, s.role("a").with({.on_send = {[book = s.book](context&, pid, const message_view& m, const auto& next) {
                                book->push_back("sends " + std::string{m.type().substr(m.type().rfind(':') + 1)});
                                const auto* text = m.get_if<note>();
                                if (text == nullptr || text->text != "stop") next();
                              }}}));
  (void)s.heard();
  s.in(a, [b](context& me) {
    me.cast<note>(b, "1");
    me.send_from(me.id(), b, note{"2"});
    me.cast<note>(b, "stop");
    (void)me.call(b.call<question>("3"));
    me.watch(b);
  });
  EXPECT_EQ(s.heard(),
            (lines{"sends note", "sends note", "sends note", "sends question", "b: 1", "b: 2 from somebody"}));
}

// ---- stash and behaviours

TEST(stash, keeps_messages_with_their_senders_in_their_order) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a, [](context& me) {
    me.become(behaviour{[](note m, context& c) { c.stash(std::move(m)); },
                        [](question m, context& c) { c.stash(std::move(m)); },
                        [](const act& m, context& c) { m.what(c); }});
  });
  s.in(b, [a](context& me) {
    me.send_from(me.id(), a, note{"1"});
    me.cast<note>(a, "2");
    me.call(a.call<question>("q")).pipe_to(me.id());
    me.cast<note>(a, "3");
  });
  EXPECT_EQ(s.heard(), lines{});
  s.tell(a, "4");
  s.rt.cast<act>(a, [](context& me) {
    EXPECT_EQ(me.stashed(), 5U);
    me.unbecome();
    me.unstash();
  });
  s.tell(a, "5");
  EXPECT_EQ(s.heard(), (lines{"a: 1 from somebody", "a: 5"}));
  s.in(a, [](context& me) { me.unstash_all(); });
  lines heard = s.heard();
  EXPECT_EQ(std::erase(heard, "b: text q"), 1U);
  EXPECT_EQ(heard, (lines{"a: 2", "a: 3", "a: 4"}));
}

TEST(stash, goes_back_to_the_mailbox_at_a_restart_before_what_came_later) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  s.in(a, [](context& me) {
    me.become(
        behaviour{[](note m, context& c) { c.stash(std::move(m)); }, [](const act& m, context& c) { m.what(c); }});
  });
  s.tell(a, "1");
  s.tell(a, "2");
  s.rt.cast<act>(a, [](context&) { throw 1; });
  s.tell(a, "3");
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "a: started", "a: 1", "a: 2", "a: 3"}));
}

/// Stashes whatever comes, but for failures.
struct hoarder {
  using protocol = coppice::protocol<note, act>;
  static void handle(note m, context& me) { me.stash(std::move(m)); }
  static void handle(const act& m, context& me) { m.what(me); }
};

TEST(stash, put_aside_again_by_the_new_instance_is_not_replayed_for_ever) {
  stage s;
  const auto a = spawn_actor(s.rt, props<hoarder>());
  for (const char* text : {"1", "2", "3"}) s.rt.cast<note>(a, text);
  s.rt.cast<act>(a, [](context&) { throw 1; });
  EXPECT_TRUE(s.world.settle());
  std::size_t left = 0;
  s.rt.cast<act>(a, [&](context& me) { left = me.stashed(); });
  s.world.settle();
  EXPECT_EQ(left, 3U);
}

TEST(stash, put_back_in_a_loop_does_not_hold_up_others) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  s.in(a, [](context& me) {
    me.become(behaviour{[](note m, context& c) {
                          c.stash(std::move(m));
                          c.unstash_all();
                        },
                        [](const act& m, context& c) { m.what(c); }});
  });
  s.tell(a, "for ever");
  s.world.run_for(1ms);
  stop_actor(s.rt, a.id());
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped"})) << "an order goes first";
  EXPECT_EQ(s.dead_letters(), 1U);
}

TEST(behaviours, are_a_stack_of_the_instance) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  const auto says = [book = s.book](std::string word) {
    return behaviour{[book, word](const note&, context&) { book->push_back(word); },
                     [](const act& m, context& c) { m.what(c); }};
  };
  const auto try_it = [&] {
    s.tell(a, "x");
    return s.heard().at(0);
  };
  s.in(a, [&](context& me) { me.become_stacked(says("one")); });
  EXPECT_EQ(try_it(), "one");
  s.in(a, [&](context& me) { me.become_stacked(says("two")); });
  EXPECT_EQ(try_it(), "two");
  s.in(a, [](context& me) { me.unbecome(); });
  EXPECT_EQ(try_it(), "one");
  s.in(a, [&](context& me) { me.become(says("three")); });
  s.in(a, [](context& me) { me.unbecome(); });
  EXPECT_EQ(try_it(), "a: x") << "become leaves nothing below it";
  s.in(a, [](context& me) { me.unbecome(); });
  EXPECT_EQ(try_it(), "a: x");
  s.in(a, [&](context& me) { me.become(says("four")); });
  s.in(a, [](context&) { throw 1; });
  (void)s.heard();
  EXPECT_EQ(try_it(), "a: x") << "a restart begins with the class";
}

TEST(behaviours, of_an_actor_without_a_class_go_back_to_the_first) {
  stage s;
  const auto a = spawn_actor(s.rt, props<behaving>([book = s.book] {
                               return behaviour{[book](const note& m, context& me) {
                                 book->push_back("first " + m.text);
                                 me.unbecome();
                               }};
                             }));
  s.rt.cast<note>(a, "1");
  s.rt.cast<note>(a, "2");
  EXPECT_EQ(s.heard(), (lines{"first 1", "first 2"}));
}

// ---- time

TEST(timers, send_once_or_again_and_again_until_they_are_cancelled) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  actor_timer often;
  s.in(a, [&](context& me) {
    me.after(1s, note{"once"});
    often = me.every(2s, note{"often"});
    EXPECT_TRUE(me.cancel(me.after(1s, note{"never"})));
    EXPECT_THROW(me.every(0s, note{"x"}), std::invalid_argument);
  });
  s.pass(5s);
  EXPECT_EQ(s.heard(), (lines{"a: once", "a: often", "a: often"}));
  s.in(a, [&](context& me) {
    EXPECT_TRUE(me.cancel(often));
    EXPECT_FALSE(me.cancel(often));
  });
  s.pass(10s);
  EXPECT_EQ(s.heard(), lines{});
}

TEST(timers, end_with_their_instance_also_when_their_message_is_queued) {
  stage s;
  const auto a = s.enter("a", {.guardian = one_for_one({.wait = backoff{.first = 3s, .jitter = 0}})});
  (void)s.heard();
  s.in(a, [](context& me) {
    me.after(1s, note{"while it is suspended"});
    me.every(5s, note{"often"});
    throw 1;
  });
  s.pass(1min);
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "a: started"}));
  s.in(a, [](context& me) { me.every(5s, note{"often"}); });
  stop_actor(s.rt, a.id());
  s.pass(1min);
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped"}));
  EXPECT_EQ(s.rt.counters().timers, 0U);
}

TEST(timers, that_are_cancelled_are_not_received_even_from_the_queue) {
  for (const bool cancelled : {false, true}) {
    stage s;
    const auto a = s.enter("a");
    (void)s.heard();
    actor_timer t;
    s.in(a, [&](context& me) { t = me.after(1s, note{"x"}); });
    s.world.nodes().front().stick(a.id(), 2s);
    s.tell(a, "takes its time");
    s.rt.cast<act>(a, [&](context& me) {
      if (cancelled) me.cancel(t);
    });
    s.pass(3s);  // the timer is due while a does not come to look
    EXPECT_EQ(s.heard(), cancelled ? (lines{"a: takes its time"}) : (lines{"a: takes its time", "a: x"}));
  }
}

}  // namespace
