// The states of an application, and which may follow which.
#include "application/internal/state.hpp"

#include <gtest/gtest.h>

namespace {

using namespace coppice;
using enum application_state;

TEST(application_states, follow_each_other_in_order_and_end_once) {
  for (const application_state from : {waiting, starting, running, stopping, ended})
    for (const application_state to : {waiting, starting, running, stopping, ended}) {
      const bool next = std::to_underlying(to) == std::to_underlying(from) + 1;
      const bool end = to == ended && from != ended;
      EXPECT_EQ(detail::may_follow(from, to), next || end) << to_string(from) << " -> " << to_string(to);
    }
}

}  // namespace
