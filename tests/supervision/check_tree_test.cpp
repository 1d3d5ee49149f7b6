// A tree is checked as a whole, before anything is started.
#include <gtest/gtest.h>

#include <coppice/supervision/dynamic_supervisor.hpp>
#include <coppice/supervision/partition_supervisor.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

std::vector<std::string> faults_of(const supervisor_spec& spec) {
  std::vector<std::string> texts;
  for (const spec_fault& f : find_faults(spec)) texts.push_back(f.to_string());
  return texts;
}

TEST(check_tree, names_the_faults_of_nested_supervisors_with_their_path) {
  family f;
  supervisor_spec inner{.limit = {.restarts = -1}, .children = {f.child("cache", {.shutdown = -1s})}};
  supervisor_spec middle{.children = {child<supervisor>(inner).with({.id = "inner"}), f.child("x"), f.child("x")}};
  const supervisor_spec top{.limit = {.within = 0s},
                            .children = {child<supervisor>(middle).with({.id = "middle"}), f.child("ok")}};
  EXPECT_EQ(faults_of(top), (std::vector<std::string>{
                                "limit.within is 0s; it must be more than 0",
                                "child 'middle/inner': limit.restarts is -1; it must not be negative",
                                "child 'middle/inner/cache': shutdown is negative: -1s",
                                "child 'middle': two children have the id 'x'; give one of them another id with "
                                ".with({.id = \"...\"})",
                            }));
  const auto checked = check(top);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().text().find("4 faults: limit.within"), 0U) << checked.error();
}

TEST(check_tree, looks_into_partitions_and_dynamic_supervisors) {
  family f;
  const partitions shards{2};
  const supervisor_spec top{
      .children = {
          child<supervisor>(partition_supervisor(shards, [&](std::size_t) { return f.child("s", {.shutdown = -1s}); }))
              .with({.id = "shards"}),
          child<dynamic_supervisor>(dynamic_supervisor_spec{.limit = {.restarts = -2}}).with({.id = "pool"})}};
  EXPECT_EQ(faults_of(top), (std::vector<std::string>{
                                "child 'shards/0': shutdown is negative: -1s",
                                "child 'shards/1': shutdown is negative: -1s",
                                "child 'pool': limit.restarts is -2; it must not be negative",
                            }));
}

child_spec with_two_of_the_same_id(family& f) {
  return child<supervisor>(supervisor_spec{.children = {f.child("x"), f.child("x")}}).with({.id = "sub"});
}

TEST(check_tree, is_done_by_a_supervisor_before_it_starts_its_first_child) {
  family f;
  const auto started = f.start({.children = {f.child("a"), with_two_of_the_same_id(f)}});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), errc::duplicate_id);
  EXPECT_EQ(f.book.take(), lines{});
}

TEST(check_tree, is_done_by_an_upgrade) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a")}}));
  const auto upgraded = f.ask(upgrade(f.tree, {.children = {f.child("a"), with_two_of_the_same_id(f)}}));
  ASSERT_FALSE(upgraded);
  EXPECT_EQ(upgraded.error().code(), errc::duplicate_id);
  EXPECT_EQ(f.state(), "a:running") << "nothing has changed";
}

TEST(check_tree, is_done_for_each_child_that_is_added) {
  family f;
  ASSERT_TRUE(f.start({}));
  EXPECT_EQ(f.ask(start_child(f.tree, with_two_of_the_same_id(f))).error().code(), errc::duplicate_id);
  EXPECT_EQ(f.state(), "");
  const auto pool = start_dynamic_supervisor(f.rt());
  ASSERT_TRUE(pool);
  EXPECT_EQ(f.ask(start_child(*pool, with_two_of_the_same_id(f))).error().code(), errc::duplicate_id);
}

struct never_asked {
  static supervisor_spec init() {
    ADD_FAILURE() << "init runs only in a new supervisor";
    return {};
  }
};

TEST(check_tree, does_not_run_the_init_of_a_supervisor) {
  EXPECT_TRUE(check(supervisor_spec{.children = {child<never_asked>()}}));
}

TEST(check_tree, of_a_sensible_tree_finds_nothing) {
  family f;
  supervisor_spec inner{.children = {f.child("cache")}};
  EXPECT_TRUE(check(supervisor_spec{.children = {child<supervisor>(inner).with({.id = "inner"}), f.child("b")}}));
}

TEST(describe_child, tells_supervisors_servers_and_partitions_apart) {
  family f;
  EXPECT_EQ(describe(child<supervisor>(supervisor_spec{})).kind, "supervisor");
  EXPECT_EQ(describe(child<dynamic_supervisor>()).kind, "dynamic supervisor");
  EXPECT_EQ(describe(child<never_asked>()).kind, "supervisor");
  const partitions shards{2};
  const supervisor_spec spec = partition_supervisor(shards, [&](std::size_t) { return f.child("s"); });
  EXPECT_EQ(describe(spec.children[1]).facts.back(), (fact{"partition", "1"}));
}

TEST(describe_child, is_part_of_what_a_supervisor_reports) {
  family f;
  ASSERT_TRUE(f.start({.children = {f.child("a"), f.child("once", {.restart = restart::temporary})}}));
  EXPECT_EQ(describe(*f.ask(which_child(f.tree, "a"))).kind, "server");
  EXPECT_EQ(describe(*f.ask(which_child(f.tree, "once"))).kind, "unknown") << "its start is not kept";
}

}  // namespace
