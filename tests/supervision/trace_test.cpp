// What the trace of a world calls supervisors.
#include <gtest/gtest.h>

#include "family.hpp"

namespace {

using namespace coppice;

TEST(supervisor_in_a_trace, is_called_after_its_class_if_it_has_no_name) {
  family f;
  f.world().keep_trace();
  const auto started = start_supervisor(f.rt(), {}, {.children = {f.child("a")}});
  ASSERT_TRUE(started);
  const auto events = f.world().last_events_of("coppice::supervisor", 100);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.front().process, started->id());
  EXPECT_TRUE(events.front().what.starts_with("start")) << events.front().what;
  EXPECT_EQ(events.back().called, "coppice::supervisor");
}

}  // namespace
