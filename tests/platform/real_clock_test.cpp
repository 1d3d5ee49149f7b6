// The clocks of this machine.
#include <gtest/gtest.h>

#include <coppice/env/environment.hpp>

namespace {

using namespace coppice;

TEST(real_clock, boot_time_is_monotonic_and_never_behind_monotonic_time) {
  coppice::clock& c = real_environment()->clock();
  boot_time last = c.boot();
  for (int i = 0; i < 1000; ++i) {
    const time_point awake = c.now();
    const boot_time next = c.boot();
    EXPECT_GE(next, last);
    EXPECT_GE(next.time_since_epoch(), awake.time_since_epoch()) << "suspends only add to it";
    last = next;
  }
}

}  // namespace
