// Limited mailboxes that many threads fill at once.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

constexpr int threads = 4;
constexpr int letters = 20'000;

struct letter_from {
  int sender = 0;
  int number = 0;
};
struct done {};

class reader {
 public:
  reader(std::atomic<std::uint64_t>* received, std::atomic<bool>* in_order)
      : received_{received}, in_order_{in_order} {}
  void handle(letter_from m) {
    int& last = last_[static_cast<std::size_t>(m.sender)];
    if (m.number <= last) *in_order_ = false;
    last = m.number;
    ++*received_;
  }

 private:
  std::atomic<std::uint64_t>* received_;
  std::atomic<bool>* in_order_;
  std::array<int, threads> last_{};
};
/// Puts all letters aside until it is done, then receives them.
task<> collector(self& me, std::atomic<std::uint64_t>* received, std::atomic<bool>* in_order) {
  reader takes{received, in_order};
  for (;;) {
    const auto over = co_await me.receive<done>(1ms);
    if (std::holds_alternative<done>(over)) co_return;
    for (;;) {
      const auto m = co_await me.receive<letter_from>(0s);
      if (std::holds_alternative<timed_out>(m)) break;
      takes.handle(std::get<letter_from>(m));
    }
  }
}

TEST(limited_mailbox, accounts_for_every_message_of_many_threads) {
  for (const when_full what : {when_full::drop_newest, when_full::drop_oldest}) {
    for (const bool selective : {false, true}) {
      runtime rt{{.workers = 2, .level = log_level::off}};
      std::atomic<std::uint64_t> received{0};
      std::atomic<bool> in_order{true};
      const spawn_options options{.mailbox = {.capacity = 16, .when_full = what}};
      const pid who = selective ? *rt.spawn(options, collector, &received, &in_order)
                                : rt.spawn<reader>(options, &received, &in_order)->id();
      {
        std::vector<std::jthread> all;
        for (int sender = 0; sender < threads; ++sender)
          all.emplace_back([&, sender] {
            for (int i = 1; i <= letters; ++i)
              selective ? rt.send(who, letter_from{sender, i}) : rt.cast<letter_from>(ref<reader>{who}, sender, i);
          });
      }
      while (received + rt.counters().dead_letters < std::uint64_t{threads * letters}) std::this_thread::yield();
      EXPECT_TRUE(in_order);
      EXPECT_EQ(received + rt.counters().dead_letters, std::uint64_t{threads * letters});
      EXPECT_GE(received, 16U);
    }
  }
}

}  // namespace
