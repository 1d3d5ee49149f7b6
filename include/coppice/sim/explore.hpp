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
#include <vector>

#include <coppice/sim/world.hpp>

namespace coppice::sim {

/// A property that did not hold.
class violation : public std::runtime_error {
 public:
  explicit violation(const std::string& what, std::vector<std::string> concerned = {})
      : std::runtime_error{what}, concerned_{std::move(concerned)} {}
  /// Whose events the report of `explore` shows, as in `world::last_events_of`. Empty: those of everybody.
  [[nodiscard]] const std::vector<std::string>& concerned() const noexcept { return concerned_; }

 private:
  std::vector<std::string> concerned_;
};

/// Throws `violation` unless `holds`.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw violation{what};
}
/// The same, and says which processes or nodes it is about: `require(ok, "a number was lost", {"writer", "store"})`.
inline void require(bool holds, const std::string& what, std::vector<std::string> concerned) {
  if (!holds) throw violation{what, std::move(concerned)};
}

struct exploration {
  std::string name;              ///< of the property
  std::uint64_t first_seed = 1;  ///< the seeds are this number and those that follow it
  std::uint64_t seeds = 100;
  /// Each seed that is a multiple of this number, and a seed from `COPPICE_SEED`, runs twice, the second time with a
  /// trace, and must leave the same hash. 0: no seed runs twice.
  std::uint64_t repeat_every = 20;
  /// The command that runs only this property; the report puts `COPPICE_SEED=n ` before it.
  std::string replay = "the same test";
  /// The report shows at most so many of the last events for each of those concerned, or of the run. A seed that fails
  /// runs once more for them; 0: it does not.
  std::size_t events = 50;
};

/// Runs `property` in one world for each seed. When the environment variable `COPPICE_SEED` is set, runs that seed
/// only, with its trace on standard error. Returns an empty string if the property held for all seeds; otherwise a
/// report with the first seed that failed, what failed, the command to replay it, and the last events before the
/// failure. If the program crashes, it prints such a report, without events, on standard error. Throws
/// `std::invalid_argument` if `COPPICE_SEED` is not a number or `seeds` is 0.
[[nodiscard]] std::string explore(const exploration& how, const std::function<void(world&)>& property);

}  // namespace coppice::sim
