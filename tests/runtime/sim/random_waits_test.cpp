// Random programs that wait for promises, operations, blocking work and work in lanes, on machines with disks and
// clocks of their own, with faults of all kinds at every point. What must hold:
//   - every wait ends exactly once, with a value, an error or a timeout, and each of them for its reason;
//   - a frame is destroyed exactly once, and not before the operation or job that uses it is over;
//   - after a crash the disk has all that was synced, and nothing that was never written;
//   - nothing is left at the end: no process, timer, job, frame or promise.
// random_waits.hpp has what is awaited, random_waiters.hpp the processes and machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>

#include "freezes.hpp"
#include "random_waiters.hpp"

namespace {

using namespace coppice;
using namespace coppice::random_waits;

constexpr std::uint64_t seeds_per_block = 500;
constexpr std::uint64_t blocks = 10;

/// Branches so rare that one might doubt that any seed gets there. A run of many seeds has been in all of them.
constexpr std::array expected_marks{
    "a frozen process did not run",
    "a lane was replaced",
    "a node was restarted",
    "a spawn failed",
    "a stuck process was abandoned",
    "disk: failed",
    "disk: full",
    "disk: synced",
    "job: dropped",
    "job: threw",
    "job: timeout before it began",
    "job: timeout while it ran",
    "job: value",
    "operation: dropped",
    "operation: error",
    "operation: timeout",
    "operation: value",
    "operation: value after its limit",
    "promise: dropped",
    "promise: error",
    "promise: timeout",
    "promise: value",
    "the power of a node failed",
};

class run {
 public:
  explicit run(sim::world& w) : world_{w}, shared_{w} {}
  run(const run&) = delete;
  run& operator=(const run&) = delete;
  /// The frames tell `shared_` when they are destroyed.
  ~run() {
    for (sim::node& n : world_.nodes()) n.crash();
    while (!shared_.nothing_outside()) shared_.resolve_outside(1);
  }

  void go_wild();
  void calm_down();
  void expect_nothing_left();
  void expect_disks_whole();

 private:
  [[nodiscard]] sim::dice& dice() { return shared_.dice; }
  void begin(machine& m);
  void spawn_workers(machine& m);
  void spawn_helper(machine& m);
  void fault(machine& m);
  void fault_of_node(machine& m);
  void fault_of_disk(sim::node& n);
  void fault_of_clocks(sim::node& n);
  void fault_of_process(machine& m);
  [[nodiscard]] pid someone_at(machine& m);
  [[nodiscard]] std::vector<pid> waiting() const;

  sim::world& world_;
  play shared_;
  std::deque<machine> machines_;
  std::vector<pid> workers_;
  std::vector<pid> stuck_;
  std::map<node_id, random_freezes> frozen_;
};

// ---- playing

void run::begin(machine& m) {
  m.begin();
  spawn_helper(m);
  spawn_workers(m);
}

void run::spawn_helper(machine& m) try {
  m.helper = m.node().rt().spawn(helper, &shared_);
} catch (const std::bad_alloc&) {
  m.helper = {};  // promises sent there are dropped
}

void run::spawn_workers(machine& m) try {
  for (std::uint64_t n = 2 + dice().below(5); n != 0; --n)
    workers_.push_back(m.node().rt().spawn(worker, &shared_, &m, static_cast<int>(5 + dice().below(40))));
} catch (const std::bad_alloc&) {
  mark("a spawn failed");
}

void run::go_wild() {
  for (std::uint64_t n = 1 + dice().below(2); n != 0; --n) {
    sim::node& added = world_.add_node({}, {.stall_after = 20ms, .processes = 1U << 10U, .level = log_level::off},
                                       {.offset = dice().between(0h, 3h),
                                        .rate = dice().chance(0.5)   ? 1
                                                : dice().chance(0.5) ? 0.5
                                                                     : 2});
    machines_.emplace_back(shared_, added);
  }
  for (machine& m : machines_) begin(m);
  for (std::uint64_t phases = 20 + dice().below(60); phases != 0; --phases) {
    const auto how_long = dice().below(10);
    world_.run_for(dice().between(0ns, how_long < 6 ? 1ms : how_long < 9 ? 10ms : 60ms));
    shared_.check();
    shared_.resolve_outside(dice().chance(0.5) ? 0.2 : 0);
    fault(machines_[dice().below(machines_.size())]);
  }
}

pid run::someone_at(machine& m) {
  std::vector<pid> here;
  for (const pid p : workers_)
    if (p.node() == m.node().id() && m.node().rt().alive(p)) here.push_back(p);
  return here.empty() ? pid{} : here[dice().below(here.size())];
}

// ---- faults

void run::fault(machine& m) {
  sim::node& n = m.node();
  if (!n.up()) {
    if (n.disk().calls() != 0) mark("the power of a node failed");
    if (dice().chance(0.5)) return;
    n.restart();
    mark("a node was restarted");
    return begin(m);
  }
  switch (dice().below(12)) {
    case 0: return fault_of_node(m);
    case 1: return fault_of_disk(n);
    case 2: return fault_of_clocks(n);
    case 3: return n.lanes().delay(dice().chance(0.5) ? "journal" : "other", dice().between(0ms, 50ms));
    case 4: mark("a lane was replaced"); return m.replace_lane();
    case 5: return spawn_workers(m);
    default: return fault_of_process(m);
  }
}

void run::fault_of_node(machine& m) {
  sim::node& n = m.node();
  if (n.paused()) return n.resume();
  switch (dice().below(4)) {
    case 0: return n.crash();
    case 1: return n.pause();
    case 2:
      n.restart();
      mark("a node was restarted");
      return begin(m);
    default: world_.fail_at("spawn.allocate", dice().chance(0.5) ? 0.3 : 0);
  }
}

void run::fault_of_disk(sim::node& n) {
  n.disk().quality = {};
  sim::disk_quality& q = n.disk().quality;
  if (dice().chance(0.4)) q.power_failures = 0.05;
  if (dice().chance(0.4)) q.write_errors = 0.2;
  if (dice().chance(0.4)) q.sync_errors = 0.2;
  if (dice().chance(0.2)) q.read_errors = 0.2;
  if (dice().chance(0.3)) q.capacity = 512 + dice().below(4096);
  if (dice().chance(0.5)) q.call_max = 5ms;
}

void run::fault_of_clocks(sim::node& n) {
  switch (dice().below(3)) {
    case 0: return n.suspend(dice().between(0ms, 50ms));
    case 1: return n.jump_wall_clock(dice().chance(0.5) ? 1h : -1h);
    default: n.set_clock_rate(dice().chance(0.5) ? 0.5 : 1.5);
  }
}

void run::fault_of_process(machine& m) {
  sim::node& n = m.node();
  const pid who = someone_at(m);
  switch (dice().below(10)) {
    case 0: return frozen_[n.id()].thaw_one(n.rt());
    case 1:
    case 2:
      if (who) frozen_[n.id()].freeze(n.rt(), who, false);
      return;
    case 3:
      if (!who) return;
      n.stick(who, dice().between(1us, 40ms));
      return stuck_.push_back(who);
    case 4:
      for (const pid each : stuck_)
        if (each.node() == n.id() && n.rt().abandon(each)) mark("a stuck process was abandoned");
      return;
    case 5: n.rt().kill(m.helper); return spawn_helper(m);
    case 6: return n.rt().exit(who, exit_reason::error("asked to"));
    default: n.rt().kill(who);
  }
}

// ---- the end

std::vector<pid> run::waiting() const {
  std::vector<pid> left;
  for (const pid p : workers_)
    if (sim::node* n = world_.find(p.node()); n != nullptr && n->up() && n->rt().alive(p)) left.push_back(p);
  return left;
}

/// All faults end, and somebody completes everything: then every wait must end.
void run::calm_down() {
  shared_.draining = true;
  world_.fail_at("spawn.allocate", 0);
  for (machine& m : machines_) {
    sim::node& n = m.node();
    n.disk().quality = {};
    n.resume();
    if (!n.up()) continue;
    frozen_[n.id()].thaw_all(n.rt());
    if (frozen_[n.id()].held() != 0) mark("a frozen process did not run");
  }
  for (int i = 0; i < 300 && !waiting().empty(); ++i) {
    shared_.resolve_outside(1);
    world_.run_for(10ms);
    shared_.check();
  }
  std::vector<std::string> left;
  for (const pid p : waiting()) left.push_back(to_string(p));
  sim::require(left.empty(), "a process waits for ever", left);
}

void run::expect_nothing_left() {
  for (machine& m : machines_)
    if (m.node().up()) m.node().rt().kill(m.helper);
  while (!shared_.nothing_outside()) shared_.resolve_outside(1);
  sim::require(world_.run(1h), "the world does not become quiet");
  shared_.check();
  sim::require(shared_.frames() == 0, "frames are left: " + std::to_string(shared_.frames()));
  for (machine& m : machines_) {
    if (!m.node().up()) continue;
    const runtime_counters counted = m.node().rt().counters();
    sim::require(m.node().rt().snapshot().empty() && counted.spawned == counted.ended, "processes are left");
    sim::require(counted.timers == 0, "timers are left: " + std::to_string(counted.timers));
    sim::require(counted.blocking_waiting == 0 && counted.blocking_running == 0, "blocking work is left");
    for (const lane_status& each : m.node().lanes().status())
      sim::require(each.queued == 0 && !each.running_since, "a lane has a job left");
  }
}

void run::expect_disks_whole() {
  for (machine& m : machines_) {
    m.node().restart();
    m.begin();
  }
  sim::require(world_.run(1h), "the world does not become quiet");
  shared_.check();
  for (const machine& m : machines_) sim::require(m.recovered(), "a healthy disk could not be read");
}

void property(sim::world& w) {
  run one{w};
  one.go_wild();
  one.calm_down();
  one.expect_nothing_left();
  one.expect_disks_whole();
}

class programs_that_wait : public testing::TestWithParam<std::uint64_t> {
 public:
  static void TearDownTestSuite() { seeds::expect_marks(expected_marks); }
};

TEST_P(programs_that_wait, end_once_and_leave_nothing) {
  seeds::hold(seeds_per_block, property, 1 + GetParam() * seeds::scaled(seeds_per_block));
}

INSTANTIATE_TEST_SUITE_P(seeds, programs_that_wait, testing::Range<std::uint64_t>(0, blocks));

}  // namespace
