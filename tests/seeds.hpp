#pragma once
// Properties over many seeds, as tests; and whether the seeds have been where they should.
#include <errno.h>  // NOLINT(modernize-deprecated-headers): program_invocation_name is not in <cerrno>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

#include <coppice/sim/explore.hpp>

namespace coppice::seeds {

/// A number from an environment variable; `otherwise` when it is not set. Anything that is not a number is refused.
inline double number_from(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets it meanwhile
  if (text == nullptr || *text == 0) return otherwise;
  char* end = nullptr;
  const double n = std::strtod(text, &end);
  if (*end != 0 || !(n >= 0)) throw std::invalid_argument{std::string{variable} + " is not a number: " + text};
  return n;
}

/// How many seeds run in place of `n`: `COPPICE_SEEDS` is a factor, 1 unless set. The presets of the sanitizers, where
/// a seed takes much longer, set a small one; `scripts/long` repeats the programs with other seeds instead.
[[nodiscard]] inline std::uint64_t scaled(std::uint64_t n) {
  static const double factor = number_from("COPPICE_SEEDS", 1);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(n) * factor));
}
/// Seed 1 of a test becomes this one more: `COPPICE_FIRST_SEED`, 0 unless set.
[[nodiscard]] inline std::uint64_t offset() {
  static const auto first = static_cast<std::uint64_t>(number_from("COPPICE_FIRST_SEED", 0));
  return first;
}
/// Whether `n` seeds are all run: only then a test may expect that they reach something rare.
[[nodiscard]] inline bool all_of(std::uint64_t n) {
  return scaled(n) >= n && std::getenv("COPPICE_SEED") == nullptr;  // NOLINT(concurrency-mt-unsafe): as above
}

/// Seeds run by each suite so far.
inline std::map<std::string, std::uint64_t, std::less<>>& run() {
  static std::map<std::string, std::uint64_t, std::less<>> counts;
  return counts;
}

/// Expects `property` to hold for `count` seeds, scaled. A failure says how to replay it.
template <class Property>
void hold(std::uint64_t count, Property property, std::uint64_t first = 1) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string{test.test_suite_name()} + "." + test.name();
  const std::string report = sim::explore({.name = name,
                                           .first_seed = first + offset(),
                                           .seeds = scaled(count),
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
/// At the end of a suite: a shard of it has enough seeds to reach them all, unless `COPPICE_SEEDS` makes them few.
template <class Names>
void expect_marks(const Names& names) {
  if (run()[testing::UnitTest::GetInstance()->current_test_suite()->name()] < 800 || testing::Test::HasFailure())
    return;
  for (const char* name : names) EXPECT_TRUE(marks().contains(name)) << "no seed has reached: " << name;
}

}  // namespace coppice::seeds
