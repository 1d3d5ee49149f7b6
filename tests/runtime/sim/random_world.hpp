#pragma once
/// One run of a random program: nodes, processes, faults; then quiet, then the end of everything.
#include "freezes.hpp"
#include "random_bodies.hpp"
#include "random_model_more.hpp"

namespace coppice::random_programs {

struct pulse {
  std::uint64_t number;
};

/// Writes down what a node's event stream tells. Nobody else knows of it.
inline task<> observer(self& me, program* shared) {
  std::uint64_t beat = 0;
  for (;;) {
    const auto event = co_await me.receive<process_ended, node_down, process_stalled, pulse>();
    if (const auto* e = std::get_if<process_ended>(&event))
      shared->write({.kind = what::ended, .who = e->who, .reason = e->reason});
    else if (const auto* n = std::get_if<node_down>(&event))
      shared->write({.kind = what::lost, .number = beat, .here = me.id().node(), .there = n->node});
    else if (const auto* s = std::get_if<process_stalled>(&event))
      shared->write({.kind = what::stalled, .who = s->who});
    else
      beat = std::get<pulse>(event).number;
  }
}

class run {
 public:
  explicit run(sim::world& w) : world_{w}, program_{w} {}
  run(const run&) = delete;
  run& operator=(const run&) = delete;
  /// The bodies write into the log when they go.
  ~run() {
    for (sim::node& n : world_.nodes()) n.crash();
  }

  void play();
  /// All faults end, and everybody takes what is left.
  void calm_down();
  void check() const;
  /// Kills all that are left: nothing may remain of them.
  void end_all();

 private:
  [[nodiscard]] sim::dice& dice() { return program_.dice; }
  void write(entry e) { program_.write(std::move(e)); }
  void start_node(sim::node& n);
  void spawn(sim::node& n);
  void settle();
  void beat();
  void fault();
  void fault_of_network();
  void fault_of_node(sim::node& n);
  void fault_of_process(sim::node& n);
  void cut(sim::node& from, sim::node& to);
  void stick(sim::node& n);
  void freeze(sim::node& n);
  void signal_from_outside(sim::node& n);
  [[nodiscard]] sim::node& some_node() { return world_.nodes()[dice().below(world_.nodes().size())]; }
  [[nodiscard]] pid someone_at(const sim::node& n);

  sim::world& world_;
  program program_;
  std::map<node_id, pid> observers_;
  std::map<pid, time_point> stuck_;
  std::map<node_id, random_freezes> frozen_;
  std::map<pid, process_info> seen_;
  std::uint64_t pulses_ = 0;
};

// ---- playing

inline void run::start_node(sim::node& n) {
  write({.kind = what::up, .here = n.id()});
  for (const sim::node& other : world_.nodes()) {  // a machine that is cut off stays so when it starts again
    if (!world_.net().open(n.id(), other.id())) write({.kind = what::cut, .here = n.id(), .there = other.id()});
    if (!world_.net().open(other.id(), n.id())) write({.kind = what::cut, .here = other.id(), .there = n.id()});
  }
  world_.fail_at("spawn.allocate", 0);
  const pid who = n.rt().spawn(observer, &program_);
  n.rt().subscribe<process_ended>(who);
  n.rt().subscribe<node_down>(who);
  n.rt().subscribe<process_stalled>(who);
  observers_[n.id()] = who;
  program_.writers.push_back(n.rt().spawn(writer, &program_));
  write({.kind = what::spawned, .other = program_.writers.back()});
  for (std::uint64_t i = 2 + dice().below(4); i > 0; --i) spawn(n);
}

inline void run::spawn(sim::node& n) {
  if (!program_.room()) return;
  const int budget = static_cast<int>(20 + dice().below(200));
  pid child;
  try {
    if (dice().chance(0.7)) {
      child = n.rt().spawn(actor, &program_, budget);
    } else {
      child = n.rt().spawn<thing>(&program_, budget).id();
      program_.objects.push_back(child);
    }
    write({.kind = what::spawned, .other = child});
  } catch (const std::bad_alloc&) {
    mark("a spawn failed");
  }
}

inline void run::play() {
  auto& quality = world_.net().quality;
  quality.lost_after = dice().between(2ms, 60ms);
  quality.retry_after = dice().between(500us, 5ms);
  if (dice().chance(0.5)) {
    quality.loss = 0.3 * static_cast<double>(dice().below(2));
    quality.duplication = 0.2;
    quality.reordering = 0.3;
  }
  const std::uint64_t nodes = 1 + dice().below(3);
  for (std::uint64_t i = 0; i < nodes; ++i)
    world_.add_node({}, {.stall_after = 20ms, .processes = 1U << 10U, .level = log_level::off});
  for (sim::node& n : world_.nodes()) start_node(n);
  for (std::uint64_t phases = 10 + dice().below(40); phases > 0; --phases) {
    const std::uint64_t how_long = dice().below(10);
    world_.run_for(dice().between(0ns, how_long < 6 ? 2ms : how_long < 9 ? 20ms : 100ms));
    beat();
    fault();
  }
}

inline void run::beat() {
  write({.kind = what::pulse, .number = ++pulses_});
  for (sim::node& n : world_.nodes())
    if (n.up()) n.rt().send(observers_[n.id()], pulse{pulses_});
}

inline pid run::someone_at(const sim::node& n) {
  std::vector<pid> here;
  for (const pid p : program_.all)
    if (p.node() == n.id()) here.push_back(p);
  return here.empty() ? pid{} : here[here.size() - 1 - dice().below(std::min<std::size_t>(here.size(), 12))];
}

// ---- faults

inline void run::fault() {
  sim::node& n = some_node();
  switch (dice().below(8)) {
    case 0:
    case 1:
    case 2:
      if (world_.nodes().size() > 1) return fault_of_network();
      return fault_of_process(n);
    case 3: return fault_of_node(n);
    default: return fault_of_process(n);
  }
}

inline void run::cut(sim::node& from, sim::node& to) {
  world_.partition_one_way(from, to);
  write({.kind = what::cut, .here = from.id(), .there = to.id()});
}

inline void run::fault_of_network() {
  sim::node& a = some_node();
  sim::node& b = some_node();
  if (dice().chance(0.5)) {
    world_.heal();
    write({.kind = what::healed});
  } else if (&a != &b) {
    cut(a, b);
    if (dice().chance(0.6)) cut(b, a);
  }
}

inline void run::fault_of_node(sim::node& n) {
  if (!n.up()) {
    n.restart();
    mark("a node was restarted");
    return start_node(n);
  }
  if (n.paused()) return n.resume();
  switch (dice().below(4)) {
    case 0:
      write({.kind = what::crashed, .here = n.id()});
      n.crash();
      break;
    case 1: n.pause(); break;
    case 2: n.jump_wall_clock(dice().chance(0.5) ? 1h : -1h); break;
    default: world_.fail_at("spawn.allocate", dice().chance(0.5) ? 0.3 : 0.0);
  }
}

inline void run::fault_of_process(sim::node& n) {
  if (!n.up()) return;
  switch (dice().below(7)) {
    case 0: return stick(n);
    case 5: return freeze(n);
    case 6: return frozen_[n.id()].thaw_one(n.rt());
    case 1: {
      for (const auto& [who, until] : stuck_) {
        if (who.node() != n.id() || until <= world_.now() || !n.rt().abandon(who)) continue;
        write({.kind = what::abandoned, .who = who});
      }
      return;
    }
    case 2: return signal_from_outside(n);
    default: return spawn(n);
  }
}

inline void run::stick(sim::node& n) {
  const pid who = someone_at(n);
  if (!who || !n.rt().alive(who)) return;
  if (const auto found = stuck_.find(who); found != stuck_.end() && found->second > world_.now()) return;
  const auto duration = dice().between(1us, 40ms);
  n.stick(who, duration);
  stuck_[who] = world_.now() + duration;
}

/// Only one that has begun: a process that is killed before it begins leaves no entries in the log.
inline void run::freeze(sim::node& n) {
  const pid who = someone_at(n);
  const auto seen = who ? n.rt().info(who) : std::nullopt;
  if (seen && seen->handled > 0) frozen_[n.id()].freeze(n.rt(), who, false);
}

inline void run::signal_from_outside(sim::node& n) {
  const pid who = someone_at(n);
  if (!who) return;
  if (dice().chance(0.5)) {
    const exit_reason why = program_.signal_reason();
    n.rt().exit(who, why);
    write({.kind = what::exit_sent, .other = who, .reason = why});
  } else {
    const std::uint64_t number = program_.next_note({}, who);
    n.rt().send(who, note{{}, number});
    write({.kind = what::sent, .other = who, .number = number});
  }
}

// ---- the end

inline void run::settle() {
  const std::uint64_t most = world_.steps() + 100000;
  const time_point until = world_.now() + 1h;
  while (world_.step()) sim::require(world_.steps() < most && world_.now() < until, "the world does not become quiet");
}

inline void run::calm_down() {
  program_.draining = true;
  world_.heal();
  world_.net().quality = {.lost_after = world_.net().quality.lost_after};
  world_.fail_at("spawn.allocate", 0);
  write({.kind = what::healed});
  for (sim::node& n : world_.nodes()) {
    n.resume();
    if (!n.up()) continue;
    frozen_[n.id()].thaw_all(n.rt());
    if (frozen_[n.id()].held() != 0) mark("a frozen process did not run");
  }
  beat();
  for (const pid who : program_.objects)
    if (sim::node* n = world_.find(who.node()); n != nullptr && n->up()) n->rt().send(who, wind_up{});
  settle();
  write({.kind = what::quiet});
  for (sim::node& n : world_.nodes()) {
    if (!n.up()) continue;
    for (process_info& one : n.rt().snapshot())
      if (one.id != observers_[n.id()]) seen_.emplace(one.id, std::move(one));
  }
}

inline void run::end_all() {
  for (const auto& [who, info] : seen_) {
    world_.find(who.node())->rt().kill(who);
    write({.kind = what::exit_sent, .other = who, .reason = exit_reason::kill()});
  }
  settle();
  for (sim::node& n : world_.nodes()) {
    if (!n.up()) continue;
    const auto left = n.rt().snapshot();
    sim::require(left.size() == 1 && left.front().id == observers_[n.id()], "a process survived the end");
    const runtime_counters counted = n.rt().counters();
    const auto known = std::ranges::count_if(program_.all, [&](pid p) { return p.node() == n.id(); });
    sim::require(counted.timers == 0, "timers are left: " + std::to_string(counted.timers));
    sim::require(counted.spawned == static_cast<std::uint64_t>(known) + 1, "a process was spawned and not told of");
    sim::require(counted.ended + 1 == counted.spawned, "as many ends as spawns");
  }
}

inline void run::check() const {
  const history h{program_.log};
  for (const entry& e : program_.log) {
    if (e.kind == what::stalled) mark("a stuck process was reported");
    if (e.kind == what::crashed) mark("a node crashed");
    if (e.kind == what::lost) mark("a node was lost");
  }
  check_ends(h);
  check_signals_arrive(h);
  check_notes(h);
  check_links(h);
  check_monitors(h);
  check_names(h);
  check_calls(h);
  check_timers(h);
  check_quiet(h, seen_);
}

}  // namespace coppice::random_programs
