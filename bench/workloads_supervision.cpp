// Supervisors and supervised servers. bench/peers has the same workloads with OTP's supervisors, and some with CAF.
//
// The layouts are those that suit Erlang best: for example a hundred supervisors with one child each. `restarts_one`
// and `restart_latency_one` are the same with one supervisor.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "workload.hpp"

namespace coppice_bench {

// A server whose handler is a coroutine. Not in the unnamed namespace: g++ 12 warns of frames that hold such a class.
struct waiting_server {
  struct ask {
    using reply = std::int64_t;
    std::int64_t n;
  };
  using protocol = coppice::protocol<ask>;
  task<std::int64_t> handle(ask a) { co_return total += a.n; }
  std::int64_t total = 0;
};

namespace {

using coppice::child;
using coppice::strategy;
using coppice::supervisor;
using coppice::supervisor_spec;
using std::chrono::nanoseconds;

constexpr nanoseconds short_window = std::chrono::seconds{1};
constexpr nanoseconds long_window = std::chrono::seconds{60};

// ------------------------------------------------------------------ utilities

// The limit of restarts is never reached.
ref<supervisor> start(runtime& rt, std::vector<coppice::child_spec> children, nanoseconds window = short_window,
                      strategy how = strategy::one_for_one) {
  supervisor_spec spec{
      .strategy = how, .limit = {.restarts = 1'000'000'000, .within = window}, .children = std::move(children)};
  const auto started = coppice::start_supervisor(rt, std::move(spec));
  expect(started.has_value(), "a supervisor did not start");
  return *started;
}

template <class T, class... Args>
std::vector<coppice::child_spec> children_of_type(std::int64_t n, const Args&... args) {
  std::vector<coppice::child_spec> all;
  all.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) all.push_back(child<T>(args...).with({.id = std::to_string(i)}));
  return all;
}

// Leaves out the first tenth, which is the warm-up.
std::vector<double> warm(const std::vector<double>& laps) {
  return {laps.begin() + static_cast<std::ptrdiff_t>(laps.size() / 10), laps.end()};
}

double percentile(std::vector<double> laps, std::size_t percent) {
  std::ranges::sort(laps);
  return laps[laps.size() * percent / 100];
}

struct crash {};

// A server that replies or crashes, as the message says.
struct crashing {
  struct ask {
    using reply = std::int64_t;
    std::int64_t n;
  };
  static std::int64_t answer(ask a) { return a.n; }
  static void fail(self& me) { me.stop(exit_reason::error("crash")); }
};

// ------------------------------------------------------------ restart latency

struct up {
  std::size_t supervisor;
  pid who;
};

// Notifies a client when it has started.
struct announced : crashing {
  announced(pid c, std::size_t s) : client{c}, supervisor{s} {}
  void init(self& me) const { me.send(client, up{supervisor, me.id()}); }
  static std::int64_t handle(ask a) { return answer(a); }
  static void handle(crash, self& me) { fail(me); }
  pid client;
  std::size_t supervisor;
};

// Measures the time from the request to crash until the successor has replied, one after the other.
task<> restart_client(self& me, std::size_t supervisors, std::size_t n, std::vector<double>* laps, finish_line* end) {
  std::vector<ref<announced>> children(supervisors);
  for (std::size_t i = 0; i < supervisors; ++i) {
    const up first = co_await me.receive<up>();
    children[first.supervisor] = ref<announced>{first.who};
  }
  for (std::size_t i = 0; i < n; ++i) {
    ref<announced>& one = children[i % supervisors];
    const auto start = steady_clock::now();
    one.cast<crash>();
    const up next = co_await me.receive<up>();
    one = ref<announced>{next.who};
    const auto answer = co_await one.call<announced::ask>(1);
    laps->push_back(seconds(steady_clock::now() - start) * 1e6);
    expect(answer.has_value(), "the successor does not answer");
  }
  end->arrive();
}

// In us.
std::vector<double> restart_laps(const bench& b, std::size_t supervisors, nanoseconds window) {
  finish_line end;
  std::vector<double> laps;
  const auto n = static_cast<std::size_t>(b.of(20'000));
  laps.reserve(n);
  const pid client = b.rt.spawn(restart_client, supervisors, n, &laps, &end);
  for (std::size_t i = 0; i < supervisors; ++i) start(b.rt, children_of_type<announced>(1, client, i), window);
  end.wait();
  return warm(laps);
}
template <std::size_t supervisors, std::size_t percent>
double restart_latency(const bench& b) {
  return percentile(restart_laps(b, supervisors, short_window), percent);
}
double restarts_window_us(const bench& b) { return percentile(restart_laps(b, 1, long_window), 50); }

// How many times longer the last tenth takes than the first.
double restarts_growth(const bench& b) {
  const auto laps = restart_laps(b, 1, long_window);
  const auto part = static_cast<std::ptrdiff_t>(laps.size() / 10);
  return percentile({laps.end() - part, laps.end()}, 50) / percentile({laps.begin(), laps.begin() + part}, 50);
}

// ----------------------------------------------------------- restarts a second

// Counts the children that have started; the n-th ends the storm.
struct storm {
  explicit storm(std::int64_t count) : n{count} {}
  bool goes_on() {
    const std::int64_t i = up.fetch_add(1, std::memory_order_relaxed) + 1;
    if (i == n) end.arrive();
    return i < n;
  }
  std::int64_t n;
  std::atomic<std::int64_t> up{0};
  finish_line end;
};

// Crashes as soon as it has started.
struct doomed : crashing {
  explicit doomed(storm* s) : in{s} {}
  void init(self& me) const {
    if (in->goes_on()) coppice::continue_next(me);
  }
  static void handle_continue(self& me) { fail(me); }
  static std::int64_t handle(ask a) { return answer(a); }
  storm* in;
};

double storm_rate(const bench& b, std::int64_t supervisors, std::int64_t each, nanoseconds window, std::int64_t n) {
  auto* s = new storm{n + supervisors * each};  // never freed: the last children still use it
  const auto begin = steady_clock::now();
  for (std::int64_t i = 0; i < supervisors; ++i) start(b.rt, children_of_type<doomed>(each, s), window);
  return static_cast<double>(n) / s->end.seconds_since(begin) / 1e3;
}

// The median of several storms after one warm-up storm. Each has its own supervisors.
double restarts(const bench& b, std::int64_t supervisors, std::int64_t each, nanoseconds window, std::size_t storms) {
  storm_rate(b, supervisors, each, window, b.of(2000));
  std::vector<double> rates(storms);
  for (double& rate : rates) rate = storm_rate(b, supervisors, each, window, b.of(20'000));
  return percentile(rates, 50);
}
double restarts_of_many(const bench& b) { return restarts(b, 100, 1, short_window, 5); }
double restarts_of_one(const bench& b) { return restarts(b, 1, 100, short_window, 5); }
double restarts_window(const bench& b) { return restarts(b, 1, 100, long_window, 1); }

// ----------------------------------------------------------------- one_for_all

// The n-th child that starts notifies a client.
struct counted : crashing {
  counted(std::atomic<std::int64_t>* u, std::int64_t count, pid c) : all_up{u}, n{count}, client{c} {}
  void init(self& me) const {
    if (all_up->fetch_add(1, std::memory_order_relaxed) + 1 == n) me.send(client, go{});
  }
  static std::int64_t handle(ask a) { return answer(a); }
  static void handle(crash, self& me) { fail(me); }
  std::atomic<std::int64_t>* all_up;
  std::int64_t n;
  pid client;
};

task<> one_for_all_client(self& me, std::int64_t n, std::atomic<std::int64_t>* all_up, std::vector<double>* laps,
                          std::size_t rounds, finish_line* end) {
  const meet m = co_await me.receive<meet>();
  const ref<supervisor> tree{m.other};
  co_await me.receive<go>();
  while (laps->size() < rounds) {
    const auto victim = co_await which_child(tree, std::to_string(n / 2));
    expect(victim.has_value(), "a child is missing");
    all_up->store(0);
    const auto start = steady_clock::now();
    ref<counted>{victim->who}.cast<crash>();
    co_await me.receive<go>();
    laps->push_back(seconds(steady_clock::now() - start) * 1e3);
  }
  end->arrive();
}
double one_for_all(const bench& b) {
  const std::int64_t n = b.of(1000);
  finish_line end;
  std::vector<double> laps;
  std::atomic<std::int64_t> all_up{0};
  const pid client = b.rt.spawn(one_for_all_client, n, &all_up, &laps, std::size_t{55}, &end);
  const auto tree = start(b.rt, children_of_type<counted>(n, &all_up, n, client), short_window, strategy::one_for_all);
  b.rt.send(client, meet{tree.id()});
  end.wait();
  return percentile(warm(laps), 50);
}

// -------------------------------------------------- start, stop, calls, memory

// A typical server.
struct plain_server {
  static constexpr bool traps_exits = false;
  using ask = crashing::ask;
  void init() { total = 0; }
  void terminate(const exit_reason&) { total = 0; }
  std::int64_t handle(ask a) { return total += a.n; }
  std::int64_t total = 1;
};

struct start_and_stop {
  double start_ms;
  double stop_ms;
};
start_and_stop measure(const bench& b) {
  auto children = children_of_type<plain_server>(b.of(100'000));
  const auto begin = steady_clock::now();
  const ref<supervisor> tree = start(b.rt, std::move(children));
  const auto all_up = steady_clock::now();
  const auto stopped = stop(b.rt, tree, exit_reason::shutdown());
  const auto all_down = steady_clock::now();
  expect(stopped.has_value(), "the supervisor did not stop");
  return {seconds(all_up - begin) * 1e3, seconds(all_down - all_up) * 1e3};
}
double start_children(const bench& b) { return measure(b).start_ms; }
double stop_children(const bench& b) { return measure(b).stop_ms; }

template <class Server>
task<> server_client(self& me, ref<Server> to, std::int64_t calls, finish_line* end) {
  co_await me.receive<go>();
  for (std::int64_t i = 0; i < calls; ++i) {
    const auto r = co_await to.template call<typename Server::ask>(1);
    expect(r.has_value(), "a call was not answered");
  }
  end->arrive();
}
template <class Server, std::int64_t clients, std::int64_t full>
double server_call(const bench& b) {
  const std::int64_t calls = b.of(full);
  const ref<supervisor> tree = start(b.rt, children_of_type<Server>(1));
  const auto server = b.rt.call(which_child(tree, "0"));
  expect(server.has_value(), "the server is missing");
  finish_line end{clients};
  std::vector<pid> from(clients);
  for (pid& p : from) p = b.rt.spawn(server_client<Server>, ref<Server>{server->who}, calls, &end);
  const auto begin = steady_clock::now();
  for (const pid p : from) b.rt.send(p, go{});
  return static_cast<double>(clients * calls) / end.seconds_since(begin) / 1e6;
}

double mem_supervised(const bench& b) {
  const std::int64_t n = b.of(100'000);
  const double before = resident_bytes();
  start(b.rt, children_of_type<plain_server>(n));
  settle(b.rt);
  return (resident_bytes() - before) / static_cast<double>(n);
}

}  // namespace

std::span<const workload> supervision_workloads() {
  static constexpr std::array all = std::to_array<workload>({
      {"restart_latency", "us", restart_latency<100, 50>},
      {"restart_latency_p99", "us", restart_latency<100, 99>},
      {"restart_latency_one", "us", restart_latency<1, 50>},
      {"restarts", "k/s", restarts_of_many},
      {"restarts_one", "k/s", restarts_of_one},
      {"restarts_window", "k/s", restarts_window},
      {"restarts_window_us", "us", restarts_window_us},
      {"restarts_growth", "last/first", restarts_growth},
      {"start_children", "ms", start_children},
      {"stop_children", "ms", stop_children},
      {"one_for_all", "ms", one_for_all},
      {"server_call", "M calls/s", server_call<plain_server, 1, 500'000>},
      {"server_call100", "M calls/s", server_call<plain_server, 100, 10'000>},
      {"server_call_task", "M calls/s", server_call<waiting_server, 1, 500'000>},
      {"mem_supervised", "bytes", mem_supervised},
      {"mem_supervised_min", "bytes", mem_supervised},  // our servers have no smaller form
  });
  return all;
}

}  // namespace coppice_bench
