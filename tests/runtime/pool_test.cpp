// Memory for envelopes, frames and bodies: blocks go back and forth between threads and none is ever given twice.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <coppice/runtime/detail/pool.hpp>

namespace {

using coppice::detail::allocate;
using coppice::detail::release;

struct held {
  unsigned char* at;
  std::size_t size;
  unsigned char mark;
};

held take(std::size_t size, unsigned char mark) {
  held h{static_cast<unsigned char*>(allocate(size)), size, mark};
  std::memset(h.at, mark, size);
  return h;
}
/// Whether nobody else has written into the block since it was taken.
bool untouched(const held& h) {
  for (std::size_t i = 0; i < h.size; ++i)
    if (h.at[i] != h.mark) return false;
  return true;
}

TEST(pool, blocks_are_aligned_for_everything) {
  for (std::size_t size = 1; size <= 2000; size += 7) {
    void* p = allocate(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignof(std::max_align_t), 0U) << size;
    release(p, size);
  }
}

TEST(pool, live_blocks_never_overlap_whatever_their_sizes) {
  std::mt19937 random{1};
  std::vector<held> live;
  for (int step = 0; step < 20'000; ++step) {
    if (live.size() < 500 && random() % 3 != 0) {
      live.push_back(take(1 + random() % 600, static_cast<unsigned char>(random())));
      continue;
    }
    if (live.empty()) continue;
    std::swap(live[random() % live.size()], live.back());
    ASSERT_TRUE(untouched(live.back())) << "step " << step;
    release(live.back().at, live.back().size);
    live.pop_back();
  }
  for (const held& h : live) {
    EXPECT_TRUE(untouched(h));
    release(h.at, h.size);
  }
}

TEST(pool, blocks_given_back_are_used_again) {
  if (!coppice::detail::pooled) GTEST_SKIP() << "memory comes from malloc in this build";
  std::set<void*> first;
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) first.insert(blocks.emplace_back(allocate(48)));
  for (void* p : blocks) release(p, 48);
  int known = 0;
  for (void*& p : blocks) known += first.contains(p = allocate(48)) ? 1 : 0;
  for (void* p : blocks) release(p, 48);
  EXPECT_EQ(known, 1000);
}

/// Blocks on their way from one thread to the next.
class exchange_place {
 public:
  void put(held h) {
    const std::scoped_lock lock{mutex_};
    waiting_.push_back(h);
  }
  bool get(held& h) {
    const std::scoped_lock lock{mutex_};
    if (waiting_.empty()) return false;
    h = waiting_.back();
    waiting_.pop_back();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<held> waiting_;
};

TEST(pool, blocks_may_be_given_back_on_another_thread) {
  exchange_place place;
  std::atomic<int> spoiled{0};
  const auto work = [&](unsigned seed) {
    std::mt19937 random{seed};
    for (int step = 0; step < 20'000; ++step) {
      if (random() % 2 == 0) place.put(take(1 + random() % 520, static_cast<unsigned char>(random())));
      held h{};
      if (random() % 2 == 0 && place.get(h)) {
        if (!untouched(h)) ++spoiled;
        release(h.at, h.size);
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  }
  for (held h{}; place.get(h);) {
    EXPECT_TRUE(untouched(h));
    release(h.at, h.size);
  }
  EXPECT_EQ(spoiled, 0);
}

TEST(pool, what_an_ended_thread_leaves_is_used_by_the_next) {
  if (!coppice::detail::pooled) GTEST_SKIP() << "memory comes from malloc in this build";
  constexpr std::size_t size = 496;  // a class that nothing else here uses
  std::set<void*> seen;
  for (int i = 0; i < 50; ++i)
    std::jthread{[&] {
      std::vector<void*> mine;
      for (int n = 0; n < 100; ++n) seen.insert(mine.emplace_back(allocate(size)));
      for (void* p : mine) release(p, size);
    }};
  EXPECT_LE(seen.size(), 400U) << "each of the threads took new memory";
}

TEST(pool, a_flow_from_one_thread_to_another_does_not_pile_up) {
  if (!coppice::detail::pooled) GTEST_SKIP() << "memory comes from malloc in this build";
  constexpr std::size_t size = 480;
  constexpr int batch = 256;
  std::set<void*> seen;
  std::vector<void*> handed(batch);
  std::atomic<int> turn{0};  // even: the sender's
  std::jthread receiver{[&] {
    for (int round = 1; round < 200; round += 2) {
      for (int now = turn; now != round; now = turn) turn.wait(now);
      for (void* p : handed) release(p, size);
      ++turn;
      turn.notify_all();
    }
  }};
  for (int round = 0; round < 200; round += 2) {
    for (int now = turn; now != round; now = turn) turn.wait(now);
    for (void*& p : handed) seen.insert(p = allocate(size));
    ++turn;
    turn.notify_all();
  }
  EXPECT_LE(seen.size(), 8U * batch) << "the receiver's blocks never came back to the sender";
}

}  // namespace
