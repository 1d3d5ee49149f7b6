// Messages of any type go to any kind of process: what their members are called, and whether they can be copied, is
// their own affair.
#include <gtest/gtest.h>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

/// Its `priority` is an ordinary member, not the priority of the message.
struct ticket {
  int priority;
};
/// A vector says that it can be copied, also when what it holds cannot.
struct parcel {
  std::vector<std::unique_ptr<int>> content;
};
parcel parcel_with(int what) {
  parcel p;
  p.content.push_back(std::make_unique<int>(what));
  return p;
}

/// As an actor and as a server.
class counter {
 public:
  using protocol = coppice::protocol<ticket, parcel>;
  explicit counter(int& sum) : sum_{&sum} {}
  void handle(ticket m) { *sum_ += m.priority; }
  void handle(const parcel& m) { *sum_ += *m.content.front(); }

 private:
  int* sum_;
};
task<> counts(self& me, int* sum) {
  for (;;) {
    const auto m = co_await me.receive<ticket, parcel>();
    if (const auto* t = std::get_if<ticket>(&m))
      *sum += t->priority;
    else
      *sum += *std::get<parcel>(m).content.front();
  }
}

void expect_to_count(stage& s, pid who, const int& sum) {
  s.rt.send(who, ticket{1});
  s.rt.send(who, parcel_with(10));
  s.world.settle();
  EXPECT_EQ(sum, 11);
}

TEST(message_kinds, any_type_is_sent_to_an_actor) {
  stage s;
  int sum = 0;
  const auto a = spawn_actor(s.rt, props<counter>(std::ref(sum)));
  expect_to_count(s, a.id(), sum);
  s.rt.cast<ticket>(a, 1);
  s.rt.cast<parcel>(a, parcel_with(10));
  s.world.settle();
  EXPECT_EQ(sum, 22);
  s.in(s.enter("a"), [a](context& me) {
    me.cast<parcel>(a, parcel_with(100));
    me.send_from(me.id(), a, ticket{1});
  });
  EXPECT_EQ(sum, 123);
}

TEST(message_kinds, any_type_is_sent_to_an_actor_with_a_mailbox_by_priority) {
  stage s;
  int sum = 0;
  const auto a = spawn_actor(s.rt, props<counter>(std::ref(sum)).with({.mailbox = mailbox{.by_priority = true}}));
  expect_to_count(s, a.id(), sum);
}

TEST(message_kinds, any_type_is_sent_to_a_server) {
  stage s;
  int sum = 0;
  const auto server = s.rt.spawn<counter>(std::ref(sum));
  expect_to_count(s, server.id(), sum);
  s.in(s.enter("a"), [server](context&) { server.cast<parcel>(parcel_with(1)); });
  s.world.settle();
  EXPECT_EQ(sum, 12);
}

TEST(message_kinds, any_type_is_sent_to_a_coroutine) {
  stage s;
  int sum = 0;
  expect_to_count(s, s.rt.spawn(counts, &sum), sum);
}

TEST(message_kinds, what_goes_through_an_actor_ref_is_received_by_whatever_process_it_is) {
  stage s;
  int of_server = 0;
  int of_coroutine = 0;
  const actor_ref<counter> server{s.rt.spawn<counter>(std::ref(of_server)).id()};
  const actor_ref<counter> coroutine{s.rt.spawn(counts, &of_coroutine)};
  for (const auto who : {server, coroutine}) {
    s.rt.cast<ticket>(who, 1);
    s.rt.cast<parcel>(who, parcel_with(10));
  }
  s.world.settle();
  EXPECT_EQ(of_server, 11);
  EXPECT_EQ(of_coroutine, 11);
}

TEST(message_kinds, what_goes_through_an_actor_ref_reaches_a_server_and_a_coroutine_behind_a_group) {
  for (const auto how : {routing::round_robin, routing::broadcast}) {
    stage s;
    int of_server = 0;
    int of_coroutine = 0;
    const pid server = s.rt.spawn<counter>(std::ref(of_server)).id();
    const pid coroutine = s.rt.spawn(counts, &of_coroutine);
    const auto group = spawn_actor(s.rt, group_of({server, coroutine}, {.how = how}));
    s.world.settle();
    for (int i = 0; i < 2; ++i) {  // 1, 100 and 10 to the one, in turns, the rest to the other
      s.rt.cast<ticket>(group, 1);
      s.rt.cast<ticket>(actor_ref<counter>{group.id()}, 10);
      s.rt.send(group.id(), ticket{100});
    }
    s.world.settle();
    EXPECT_EQ(of_coroutine, how == routing::broadcast ? 222 : 111);
    EXPECT_EQ(of_server, how == routing::broadcast ? 222 : 111);
    EXPECT_EQ(s.dead_letters(), 0U);
  }
}

struct plain_question {};
struct answers_by_value {
  using protocol = coppice::protocol<plain_question, question>;
  static std::string handle(plain_question) { return "by value"; }
  static std::string handle(const question& m) { return m.text; }
};

TEST(returned_value, answers_a_message_with_a_sender_as_reply_does) {
  stage s;
  const auto a = s.enter("a");
  const auto b = spawn_actor(s.rt, props<answers_by_value>());
  (void)s.heard();
  s.in(a, [b](context& me) {
    me.send_from(me.id(), b, plain_question{});
    me.send_from(me.id(), b, question{"asked"});
    me.cast<plain_question>(b);
  });
  EXPECT_EQ(s.heard(), (lines{"a: text by value", "a: text asked"}));
}

}  // namespace
