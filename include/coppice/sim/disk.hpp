#pragma once
/// The simulated disk of a machine. It survives crashes of its node, but not everything on it does: what was not synced
/// may be lost, in part or as a whole, as `env/disk.hpp` permits. It can also fail, fill up and be slow.
///
///     node& n = w.add_node("store");
///     n.disk().quality.sync_errors = 0.01;
///     n.disk().crash_at_call(7);         // power fails at the seventh call from now
///     disk& files = n.rt().host().env().disk();
///
/// Paths begin at the root of the disk, which exists and is empty; a path without a leading slash means the same.
/// docs/decisions/0025 describes what a crash leaves.
#include <chrono>
#include <cstdint>
#include <memory>

#include <coppice/env/disk.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice::sim {

class world;
class disk_image;

/// What can go wrong besides crashes; by default nothing does. May be changed at any time.
struct disk_quality {
  double read_errors = 0;     ///< share of reads that fail with `input_output`
  double write_errors = 0;    ///< share of writes and appends that do; a part of the data is written
  double sync_errors = 0;     ///< share of syncs that do. What was written before may be lost, whatever later syncs say
  double power_failures = 0;  ///< share of all calls at which the machine crashes
  std::uint64_t capacity = std::uint64_t{1} << 40U;  ///< bytes; beyond it `no_space`, with a part of the data written
  /// The virtual duration of each call lies between these. It delays the end of a lane's job.
  std::chrono::nanoseconds call_min{0};
  std::chrono::nanoseconds call_max{0};
};

/// Thread safety: one thread, as its world.
class node_disk : public std::enable_shared_from_this<node_disk> {
 public:
  explicit node_disk(world& w);
  ~node_disk();
  node_disk(const node_disk&) = delete;
  node_disk& operator=(const node_disk&) = delete;

  disk_quality quality;

  /// The power of the machine fails at its `n`-th disk call from now; 1 is the next one. The seed decides whether that
  /// call still has its effect; it and all further ones fail. When the code that made the call returns, the node
  /// crashes, and none of its processes runs before. To try all places, count the calls of a run with `calls`.
  void crash_at_call(std::uint64_t n) noexcept { crash_at_ = calls_ + n; }
  /// The number of calls so far.
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
  /// The power has failed at a call; the world is about to crash the node.
  [[nodiscard]] bool lost_power() const noexcept { return lost_power_; }

  // -- for the world
  /// The disk as a program of the node `as` sees it, until `crash`. Afterwards all its calls fail.
  [[nodiscard]] std::unique_ptr<coppice::disk> mount(node_id as);
  /// Forgets what is lost.
  void crash();
  /// The virtual duration of all calls since this was last called.
  [[nodiscard]] std::chrono::nanoseconds take_time() noexcept { return std::exchange(time_, {}); }

 private:
  friend class mounted_disk;
  friend class mounted_file;
  world& world_;
  std::unique_ptr<disk_image> image_;
  node_id node_;
  std::uint64_t mounts_ = 0;  // counts crashes: handles of an older number are dead
  std::uint64_t calls_ = 0;
  std::uint64_t crash_at_ = 0;
  std::chrono::nanoseconds time_{0};
  bool lost_power_ = false;
};

}  // namespace coppice::sim
