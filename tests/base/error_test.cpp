#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include <coppice/base/error.hpp>

namespace garden {
enum class garden_errc : unsigned char { weeds, timeout };
constexpr std::string_view to_string(garden_errc code) noexcept {
  switch (code) {
    case garden_errc::weeds: return "weeds";
    case garden_errc::timeout: return "timeout";
  }
  return "unknown";
}
}  // namespace garden
template <>
struct coppice::error_category<garden::garden_errc> {
  static constexpr std::string_view name = "garden";
  static constexpr garden::garden_errc last = garden::garden_errc::timeout;
};

namespace {

using coppice::errc;
using coppice::error;
using coppice::result;

TEST(error, every_code_has_a_word_of_its_own) {
  const std::array<std::pair<errc, std::string_view>, 9> words = {{{errc::timeout, "timeout"},
                                                                   {errc::noproc, "noproc"},
                                                                   {errc::noconnection, "noconnection"},
                                                                   {errc::calling_self, "calling_self"},
                                                                   {errc::exited, "exited"},
                                                                   {errc::no_reply, "no_reply"},
                                                                   {errc::name_taken, "name_taken"},
                                                                   {errc::invalid, "invalid"},
                                                                   {errc::stopped, "stopped"}}};
  for (const auto& [code, word] : words) EXPECT_EQ(to_string(code), word);
}

TEST(error, a_bare_code_has_no_text_no_cause_and_is_its_own_root) {
  const error e{errc::timeout};
  EXPECT_EQ(e.code(), errc::timeout);
  EXPECT_EQ(e.text(), "");
  EXPECT_EQ(e.cause(), nullptr);
  EXPECT_EQ(&e.root(), &e);
  EXPECT_EQ(e.to_string(), "timeout");
}

TEST(error, a_chain_prints_from_the_top_to_the_root_on_one_line) {
  const error bottom{errc::noconnection, "node 2 is gone"};
  const error middle{errc::exited, "the store", bottom};
  const error top{errc::timeout, "call to <1.4.0>", middle};
  EXPECT_EQ(top.to_string(), "timeout: call to <1.4.0>: exited: the store: noconnection: node 2 is gone");
  EXPECT_EQ(*top.cause(), middle);
  EXPECT_EQ(top.root(), bottom);
  std::ostringstream out;
  out << top;
  EXPECT_EQ(out.str(), top.to_string());
}

TEST(error, an_error_without_words_in_the_middle_of_a_chain_shows_its_code) {
  const error top{errc::invalid, "", error{errc::stopped}};
  EXPECT_EQ(top.to_string(), "invalid: stopped");
}

TEST(error, is_equal_by_code_and_text_whatever_caused_it) {
  EXPECT_EQ((error{errc::invalid, "x"}), (error{errc::invalid, "x", error{errc::timeout}}));
  EXPECT_EQ((error{errc::invalid, ""}), error{errc::invalid});
  EXPECT_NE((error{errc::invalid, "x"}), (error{errc::invalid, "y"}));
  EXPECT_NE((error{errc::invalid, "x"}), (error{errc::noproc, "x"}));
}

TEST(error, a_copy_outlives_the_original) {
  std::optional<error> first{std::in_place, errc::exited, "a text too long for any small buffer in the string",
                             error{errc::noproc, "the root"}};
  const error copy = *first;
  first.reset();
  EXPECT_EQ(copy.text(), "a text too long for any small buffer in the string");
  EXPECT_EQ(copy.root().text(), "the root");
}

result<int> half_of(int n) {
  if (n % 2 != 0) return coppice::fail(errc::invalid, std::to_string(n) + " is odd");
  return n / 2;
}

TEST(result, is_a_value_or_the_error_that_fail_made) {
  EXPECT_EQ(half_of(8), 4);
  const result<int> none = half_of(7);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), errc::invalid);
  EXPECT_EQ(none.error().text(), "7 is odd");
}

TEST(result, fail_without_words_gives_the_bare_code) {
  const result<void> none = coppice::fail(errc::stopped);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), error{errc::stopped});
  EXPECT_EQ(none.error().to_string(), "stopped");
}

TEST(error_code, a_library_adds_codes_of_its_own) {
  const result<int> none = coppice::fail(garden::garden_errc::weeds, "in bed 3");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), garden::garden_errc::weeds);
  EXPECT_EQ(none.error().code().category(), "garden");
  EXPECT_EQ(none.error().to_string(), "weeds: in bed 3");
  EXPECT_EQ(none.error().code().as<garden::garden_errc>(), garden::garden_errc::weeds);
  EXPECT_EQ(none.error().code().as<errc>(), std::nullopt);
}

TEST(error_code, equal_words_of_two_categories_are_different_codes) {
  const coppice::error_code ours = errc::timeout;
  const coppice::error_code theirs = garden::garden_errc::timeout;
  EXPECT_EQ(ours.word(), theirs.word());
  EXPECT_NE(ours, theirs);
}

TEST(error_code, goes_back_to_its_enumeration_for_a_switch) {
  const error e{errc::capacity};
  EXPECT_EQ(e.code().as<errc>(), errc::capacity);
  EXPECT_EQ(e.code().category(), "coppice");
}

}  // namespace
