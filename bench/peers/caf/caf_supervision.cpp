// The supervision workloads of the CAF side. CAF has no supervisor, so these
// parents are made by hand, of monitors: whoever goes down is spawned again.
// They do less than a supervisor: there is no limit of restarts, no order and no
// time limit in stopping, and no start that waits for the child.
//
// Configuration, chosen to be CAF's best sensible one:
//  * A child crashes by quit() with an error, which is faster than an exception.
//    Where an exception is what is measured (actor_restart and actor_resume), its
//    handler turns it into an error without looking at it: the default one prints
//    a report.
//  * A parent spawns with `monitored` and reacts in its down handler; the hidden
//    spawn keeps its children out of the system's count of actors.
//  * restart_latency has parents of one child each, as on the Erlang side: one
//    parent with one child has the same median and a p99 twice as high. restarts
//    has one parent with a hundred children: a fifth faster than a hundred parents.

#include <algorithm>
#include <stdexcept>

#include "caf_bench.hpp"

namespace caf_bench {

namespace {

using caf::close_atom;

caf::error crash() { return caf::sec::runtime_error; }

// The first tenth only warms up.
double percentile(std::vector<double> laps, size_t percent) {
  laps.erase(laps.begin(), laps.begin() + laps.size() / 10);
  std::sort(laps.begin(), laps.end());
  return laps[laps.size() * percent / 100];
}

// ------------------------------------------------------------ restart latency

// Tells the client that it is up. Answers calls, and crashes when told so.
behavior announced(event_based_actor* self, const actor& client) {
  self->send(client, actor{self});
  return {[](int64_t x) { return x; }, [=](close_atom) { self->quit(crash()); }};
}

behavior announced_throwing(event_based_actor* self, const actor& client) {
  self->set_exception_handler([](std::exception_ptr&) { return crash(); });
  self->send(client, actor{self});
  return {[](int64_t x) { return x; }, [](close_atom) { throw std::runtime_error("crash"); }};
}

using child_fun = behavior (*)(event_based_actor*, const actor&);

behavior latency_parent(event_based_actor* self, actor client, child_fun child) {
  auto start = [=] { self->spawn<caf::monitored + caf::hidden>(child, client); };
  self->set_down_handler([=](caf::down_msg&) { start(); });
  start();
  return {[](int64_t) {}};
}

struct latency_state {
  actors children;  // of every parent
  size_t next = 0;
  clk::time_point start;
  std::vector<double> laps;
};

using latency_actor = stateful_actor<latency_state>;

void crash_next(latency_actor* self, int64_t n, finish_line* end) {
  auto& s = self->state;
  if (s.laps.size() == size_t(n)) {
    end->cross();
    return;
  }
  s.start = clk::now();
  self->send(s.children[s.next], close_atom::value);
}

// Crashes the children one after the other. A child that comes up is the first
// of its parent, or the successor of the one that was just crashed.
behavior latency_client(latency_actor* self, size_t parents, int64_t n, std::vector<double>* laps, finish_line* end) {
  self->state.laps.reserve(n);
  return {[=](const actor& up) {
    auto& s = self->state;
    if (s.children.size() < parents) {
      s.children.push_back(up);
      if (s.children.size() == parents) crash_next(self, n, end);
      return;
    }
    s.children[s.next] = up;
    self->request(up, std::chrono::seconds(5), int64_t{1}).then([=](int64_t) {
      auto& s = self->state;
      s.laps.push_back(seconds(clk::now() - s.start) * 1e6);
      s.next = (s.next + 1) % parents;
      if (s.laps.size() == size_t(n)) *laps = s.laps;
      crash_next(self, n, end);
    });
  }};
}

std::vector<double> restart_laps(actor_system& sys, child_fun child = announced) {
  constexpr size_t parents = 100;
  constexpr int64_t n = 20000;
  finish_line end;
  std::vector<double> laps;
  auto client = sys.spawn(latency_client, parents, n, &laps, &end);
  actors keep;
  for (size_t i = 0; i < parents; ++i) keep.push_back(sys.spawn(latency_parent, client, child));
  end.wait();
  return laps;
}

double restart_latency(actor_system& sys) { return percentile(restart_laps(sys), 50); }
double restart_latency_p99(actor_system& sys) { return percentile(restart_laps(sys), 99); }
double restart_thrown(actor_system& sys) { return percentile(restart_laps(sys, announced_throwing), 50); }

// ----------------------------------------------------------- restarts a second

// Counts the children that came up; the one that makes it `n` ends the storm.
struct storm {
  int64_t n;
  std::atomic<int64_t> up{0};
  finish_line end;
};

// Crashes as soon as it is up.
behavior doomed(event_based_actor* self, storm* s) {
  auto i = s->up.fetch_add(1) + 1;
  if (i == s->n) s->end.cross();
  if (i < s->n) self->send(self, close_atom::value);
  return {[=](close_atom) { self->quit(crash()); }};
}

behavior storm_parent(event_based_actor* self, int64_t children, storm* s) {
  self->set_down_handler([=](caf::down_msg&) { self->spawn<caf::monitored + caf::hidden>(doomed, s); });
  for (int64_t i = 0; i < children; ++i) self->spawn<caf::monitored + caf::hidden>(doomed, s);
  return {[](int64_t) {}};
}

double storm_rate(actor_system& sys, int64_t n) {
  constexpr int64_t children = 100;
  auto* s = new storm{n + children};  // outlives this: the last children still look at it
  auto start = clk::now();
  auto parent = sys.spawn(storm_parent, children, s);
  return n / seconds(s->end.wait() - start) / 1e3;
}

// The median of some storms; one storm before them warms up. Each has a parent
// of its own.
double restarts(actor_system& sys) {
  storm_rate(sys, 2000);
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i) rates.push_back(storm_rate(sys, 20000));
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

// ----------------------------------------------------------------- one_for_all

struct all_state {
  actors children;
  size_t down = 0;
};

behavior counted(event_based_actor* self, std::atomic<int64_t>* up, int64_t n, const actor& client) {
  if (up->fetch_add(1) + 1 == n) self->send(client, caf::ok_atom::value);
  return {[](int64_t x) { return x; }, [=](close_atom) { self->quit(crash()); }};
}

// The first that goes down takes all others with it; when all are down, all are
// spawned again.
behavior all_parent(stateful_actor<all_state>* self, int64_t n, std::atomic<int64_t>* up, actor client) {
  auto start = [=] {
    up->store(0);
    for (auto& x : self->state.children) x = self->spawn<caf::monitored + caf::hidden>(counted, up, n, client);
  };
  self->set_down_handler([=](caf::down_msg& down) {
    auto& s = self->state;
    if (s.down++ == 0)
      for (auto& x : s.children)
        if (x != down.source) self->send_exit(x, caf::exit_reason::user_shutdown);
    if (s.down < s.children.size()) return;
    s.down = 0;
    start();
  });
  self->state.children.resize(n);
  return {[=](caf::ok_atom) { start(); },
          [=](int64_t which) { self->send(self->state.children[which], close_atom::value); }};
}

struct all_client_state {
  actor parent;
  clk::time_point start;
  std::vector<double> laps;
};

behavior all_client(stateful_actor<all_client_state>* self, int64_t n, size_t rounds, std::vector<double>* laps,
                    finish_line* end) {
  return {[=](const actor& parent) {
            self->state.parent = parent;
            self->send(parent, caf::ok_atom::value);
          },
          [=](caf::ok_atom) {
            auto& s = self->state;
            auto now = clk::now();
            if (s.start != clk::time_point{}) laps->push_back(seconds(now - s.start) * 1e3);
            if (laps->size() == rounds) return end->cross();
            s.start = clk::now();
            self->send(s.parent, n / 2);
          }};
}

double one_for_all(actor_system& sys) {
  constexpr int64_t n = 1000;
  finish_line end;
  std::vector<double> laps;
  std::atomic<int64_t> up{0};
  auto client = sys.spawn(all_client, n, 55, &laps, &end);
  auto parent = sys.spawn(all_parent, n, &up, client);
  caf::anon_send(client, parent);
  end.wait();
  return percentile(laps, 50);
}

}  // namespace

const std::vector<workload>& supervision_workloads() {
  static const std::vector<workload> all = {
      {"restart_latency", "stealing", restart_latency},
      {"restart_latency_p99", "stealing", restart_latency_p99},
      {"restarts", "sharing", restarts},
      {"one_for_all", "sharing", one_for_all},
      {"actor_restart", "sharing", restart_thrown},
      {"actor_resume", "sharing", restart_thrown},  // an actor that has failed can't go on
      {"actor_restart_fail", "stealing", restart_latency},
      {"actor_resume_fail", "stealing", restart_latency},
  };
  return all;
}

}  // namespace caf_bench
