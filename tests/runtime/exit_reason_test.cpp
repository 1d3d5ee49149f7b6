#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <thread>
#include <vector>

#include <coppice/runtime/exit_reason.hpp>

namespace {

using coppice::exit_reason;
using kind = exit_reason::kind;

struct row {
  exit_reason reason;
  kind what;
  std::string_view word;
  bool abnormal;
};

std::vector<row> all_plain_reasons() {
  return {{exit_reason::normal(), kind::normal, "normal", false},
          {exit_reason::shutdown(), kind::shutdown, "shutdown", false},
          {exit_reason::kill(), kind::kill, "kill", true},
          {exit_reason::killed(), kind::killed, "killed", true},
          {exit_reason::noproc(), kind::noproc, "noproc", true},
          {exit_reason::noconnection(), kind::noconnection, "noconnection", true},
          {exit_reason::abandoned(), kind::abandoned, "abandoned", true}};
}

TEST(exit_reason, each_plain_one_has_its_kind_its_word_and_no_details) {
  for (const row& r : all_plain_reasons()) {
    EXPECT_EQ(r.reason.what(), r.what);
    EXPECT_EQ(to_string(r.what), r.word);
    EXPECT_EQ(r.reason.to_string(), r.word);
    EXPECT_EQ(r.reason.text(), "");
    EXPECT_EQ(r.reason.exception_type(), "");
    EXPECT_EQ(r.reason.message(), "");
  }
}

TEST(exit_reason, only_normal_and_shutdown_are_not_abnormal) {
  for (const row& r : all_plain_reasons()) EXPECT_EQ(r.reason.abnormal(), r.abnormal) << r.word;
  EXPECT_FALSE(exit_reason::shutdown("upgrade").abnormal());
  EXPECT_TRUE(exit_reason::error("broken").abnormal());
}

TEST(exit_reason, plain_ones_are_equal_to_themselves_only) {
  const auto all = all_plain_reasons();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j)
      EXPECT_EQ(all[i].reason == all[j].reason, i == j) << all[i].word << " and " << all[j].word;
}

TEST(exit_reason, the_default_is_normal) { EXPECT_EQ(exit_reason{}, exit_reason::normal()); }

TEST(exit_reason, a_shutdown_may_have_a_detail) {
  const auto r = exit_reason::shutdown("upgrade to 1.2");
  EXPECT_EQ(r.what(), kind::shutdown);
  EXPECT_EQ(r.text(), "upgrade to 1.2");
  EXPECT_EQ(r.to_string(), "shutdown: upgrade to 1.2");
  EXPECT_NE(r, exit_reason::shutdown());
  EXPECT_NE(r, exit_reason::shutdown("upgrade to 1.3"));
  EXPECT_EQ(exit_reason::shutdown(""), exit_reason::shutdown());
}

TEST(exit_reason, an_error_tells_exception_text_and_message) {
  const auto r = exit_reason::error("std::runtime_error", "out of luck", "counter::bump");
  EXPECT_EQ(r.what(), kind::error);
  EXPECT_EQ(r.exception_type(), "std::runtime_error");
  EXPECT_EQ(r.text(), "out of luck");
  EXPECT_EQ(r.message(), "counter::bump");
  EXPECT_EQ(r.to_string(), "error: std::runtime_error: out of luck (handling counter::bump)");
  EXPECT_EQ(exit_reason::error("full").to_string(), "error: full");
  EXPECT_EQ(exit_reason::error("int", "", "").to_string(), "error: int");
}

TEST(exit_reason, errors_are_equal_when_all_their_parts_are) {
  const auto r = exit_reason::error("t", "w", "m");
  EXPECT_EQ(r, exit_reason::error("t", "w", "m"));
  EXPECT_NE(r, exit_reason::error("x", "w", "m"));
  EXPECT_NE(r, exit_reason::error("t", "x", "m"));
  EXPECT_NE(r, exit_reason::error("t", "w", "x"));
  EXPECT_NE(exit_reason::error("upgrade"), exit_reason::shutdown("upgrade"));
}

TEST(exit_reason, copies_share_the_text_and_outlive_the_original) {
  exit_reason copy;
  {
    const auto first = exit_reason::error("a text too long for any small buffer of a string");
    copy = first;
    EXPECT_EQ(copy.text().data(), first.text().data());
  }
  EXPECT_EQ(copy.text(), "a text too long for any small buffer of a string");
  exit_reason& same = copy;
  copy = same;
  EXPECT_EQ(copy.what(), kind::error);
}

TEST(exit_reason, one_that_was_moved_from_is_normal) {
  auto first = exit_reason::error("w");
  const exit_reason second = std::move(first);
  EXPECT_EQ(second, exit_reason::error("w"));
  EXPECT_EQ(first, exit_reason::normal());  // NOLINT(bugprone-use-after-move): that is the point
}

TEST(exit_reason, is_one_word_wide) { EXPECT_EQ(sizeof(exit_reason), sizeof(void*)); }

TEST(exit_reason, copies_may_be_made_and_dropped_on_many_threads) {
  const auto shared = exit_reason::error("a text that all threads look at");
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([mine = shared] {
        for (int i = 0; i < 2000; ++i) {
          exit_reason copy = mine;
          const exit_reason moved = std::move(copy);
          EXPECT_EQ(moved.text(), "a text that all threads look at");
        }
      });
  }
  EXPECT_EQ(shared.text(), "a text that all threads look at");
}

TEST(exit_reason, prints_itself) {
  std::ostringstream out;
  out << exit_reason::shutdown("x");
  EXPECT_EQ(out.str(), "shutdown: x");
}

TEST(exit_with, carries_its_reason_as_an_exception) {
  const coppice::exit_with thrown{exit_reason::shutdown("done")};
  EXPECT_EQ(thrown.reason(), exit_reason::shutdown("done"));
  EXPECT_STREQ(thrown.what(), "coppice::exit_with");
}

}  // namespace
