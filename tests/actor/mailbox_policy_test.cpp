// Mailboxes with a limit: the order of what one sender sends, what others see of their owner, and who waits.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <latch>
#include <thread>

#include <coppice/supervision/tree.hpp>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

struct numbered {
  int number;
};
struct begin {};
constexpr int early = 100;

struct round_of_mail {
  std::atomic<bool> begun{false};
  std::latch done{1};
  std::vector<int> received;
};
class receiver {
 public:
  using protocol = coppice::protocol<numbered>;
  explicit receiver(round_of_mail& r) : round_{&r} {}
  void handle(started) { round_->begun = true; }
  void handle(numbered m) {
    round_->received.push_back(m.number);
    if (round_->received.size() == early + 1) round_->done.count_down();
  }

 private:
  round_of_mail* round_;
};
/// Sends to its child before that begins, and again when it has begun.
class sender {
 public:
  using protocol = coppice::protocol<begin>;
  explicit sender(round_of_mail& r) : round_{&r} {}
  void handle(begin, context& me) {
    const auto child = me.spawn(props<receiver>(std::ref(*round_)).with({.mailbox = mailbox{.capacity = 1'000'000}}));
    for (int i = 0; i < early; ++i) me.cast<numbered>(child, i);
    // Another worker takes the child up, or none is free: then it begins later.
    for (int i = 0; i < 1'000'000 && !round_->begun; ++i) std::this_thread::yield();
    me.cast<numbered>(child, early);
  }

 private:
  round_of_mail* round_;
};

TEST(mailbox_policy, keeps_the_order_of_a_sender_whose_receiver_begins_meanwhile) {
  std::vector<int> in_order;
  for (int i = 0; i <= early; ++i) in_order.push_back(i);
  std::deque<round_of_mail> rounds;  // longer than the runtime, whatever happens
  runtime rt{{.workers = 2, .level = log_level::off}};
  for (int i = 0; i < 50; ++i) {
    round_of_mail& round = rounds.emplace_back();
    rt.cast<begin>(spawn_actor(rt, props<sender>(std::ref(round))));
    round.done.wait();
    ASSERT_EQ(round.received, in_order) << "in round " << i;
  }
}

/// What somebody sees who looks at the actor and those below it.
tree_node look(stage& s, pid who) {
  const auto seen = std::make_shared<tree_node>();
  s.rt.spawn(
      +[](self& me, pid at, std::shared_ptr<tree_node> into) -> task<> { *into = co_await look_at_tree(me, at); }, who,
      seen);
  s.pass(2s);
  return *seen;
}

TEST(mailbox_policy, does_not_hide_an_actor_that_is_suspended_or_full_from_the_tree) {
  for (const std::size_t capacity : {0U, 10U, 1U}) {
    stage s;
    const auto a = s.enter(
        "a", {.guardian = exponential_backoff({.first = 1h, .cap = 1h}), .mailbox = mailbox{.capacity = capacity}});
    s.in(a, [role = s.role("c")](context& me) { (void)me.spawn({.name = "child"}, role); });
    s.in(a, [](context&) { throw std::runtime_error{"no luck"}; });
    s.tell(a, "waits");  // where there is room for one, it is full now
    s.world.settle();
    (void)s.heard();
    const tree_node seen = look(s, a.id());
    EXPECT_FALSE(seen.silent) << "with room for " << capacity;
    ASSERT_EQ(seen.children.size(), 1U) << "with room for " << capacity;
    EXPECT_FALSE(seen.children[0].silent);
    EXPECT_EQ(s.heard(), lines{}) << "it is suspended still";
  }
}

struct news {
  int number;
};

TEST(mailbox_policy, does_not_let_a_publisher_wait) {
  stage s;
  const auto observer =
      spawn_actor(s.rt, props<behaving>([] {
                          return behaviour{[](started, context& me) { me.subscribe<news>(); }, [](const news&) {}};
                        }).with({.mailbox = mailbox{.capacity = 1, .when_full = when_full::sender_waits}}));
  const auto a = s.enter("a");
  s.world.nodes().front().stick(observer.id(), 1h);
  (void)s.heard();
  s.in(a, [](context& me) {
    for (int i = 0; i < 5; ++i) me.publish(news{i});
  });
  s.tell(a, "goes on");
  EXPECT_EQ(s.heard(), (lines{"a: goes on"}));
}

}  // namespace
