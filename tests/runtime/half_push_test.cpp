// A sender that was interrupted in the middle of its push: the receiver can't see the envelope yet, nor those behind
// it. The tests do both halves of such a push by hand, in processes of the simulation.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/world.hpp>

namespace {

using namespace coppice;
using namespace coppice::detail;

struct note {
  int n = 0;
};

struct half_push {
  envelope* before = nullptr;
  envelope* pushed = nullptr;

  void begin(slot& to, int n) {
    pushed = make_letter<note>(plain<note>, n);
    pushed->tag = envelope::tag_of(to.serial(), signal::message);
    before = to.mail.tail.exchange(pushed);
  }
  void finish() const { before->next.store(pushed); }
};

/// Handles notes. During the first one somebody begins to send the second.
struct receiver {
  using protocol = coppice::protocol<note>;
  receiver(pid other, half_push& push, std::vector<int>& seen) : other_{other}, push_{&push}, seen_{&seen} {}
  void handle(note m, self& me) const {
    seen_->push_back(m.n);
    if (push_->before != nullptr) return;
    push_->begin(me.process(), 2);
    me.send(other_, note{});
  }

 private:
  pid other_;
  half_push* push_;
  std::vector<int>* seen_;
};

/// Lets others run before it finishes the push.
task<> finishes(self& me, const half_push* push) {
  (void)co_await me.receive<note>();
  for (int i = 0; i < 5; ++i) co_await me.yield();
  push->finish();
}

TEST(half_done_push, does_not_repeat_the_message_in_front_of_it) {
  sim::world w{1};
  runtime& rt = w.add_node().rt();
  half_push push;
  std::vector<int> seen;
  const pid other = rt.spawn(finishes, &push);
  const auto who = rt.spawn<receiver>(other, std::ref(push), std::ref(seen));
  rt.cast<note>(who, 1);
  ASSERT_TRUE(w.settle());
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
  EXPECT_EQ(rt.info(who.id())->handled, 3U) << "its start and two messages, each counted once";
}

}  // namespace
