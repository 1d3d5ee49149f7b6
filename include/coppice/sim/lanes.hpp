#pragma once
/// The lanes of a simulated machine. A lane is a queue: its jobs run in their order, one at a time, each as a step of
/// the world. The work of a job is done at once when the seed chooses it; the lane is then busy for the virtual
/// duration of the job, in which other things happen, and `done` is called at its end. A crash may come before the
/// work, at any of its disk calls (`sim/disk.hpp`), or between the work and `done`.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <coppice/env/lanes.hpp>
#include <coppice/runtime/pid.hpp>
#include <coppice/sim/node_clock.hpp>

namespace coppice::sim {

class world;
class node_disk;
class simulated_lane;

/// The duration of a job lies between these; that of its disk calls is added. May be changed at any time.
struct lane_quality {
  std::chrono::nanoseconds job_min = std::chrono::microseconds{10};
  std::chrono::nanoseconds job_max = std::chrono::milliseconds{1};
};

/// Thread safety: one thread, as its world.
class node_lanes : public std::enable_shared_from_this<node_lanes> {
 public:
  node_lanes(world& w, const node_clock& clocks, node_disk& disk) : world_{w}, clocks_{clocks}, disk_{disk} {}

  lane_quality quality;

  /// The job in progress of each lane with that name, or else its next job, takes `by` longer: a job that hangs.
  void delay(std::string_view name, std::chrono::nanoseconds by);
  /// As `lanes::status`.
  [[nodiscard]] std::vector<lane_status> status() const;

  // -- for the world
  /// The lanes as a program of the node `as` uses them, until `crash`. Afterwards new lanes are closed from the start.
  [[nodiscard]] std::unique_ptr<coppice::lanes> start(node_id as);
  /// The number of lanes whose next job can begin now.
  [[nodiscard]] std::size_t ready() const noexcept;
  /// Does the work of the next job of one of these.
  void begin_job(std::size_t which);
  /// When the next job in progress ends.
  [[nodiscard]] std::optional<time_point> next() const noexcept;
  /// Ends the jobs in progress that are due.
  void advance(time_point now);
  /// Drops all jobs and closes all lanes.
  void crash();

 private:
  friend class simulated_lane;
  friend class started_lanes;
  world& world_;
  const node_clock& clocks_;
  node_disk& disk_;
  node_id node_;
  std::uint64_t starts_ = 0;                             // counts crashes
  std::vector<std::shared_ptr<simulated_lane>> opened_;  // those that are open or have a job in progress
};

}  // namespace coppice::sim
