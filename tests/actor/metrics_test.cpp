// What actors count for the metrics of their runtime.
#include <gtest/gtest.h>

#include <coppice/runtime/metrics.hpp>

#include "studio.hpp"

namespace {

using namespace coppice;
using namespace coppice::actor;
using namespace coppice::studio;

TEST(actor_metrics, count_failures_by_directive) {
  stage s;
  const auto fails_with = [&](directive d) {
    const auto a = s.enter("a", {.guardian = one_for_one({.decide = [d](const child_failure&) { return d; }})});
    s.in(a, [](context&) { throw 1; });
  };
  fails_with(directive::restart);
  fails_with(directive::restart);
  fails_with(directive::resume);
  fails_with(directive::stop);
  (void)s.heard();
  const std::string text = metrics_of(s.rt).text();
  for (const char* line : {"{directive=\"restart\"} 2\n", "{directive=\"resume\"} 1\n", "{directive=\"stop\"} 1\n",
                           "{directive=\"escalate\"} 0\n"})
    EXPECT_NE(text.find(std::string{"coppice_actor_failures_total"} + line), std::string::npos) << line << text;
}

}  // namespace
