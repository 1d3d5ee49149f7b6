// Random programs: applications with random dependencies, failures, signals and kills. Whatever happens, each starts
// after what it needs and stops before it, hooks run in their order, and nothing is left.
#include <map>

#include "../troupe.hpp"
#include "seeds.hpp"

namespace {

using namespace coppice;

using sim::require;

task<> collects(self& me, std::vector<application_event>* into) {
  me.subscribe<application_event>();
  for (;;) {
    application_event e = co_await me.receive<application_event>();
    into->push_back(std::move(e));
  }
}

struct random_program {
  explicit random_program(sim::world& in) : w{in}, n{in.add_node()} {}
  sim::world& w;
  sim::node& n;
  journal book;
  std::vector<application_options> apps;
  std::vector<application_event> events;

  [[nodiscard]] application_hook notes(const std::string& line) {
    return [this, line] { book.note(line); };
  }
  void make_app(std::size_t i) {
    const std::string name = "app" + std::to_string(i);
    application_options app{.name = name,
                            .limit = {.restarts = static_cast<int>(w.chance().below(2))},
                            .restart = static_cast<restart>(w.chance().below(3)),
                            .start = notes("start " + name),
                            .prep_stop = notes("prep_stop " + name),
                            .stop = notes("stop " + name)};
    for (std::size_t c = 0; c < w.chance().below(3); ++c) {
      const std::string id = name + "/" + std::to_string(c);
      app.supervise.push_back(
          child<part>(&book, id, w.chance().between(0ms, 20ms)).with({.id = id, .shutdown = shutdown::infinity()}));
      if (w.chance().chance(0.03)) book.starts[id] = {"fail"};
    }
    if (!app.supervise.empty() && w.chance().chance(0.5)) {
      app.auto_shutdown = auto_shutdown::all_significant;
      for (child_spec& c : app.supervise)
        c = c.with({.restart = restart::transient, .significant = w.chance().chance(0.5)});
    }
    for (std::size_t other = 0; other < i; ++other)
      if (w.chance().chance(0.3)) app.depends_on.push_back("app" + std::to_string(other));
    apps.push_back(std::move(app));
  }

  [[nodiscard]] pid any_child() {
    if (book.pids.empty()) return {};
    auto chosen = book.pids.begin();
    std::advance(chosen, w.chance().below(book.pids.size()));
    return chosen->second;
  }

  // -- what must hold of the journal

  [[nodiscard]] std::optional<std::size_t> at(const std::string& line, std::size_t from = 0) const {
    for (std::size_t i = from; i < book.all.size(); ++i)
      if (book.all[i] == line) return i;
    return std::nullopt;
  }
  [[nodiscard]] std::size_t count(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::count(book.all, line));
  }
  void check_hooks(bool in_order) const {
    for (const auto& app : apps) {
      for (const char* hook : {"start ", "prep_stop ", "stop "})
        require(count(hook + app.name) <= 1, "a hook ran twice");
      const auto started = at("start " + app.name);
      const auto prep = at("prep_stop " + app.name);
      const auto stopped = at("stop " + app.name);
      require(!prep || started, "prep_stop without start");
      require(!stopped || started, "stop without start");
      require(!(prep && stopped) || *prep < *stopped, "stop before prep_stop");
      if (in_order) require(started.has_value() == stopped.has_value(), "a start without its stop");
      if (stopped)
        for (std::size_t i = *stopped; i < book.all.size(); ++i)
          require(book.all[i].find(app.name + "/") == std::string::npos, "a child outlives its application");
    }
  }
  /// Those who start are up before the next one starts; those who stop are gone before the next one stops; and they
  /// stop in the reverse order of their start.
  void check_order() const {
    std::vector<std::string> up;
    std::string busy;
    for (const application_event& e : events) {
      switch (e.now) {
        case application_state::waiting: break;
        case application_state::starting:
          require(busy.empty(), "two start at a time");
          for (const std::string& needed : options_of(e.name).depends_on)
            require(at("start " + needed).has_value(), "it was started before what it needs");
          busy = e.name;
          break;
        case application_state::running:
          require(busy == e.name, "it runs without a start");
          busy.clear();
          up.push_back(e.name);
          break;
        case application_state::stopping:
          require(busy.empty(), "it stops while another one starts or stops");
          require(!up.empty() && up.back() == e.name, "it stops before one that was started later");
          busy = e.name;
          break;
        case application_state::ended:
          if (busy == e.name) busy.clear();
          std::erase(up, e.name);
          break;
      }
    }
  }
  [[nodiscard]] const application_options& options_of(const std::string& name) const {
    return *std::ranges::find(apps, name, &application_options::name);
  }
};

void trouble(random_program& p, running_program& running) {
  sim::dice& dice = p.w.chance();
  switch (dice.below(8)) {
    case 0: p.n.raise(os_signal::terminate); break;
    case 1: running.stop(); break;
    case 2:
      if (const pid who = p.any_child()) p.n.rt().kill(who);
      break;
    case 3:
      if (!dice.chance(0.1)) break;
      running.kill();
      break;
    default:
      if (const pid who = p.any_child()) p.n.rt().send(who, part::finish{exit_reason::normal()});
      break;
  }
}

program_end any_program(sim::world& w) {
  random_program p{w};
  const pid collector = p.n.rt().spawn(collects, &p.events);
  w.settle();
  const std::size_t size = 1 + w.chance().below(6);
  for (std::size_t i = 0; i < size; ++i) p.make_app(i);
  std::vector<application> shuffled;
  for (const auto& app : p.apps)
    shuffled.emplace(shuffled.begin() + static_cast<std::ptrdiff_t>(w.chance().below(shuffled.size() + 1)), app);
  std::optional<running_program> running = applications{shuffled}.start(p.n.rt());
  int signals = 0;
  for (int i = 0; i < 12 && !running->ended(); ++i) {
    w.run_for(w.chance().between(0ms, 10ms));
    trouble(p, *running);
  }
  if (!running->ended() && w.chance().chance(0.2)) {
    while (!running->ended()) {
      require(++signals < 4, "two signals and it still runs");
      p.n.raise(os_signal::interrupt);
      w.settle();
    }
  }
  running->stop();
  w.run_for(1h);
  p.n.rt().kill(collector);
  w.settle();
  const auto out = running->ended();
  require(out.has_value(), "it does not stop");
  const bool hard = out->what == program_end::stopped_hard;
  require(p.n.rt().snapshot().empty(), "processes are left");
  p.check_hooks(!hard);
  p.check_order();
  if (out->what == program_end::start_failed || out->what == program_end::gave_up)
    require(out->text.find("application \"app") == 0, "a text that names the application");
  running.reset();
  p.n.crash();
  return out->what;
}

TEST(random_programs, start_and_stop_in_order_whatever_happens) {
  std::map<program_end, int> ends;
  seeds::hold(3000, [&](sim::world& w) { ++ends[any_program(w)]; });
  if (!seeds::all_of(3000)) return;
  for (const program_end each : {program_end::done, program_end::stopped, program_end::gave_up,
                                 program_end::start_failed, program_end::stopped_hard})
    EXPECT_GT(ends[each], 20) << to_string(each) << ": the seeds do not reach it often enough";
}

}  // namespace
