// Actors that are notified when no message has arrived for some time.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

TEST(receive_timeout, comes_when_nothing_does_and_again_until_it_is_cancelled) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  s.in(a, [](context& me) { me.set_receive_timeout(2s); });
  s.pass(1500ms);
  s.tell(a, "x");
  s.pass(1500ms);
  EXPECT_EQ(s.heard(), (lines{"a: x"}));
  s.pass(600ms);
  EXPECT_EQ(s.heard(), (lines{"a: receive timeout"}));
  s.pass(2s);
  EXPECT_EQ(s.heard(), (lines{"a: receive timeout"}));
  s.in(a, [](context& me) { me.cancel_receive_timeout(); });
  s.pass(1min);
  EXPECT_EQ(s.heard(), lines{});
  s.in(a, [](context& me) { EXPECT_THROW(me.set_receive_timeout(0s), std::invalid_argument); });
}

TEST(receive_timeout, is_postponed_by_messages_to_a_behaviour) {
  stage s;
  const auto a =
      spawn_actor(s.rt, props<behaving>([book = s.book] {
                    return behaviour{[](started, context& me) { me.set_receive_timeout(2s); },
                                     [book](const note& m, context&) { book->push_back(m.text); },
                                     [book](receive_timeout, context&) { book->push_back("receive timeout"); }};
                  }));
  s.pass(1500ms);
  s.rt.send(a.id(), note{"x"});
  s.pass(1500ms);
  EXPECT_EQ(s.heard(), (lines{"x"}));
  s.pass(600ms);
  EXPECT_EQ(s.heard(), (lines{"receive timeout"}));
}

TEST(receive_timeout, is_not_postponed_by_marked_messages_whatever_their_form) {
  stage s;
  const auto a = s.enter("a");
  const auto b = s.enter("b");
  (void)s.heard();
  s.in(a, [](context& me) { me.set_receive_timeout(2s); });
  s.in(b, [a](context& me) {
    me.cast<whisper>(a);
    me.send_from(me.id(), a, whisper{});
  });
  s.pass(1500ms);
  s.in(b, [a](context& me) { me.send_from(me.id(), a, whisper{}); });
  s.pass(600ms);
  EXPECT_EQ(s.heard(), (lines{"a: whisper", "a: whisper", "a: whisper", "a: receive timeout"}));
}

TEST(receive_timeout, does_not_round_to_seconds) {
  for (const std::chrono::nanoseconds time : {std::chrono::nanoseconds{500ms}, {1min}}) {
    stage s;
    const auto a = s.enter("a");
    s.in(a, [time](context& me) { me.set_receive_timeout(time); });
    (void)s.heard();
    s.pass(time - 1ms);
    EXPECT_EQ(s.heard(), lines{});
    s.pass(2ms);
    EXPECT_EQ(s.heard(), (lines{"a: receive timeout"}));
  }
}

TEST(receive_timeout, ends_with_the_instance) {
  stage s;
  const auto a = s.enter("a");
  (void)s.heard();
  s.in(a, [](context& me) { me.set_receive_timeout(2s); });
  s.in(a, [](context&) { throw 1; });
  (void)s.heard();
  s.pass(1min);
  EXPECT_EQ(s.heard(), lines{});
}

TEST(receive_timeout, set_in_the_handler_of_an_end_holds) {
  stage s;
  const auto b = s.enter("b");
  const auto a = spawn_actor(s.rt, props<behaving>([b, book = s.book] {
                               return behaviour{[b](started, context& me) { me.watch(b); },
                                                [](const terminated&, context& me) { me.set_receive_timeout(1s); },
                                                [book](receive_timeout, context& me) {
                                                  book->push_back("timeout");
                                                  me.cancel_receive_timeout();
                                                }};
                             }));
  (void)s.heard();
  stop_actor(s.rt, b.id());
  s.pass(5s);
  EXPECT_EQ(s.heard().back(), "timeout");
  EXPECT_TRUE(s.rt.alive(a.id()));
}

}  // namespace
