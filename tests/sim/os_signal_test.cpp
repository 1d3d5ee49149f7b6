// Signals that a simulated machine sends its program.
#include <gtest/gtest.h>

#include "people.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace people;

coppice::os_signals& signals_of(node& n) { return n.rt().host().env().os_signals(); }

TEST(os_signal, reaches_all_who_asked_for_it_in_their_order) {
  std::vector<std::string> heard;
  world w{1};
  node& n = w.add_node();
  const auto first = signals_of(n).subscribe({os_signal::terminate, os_signal::hangup}, [&](os_signal s) {
    heard.push_back("first " + std::string{to_string(s)});
  });
  const auto second = signals_of(n).subscribe(
      {os_signal::terminate}, [&](os_signal s) { heard.push_back("second " + std::string{to_string(s)}); });
  n.raise(os_signal::terminate);
  EXPECT_TRUE(heard.empty()) << "when it comes is up to the seed";
  EXPECT_TRUE(w.run());
  n.raise(os_signal::hangup);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(heard, (std::vector<std::string>{"first SIGTERM", "second SIGTERM", "first SIGHUP"}));
}

TEST(os_signal, is_heard_once_for_each_time) {
  int heard = 0;
  world w{1};
  node& n = w.add_node();
  const auto listening = signals_of(n).subscribe({os_signal::interrupt}, [&](os_signal) { ++heard; });
  n.raise(os_signal::interrupt);
  n.raise(os_signal::interrupt);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(heard, 2);
}

TEST(os_signal, that_nobody_listens_to_ends_the_program) {
  world w{1};
  node& n = w.add_node();
  auto listening = signals_of(n).subscribe({os_signal::interrupt}, [](os_signal) {});
  n.raise(os_signal::interrupt);
  EXPECT_TRUE(w.run());
  EXPECT_TRUE(n.up());
  n.raise(os_signal::terminate);
  EXPECT_TRUE(w.run());
  EXPECT_FALSE(n.up());
  n.restart();
  n.raise(os_signal::interrupt);
  EXPECT_TRUE(w.run());
  EXPECT_FALSE(n.up()) << "the subscription belonged to the program before";
  listening.reset();
}

TEST(os_signal, a_subscriber_that_restarts_the_node_is_not_destroyed_while_it_runs) {
  bool survived = false;
  world w{1};
  node& n = w.add_node();
  auto mine = std::make_shared<int>(7);
  const std::weak_ptr<int> closure{mine};
  const auto listening = signals_of(n).subscribe({os_signal::terminate},
                                                 [restarted = &n, into = &survived, kept = std::move(mine)](os_signal) {
                                                   const std::weak_ptr<int> still{kept};
                                                   bool* const found = into;
                                                   restarted->restart();
                                                   *found = !still.expired();
                                                 });
  n.raise(os_signal::terminate);
  EXPECT_TRUE(w.run());
  EXPECT_TRUE(survived);
  EXPECT_TRUE(closure.expired()) << "the subscription belonged to the program before";
  EXPECT_TRUE(n.up());
}

/// Subscribes, and keeps the subscription in its frame.
task<> restarts_its_node(self& me, node* n, std::vector<std::string>* heard) {
  const auto listening = signals_of(*n).subscribe(
      {os_signal::terminate}, [restarted = n, into = heard, text = std::string(40, 'x')](os_signal) {
        restarted->restart();
        into->push_back(text);
      });
  co_await me.sleep(24h);
}

TEST(os_signal, a_process_that_subscribed_may_be_destroyed_by_its_own_subscription) {
  std::vector<std::string> heard;
  world w{1};
  node& n = w.add_node();
  n.rt().spawn(restarts_its_node, &n, &heard);
  w.settle();
  const auto other = signals_of(n).subscribe({os_signal::terminate}, [&](os_signal) { heard.emplace_back("other"); });
  n.raise(os_signal::terminate);
  w.settle();
  EXPECT_EQ(heard, (std::vector<std::string>{std::string(40, 'x')})) << "the program of the other is gone";
  EXPECT_TRUE(n.up());
}

task<> counts_signals(self& me, node* n, int* heard) {
  const auto listening = signals_of(*n).subscribe({os_signal::terminate}, [heard](os_signal) { ++*heard; });
  co_await me.sleep(24h);
}

TEST(os_signal, does_not_reach_a_subscription_that_ends_while_an_earlier_subscriber_handles_it) {
  int of_process = 0;
  int of_last = 0;
  world w{1};
  node& n = w.add_node();
  pid subscribed;
  const auto first = signals_of(n).subscribe({os_signal::terminate}, [&](os_signal) {
    n.rt().kill(subscribed);
    w.settle();  // as `rt.call` would
  });
  subscribed = n.rt().spawn(counts_signals, &n, &of_process);
  w.settle();
  const auto last = signals_of(n).subscribe({os_signal::terminate}, [&](os_signal) { ++of_last; });
  n.raise(os_signal::terminate);
  w.settle();
  EXPECT_EQ(of_process, 0);
  EXPECT_EQ(of_last, 1);
}

TEST(os_signal, waits_while_the_node_is_paused_and_is_lost_when_it_is_down) {
  int heard = 0;
  world w{1};
  node& n = w.add_node();
  auto listening = signals_of(n).subscribe({os_signal::terminate}, [&](os_signal) { ++heard; });
  n.pause();
  n.raise(os_signal::terminate);
  w.run_for(1s);
  EXPECT_EQ(heard, 0);
  n.resume();
  w.run_for(1s);
  EXPECT_EQ(heard, 1);
  n.raise(os_signal::terminate);
  n.crash();
  n.raise(os_signal::terminate);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(heard, 1);
}

TEST(os_signal, comes_between_other_things_as_the_seed_has_it) {
  std::vector<int> counted_before;
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    seen got;
    std::size_t before = 0;
    world w{seed};
    node& n = w.add_node();
    const auto listening =
        signals_of(n).subscribe({os_signal::terminate}, [&](os_signal) { before = got.numbers.size(); });
    const pid to = n.rt().spawn(listener, &got);
    for (int i = 0; i < 10; ++i) n.rt().send(to, number{i});
    n.raise(os_signal::terminate);
    EXPECT_TRUE(w.run());
    counted_before.push_back(static_cast<int>(before));
  }
  EXPECT_GT(std::ranges::count_if(counted_before, [](int n) { return n == 0; }), 0);
  EXPECT_GT(std::ranges::count_if(counted_before, [](int n) { return n > 0; }), 0);
}

}  // namespace
