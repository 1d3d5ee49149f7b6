#pragma once
/// One run: random hierarchies of actors work under faults, rest without faults, and are stopped.
#include "actor_model.hpp"

namespace coppice::random_actors {

/// Settings of a run. `notes`, `kills`, `stops` and `poisons` are relative weights.
struct trouble {
  climate land{};
  std::uint64_t notes = 20;
  std::uint64_t kills = 1;
  std::uint64_t stops = 1;
  std::uint64_t poisons = 1;
  std::uint64_t freezes = 3;  // and as many thaws, in every third seed
  std::size_t phases = 12;
  double hook_failures = 0.05;  // the share of hooks that fail
  std::vector<deed> favourites{};
};

/// Records the decisions, dead letters and process ends that the runtime publishes.
inline task<> observer(self& me, program* p) {
  for (;;) {
    const auto event = co_await me.receive<supervision_event, dead_letter, process_ended>();
    if (const auto* e = std::get_if<supervision_event>(&event)) {
      p->verdicts.push_back({p->world.now(), e->parent, e->child, id_of(e->reason), e->what, e->after});
    } else if (const auto* d = std::get_if<dead_letter>(&event)) {
      if (d->message == type_name<note>() && p->lives.contains(d->to)) ++p->lives.at(d->to).letters.dead;
    } else if (const auto& x = std::get<process_ended>(event); p->lives.contains(x.who)) {
      life& l = p->lives.at(x.who);
      p->check(!l.end, to_string(x.who) + " has ended twice");
      l.end = x.reason;
      l.ended = p->world.now();
    }
  }
}

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
  /// Injects no faults for a while, then checks that every live actor handles mail.
  void rest();
  void end();

 private:
  [[nodiscard]] sim::dice& dice() { return program_.dice; }
  [[nodiscard]] runtime& rt() { return *program_.rt; }
  void spawn_tops();
  void act();
  void send_one();
  void freeze_one();
  void thaw_all();

  sim::world& world_;
  trouble trouble_;
  program program_;
  gardener gardener_;
  std::vector<pid> tops_;
  std::uint64_t probes_ = 0;
};

inline void run::spawn_tops() {
  for (std::uint64_t n = 1 + dice().below(2); n > 0; --n) tops_.push_back(spawn_root(program_, gardener_.root()));
}

inline void run::play() {
  sim::node& node = world_.add_node("actors", {.processes = 1U << 10U, .level = log_level::off});
  program_.rt = &node.rt();
  program_.hook_failures = trouble_.hook_failures;
  const pid sees = rt().spawn(observer, &program_);
  rt().subscribe<supervision_event>(sees);
  rt().subscribe<dead_letter>(sees);
  rt().subscribe<process_ended>(sees);
  spawn_tops();
  for (std::size_t i = 0; i < trouble_.phases; ++i) {
    const std::uint64_t how_long = dice().below(10);
    world_.run_for(dice().between(0ns, how_long < 5 ? 2us : how_long < 8 ? 20ms : 1s));
    program_.freezes.check(rt());
    for (std::uint64_t n = dice().below(8); n > 0; --n) act();
    program_.judge();
    if (dice().chance(0.05)) rest();
  }
}

inline void run::act() {
  const trouble& t = trouble_;
  std::uint64_t pick = dice().below(t.notes + t.kills + t.stops + t.poisons + 2 * t.freezes);
  const auto is = [&](std::uint64_t weight) {
    if (pick < weight) return true;
    pick -= weight;
    return false;
  };
  if (is(t.notes)) return send_one();
  if (is(t.freezes)) return freeze_one();
  if (is(t.freezes)) return program_.freezes.thaw_one(rt());
  const pid who = program_.someone();
  if (program_.lives.at(who).parent == pid{} && dice().chance(0.8)) return;
  if (is(t.kills)) {
    program_.lives.at(who).killed = true;
    return rt().kill(who);
  }
  program_.lives.at(who).told = true;
  if (is(t.stops)) return stop_actor(rt(), who);
  poison_actor(rt(), who);
}

inline void run::send_one() {
  const pid to = program_.someone();
  note m{.level = static_cast<int>(dice().below(8)), .what = static_cast<deed>(dice().below(deeds))};
  if (!trouble_.favourites.empty() && dice().chance(0.6))
    m.what = trouble_.favourites[dice().below(trouble_.favourites.size())];
  const bool quits =
      m.what == deed::finish || m.what == deed::stop_self || m.what == deed::stop_other || m.what == deed::poison_other;
  if (quits && dice().chance(0.7)) m.what = deed::chat;
  m.number = program_.number_for({}, to);
  if (dice().chance(0.5))
    rt().send(to, m);
  else
    rt().cast<note>(actor_ref<member>{to}, m);
}

inline void run::freeze_one() {
  const pid who = program_.someone();
  if (!rt().alive(who)) return;
  const bool subtree = dice().chance(0.5);
  program_.freezes.freeze(rt(), who, subtree);
  const bool is_parent = std::ranges::any_of(program_.lives.at(who).children, [&](pid c) { return rt().alive(c); });
  mark(!is_parent ? "an actor was frozen" : subtree ? "a subtree was frozen" : "a parent was frozen");
}

inline void run::thaw_all() {
  program_.freezes.thaw_all(rt());
  if (program_.freezes.held() != 0) mark("a frozen process did not run");
}

inline void run::rest() {
  program_.calm = true;
  thaw_all();
  world_.run_for(2min);
  ++probes_;
  std::vector<pid> asked;
  for (const auto& [who, l] : program_.lives)
    if (rt().alive(who)) asked.push_back(who);
  for (const pid who : asked) rt().send(who, probe{probes_});
  world_.run_for(1s);
  program_.judge();
  for (const pid who : asked) {
    const life& l = program_.lives.at(who);
    sim::require(!l.end, to_string(who) + " ended while no faults were injected");
    sim::require(l.probed == probes_, to_string(who) + " is alive but did not handle the probe");
    sim::require(l.living == l.attempts, to_string(who) + " lives without an instance");
    sim::require(l.letters.front.empty(), to_string(who) + " did not get all unstashed mail");
  }
  model{program_}.run();
  program_.calm = false;
}

inline void run::end() {
  rest();
  if (dice().chance(0.5)) {  // stop the actors while they handle messages
    for (int n = 0; n < 10; ++n) send_one();
    world_.run_for(dice().between(0ns, 2us));
  }
  for (std::uint64_t n = dice().below(2 * trouble_.freezes); n > 0; --n) freeze_one();
  for (const pid top : tops_) {
    life& l = program_.lives.at(top);
    const std::uint64_t how = dice().below(3);
    (how == 0 ? l.killed : l.told) = true;
    if (how == 0) rt().kill(top);
    if (how == 1) stop_actor(rt(), top);
    if (how == 2) poison_actor(rt(), top);
  }
  if (trouble_.freezes > 0) {
    world_.run_for(1ms);
    program_.freezes.check(rt());
    world_.run_for(dice().between(0s, 20s));
  }
  thaw_all();
  world_.run_for(2min);
  program_.calm = true;
  world_.run_for(2min);
  program_.judge();
  for (const auto& [who, l] : program_.lives) {
    sim::require(!rt().alive(who), to_string(who) + " is alive after its root was stopped");
    sim::require(l.end.has_value() && l.living == 0, to_string(who) + " has no recorded end, or an instance is left");
  }
  model{program_}.run();
}

}  // namespace coppice::random_actors
