#pragma once
/// A simulated world: any number of runtimes on one thread, in virtual time, with faults. The same seed gives the same
/// run.
///
///     sim::world w{seed};
///     runtime& rt = w.add_node().rt();
///     const pid p = rt.spawn(worker);
///     w.run_for(24h);                     // takes no real time when nothing happens
///     EXPECT_TRUE(rt.alive(p));
///
/// Whenever several things could happen next, the seed decides: which process runs, how many messages it handles, when
/// a packet arrives. When nothing can happen, the clock jumps to the next timer or packet. Processes cannot tell a
/// world from a real runtime.
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <coppice/runtime/runtime.hpp>
#include <coppice/sim/disk.hpp>
#include <coppice/sim/lanes.hpp>
#include <coppice/sim/network.hpp>
#include <coppice/sim/node_clock.hpp>
#include <coppice/sim/os_program.hpp>
#include <coppice/sim/trace.hpp>

namespace coppice::sim {

/// Random numbers from a seed. All machines give the same numbers.
class dice {
 public:
  explicit dice(std::uint64_t seed) noexcept : state_{seed} {}
  [[nodiscard]] std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// From 0 to `n` - 1.
  [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : next() % n; }
  [[nodiscard]] bool chance(double p) noexcept { return p > 0 && static_cast<double>(next() >> 11U) * 0x1.0p-53 < p; }
  [[nodiscard]] std::chrono::nanoseconds between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) noexcept {
    return low + std::chrono::nanoseconds{below(static_cast<std::uint64_t>((high - low).count()) + 1)};
  }

 private:
  std::uint64_t state_;
};

class world;
class node_environment;
class node_processes;
class node_scheduler;
class node_tracer;

/// One machine. It may crash and start again; each start is a new runtime with a new node id.
class node {
 public:
  node(world& w, std::string name, const runtime_options& options, const clock_quality& clocks);
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  /// The running runtime; throws `std::logic_error` while the node is down.
  [[nodiscard]] runtime& rt();
  /// What the running runtime has instead of a machine; throws `std::logic_error` while the node is down.
  [[nodiscard]] environment& env();
  [[nodiscard]] node_id id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool up() const noexcept { return runtime_ != nullptr; }

  /// Like a power failure: nothing is sent, and nobody is notified. Other nodes notice after `lost_after`.
  void crash();
  /// Crashes the node if it is up, and starts a new, empty runtime on it.
  void restart();
  /// Nothing runs here until `resume`; the clock goes on, and other nodes may consider this one lost.
  void pause();
  void resume();
  [[nodiscard]] bool paused() const noexcept { return paused_; }
  /// Like the sleep of a laptop: for `duration` of the world's time nothing runs here and monotonic time stands still,
  /// while boot time and the wall clock go on; other nodes may consider this one lost. A second call can only make it
  /// longer; a crash ends it.
  void suspend(std::chrono::nanoseconds duration);
  [[nodiscard]] bool suspended() const noexcept { return suspended_; }
  /// The operating system sends the program of this node a signal; the seed decides when it is delivered. Without a
  /// subscriber the signal ends the program, which is a crash.
  void raise(os_signal s);
  /// From now on `environment::os_processes` finds this program here. What it starts ends when the node crashes.
  void install(std::string name, os_program_maker program) { programs_[std::move(name)] = std::move(program); }
  /// Sets the wall clock forward or back. Timers are not affected.
  void jump_wall_clock(std::chrono::nanoseconds by) noexcept { wall_offset_ += by; }
  /// From now on all clocks of the node go at this rate; see `clock_quality::rate`. Throws `std::invalid_argument`.
  void set_clock_rate(double rate);
  /// The clocks that the runtime and the processes of this node see. Timers follow its monotonic time.
  [[nodiscard]] const node_clock& clocks() const noexcept { return clocks_; }
  /// Until `duration` from now has passed on its clock, `who` is stuck in its code as soon as it has a signal to
  /// handle. A stuck process is reported after `stall_after`, and may be abandoned.
  void stick(pid who, std::chrono::nanoseconds duration);
  /// The disk and the lanes of the machine, to set their faults. The disk keeps its contents when the node crashes, as
  /// far as they were synced; lanes and their jobs are gone.
  [[nodiscard]] node_disk& disk() noexcept { return *disk_; }
  [[nodiscard]] node_lanes& lanes() noexcept { return *lanes_; }

 private:
  friend class world;
  friend class node_environment;
  friend class node_scheduler;
  friend class network;
  struct stuck {
    detail::slot* process = nullptr;
    std::uint32_t serial = 0;  // so that the next process in the slot is not stuck
    time_point until;
    time_point since;
    bool reported = false;
    detail::envelope* in_hand = nullptr;  // after it was abandoned: the signal in whose handling it is stuck
  };
  void start();
  void attach_tracer();
  void wake_if_due();
  /// Nothing runs here and no packet arrives.
  [[nodiscard]] bool halted() const noexcept { return paused_ || suspended_; }
  [[nodiscard]] time_point now() const noexcept;
  void deliver(os_signal s);
  [[nodiscard]] static bool holds(const stuck& s, const detail::slot& p) noexcept;
  [[nodiscard]] bool is_stuck(const detail::slot& p) const noexcept;
  void look_at_stuck(time_point now);
  /// The number of jobs, lanes, processes and steps of OS processes that could run here next.
  [[nodiscard]] std::size_t choices() const noexcept;

  world& world_;
  std::string name_;
  runtime_options options_;
  node_clock clocks_;
  node_id id_;
  std::map<std::string, os_program_maker, std::less<>> programs_;
  std::shared_ptr<node_processes> processes_;
  std::shared_ptr<node_disk> disk_;
  std::shared_ptr<node_lanes> lanes_;
  std::shared_ptr<node_environment> environment_;
  std::unique_ptr<node_tracer> tracer_;  // null: nobody wants a trace
  std::unique_ptr<runtime> runtime_;
  std::vector<detail::slot*> runnable_;
  std::deque<std::move_only_function<void()>> jobs_;
  std::vector<stuck> stuck_;
  std::chrono::nanoseconds wall_offset_{0};
  detail::turn turn_;
  std::uint64_t turns_ = 0;
  std::uint64_t stalls_ = 0;
  bool paused_ = false;
  bool suspended_ = false;
};

/// Thread safety: one thread.
class world {
 public:
  explicit world(std::uint64_t seed);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Adds a machine and starts it. Its runtime logs nothing unless the options say so. Throws `std::invalid_argument`
  /// for clocks out of range.
  node& add_node(std::string name = {},
                 const runtime_options& options = {.processes = 1U << 16U, .level = log_level::off},
                 const clock_quality& clocks = {});
  [[nodiscard]] std::deque<node>& nodes() noexcept { return nodes_; }

  // -- time
  /// The reference for all nodes, whose own clocks may differ from it.
  [[nodiscard]] time_point now() const noexcept { return now_; }
  /// Runs one turn or one job, or moves the clock to the next timer, packet or end of a lane's job. False: nothing is
  /// left to happen.
  bool step();
  /// Runs until nothing is left to happen; gives up after `limit` of virtual time. False: it gave up.
  bool run(std::chrono::nanoseconds limit = std::chrono::hours{24 * 365});
  /// Runs until only timers, packets in flight and jobs in progress of lanes are left, none of them due; gives up after
  /// `limit` of virtual time.
  /// Each turn takes 100 ns, and timers that become due meanwhile fire. False: it gave up.
  bool settle(std::chrono::nanoseconds limit = std::chrono::minutes{1});
  /// Runs for this much virtual time. The clock reaches its end even if nothing is left to happen.
  void run_for(std::chrono::nanoseconds duration);
  /// Runs until `done()` is true. False: `limit` has passed, or nothing is left to happen.
  bool run_until(const std::function<bool()>& done, std::chrono::nanoseconds limit = std::chrono::hours{24});

  // -- faults
  [[nodiscard]] network& net() noexcept { return network_; }
  /// Nothing passes between the two nodes.
  void partition(node& a, node& b);
  /// Nothing passes from `from` to `to`.
  void partition_one_way(node& from, node& to);
  /// Ends all partitions.
  void heal();
  /// At this fault point of the library, this share of attempts fails. The points are `spawn.allocate` for
  /// processes of a runtime, and `os.spawn` for those of the operating system.
  void fail_at(std::string point, double share) { faults_[std::move(point)] = share; }

  // -- what happened
  /// A hash of what happened, and when: which process ran and how many signals it handled, which packets arrived, which
  /// work was done outside of processes, which faults occurred. Two runs of a seed give the same hash. What the signals
  /// were is not part of it.
  [[nodiscard]] std::uint64_t trace_hash() const noexcept { return hash_; }
  /// The number of turns that processes have had.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  /// Calls `sink` with one line for each event from now on, to examine a failure. The guide describes the lines.
  void on_trace(std::function<void(std::string_view)> sink);
  /// Keeps the last events of the trace from now on, for the two functions below; 0: none.
  void keep_trace(std::size_t events = 100'000);
  /// The last `n` events that were kept, the newest at the end.
  [[nodiscard]] std::vector<trace_event> last_events(std::size_t n) const;
  /// The same of those that concern `who`: what the trace calls a process (its name, or else its label, or else its
  /// class), its pid (`"<1.2.0>"`), or the name of a node. Processes that had the name one after the other all count.
  [[nodiscard]] std::vector<trace_event> last_events_of(std::string_view who, std::size_t n) const {
    return last_of(trace_.kept(), who, n);
  }

  /// The random numbers of the seed, for the parts of the simulation and for tests.
  [[nodiscard]] dice& chance() noexcept { return dice_; }
  /// Adds an event of a test to the hash and to the trace, which leaves out numbers that are 0 at the end.
  void note(std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0);
  /// For the parts of the simulation: adds an event to the hash.
  void add_to_hash(std::string_view what, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0) noexcept;
  /// For the parts of the simulation: whether somebody wants the trace; if not, no texts are made.
  [[nodiscard]] bool traced() const noexcept { return trace_.wanted(); }
  /// For the parts of the simulation: adds an event to the trace. The world fills in the time, and the name of the node
  /// of a process.
  void tell(trace_event event);
  void tell(node_id where, std::string what);
  /// The name of the node, or its number if it has crashed.
  [[nodiscard]] std::string name_of(node_id id);
  [[nodiscard]] node* find(node_id id) noexcept;
  [[nodiscard]] bool fails(std::string_view point);
  [[nodiscard]] std::uint64_t new_node_number() noexcept { return ++node_numbers_; }

 private:
  void attach_tracers();
  void deliver_due();
  void do_one_of(node& n, std::size_t pick);
  void run_process(node& n, std::size_t which);
  [[nodiscard]] std::optional<time_point> next_event();
  bool step_before(time_point limit);
  bool advance_to_next(time_point limit);

  std::uint64_t seed_;
  dice dice_;
  time_point now_{std::chrono::seconds{1}};
  std::uint64_t hash_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t node_numbers_ = 0;
  std::map<std::string, double, std::less<>> faults_;
  trace trace_;
  network network_;
  std::deque<node> nodes_;
};

}  // namespace coppice::sim
