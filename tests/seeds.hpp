#pragma once
// Properties over many seeds, as tests; and whether the seeds have been where they should.
#include <errno.h>  // NOLINT(modernize-deprecated-headers): program_invocation_name is not in <cerrno>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include <coppice/sim/explore.hpp>

namespace coppice::seeds {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
/// `n`, or `few` under a sanitizer, where a seed takes so much longer.
[[nodiscard]] constexpr std::uint64_t many(std::uint64_t n, std::uint64_t few) { return is_sanitized ? few : n; }

/// By each suite, so far.
inline std::map<std::string, std::uint64_t, std::less<>>& run() {
  static std::map<std::string, std::uint64_t, std::less<>> counts;
  return counts;
}

/// Expects `property` to hold for so many seeds. A failure says how to replay it.
template <class Property>
void hold(std::uint64_t count, Property property, std::uint64_t first = 1) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string{test.test_suite_name()} + "." + test.name();
  const std::string report = sim::explore({.name = name,
                                           .first_seed = first,
                                           .seeds = count,
                                           .replay = std::string{program_invocation_name} + " --gtest_filter=" + name},
                                          [&](sim::world& w) {
                                            ++run()[test.test_suite_name()];
                                            property(w);
                                          });
  EXPECT_TRUE(report.empty()) << report;
}

/// How often branches were reached that are so rare that one might doubt that any seed gets there.
inline std::map<std::string, std::uint64_t, std::less<>>& marks() {
  static std::map<std::string, std::uint64_t, std::less<>> all;
  return all;
}
inline void mark(std::string_view name) {
  const auto found = marks().find(name);
  if (found != marks().end())
    ++found->second;
  else
    marks().emplace(name, 1);
}
/// At the end of a suite: a shard of it has enough seeds to reach them all, unless it is sanitized.
template <class Names>
void expect_marks(const Names& names) {
  if (run()[testing::UnitTest::GetInstance()->current_test_suite()->name()] < 800 || testing::Test::HasFailure())
    return;
  for (const char* name : names) EXPECT_TRUE(marks().contains(name)) << "no seed has reached: " << name;
}

}  // namespace coppice::seeds
