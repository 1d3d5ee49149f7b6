// Processes: how they start, watch each other and end.
#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "workload.hpp"

namespace coppice_bench {

namespace {

// ----------------------------------------------------------- spawn and skynet

task<> one_shot(self&, ref<counter> to, std::int64_t n) {
  to.cast<item>(n);
  co_return;
}
struct one_shot_object {
  one_shot_object(self& me, ref<counter> to, std::int64_t n) {
    to.cast<item>(n);
    me.stop();
  }
};
enum class spawning { coroutines, objects, politely };
task<> spawn_parent(self& me, ref<counter> to, std::int64_t n, spawning how) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (how == spawning::objects)
      me.spawn<one_shot_object>(to, i);
    else
      me.spawn(one_shot, to, i);
    if (how == spawning::politely) co_await me.yield();
  }
}
template <spawning how>
double spawn(const bench& b) {
  const std::int64_t n = b.of(1'000'000);
  finish_line end;
  const ref<counter> to = b.rt.spawn<counter>(n, &end);
  const auto start = steady_clock::now();
  b.rt.spawn(spawn_parent, to, n, how);
  return static_cast<double>(n) / end.seconds_since(start) / 1e3;
}

task<> skynet_leaf(self& me, pid parent, std::int64_t number) {
  me.send(parent, item{number});
  co_return;
}
task<> skynet_node(self& me, pid parent, std::int64_t first, std::int64_t size) {
  const std::int64_t part = size / 10;
  for (std::int64_t i = 0; i < 10; ++i) {
    if (part == 1)
      me.spawn(skynet_leaf, me.id(), first + i);
    else
      me.spawn(skynet_node, me.id(), first + i * part, part);
  }
  std::int64_t sum = 0;
  for (int i = 0; i < 10; ++i) {
    const item part_sum = co_await me.receive<item>();
    sum += part_sum.n;
  }
  me.send(parent, item{sum});
}
task<> skynet_root(self& me, std::int64_t size, finish_line* end) {
  me.spawn(skynet_node, me.id(), std::int64_t{0}, size);
  const item sum = co_await me.receive<item>();
  expect(sum.n == size * (size - 1) / 2, "skynet's sum is wrong");
  end->arrive();
}
double skynet(const bench& b) {
  std::int64_t size = 10;
  while (size * 10 <= b.of(1'000'000)) size *= 10;
  finish_line end;
  const auto start = steady_clock::now();
  b.rt.spawn(skynet_root, size, &end);
  return end.seconds_since(start) * 1e3;
}

// --------------------------------------------------------- monitors and links

task<> monitor_loop(self& me, pid target, std::int64_t n, finish_line* end) {
  for (std::int64_t i = 0; i < n; ++i) {
    const coppice::monitor_ref r = me.monitor(target);
    me.demonitor(r);
  }
  end->arrive();
  co_return;
}
double monitor(const bench& b) {
  const std::int64_t n = b.of(1'000'000);
  finish_line end;
  const pid target = b.rt.spawn(idle);
  const auto start = steady_clock::now();
  b.rt.spawn(monitor_loop, target, n, &end);
  return static_cast<double>(n) / end.seconds_since(start) / 1e6;
}

task<> hub(self& me, std::int64_t n, std::vector<pid>* children, finish_line* linked) {
  for (std::int64_t i = 0; i < n; ++i) children->push_back(me.spawn_link(idle));
  linked->arrive();
  co_await me.receive<go>();
  me.stop(exit_reason::error("boom"));
}
task<> observer(self& me, const std::vector<pid>* children, finish_line* watching, finish_line* end) {
  for (const pid p : *children) me.monitor(p);
  watching->arrive();
  for (std::size_t i = 0; i < children->size(); ++i) {
    const coppice::down d = co_await me.receive<coppice::down>();
    expect(d.reason.what() == exit_reason::kind::error, "a child ended for another reason than the hub's");
  }
  end->arrive();
}
double links(const bench& b) {
  finish_line linked;
  finish_line watching;
  finish_line end;
  std::vector<pid> children;
  const pid center = b.rt.spawn(hub, b.of(100'000), &children, &linked);
  linked.wait();
  b.rt.spawn(observer, &children, &watching, &end);
  watching.wait();
  const auto start = steady_clock::now();
  b.rt.send(center, go{});
  return end.seconds_since(start) * 1e3;
}

// ----------------------------------------------------------- crashes, restarts

enum class failing { by_throw, by_stop };

struct fragile {
  struct ask {
    using reply = std::int64_t;
  };
  struct fail {
    failing how;
  };
  std::int64_t handle(ask) { return 1; }
  void handle(fail f, self& me) {
    if (f.how == failing::by_throw) throw std::runtime_error{"out of luck"};
    me.stop(exit_reason::error("out of luck"));
  }
};

// Measures the time from the request to fail until the next child has replied.
task<> restarter(self& me, std::vector<double>* laps, std::size_t n, failing how, finish_line* end) {
  me.trap_exits();
  ref<fragile> child = me.spawn_link<fragile>();
  while (laps->size() < n) {
    const auto start = steady_clock::now();
    child.cast<fragile::fail>(how);
    const coppice::exited x = co_await me.receive<coppice::exited>();
    expect(x.from == child.id() && x.reason.what() == exit_reason::kind::error, "another exit than the child's");
    child = me.spawn_link<fragile>();
    const auto up = co_await child.call<fragile::ask>();
    expect(up.has_value(), "the new child does not answer");
    laps->push_back(seconds(steady_clock::now() - start));
  }
  end->arrive();
}
template <failing how>
double restart(const bench& b) {
  finish_line end;
  std::vector<double> laps;
  const auto n = static_cast<std::size_t>(b.of(20'000));
  laps.reserve(n);
  b.rt.spawn(restarter, &laps, n, how, &end);
  end.wait();
  std::ranges::nth_element(laps, laps.begin() + static_cast<std::ptrdiff_t>(n / 2));
  return laps[n / 2] * 1e6;
}

void start_doomed(self& me, failing how) {
  const ref<fragile> child = me.spawn_link<fragile>();
  child.cast<fragile::fail>(how);
}
task<> storm_parent(self& me, std::int64_t restarts, failing how, finish_line* end) {
  me.trap_exits();
  for (int i = 0; i < 100; ++i) start_doomed(me, how);
  for (std::int64_t i = 0; i < restarts; ++i) {
    const coppice::exited x = co_await me.receive<coppice::exited>();
    expect(x.reason.what() == exit_reason::kind::error, "a child ended without failing");
    start_doomed(me, how);
  }
  end->arrive();
}
template <failing how>
double storm(const bench& b) {
  const std::int64_t restarts = b.of(200'000);
  finish_line end;
  const auto start = steady_clock::now();
  b.rt.spawn(storm_parent, restarts, how, &end);
  return static_cast<double>(restarts) / end.seconds_since(start) / 1e3;
}

// ------------------------------------------------------ under an application

struct bystander {};

// Another workload, while an application runs, as in a real program. The application subscribes to events, which must
// not slow down other processes.
template <double (*run)(const bench&)>
double under_application(const bench& b) {
  const coppice::application app{
      {.name = "bench", .supervise = {coppice::child<bystander>().with({.name = "bystander"})}}};
  [[maybe_unused]] static auto* running = new coppice::running_program{app.start(b.rt)};  // never stopped
  while (!b.rt.where("bystander")) std::this_thread::yield();
  return run(b);
}

}  // namespace

std::span<const workload> process_workloads() {
  static constexpr std::array all = std::to_array<workload>({
      {"spawn", "k/s", spawn<spawning::coroutines>},
      {"spawn_object", "k/s", spawn<spawning::objects>},
      {"spawn_polite", "k/s", spawn<spawning::politely>},
      {"spawn_application", "k/s", under_application<spawn<spawning::coroutines>>},
      {"skynet", "ms", skynet},
      {"monitor", "M pairs/s", monitor},
      {"links", "ms", links},
      {"restart_throw", "us", restart<failing::by_throw>},
      {"restart_stop", "us", restart<failing::by_stop>},
      {"storm_throw", "k/s", storm<failing::by_throw>},
      {"storm_stop", "k/s", storm<failing::by_stop>},
      {"storm_stop_application", "k/s", under_application<storm<failing::by_stop>>},
  });
  return all;
}

}  // namespace coppice_bench
