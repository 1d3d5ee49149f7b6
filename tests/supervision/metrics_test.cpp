// What supervisors count for the metrics of their runtime.
#include <gtest/gtest.h>

#include <coppice/runtime/metrics.hpp>

#include "family.hpp"

namespace {

using namespace coppice;

bool has(family& f, const std::string& line) {
  return metrics_of(f.rt()).text().find("\n" + line + "\n") != std::string::npos;
}

TEST(supervision_metrics, count_restarts_by_strategy_and_reason) {
  family f;
  ASSERT_TRUE(f.start({.strategy = strategy::one_for_all,
                       .limit = {.restarts = 10, .within = 5s},
                       .children = {f.child("a"), f.child("b"), f.child("c")}}));
  EXPECT_TRUE(has(f, "coppice_children 3"));
  f.crash("b");
  f.rt().kill(f.book.pids["a"]);
  f.settle();
  EXPECT_TRUE(has(f, "coppice_restarts_total{reason=\"error\",strategy=\"one_for_all\"} 1"));
  EXPECT_TRUE(has(f, "coppice_restarts_total{reason=\"killed\",strategy=\"one_for_all\"} 1"));
  EXPECT_TRUE(has(f, "coppice_restarts_total{reason=\"shutdown\",strategy=\"one_for_all\"} 4")) << "their siblings";
  EXPECT_TRUE(has(f, "coppice_restarts_total{reason=\"error\",strategy=\"one_for_one\"} 0"));
  EXPECT_TRUE(has(f, "coppice_children 3"));
}
TEST(supervision_metrics, do_not_count_a_start_that_is_refused) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 10, .within = 5s}, .children = {f.child("a"), f.child("b")}}));
  f.book.starts["a"] = {"refuse", "ok"};
  f.crash("a");
  EXPECT_TRUE(has(f, "coppice_restarts_total{reason=\"error\",strategy=\"one_for_one\"} 1"));
}
TEST(supervision_metrics, are_not_disturbed_by_a_user_who_wants_their_names) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 10, .within = 5s}, .children = {f.child("a")}}));
  EXPECT_THROW((void)metrics_of(f.rt()).gauge({.name = "coppice_restarts"}), std::invalid_argument);
  f.crash("a");
  EXPECT_EQ(f.state(), "a:running");
  EXPECT_TRUE(has(f, "coppice_restarts_total{reason=\"error\",strategy=\"one_for_one\"} 1"));
}
TEST(supervision_metrics, count_supervisors_that_give_up) {
  family f;
  ASSERT_TRUE(f.start({.limit = {.restarts = 0, .within = 5s}, .children = {f.child("a")}}));
  f.crash("a");
  EXPECT_TRUE(f.ended());
  EXPECT_TRUE(has(f, "coppice_supervisors_gave_up_total 1"));
  EXPECT_TRUE(has(f, "coppice_children 0"));
}

}  // namespace
