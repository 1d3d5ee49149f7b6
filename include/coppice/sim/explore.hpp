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
  std::uint64_t first_seed = 1;  ///< they count up from here
  std::uint64_t seeds = 100;
  /// Every so many seeds one runs twice and must leave the same trace. 0: none.
  std::uint64_t repeat_every = 20;
  /// The command that runs just this property again; `COPPICE_SEED=n ` is put before it.
  std::string replay = "the same test";
};

/// Runs `property` in a world of each seed, or, when the environment variable `COPPICE_SEED` is set, in that one only,
/// with its trace on standard error. The answer is empty when it held for all; otherwise it tells the first seed that
/// failed, what failed, and the command to replay it. A crash says the same on standard error, as the last words of the
/// program. Throws `std::invalid_argument` for a seed that is not a number, and for zero seeds.
[[nodiscard]] std::string explore(const exploration& how, const std::function<void(world&)>& property);

}  // namespace coppice::sim
