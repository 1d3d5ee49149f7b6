// Memory of the pools goes back to the system when nobody needs it, and never while a block of it is in use.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <coppice/runtime/detail/pool.hpp>

namespace {

using namespace coppice::detail;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t span_bytes = std::size_t{64} << 10U;

std::size_t held() { return usage_of_pools().held; }

/// Blocks of one size, marked so that it can be seen whether they were touched.
class blocks {
 public:
  blocks(std::size_t size, std::size_t bytes) : size_{size} {
    for (std::size_t i = 0; i < bytes / size; ++i) {
      all_.push_back(static_cast<unsigned char*>(allocate(size)));
      std::memset(all_.back(), mark(all_.back()), size);
    }
  }
  blocks(const blocks&) = delete;
  blocks& operator=(const blocks&) = delete;
  ~blocks() { keep_one_in(0); }

  void shuffle() { std::shuffle(all_.begin(), all_.end(), std::mt19937{7}); }
  void keep_one_in(std::size_t n) {
    std::vector<unsigned char*> kept;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (n != 0 && i % n == 0)
        kept.push_back(all_[i]);
      else
        release(all_[i], size_);
    }
    all_ = std::move(kept);
  }
  [[nodiscard]] std::size_t count() const { return all_.size(); }
  [[nodiscard]] bool untouched() const {
    return std::ranges::all_of(
        all_, [&](const unsigned char* b) { return std::all_of(b, b + size_, [&](auto c) { return c == mark(b); }); });
  }

 private:
  static unsigned char mark(const void* at) { return static_cast<unsigned char>(std::hash<const void*>{}(at) >> 4U); }
  std::size_t size_;
  std::vector<unsigned char*> all_;
};

void trim_to_the_end() {
  while (trim_pools(trim::gently)) {}
}

class pool_memory : public testing::Test {
 protected:
  void SetUp() override {
    if (!pooled) GTEST_SKIP() << "memory comes from malloc in this build";
    trim_pools(trim::fully);
  }
};

TEST_F(pool_memory, above_the_watermark_goes_back_to_the_system) {
  for (const std::size_t size : {16U, 100U, 400U, 512U}) {
    const std::size_t start = held();
    const std::size_t before = usage_of_pools().given_back;
    { const blocks burst{size, 20 * mib}; }
    EXPECT_GE(held(), 20 * mib) << "a part of it may have been free before";
    trim_pools(trim::fully);
    // This thread keeps two magazines, which are in at most three spans if the blocks come back in order.
    EXPECT_LE(held(), start + pool_watermark + 3 * span_bytes) << size;
    EXPECT_GE(usage_of_pools().given_back, before + 18 * mib) << size;
  }
}

TEST_F(pool_memory, below_the_watermark_stays) {
  { const blocks few{64, pool_watermark / 2}; }
  const std::size_t now = held();
  EXPECT_FALSE(trim_pools(trim::fully));
  EXPECT_EQ(held(), now);
}

TEST_F(pool_memory, goes_back_gently_in_small_portions) {
  const std::size_t start = held();
  { const blocks burst{128, 100 * mib}; }
  trim_pools(trim::gently);  // this call only sees what was needed before
  int calls = 0;
  for (std::size_t last = held(); trim_pools(trim::gently); last = held(), ++calls)
    ASSERT_GE(held() + 4 * mib + pool_watermark, last) << "more than 4 MiB at a time";
  EXPECT_GT(calls, 20);
  EXPECT_LE(held(), start + pool_watermark + 3 * span_bytes);
}

TEST_F(pool_memory, that_is_needed_again_and_again_stays) {
  std::size_t peak = 0;
  { const blocks wave{256, 10 * mib}; }
  for (int i = 0; i < 50; ++i) {
    {
      const blocks wave{256, 10 * mib};
    }
    trim_pools(trim::gently);
    peak = std::max(peak, held());
  }
  const std::size_t given_back = usage_of_pools().given_back;
  for (int i = 0; i < 50; ++i) {
    {
      const blocks wave{256, 10 * mib};
    }
    trim_pools(trim::gently);
  }
  EXPECT_EQ(usage_of_pools().given_back, given_back);
  EXPECT_LE(held(), peak);
}

TEST_F(pool_memory, of_blocks_in_use_stays_and_only_that_around_them) {
  const std::size_t start = held();
  blocks burst{160, 40 * mib};
  burst.keep_one_in(10'000);
  ASSERT_GE(burst.count(), 26U);
  trim_to_the_end();
  EXPECT_TRUE(burst.untouched());
  EXPECT_LE(held(), start + pool_watermark + (burst.count() + 4) * span_bytes);
  const blocks again{160, 40 * mib};
  EXPECT_TRUE(burst.untouched());
  EXPECT_TRUE(again.untouched());
}

TEST_F(pool_memory, that_comes_back_in_any_order_goes_back_except_for_what_threads_keep) {
  const std::size_t start = held();
  {
    blocks burst{160, 60 * mib};
    burst.shuffle();
  }
  trim_to_the_end();
  // A thread keeps at most 128 blocks, each in a different span.
  EXPECT_LE(held(), start + pool_watermark + 2 * magazine * span_bytes);
}

TEST_F(pool_memory, of_one_size_is_used_for_other_sizes) {
  { const blocks burst{112, 4 * mib}; }
  trim_pools(trim::fully);
  const std::size_t start = held();
  const blocks others{448, pool_watermark / 2};
  EXPECT_EQ(held(), start) << "an empty span was not used again";
}

TEST_F(pool_memory, of_an_ended_thread_goes_back) {
  const std::size_t start = held();
  std::jthread{[] { const blocks burst{208, 20 * mib}; }}.join();
  trim_pools(trim::fully);
  EXPECT_LE(held(), start + pool_watermark);
}

TEST_F(pool_memory, of_threads_that_only_free_goes_back) {
  const std::size_t start = held();
  std::jthread{[] {
    std::vector<std::unique_ptr<blocks>> bursts;
    for (int i = 0; i < 50; ++i) bursts.push_back(std::make_unique<blocks>(224, mib / 2));
    for (auto& burst : bursts) std::jthread{[&] { burst.reset(); }}.join();
  }}.join();
  trim_pools(trim::fully);
  EXPECT_LE(held(), start + pool_watermark);
}

TEST_F(pool_memory, is_never_given_back_under_a_thread_that_uses_it) {
  std::mutex mutex;
  std::vector<std::unique_ptr<blocks>> waiting;
  std::atomic<bool> spoiled{false};
  const auto work = [&](unsigned seed) {
    std::mt19937 random{seed};
    for (int step = 0; step < 150; ++step) {
      auto mine = std::make_unique<blocks>(16 * (1 + random() % 32), mib / 4);
      if (random() % 2 == 0) mine->keep_one_in(2 + random() % 50);
      {
        const std::scoped_lock lock{mutex};
        waiting.push_back(std::move(mine));
        std::swap(waiting.back(), waiting[random() % waiting.size()]);
        if (waiting.size() > 20) {  // mostly that of another thread
          mine = std::move(waiting.back());
          waiting.pop_back();
        }
      }
      if (mine != nullptr && !mine->untouched()) spoiled = true;
    }
  };
  std::atomic<bool> over{false};
  std::jthread trimmer{[&] {
    for (int i = 0; !over; ++i) {
      trim_pools(i % 16 == 0 ? trim::fully : trim::gently);
      std::this_thread::yield();
    }
  }};
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 3; ++i) threads.emplace_back(work, i);
  }
  over = true;
  trimmer.join();
  for (const auto& left : waiting) EXPECT_TRUE(left->untouched());
  EXPECT_FALSE(spoiled);
}

}  // namespace
