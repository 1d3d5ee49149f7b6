// The forward declarations of every library agree with its definitions; otherwise this file does not compile.
#include <gtest/gtest.h>

#include <type_traits>

#include <coppice/actor/fwd.hpp>
#include <coppice/application/fwd.hpp>
#include <coppice/base/fwd.hpp>
#include <coppice/behaviour/fwd.hpp>
#include <coppice/coppice.hpp>
#include <coppice/env/fwd.hpp>
#include <coppice/runtime/fwd.hpp>
#include <coppice/sim/explore.hpp>
#include <coppice/sim/fwd.hpp>
#include <coppice/sim/world.hpp>
#include <coppice/spec/fwd.hpp>
#include <coppice/supervision/fwd.hpp>

TEST(forward_declarations, agree_with_the_definitions) {
  EXPECT_TRUE(std::is_class_v<coppice::child_spec>);
  EXPECT_TRUE(std::is_class_v<coppice::actor::context>);
  EXPECT_TRUE(std::is_class_v<coppice::sim::world>);
}
