#pragma once
/// One run: a random tree, faults and calls while it works, rests in between; then its end, and what must be true of
/// it.
#include "tree_model.hpp"
#include "tree_plan.hpp"

namespace coppice::random_trees {

/// Which faults a run has, as weights.
struct trouble {
  climate land{};
  std::uint64_t crashes = 6;
  std::uint64_t kills = 2;    // of supervisors, too
  std::uint64_t signals = 2;  // exits from strangers, forged news
  std::uint64_t unlinks = 1;
  std::uint64_t stuck = 1;
  std::uint64_t calls = 8;
  std::uint64_t weather = 1;  // how starts fare
  std::uint64_t rests = 1;
  std::uint64_t freezes = 2;  // and as many thaws, in every third seed
  std::size_t phases = 30;
  std::uint64_t at_once = 4;
};

class run {
 public:
  run(sim::world& w, const trouble& t) : world_{w}, trouble_{t}, program_{w}, gardener_{w.chance(), t.land} {
    if (w.seed() % 3 != 0) trouble_.freezes = 0;
  }
  run(const run&) = delete;
  run& operator=(const run&) = delete;
  ~run() {
    for (sim::node& n : world_.nodes()) n.crash();
  }

  void play();
  /// No more faults: the tree becomes whole, or has given up. Everybody can be asked.
  void rest();
  void end();
  void check();

 private:
  [[nodiscard]] sim::dice& dice() { return program_.dice; }
  [[nodiscard]] runtime& rt() { return *program_.rt; }
  void fault();
  void crash_one();
  void kill_one();
  void signal_one();
  void stick_one();
  void freeze_one();
  void thaw_all();
  [[nodiscard]] bool may_be_stuck_for_long(const attempt& a) const;
  void ask_one();
  void ask_for_sure(call c);
  [[nodiscard]] call some_call(pid sup);
  [[nodiscard]] supervisor_spec some_upgrade(const plant& of);
  [[nodiscard]] exit_reason some_reason();
  [[nodiscard]] exit_reason reason_for(pid who);
  [[nodiscard]] pid someone(bool supervisors, bool others);
  [[nodiscard]] pid some_client() { return clients_[dice().below(clients_.size())]; }
  void check_left() const;

  sim::world& world_;
  trouble trouble_;
  program program_;
  gardener gardener_;
  sim::node* node_ = nullptr;
  plan root_;
  pid parent_;
  std::vector<pid> clients_;
  std::map<std::string, std::vector<std::string>> added_;  // ids, by that of their supervisor
};

inline void run::play() {
  node_ = &world_.add_node("trees", {.stall_after = 20ms,
                                     .processes = 1U << 12U,
                                     .level = log_level::debug,  // so that no report is left out
                                     .log = std::make_shared<log_of_events>(program_)});
  program_.rt = &node_->rt();
  const pid sees = rt().spawn(observer, &program_);
  rt().subscribe<process_ended>(sees);
  rt().subscribe<supervisor_event>(sees);
  for (int i = 0; i < 3; ++i) clients_.push_back(rt().spawn(client, &program_));
  root_ = gardener_.root();
  program_.weather = dice().chance(0.1) ? 0.1 : 0;
  parent_ = rt().spawn(parent_of_root, &program_, root_);
  sim::require(world_.run_until([&] { return !program_.by_pid.empty(); }), "there is no root");
  for (std::size_t i = 0; i < trouble_.phases && rt().alive(parent_); ++i) {
    const std::uint64_t how_long = dice().below(10);
    world_.run_for(dice().between(0ns, how_long < 5 ? 5us : how_long < 8 ? 20ms : 3s));
    program_.freezes.check(rt());
    for (std::uint64_t n = dice().below(trouble_.at_once); n > 0; --n) fault();
  }
}

inline pid run::someone(bool supervisors, bool others) {
  const std::vector<pid> all = program_.living(supervisors, others);
  return all.empty() ? pid{} : all[dice().below(all.size())];
}

inline exit_reason run::some_reason() {
  switch (dice().below(7)) {
    case 0:
    case 1: return exit_reason::normal();
    case 2: return exit_reason::shutdown();
    case 3: return exit_reason::shutdown("enough");
    case 4: return exit_reason::killed();
    default: return exit_reason::error("crash");
  }
}

inline exit_reason run::reason_for(pid who) {
  exit_reason why = some_reason();
  if (attempt* a = program_.find(who); a != nullptr && violent(why)) a->killed = true;
  return why;
}

// ---- faults

inline void run::fault() {
  const trouble& t = trouble_;
  std::uint64_t pick = dice().below(t.crashes + t.kills + t.signals + t.unlinks + t.stuck + t.calls + t.weather +
                                    t.rests + 2 * t.freezes);
  const auto is = [&](std::uint64_t weight) {
    if (pick < weight) return true;
    pick -= weight;
    return false;
  };
  if (is(t.crashes)) return crash_one();
  if (is(t.kills)) return kill_one();
  if (is(t.signals)) return signal_one();
  if (is(t.unlinks)) return rt().send(someone(false, true), deed{.what = deed::kind::unlink});
  if (is(t.stuck)) return stick_one();
  if (is(t.calls)) return ask_one();
  if (is(t.rests)) return rest();
  if (is(t.freezes)) return freeze_one();
  if (is(t.freezes)) return program_.freezes.thaw_one(rt());
  program_.weather = dice().chance(0.5) ? 0 : dice().chance(0.7) ? 0.3 : 0.9;
  world_.fail_at("spawn.allocate", dice().chance(0.3) ? 0.3 : 0);
}

inline void run::crash_one() {
  const pid who = someone(false, true);
  if (dice().chance(0.3))
    rt().send(who, deed{.what = deed::kind::fail});
  else
    rt().send(who, deed{.what = deed::kind::finish, .why = reason_for(who)});
}

inline void run::kill_one() {
  const pid who = someone(dice().chance(0.3), true);
  if (!who || (program_.find(who)->what == root_ && dice().chance(0.9))) return;
  program_.find(who)->killed = true;
  rt().kill(who);
}

inline void run::signal_one() {
  if (dice().chance(0.5)) {  // to somebody who should not care, or may
    const pid who = someone(true, dice().chance(0.3));
    if (dice().chance(0.3))
      rt().exit(who, reason_for(who));
    else
      rt().send(some_client(), to_exit{who, reason_for(who)});
    return;
  }
  const pid child = someone(true, true);
  if (!child || program_.find(child)->what == root_) return;
  rt().send(some_client(), to_forge{program_.find(child)->sup, exited{child, some_reason(), dice().chance(0.9)}});
}

/// Only what its supervisor can get rid of: else it would be waited for, rightly.
inline bool run::may_be_stuck_for_long(const attempt& a) const {
  const attempt* sup = program_.find(a.sup);
  if (sup == nullptr || !sup->what->flags.abandon_after || a.what->what == plant::kind::supervisor) return false;
  const bool starts = !a.started && !a.what->how.start_within;
  return !starts && !(a.what->how.shutdown && a.what->how.shutdown->is_infinite());
}

inline void run::stick_one() {
  const pid who = someone(dice().chance(0.2), true);
  if (!who || program_.find(who)->stuck || program_.find(who)->what->named) return;
  program_.find(who)->stuck = true;
  const auto longest = may_be_stuck_for_long(*program_.find(who)) ? 1h : dice().chance(0.5) ? 1ms : 2s;
  node_->stick(who, dice().between(1us, longest));
  rt().send(who, deed{.what = deed::kind::nothing});
  const attempt& a = *program_.find(who);
  if (a.what != root_ && dice().chance(0.5))
    ask_for_sure({.what = ask::terminate_child, .sup = a.sup, .id = a.what->id});
}

inline void run::freeze_one() {
  const pid who = someone(true, dice().chance(0.5));
  if (!who) return;
  const bool subtree = dice().chance(0.5);
  program_.freezes.freeze(rt(), who, subtree);
  const bool is_supervisor = program_.find(who)->what->what == plant::kind::supervisor;
  mark(!is_supervisor ? "a child was frozen" : subtree ? "a subtree was frozen" : "a supervisor was frozen");
}

inline void run::thaw_all() {
  program_.freezes.thaw_all(rt());
  if (program_.freezes.held() != 0) mark("a frozen process did not run");
}

inline void run::ask_one() {
  const std::vector<pid> all = program_.living(true, false);
  if (all.empty()) return;
  ask_for_sure(some_call(all[dice().below(all.size())]));
}

inline void run::ask_for_sure(call c) {
  program_.calls.push_back(std::move(c));
  rt().send(some_client(), to_ask{program_.calls.size() - 1});
}

inline supervisor_spec run::some_upgrade(const plant& of) {
  supervisor_spec next = of.flags;
  if (dice().chance(0.3)) next.limit.restarts = static_cast<int>(dice().below(20));
  if (dice().chance(0.5)) next.strategy = gardener_.flags().strategy;
  const bool shuffled = dice().chance(0.3);
  const auto put = [&](const plan& c) {
    const std::size_t place = shuffled ? dice().below(next.children.size() + 1) : next.children.size();
    next.children.insert(next.children.begin() + static_cast<std::ptrdiff_t>(place), spec_of(program_, c));
  };
  for (const plan& c : of.children) {
    if (dice().chance(0.2)) continue;
    const bool same = c->what == plant::kind::supervisor || dice().chance(0.3);
    put(same ? c : gardener_.changed(c, next.auto_shutdown));
  }
  if (dice().chance(0.3)) {
    const plan more = gardener_.worker_plan(next.auto_shutdown);
    added_[of.id].push_back(more->id);
    put(more);
  }
  return next;
}

inline call run::some_call(pid sup) {
  constexpr std::array often{ask::start_child,    ask::terminate_child, ask::terminate_child, ask::restart_child,
                             ask::restart_child,  ask::delete_child,    ask::retry_now,       ask::retry_now,
                             ask::which_children, ask::which_child,     ask::count_children,  ask::get_childspec,
                             ask::history,        ask::upgrade};
  call c{.what = often.at(dice().below(often.size())), .sup = sup};
  const plant& of = *program_.find(sup)->what;
  std::vector<std::string>& added = added_[of.id];
  const std::size_t known = of.children.size();
  const std::size_t pick = dice().below(known + added.size());
  c.id = dice().chance(0.05) || known + added.size() == 0 ? "nobody"
         : pick < known                                   ? of.children[pick]->id
                                                          : added[pick - known];
  if (c.what == ask::start_child) {
    plan one = gardener_.worker_plan(of.flags.auto_shutdown);
    if (pick < known && dice().chance(0.3))
      one = of.children[pick];
    else
      added.push_back(one->id);
    child_spec spec = spec_of(program_, one);
    if (dice().chance(0.05)) spec.significant = true;
    c.spec = std::make_shared<const child_spec>(std::move(spec));
  }
  if (c.what == ask::upgrade) c.tree = std::make_shared<const supervisor_spec>(some_upgrade(of));
  return c;
}

// ---- quiet

inline void run::rest() {
  program_.calm = true;
  thaw_all();
  world_.fail_at("spawn.allocate", 0);
  world_.run_for(2min);
  for (const pid sup : program_.living(true, false)) {
    ask_for_sure({.what = ask::which_children, .sup = sup});
    ask_for_sure({.what = ask::count_children, .sup = sup});
  }
  world_.run_for(1s);
  for (std::size_t i = 0; i < program_.calls.size(); ++i)
    sim::require(program_.calls[i].got.has_value(), "call " + std::to_string(i) + " has no answer");
  auto alive = std::make_shared<std::set<pid>>();
  for (const pid who : program_.living(true, true)) alive->insert(who);
  program_.write({.what = entry::kind::quiet, .alive = std::move(alive)});
  program_.calm = false;
}

inline void run::end() {
  rest();
  program_.calm = true;
  const bool alive = rt().alive(parent_);
  if (alive) mark("the root lived to the end");
  const exit_reason why = dice().chance(0.7) ? exit_reason::shutdown() : some_reason();
  for (std::uint64_t n = dice().below(2 * trouble_.freezes); n > 0; --n) freeze_one();
  if (alive) rt().send(parent_, end_root{why});
  if (trouble_.freezes > 0) {
    world_.run_for(1ms);
    program_.freezes.check(rt());
    world_.run_for(dice().between(0s, 20s));
  }
  thaw_all();
  world_.run_for(10min);
  sim::require(!rt().alive(parent_), "the root was told to end, and lives");
  const attempt& root = program_.attempts.front();
  sim::require(root.end.has_value(), "nobody was told of the end of the root");
  if (alive) sim::require(*root.end == why, "the root ended with another reason than it was told to");
}

/// What lives when the root has ended has lost its supervisor by a kill, and takes no notice of that.
inline void run::check_left() const {
  for (const attempt& a : program_.attempts) {
    if (!a.who || !program_.rt->alive(a.who)) continue;
    const attempt* sup = program_.find(a.sup);
    const bool bereft = sup != nullptr && sup->end && violent(*sup->end);
    sim::require(bereft && (a.unlinked || a.stuck || a.what->ignores_exits),
                 a.what->id + " " + to_string(a.who) + " outlives the tree");
    mark("an orphan");
  }
}

inline void run::check() {
  check_left();
  for (const attempt& a : program_.attempts) {
    sim::require(!a.overlapped, a.what->id + " was started by " + to_string(a.sup) + " while another of it was alive");
    sim::require(!a.started || a.what->what == plant::kind::body || a.what->what == plant::kind::supervisor ||
                     a.said == attempt::word::ready,
                 a.what->id + " was told to have started, and has not");
    if (a.spec) model{program_, a.who}.run();
  }
}

}  // namespace coppice::random_trees
