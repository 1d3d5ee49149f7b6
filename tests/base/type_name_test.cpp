// Names of types.
// Compiled alone: joined with others, its types would have other names.
#include <gtest/gtest.h>

#include <coppice/base/type_name.hpp>

namespace app {
struct counter {
  struct bump {};
};
template <class T>
struct box {};
}  // namespace app

namespace {

using coppice::type_name;

static_assert(type_name<int>() == "int", "it is known at compile time");

TEST(type_name, is_the_qualified_name_as_the_source_has_it) {
  EXPECT_EQ(type_name<app::counter>(), "app::counter");
  EXPECT_EQ(type_name<app::counter::bump>(), "app::counter::bump");
  EXPECT_EQ(type_name<unsigned char>(), "unsigned char");
}

struct hidden {};
TEST(type_name, does_not_begin_with_an_unnamed_namespace) { EXPECT_EQ(type_name<hidden>(), "hidden"); }

TEST(type_name, includes_template_arguments) { EXPECT_EQ(type_name<app::box<int>>(), "app::box<int>"); }

TEST(type_name, tells_different_types_apart) {
  EXPECT_NE(type_name<app::box<int>>(), type_name<app::box<long>>());
  EXPECT_NE(type_name<int>(), type_name<int*>());
}

}  // namespace
