#pragma once
/// Running one property over many seeds.
///
///     const auto report = sim::explore({.name = "ledger", .seeds = 2000}, [](sim::world& w) {
///       ...
///       sim::require(balance == 0, "money was lost");
///     });
///     EXPECT_EQ(report, "");
#include <functional>
#include <stdexcept>
#include <string>

#include <coppice/sim/world.hpp>

namespace coppice::sim {

/// A property that did not hold.
class violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws `violation` unless `holds`.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw violation{what};
}

struct exploration {
  std::string name;              ///< of the property
  std::uint64_t first_seed = 1;  ///< the seeds are this number and those that follow it
  std::uint64_t seeds = 100;
  /// Each seed that is a multiple of this number, and a seed from `COPPICE_SEED`, runs twice and must leave the same
  /// trace. 0: no seed runs twice.
  std::uint64_t repeat_every = 20;
  /// The command that runs only this property; the report puts `COPPICE_SEED=n ` before it.
  std::string replay = "the same test";
};

/// Runs `property` in one world for each seed. When the environment variable `COPPICE_SEED` is set, runs that seed
/// only, with its trace on standard error. Returns an empty string if the property held for all seeds; otherwise a
/// report with the first seed that failed, what failed, and the command to replay it. If the program crashes, it prints
/// such a report on standard error. Throws `std::invalid_argument` if `COPPICE_SEED` is not a number or `seeds` is 0.
[[nodiscard]] std::string explore(const exploration& how, const std::function<void(world&)>& property);

}  // namespace coppice::sim
