// Futures, and continuations that run when they are done.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

std::string word(const result<std::string>& r) { return r ? *r : "error " + std::string{to_string(r.error().code())}; }

/// Asks `who` and writes the answer down.
auto asks(std::shared_ptr<lines> book, pid who, std::string text, std::chrono::nanoseconds timeout = 5s) {
  return [=](context& me) {
    const auto f = me.call(coppice::call<question>(who, text).within(timeout));
    me.reenter_after(f, [book](const result<std::string>& r, context&) { book->push_back("got " + word(r)); });
  };
}

/// Never answers.
struct mute {
  using protocol = coppice::protocol<question>;
  void handle(question m, context& me) { me.stash(std::move(m)); }
};

TEST(future, has_the_answer_without_blocking_the_actor) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a, asks(s.book, b.id(), "x"));
  EXPECT_EQ(s.heard(), (lines{"got x"}));
}

TEST(future, of_a_call_to_oneself_does_not_deadlock) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  s.in(a, asks(s.book, a.id(), "me"));
  EXPECT_EQ(s.heard(), (lines{"got me"}));
}

TEST(future, of_two_actors_that_call_each_other_does_not_deadlock) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.rt.cast<act>(a, asks(s.book, b.id(), "x"));
  s.rt.cast<act>(b, asks(s.book, a.id(), "y"));
  lines heard = s.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard, (lines{"got x", "got y"}));
}

TEST(future, fails_at_once_when_nobody_is_there) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  stop_actor(s.rt, b.id());
  (void)s.heard();
  s.in(a, asks(s.book, b.id(), "x", forever));
  EXPECT_EQ(s.heard(), (lines{"got error noproc"}));
}

TEST(future, fails_at_once_when_the_handler_fails) {
  stage s;
  const auto a = s.enter("a");
  const player_ref b{spawn_actor(s.rt, props<behaving>([] {
                                   return behaviour{[](question, context&) { throw std::runtime_error{"no"}; }};
                                 }))
                         .id()};
  (void)s.heard();
  s.in(a, asks(s.book, b.id(), "x", forever));
  EXPECT_EQ(s.heard(), (lines{"got error no_reply"}));
}

TEST(future, fails_when_the_target_ends_first) {
  stage s;
  const auto a = s.enter("a");
  const auto b = spawn_actor(s.rt, props<mute>());
  (void)s.heard();
  s.in(a, asks(s.book, b.id(), "x", forever));
  EXPECT_EQ(s.heard(), lines{});
  stop_actor(s.rt, b.id());
  EXPECT_EQ(s.heard(), (lines{"got error exited"}));
}

TEST(future, times_out) {
  stage s;
  const auto a = s.enter("a");
  const auto b = spawn_actor(s.rt, props<mute>());
  (void)s.heard();
  s.in(a, asks(s.book, b.id(), "x", 2s));
  s.pass(1900ms);
  EXPECT_EQ(s.heard(), lines{});
  s.pass(200ms);
  EXPECT_EQ(s.heard(), (lines{"got error timeout"}));
  s.in(a, asks(s.book, b.id(), "x", 0s));
  s.pass(10ms);
  EXPECT_EQ(s.heard(), (lines{"got error timeout"}));
  s.in(a, [b](context& me) {
    EXPECT_THROW((void)me.call(coppice::call<question>(b.id(), "x").within(-1s)), std::invalid_argument);
  });
}

TEST(future, is_completed_once_whatever_the_race) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    stage s{seed};
    const auto a = s.enter("a");
    // Answers about when the time is over.
    const auto b = spawn_actor(s.rt, props<behaving>([] {
                                 return behaviour{[](question m, context& me) {
                                                    if (m.text == "again") return me.reply(std::string{"x"});
                                                    m.text = "again";
                                                    me.stash(std::move(m));
                                                    me.after(1s, note{});
                                                  },
                                                  [](note, context& me) { me.unstash_all(); }};
                               }));
    (void)s.heard();
    s.in(a, asks(s.book, b.id(), "x", 1s));
    s.pass(3s);
    const lines heard = s.heard();
    ASSERT_EQ(heard.size(), 1U) << seed;
    EXPECT_TRUE(heard[0] == "got x" || heard[0] == "got error timeout") << heard[0];
  }
}

TEST(future, over_the_network_fails_when_the_node_is_lost) {
  stage s;
  sim::node& far = s.world.add_node("far");
  const auto a = s.enter("a");
  const auto b = spawn_actor(far.rt(), props<mute>());
  s.pass(1s);
  (void)s.heard();
  s.in(a, asks(s.book, b.id(), "x", forever));
  s.pass(1s);
  far.crash();
  s.pass(5min);
  EXPECT_EQ(s.heard(), (lines{"got error noconnection"}));
}

TEST(pipe_to, sends_the_value_or_the_error_to_all) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  const auto c = s.enter("c");
  const auto quiet = spawn_actor(s.rt, props<mute>());
  (void)s.heard();
  s.in(a, [=](context& me) {
    const auto f = me.call(b.call<question>("x"));
    f.pipe_to(b);
    f.pipe_to(c);
    f.pipe_to(me.id());
  });
  lines heard = s.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard, (lines{"a: text x", "b: text x", "c: text x"}));
  s.in(a, [=](context& me) { me.call(quiet.call<question>("x").within(1s)).pipe_to(c); });
  s.pass(2s);
  EXPECT_EQ(s.heard(), (lines{"c: error timeout"}));
}

TEST(pipe_to, of_a_future_that_is_done_sends_at_once) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a, [=](context& me) {
    const auto f = me.call(b.call<question>("x"));
    me.reenter_after(f, [f, b](const auto&, context&) {
      EXPECT_NE(f.get(), nullptr);
      f.pipe_to(b);
    });
  });
  EXPECT_EQ(s.heard(), (lines{"b: text x"}));
}

TEST(pipe_to, goes_on_when_its_actor_restarts) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a, [=](context& me) {
    me.call(b.call<question>("x")).pipe_to(b);
    throw 1;
  });
  lines heard = s.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard, (lines{"a: restarting", "a: started", "b: text x"}));
}

TEST(continuation, may_answer_the_call_of_its_message) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  const auto middle =
      spawn_actor(s.rt, props<behaving>([b] {
                    return behaviour{[b](question m, context& me) {
                      const auto f = me.call(b.call<question>(m.text + "!"));
                      me.reenter_after(f, [](const result<std::string>& r, context& c) { c.reply(word(r)); });
                    }};
                  }));
  (void)s.heard();
  s.in(a, asks(s.book, middle.id(), "x"));
  EXPECT_EQ(s.heard(), (lines{"got x!"}));
}

TEST(continuation, of_an_earlier_instance_does_not_run_and_its_caller_gets_an_error) {
  stage s;
  const auto a = s.enter("a");
  const auto quiet = spawn_actor(s.rt, props<mute>());
  const auto middle =
      spawn_actor(s.rt, props<behaving>([quiet, book = s.book] {
                    return behaviour{[quiet, book](question, context& me) {
                                       const auto f = me.call(quiet.call<question>("?").within(2s));
                                       me.reenter_after(f, [book](const auto&, context&) { book->push_back("ran"); });
                                     },
                                     [](note, context&) { throw 1; }};
                  }));
  (void)s.heard();
  s.in(a, asks(s.book, middle.id(), "x"));
  s.rt.send(middle.id(), note{});
  EXPECT_EQ(s.heard(), (lines{"got error no_reply"}));
  s.pass(1min);
  EXPECT_EQ(s.heard(), lines{});
}

TEST(continuation, waits_while_the_actor_is_suspended_and_runs_before_later_mail) {
  stage s;
  const auto top = s.enter("top", {.strategy = custom_strategy([](const child_failure&) {
                                     return judgement{.what = directive::restart, .after = 10s};
                                   })});
  player_ref mid;
  player_ref a;
  s.in(top, [&](context& me) { mid = me.spawn(s.role("mid").with({.keep_children = true})); });
  s.in(mid, [&](context& me) { a = me.spawn(s.role("a")); });
  const auto slow = spawn_actor(s.rt, props<behaving>([] {
                                  return behaviour{[](question m, context& me) {
                                                     if (me.stashed() == 0 && m.text != "again") {
                                                       m.text = "again";
                                                       me.stash(std::move(m));
                                                       me.after(1s, note{});
                                                     } else {
                                                       me.reply(std::string{"x"});
                                                     }
                                                   },
                                                   [](note, context& me) { me.unstash(); }};
                                }));
  s.in(a, asks(s.book, slow.id(), "x"));
  (void)s.heard();
  s.in(mid, [](context&) { throw 1; });  // suspends a with it
  s.pass(2s);
  s.tell(a, "later");
  EXPECT_EQ(s.heard(), lines{});
  s.pass(10s);
  EXPECT_EQ(s.heard(), (lines{"mid: restarting", "mid: started", "got x", "a: later"}));
}

TEST(continuation, that_waits_for_the_end_of_a_suspension_fails_its_call_when_the_actor_ends) {
  stage s;
  const auto a = s.enter("a");
  const auto quiet = spawn_actor(s.rt, props<mute>());
  const auto top = s.enter("top", {.strategy = custom_strategy([](const child_failure&) {
                                     return judgement{.what = directive::restart, .after = 1h};
                                   })});
  player_ref mid;
  pid middle;
  s.in(top, [&](context& me) { mid = me.spawn(s.role("mid").with({.keep_children = true})); });
  s.in(mid, [&](context& me) {
    middle = me.spawn(props<behaving>([quiet, book = s.book] {
                 return behaviour{[quiet, book](question, context& self) {
                   const auto f = self.call(quiet.call<question>("?").within(1s));
                   self.reenter_after(f, [book](const auto&, context&) { book->push_back("ran"); });
                 }};
               }))
                 .id();
  });
  s.in(a, asks(s.book, middle, "x", 1min));
  s.in(mid, [](context&) { throw 1; });  // suspends the child with it
  s.pass(2s);                            // the future is done
  (void)s.heard();
  s.rt.exit(middle, exit_reason::kill());
  EXPECT_EQ(s.heard(), (lines{"got error exited"}));
}

TEST(continuation, that_throws_fails_the_actor) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a,
       [b](context& me) { me.reenter_after(me.call(b.call<question>("x")), [](const auto&, context&) { throw 1; }); });
  EXPECT_EQ(s.heard(), (lines{"a: restarting", "a: started"}));
}

TEST(blocking_work, gives_its_value_or_what_it_threw_as_a_future) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  s.in(a, [](context& me) {
    me.blocking([] { return std::string{"read"}; }).pipe_to(me.id());
    me.blocking([]() -> std::string { throw std::runtime_error{"no disk"}; }).pipe_to(me.id());
  });
  lines heard = s.heard();
  std::ranges::sort(heard);
  EXPECT_EQ(heard, (lines{"a: error exited", "a: text read"}));
  s.in(a, [&](context& me) {
    me.reenter_after(me.blocking([] {}), [&](const result<void>& r, context&) { s.book->push_back(r ? "done" : "?"); });
    me.stop();
  });
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped"})) << "nobody is there to go on";
}

TEST(stop_future, has_the_notice_and_the_name_is_free) {
  stage s;
  const auto a = s.enter("a");
  const auto b = spawn_actor(s.rt, {.name = "bee"}, s.role("b"));
  (void)s.heard();
  s.in(a, [&, b = *b](context& me) {
    me.reenter_after(me.stop_future(b.id()), [&, b](const result<terminated>& r, context& c) {
      EXPECT_EQ(r->who, b.id());
      EXPECT_EQ(r->reason, exit_reason::normal());
      EXPECT_EQ(c.where("bee"), pid{});
      s.book->push_back("done");
    });
  });
  EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped", "done"}));
}

TEST(stop_future, times_out_as_it_is_told) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.world.nodes().front().stick(b.id(), 10s);
  s.in(a, [b, book = s.book](context& me) {
    me.reenter_after(me.stop_future(b, 3s), [book](const result<terminated>& r, context&) {
      book->push_back(r ? "done" : "error " + std::string{to_string(r.error().code())});
    });
  });
  s.pass(2900ms);
  EXPECT_EQ(s.heard(), lines{});
  s.pass(200ms);
  EXPECT_EQ(s.heard(), (lines{"error timeout"}));
  s.pass(10s);
  EXPECT_EQ(s.heard(), (lines{"b: stopping", "b: stopped"})) << "it stops all the same";
}

TEST(continuation, whose_future_is_done_while_the_actor_stops_fails_its_call_with_the_end) {
  stage s;
  const auto a = s.enter("a");
  const auto quiet = spawn_actor(s.rt, props<mute>());
  const auto middle =
      spawn_actor(s.rt, props<behaving>([quiet, book = s.book] {
                    return behaviour{[](const act& m, context& me) { m.what(me); },
                                     [quiet, book](question, context& me) {
                                       const auto f = me.call(quiet.call<question>("?").within(1s));
                                       me.reenter_after(f, [book](const auto&, context&) { book->push_back("ran"); });
                                     }};
                  }));
  pid child;
  s.rt.send(middle.id(), act{[&](context& me) { child = me.spawn(s.role("c")).id(); }});
  s.in(a, asks(s.book, middle.id(), "x", 1min));
  (void)s.heard();
  s.world.nodes().front().stick(child, 3s);
  stop_actor(s.rt, middle.id());
  s.pass(2s);  // the future is done
  EXPECT_EQ(s.heard(), lines{});
  s.pass(2s);
  EXPECT_EQ(s.heard(), (lines{"c: stopping", "c: stopped", "got error exited"}));
}

TEST(continuation, does_not_run_after_a_stop) {
  stage s;
  const auto a = s.enter("a");
  const auto quiet = spawn_actor(s.rt, props<mute>());
  (void)s.heard();
  s.in(a, [&](context& me) {
    me.reenter_after(me.stop_future(me.id(), forever), [](const auto&, context&) { FAIL() << "it was stopped"; });
    me.reenter_after(me.poison_future(pid::from_parts(me.id().node(), 7777, 0), 3s),
                     [](const auto&, context&) { FAIL() << "it was stopped"; });
    me.reenter_after(me.call(quiet.call<question>("x").within(1s)),
                     [](const auto&, context&) { FAIL() << "it was stopped"; });
  });
  s.pass(1min);
  EXPECT_EQ(s.heard(), (lines{"a: stopping", "a: stopped"}));
}

TEST(future, keeps_its_first_answer) {
  stage s;
  const auto a = s.enter("a");
  const auto b = spawn_actor(s.rt, props<behaving>([] {
                               return behaviour{[](question, context& me) {
                                 me.reply(std::string{"first"});
                                 me.reply(std::string{"second"});
                               }};
                             }));
  (void)s.heard();
  s.in(a, asks(s.book, b.id(), "x"));
  s.pass(10s);
  const lines heard = s.heard();
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard[0], "got first");
  EXPECT_EQ(std::ranges::count_if(heard, [](const auto& l) { return l.starts_with("got"); }), 1);
}

TEST(future, wakes_all_that_wait_for_it) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a, [b, book = s.book](context& me) {
    const auto f = me.call(b.call<question>("x"));
    for (const char* who : {"one ", "two ", "three "})
      me.reenter_after(f, [book, who](const auto& r, context&) { book->push_back(who + word(r)); });
    me.reenter_after(f, [f, book](const auto&, context& c) {
      c.reenter_after(f, [book](const auto& r, context&) { book->push_back("late " + word(r)); });
    });
  });
  EXPECT_EQ(s.heard(), (lines{"one x", "two x", "three x", "late x"}));
}

/// Answers when another has answered; what it does then holds on to the future it waits for.
struct clings_to_its_future {
  using protocol = coppice::protocol<question>;
  clings_to_its_future(pid to, std::shared_ptr<int> owned) : to_{to}, owned_{std::move(owned)} {}
  void handle(const question& m, context& me) {
    const auto f = me.call(coppice::call<question>(to_, m).within(forever));
    me.reenter_after(f, [f, owned = owned_](const result<std::string>& r, context& c) { c.reply(word(r)); });
  }

 private:
  pid to_;
  std::shared_ptr<int> owned_;
};
task<> calls(self&, actor_ref<clings_to_its_future> who, std::string* heard) {
  const auto r = co_await who.call<question>("x");
  *heard = word(r);
}

TEST(future, held_by_its_own_continuation_is_released_with_its_actor) {
  for (const bool killed : {true, false}) {
    stage s;
    const auto owned = std::make_shared<int>();
    std::string heard = "nothing";
    const auto silent = spawn_actor(s.rt, props<mute>());
    const auto a = spawn_actor(s.rt, props<clings_to_its_future>(silent.id(), owned));
    s.rt.spawn(calls, a, &heard);
    s.world.settle();
    EXPECT_EQ(heard, "nothing");
    if (killed)
      s.rt.kill(a.id());
    else
      stop_actor(s.rt, a);
    s.world.settle();
    EXPECT_EQ(heard, "error exited");
    stop_actor(s.rt, silent);
    s.world.settle();
    EXPECT_EQ(owned.use_count(), 1);
  }
}

}  // namespace
