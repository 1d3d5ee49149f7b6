// Code that pages of the guide quote.
#include <gtest/gtest.h>

#include <coppice/sim/world.hpp>
#include <coppice/supervision/supervisor.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct database {
  inline static int failures = 0;
  database() {
    if (failures-- > 0) throw std::runtime_error{"locked"};
  }
};
struct web_server {};

supervisor_spec waits_for_its_database() {
  const child_options patient{.backoff = backoff{.first = 200ms, .cap = 10s}, .retry_first_start = true};
  return {.limit = {.restarts = 20, .within = 1min},
          .children = {child<database>().with(patient), child<web_server>()}};
}

TEST(guide_supervision, a_supervisor_waits_for_its_database) {
  database::failures = 3;
  sim::world w{1};
  sim::node& n = w.add_node();
  const auto tree = start_supervisor(n.rt(), waits_for_its_database());
  ASSERT_TRUE(tree) << tree.error();
  EXPECT_EQ(n.rt().call(count_children(*tree))->active, 2U);
}

}  // namespace
