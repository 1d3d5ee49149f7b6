// Messages of timers: they come whatever the mailbox, once they have come they are messages like any others, and they
// end with their actor.
#include <gtest/gtest.h>

#include <algorithm>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

struct tick {};
struct open {};

sim::node& node_of(stage& s) { return s.world.nodes().front(); }

TEST(timer, that_repeats_goes_on_after_its_message_has_met_a_full_mailbox) {
  for (const auto policy : {when_full::drop_newest, when_full::drop_oldest, when_full::sender_waits}) {
    stage s;
    const auto a = s.enter("a", {.mailbox = mailbox{.capacity = 1, .when_full = policy}});
    s.in(a, [](context& me) { (void)me.every(1s, std::string{"tick"}); });
    (void)s.heard();
    s.pass(3500ms);
    EXPECT_EQ(s.heard().size(), 3U);
    node_of(s).stick(a.id(), 2s);
    for (int i = 0; i < 3; ++i) s.tell(a, "fills it");
    s.pass(2s);
    (void)s.heard();
    s.pass(10s);
    const lines heard = s.heard();
    EXPECT_GE(std::ranges::count(heard, "a: text tick"), 9);
  }
}

TEST(timer, that_repeats_stays_in_step_however_late_its_messages_are) {
  stage s;
  std::vector<time_point> at;
  const time_point begin = s.world.now();
  const auto b = spawn_actor(s.rt, props<behaving>([&at] {
                               return behaviour{[](started, context& me) { (void)me.every(2500us, tick{}); },
                                                [&at](tick, context& me) { at.push_back(me.now()); }};
                             }));
  s.pass(1s);
  EXPECT_NEAR(static_cast<double>(at.size()), 400, 1);  // a wheel that ticks once a millisecond does not add up
  node_of(s).stick(b.id(), 103ms);
  s.pass(103ms);
  at.clear();
  s.pass(101ms);
  ASSERT_GE(at.size(), 40U);  // those that were missed do not come all at once
  EXPECT_LE(at.size(), 42U);
  for (const time_point t : at) EXPECT_LT((t - begin) % 2500us, 1100us);
}

/// Can be copied so many times in all.
struct rare {
  explicit rare(int& l) : left{&l} {}
  rare(const rare& other) : left{other.left} {
    if ((*left)-- == 0) throw std::runtime_error{"no more of them"};
  }
  rare(rare&&) = default;
  rare& operator=(const rare&) = default;
  rare& operator=(rare&&) = default;
  ~rare() = default;
  int* left;
};
TEST(timer, whose_message_can_t_be_copied_again_ends_and_the_mail_goes_on) {
  for (const std::size_t capacity : {0U, 10U})
    for (const auto what : {directive::resume, directive::restart}) {
      stage s;
      const auto guardian = one_for_one({.decide = [what](const child_failure&) { return what; }});
      const auto a = s.enter("a", {.guardian = guardian, .mailbox = mailbox{.capacity = capacity}});
      int left = 4;
      s.in(a, [&](context& me) { (void)me.every(1s, rare{left}); });
      s.pass(10s);
      EXPECT_EQ(left, -1) << "it failed once";
      (void)s.heard();
      for (int i = 0; i < 3; ++i) s.tell(a, "x");
      EXPECT_EQ(s.heard(), (lines{"a: x", "a: x", "a: x"})) << capacity << to_string(what);
    }
}

TEST(timer, that_comes_once_comes_through_a_full_mailbox) {
  stage s;
  const auto a = s.enter("a", {.mailbox = mailbox{.capacity = 1}});
  s.in(a, [](context& me) { (void)me.after(1s, std::string{"tick"}); });
  (void)s.heard();
  node_of(s).stick(a.id(), 2s);
  for (int i = 0; i < 3; ++i) s.tell(a, "fills it");
  s.pass(3s);
  const lines heard = s.heard();
  EXPECT_EQ(std::ranges::count(heard, "a: text tick"), 1);
}

/// Starts a timer, puts what comes aside until it is opened, and counts from then on.
class hesitant {
 public:
  using protocol = coppice::protocol<open>;
  hesitant(bool repeats, int& seen) : repeats_{repeats}, seen_{&seen} {}
  void handle(started, context& me) const {
    if (repeats_)
      (void)me.every(1s, tick{});
    else
      (void)me.after(1s, tick{});
  }
  void handle(open, context& me) {
    open_ = true;
    me.unstash_all();
  }
  void handle(any_message m, context& me) {
    if (!open_) return me.stash(std::move(m));
    ++*seen_;
  }

 private:
  bool repeats_;
  int* seen_;
  bool open_ = false;
};

TEST(timer, whose_message_is_stashed_gives_it_back) {
  stage s;
  int seen = 0;
  const auto a = spawn_actor(s.rt, props<hesitant>(false, std::ref(seen)));
  s.pass(2s);
  EXPECT_EQ(seen, 0);
  s.rt.cast<open>(a);
  s.world.settle();
  EXPECT_EQ(seen, 1);
}

TEST(timer, that_repeats_is_still_one_when_its_messages_are_stashed) {
  stage s;
  int seen = 0;
  const auto a = spawn_actor(s.rt, props<hesitant>(true, std::ref(seen)));
  s.pass(4500ms);
  s.rt.cast<open>(a);
  s.world.settle();
  EXPECT_EQ(seen, 4);
  s.pass(10s);
  EXPECT_EQ(seen, 14) << "one a second";
}

TEST(timer, whose_message_is_forwarded_has_nothing_to_do_with_timers_of_the_receiver) {
  stage s;
  const auto receiver = s.enter("a");
  s.in(receiver, [](context& me) { (void)me.after(5s, std::string{"of its own"}); });
  (void)s.heard();
  // Both have the same number, each with its actor.
  (void)spawn_actor(s.rt, props<behaving>([to = receiver.id()] {
                      return behaviour{[](started, context& me) { (void)me.after(1s, std::string{"forwarded"}); },
                                       [to](any_message m, context& me) { me.forward(to, std::move(m)); }};
                    }));
  s.pass(20s);
  EXPECT_EQ(s.heard(), (lines{"a: text forwarded", "a: text of its own"}));
}

TEST(timer, of_an_actor_that_was_killed_or_has_stopped_is_not_a_dead_letter) {
  for (const bool killed : {true, false}) {
    stage s;
    const auto a = s.enter("a");
    s.in(a, [](context& me) {
      (void)me.after(10s, std::string{"too late"});
      (void)me.every(10s, std::string{"too late"});
    });
    if (killed)
      s.rt.kill(a.id());
    else
      stop_actor(s.rt, a);
    s.pass(1s);
    EXPECT_EQ(s.rt.counters().timers, 0U);
    s.pass(30s);
    EXPECT_EQ(s.dead_letters(), 0U);
  }
}

/// Can be copied so many times.
class touchy {
 public:
  explicit touchy(int copies) : left_{std::make_shared<int>(copies)} {}
  touchy(const touchy& other) : left_{other.left_} {
    if (--*left_ < 0) throw std::runtime_error{"one copy too many"};
  }
  touchy(touchy&&) noexcept = default;
  touchy& operator=(const touchy&) = delete;
  touchy& operator=(touchy&&) = delete;
  ~touchy() = default;

 private:
  std::shared_ptr<int> left_;
};

TEST(timer, whose_message_cannot_be_copied_again_fails_its_actor) {
  stage s;
  const auto a = spawn_actor(s.rt, props<behaving>([book = s.book] {
                               return behaviour{[book](started, context& me) {
                                                  book->push_back("started");
                                                  (void)me.every(1s, touchy{6});
                                                },
                                                [book](const touchy&) { book->push_back("tick"); },
                                                [book](restarting) { book->push_back("restarting"); }};
                             }));
  s.pass(20s);
  lines heard = s.heard();
  EXPECT_TRUE(s.rt.alive(a.id()));
  const auto mended = std::ranges::find(heard, "restarting");
  ASSERT_NE(mended, heard.end());
  EXPECT_NE(std::find(heard.begin(), mended, "tick"), mended) << "it has come before";
  EXPECT_NE(std::find(mended, heard.end(), "tick"), heard.end()) << "it comes to the new instance";
  EXPECT_EQ(std::ranges::count(heard, "restarting") + 1, std::ranges::count(heard, "started"));
}

}  // namespace
