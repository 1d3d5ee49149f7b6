// After a burst of messages the program takes as much memory as before.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

#include <coppice/runtime/detail/pool.hpp>
#include <coppice/runtime/runtime.hpp>

#include "../support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

template <std::size_t Size>
struct letter {
  std::array<char, Size> text{};
};
struct never {};

task<> reads_nothing(self& me) { co_await me.receive<never>(); }
task<> patience(self& me) { co_await me.sleep(20s); }

template <std::size_t Size>
void burst(runtime& rt) {
  const pid slow = rt.spawn(reads_nothing);
  for (int i = 0; i < 500'000; ++i) rt.send(slow, letter<Size>{});
  EXPECT_GE(rt.counters().pool_bytes, 500'000 * Size);
  rt.kill(slow);
  rt.wait(slow);
}

/// Waits while nothing runs in the runtime.
template <class Condition>
bool comes_true(runtime& rt, Condition condition) {
  const pid limit = rt.spawn(patience);
  while (!condition() && rt.alive(limit)) std::this_thread::yield();
  rt.kill(limit);
  return condition();
}

TEST(burst, gives_its_memory_back_when_its_receiver_is_killed) {
  if (!detail::pooled) GTEST_SKIP() << "memory comes from malloc in this build";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer takes memory for each address";
#endif
  runtime rt{quiet()};
  for (int i = 0; i < 50'000; ++i) rt.spawn(reads_nothing);  // so that a fifth of the start is more than a few pages
  ASSERT_TRUE(comes_true(rt, [&] { return rt.counters().handled >= 50'000; }));
  detail::trim_pools(detail::trim::fully);
  const std::size_t resident = resident_bytes();
  const std::size_t held = rt.counters().pool_bytes;
  const auto small_again = [&] { return rt.counters().pool_bytes <= held * 6 / 5; };
  const auto resident_again = [&] { return resident_bytes() <= resident * 6 / 5; };

  burst<100>(rt);
  EXPECT_TRUE(comes_true(rt, small_again)) << rt.counters().pool_bytes << " of " << held;
  EXPECT_TRUE(comes_true(rt, resident_again)) << resident_bytes() << " of " << resident;
  burst<400>(rt);
  EXPECT_TRUE(comes_true(rt, small_again)) << rt.counters().pool_bytes << " of " << held;
  EXPECT_TRUE(comes_true(rt, resident_again)) << resident_bytes() << " of " << resident;
  EXPECT_GE(rt.counters().pool_bytes_returned, 500'000 * (100 + 400));
}

TEST(burst, gives_its_memory_back_when_its_runtime_ends) {
  if (!detail::pooled) GTEST_SKIP() << "memory comes from malloc in this build";
  {
    runtime rt{quiet()};
    const pid slow = rt.spawn(reads_nothing);
    for (int i = 0; i < 100'000; ++i) rt.send(slow, letter<400>{});
    EXPECT_GE(detail::usage_of_pools().held, 100'000 * 400U);
  }
  EXPECT_LE(detail::usage_of_pools().held, 3 * detail::pool_watermark);
}

}  // namespace
