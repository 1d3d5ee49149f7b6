// A small database on the simulated disk, crashed at random places over many seeds.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <coppice/sim/explore.hpp>

#include "journal.hpp"
#include "seeds.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace std::chrono_literals;

using numbers = std::vector<std::uint64_t>;

/// Writes to a journal through a lane, while its machine crashes again and again, and checks after each start that
/// nothing is lost that was confirmed, and that nothing comes back that was given up.
class crashing_writer {
 public:
  crashing_writer(world& w, mistakes made) : world_{w}, made_{made}, node_{w.add_node("store")} {}

  void live(int lives) {
    for (int i = 0; i < lives; ++i) {
      node_.disk().quality = {
          .power_failures = world_.chance().chance(0.5) ? 0.03 : 0, .call_min = 10us, .call_max = 2ms};
      if (world_.chance().chance(0.3)) node_.disk().quality.sync_errors = 0.05;
      if (world_.chance().chance(0.2)) node_.disk().quality.write_errors = 0.05;
      one_life();
      node_.restart();
    }
    node_.disk().quality = {};
    start();
    (void)world_.run();
    require(opened_, "a healthy disk could not be opened");
  }
  [[nodiscard]] std::size_t confirmed() const noexcept { return confirmed_; }

 private:
  void one_life() {
    start();
    for (int job = 0; job < 12; ++job) {
      if (world_.chance().chance(0.15))
        submit([this] { return journal_->take_snapshot(); }, [] {});
      else
        submit_numbers();
    }
    const auto crash_at = world_.now() + world_.chance().between(0ms, 100ms);
    (void)world_.run_until([&] { return !node_.up() || failed_ || world_.now() >= crash_at; }, 200ms);
  }

  void start() {
    failed_ = opened_ = false;
    lane_ = node_.rt().host().env().lanes().open("journal");
    journal_ = std::make_unique<journal>(node_.rt().host().env().disk(), made_);
    submit([this] { return journal_->open(); },
           [this] {
             check_recovered(journal_->numbers());
             opened_ = true;
           });
  }

  void submit_numbers() {
    numbers more(1 + world_.chance().below(40));
    for (auto& each : more) each = world_.chance().next() >> 1U;
    submit(
        [this, more] {
          for (const auto each : more) attempted_.push_back(each);
          return journal_->add(more);
        },
        [this, n = more.size()] { confirmed_ += n; });
  }

  /// After a job that fails, nothing more is done until the next start: the journal does not know what was written.
  void submit(std::move_only_function<result<void>()> work, std::move_only_function<void()> succeeded) {
    const auto outcome = std::make_shared<std::optional<result<void>>>();
    (void)lane_->submit(
        [this, outcome, work = std::move(work)]() mutable {
          if (!failed_) *outcome = work();
          if (*outcome && !**outcome) failed_ = true;
        },
        [outcome, succeeded = std::move(succeeded)]() mutable {
          if (!*outcome) return;
          if (**outcome) return succeeded();
          require((*outcome)->error().code() != errc::invalid, (*outcome)->error().to_string());
        });
  }

  void check_recovered(const numbers& found) {
    require(found.size() >= confirmed_, "confirmed numbers were lost: " + std::to_string(found.size()) + " of " +
                                            std::to_string(confirmed_) + " are left");
    require(found.size() <= attempted_.size(), "there are numbers that nobody has written");
    for (std::size_t i = 0; i < found.size(); ++i)
      require(found[i] == attempted_[i], "number " + std::to_string(i) + " is not the one that was written");
    // What was recovered is what the program now relies on, and what was not is given up.
    attempted_ = found;
    confirmed_ = found.size();
  }

  world& world_;
  mistakes made_;
  node& node_;
  std::unique_ptr<journal> journal_;
  std::unique_ptr<lane> lane_;
  numbers attempted_;          // all that may be on the disk
  std::size_t confirmed_ = 0;  // so many of them must be
  bool failed_ = false;
  bool opened_ = false;
};

void survives(world& w) {
  crashing_writer writer{w, {}};
  writer.live(5);
  if (writer.confirmed() > 100) seeds::mark("more than 100 numbers survived");
}

TEST(journal_on_a_disk, loses_nothing_that_was_synced_and_detects_torn_ends) {
  seeds::hold(2000, survives);
  if (seeds::all_of(2000)) {
    EXPECT_GT(seeds::marks()["more than 100 numbers survived"], 500U);
  }
}

/// The report of the first seed that finds the mistake. Always the same seeds, so that it does not depend on luck.
std::string found(mistakes made) {
  return explore({.name = "journal", .seeds = 10'000, .repeat_every = 0},
                 [&](world& w) { crashing_writer{w, made}.live(5); });
}

TEST(journal_with_a_mistake, that_does_not_sync_a_snapshot_before_its_rename_is_found) {
  EXPECT_NE(found({.no_sync_of_snapshot = true}), "");
}
TEST(journal_with_a_mistake, that_does_not_sync_the_directory_after_a_rename_is_found) {
  EXPECT_NE(found({.no_sync_of_directory = true}), "");
}
TEST(journal_with_a_mistake, that_does_not_sync_the_directory_of_a_new_log_is_found) {
  EXPECT_NE(found({.no_sync_of_new_log = true}), "");
}
TEST(journal_with_a_mistake, that_has_no_checksums_is_found) { EXPECT_NE(found({.no_checksums = true}), ""); }
TEST(journal_with_a_mistake, that_does_not_sync_the_cut_of_a_torn_end_is_found) {
  EXPECT_NE(found({.no_sync_of_cut = true}), "");
}
TEST(journal_with_a_mistake, that_tries_a_failed_sync_again_is_found) {
  EXPECT_NE(found({.tries_sync_again = true}), "");
}

}  // namespace
