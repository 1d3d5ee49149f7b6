// The workloads of coppice_bench. Those that bench/peers has too do the same work as there: the same numbers of
// processes and messages, and a payload of one 64-bit integer.
//
// Configuration, chosen to be our best sensible one:
//  * Whatever only reacts is an object with handlers, the smallest and fastest kind of process; whatever waits in the
//    middle of its work (clients, parents) is a coroutine. The workloads named *_coro have coroutines on both sides.
//  * Messages to objects go through a `ref`, so that they carry their handler; timers can only send by pid.
//  * Options are the defaults, except for the number of workers, and for the log: a report for each of 200,000 crashes
//    would measure the terminal.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <semaphore>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <coppice/coppice.hpp>

namespace {

using coppice::exit_reason;
using coppice::pid;
using coppice::ref;
using coppice::runtime;
using coppice::self;
using coppice::task;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// ------------------------------------------------------------------ utilities

struct go {};
struct item {
  std::int64_t n;
};
struct meet {
  pid other;
};

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "coppice_bench: %s\n", what);
  std::_Exit(1);
}

double seconds(steady_clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Where a workload is over, once so many parties have arrived. The time is taken there, so that waking the main thread
// is not measured.
class finish_line {
 public:
  explicit finish_line(std::int64_t parties = 1) : left_{parties} {}
  void arrive() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    end_ = steady_clock::now();
    reached_.release();
  }
  void wait() { reached_.acquire(); }
  double seconds_since(steady_clock::time_point start) {
    wait();
    return seconds(end_ - start);
  }

 private:
  std::atomic<std::int64_t> left_;
  steady_clock::time_point end_;
  std::binary_semaphore reached_{0};
};

// Whole milliseconds from 0 to `limit`, by the generator that the peers use.
class random_ms {
 public:
  explicit random_ms(std::uint32_t limit) : range_{limit + 1} {}
  milliseconds next() {
    state_ = state_ * 1664525U + 1013904223U;
    return milliseconds{(std::uint64_t{state_ >> 8U} * range_) >> 24U};
  }

 private:
  std::uint32_t range_;
  std::uint32_t state_ = 1;
};

double cpu_ms() {
  rusage r{};
  ::getrusage(RUSAGE_SELF, &r);
  const auto ms = [](auto s, auto us) { return static_cast<double>(s) * 1e3 + static_cast<double>(us) / 1e3; };
  return ms(r.ru_utime.tv_sec + r.ru_stime.tv_sec, r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

double resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  expect(resident > 0, "cannot read /proc/self/statm");
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

struct bench {
  runtime& rt;
  double scale;
  [[nodiscard]] std::int64_t of(std::int64_t full) const {
    return std::max(1L, std::lround(static_cast<double>(full) * scale));
  }
};

// Until no worker has taken up anything for a while.
void settle(runtime& rt) {
  for (std::uint64_t before = 1, now = 0; before != now;) {
    before = rt.counters().turns;
    std::this_thread::sleep_for(milliseconds{50});
    now = rt.counters().turns;
  }
}

// Counts down to the end of the workload.
struct counter {
  using protocol = coppice::protocol<item>;
  std::int64_t left;
  finish_line* end;
  void handle(item) {
    if (--left == 0) end->arrive();
  }
};

task<> idle(self& me) { co_await me.receive<go>(); }

// --------------------------------------------------- pingpong, pairs and ring

struct ping;
struct pong {
  ref<ping> other{};
  void handle(meet m) { other = ref<ping>{m.other}; }
  void handle(item i);
};
struct ping {
  ref<pong> other;
  std::int64_t left;
  finish_line* end;
  // The first one is the go, every later one ends a round trip.
  void handle(item i) {
    if (left-- == 0) return end->arrive();
    other.cast<item>(i.n);
  }
};
void pong::handle(item i) { other.cast<item>(i.n); }

double round_trips_per_s(const bench& b, std::int64_t pairs, std::int64_t trips) {
  finish_line end{pairs};
  std::vector<ref<ping>> pings;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const ref<pong> other = b.rt.spawn<pong>();
    pings.push_back(b.rt.spawn<ping>(other, trips, &end));
    b.rt.cast<meet>(other, pings.back().id());
  }
  const auto start = steady_clock::now();
  for (const ref<ping> p : pings) b.rt.cast<item>(p, 1);
  return static_cast<double>(pairs * trips) / end.seconds_since(start);
}
double pingpong(const bench& b) { return round_trips_per_s(b, 1, b.of(1'000'000)) / 1e6; }
double pairs(const bench& b) { return 2 * round_trips_per_s(b, 1000, b.of(1000)) / 1e6; }

task<> pong_coro(self& me) {
  const meet m = co_await me.receive<meet>();
  for (;;) {
    const item i = co_await me.receive<item>();
    me.send(m.other, i);
  }
}
task<> ping_coro(self& me, pid other, std::int64_t trips, finish_line* end) {
  co_await me.receive<go>();
  for (std::int64_t n = trips; n > 0; --n) {
    me.send(other, item{n});
    const item back = co_await me.receive<item>();
    expect(back.n == n, "a wrong ball came back");
  }
  end->arrive();
}
double round_trips_per_s_coro(const bench& b, std::int64_t pairs, std::int64_t trips) {
  finish_line end{pairs};
  std::vector<pid> pings;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const pid other = b.rt.spawn(pong_coro);
    pings.push_back(b.rt.spawn(ping_coro, other, trips, &end));
    b.rt.send(other, meet{pings.back()});
  }
  const auto start = steady_clock::now();
  for (const pid p : pings) b.rt.send(p, go{});
  return static_cast<double>(pairs * trips) / end.seconds_since(start);
}
double pingpong_coro(const bench& b) { return round_trips_per_s_coro(b, 1, b.of(1'000'000)) / 1e6; }
double pairs_coro(const bench& b) { return 2 * round_trips_per_s_coro(b, 1000, b.of(1000)) / 1e6; }

struct ring_node {
  finish_line* end;
  ref<ring_node> next{};
  void handle(meet m) { next = ref<ring_node>{m.other}; }
  void handle(item hops) {
    if (hops.n == 0) return end->arrive();
    next.cast<item>(hops.n - 1);
  }
};
double ring(const bench& b) {
  const std::int64_t hops = b.of(1'000'000);
  finish_line end;
  std::vector<ref<ring_node>> nodes(503);
  for (auto& node : nodes) node = b.rt.spawn<ring_node>(&end);
  for (std::size_t i = 0; i < nodes.size(); ++i) b.rt.cast<meet>(nodes[i], nodes[(i + 1) % nodes.size()].id());
  const auto start = steady_clock::now();
  b.rt.cast<item>(nodes[0], hops);
  return static_cast<double>(hops) / end.seconds_since(start) / 1e6;
}

// --------------------------------------------------------------------- fan-in

struct sender {
  ref<counter> to;
  std::int64_t n;
  void handle(go) {
    for (std::int64_t i = 0; i < n; ++i) to.cast<item>(i);
  }
};
template <std::int64_t senders>
double fanin(const bench& b) {
  const std::int64_t each = b.of(5'000'000 / senders);
  finish_line end;
  const ref<counter> to = b.rt.spawn<counter>(each * senders, &end);
  std::vector<ref<sender>> all(senders);
  for (auto& one : all) one = b.rt.spawn<sender>(to, each);
  const auto start = steady_clock::now();
  for (const ref<sender> s : all) b.rt.cast<go>(s);
  return static_cast<double>(each * senders) / end.seconds_since(start) / 1e6;
}

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

// ---------------------------------------------------------------------- calls

struct server {
  struct bump {
    using reply = std::int64_t;
    std::int64_t by;
  };
  std::int64_t value = 0;
  std::int64_t handle(bump m) { return value += m.by; }
};
task<> client(self& me, ref<server> to, std::int64_t calls, finish_line* end) {
  co_await me.receive<go>();
  for (std::int64_t i = 0; i < calls; ++i) {
    const auto r = co_await to.call<server::bump>(1);
    expect(r.has_value(), "a call was not answered");
  }
  end->arrive();
}
double m_calls_per_s(const bench& b, std::size_t clients, std::size_t servers, std::int64_t calls) {
  finish_line end{static_cast<std::int64_t>(clients)};
  std::vector<ref<server>> to(servers);
  for (auto& one : to) one = b.rt.spawn<server>();
  std::vector<pid> from(clients);
  for (std::size_t i = 0; i < clients; ++i) from[i] = b.rt.spawn(client, to[i % servers], calls, &end);
  const auto start = steady_clock::now();
  for (const pid p : from) b.rt.send(p, go{});
  return static_cast<double>(clients) * static_cast<double>(calls) / end.seconds_since(start) / 1e6;
}
double call(const bench& b) { return m_calls_per_s(b, 1, 1, b.of(500'000)); }
double call100(const bench& b) { return m_calls_per_s(b, 100, 1, b.of(10'000)); }
double callpairs(const bench& b) { return m_calls_per_s(b, 1000, 1000, b.of(1000)); }

// --------------------------------------------------------------------- timers

task<> armer(self& me, ref<counter> to, std::int64_t n, std::uint32_t limit, finish_line* armed) {
  random_ms delay{limit};
  for (std::int64_t i = 0; i < n; ++i) me.send_after(delay.next(), to.id(), item{i});
  armed->arrive();
  co_return;
}
// Ends with the arming: waiting up to 5 s for the rest would measure nothing.
double timers(const bench& b) {
  const std::int64_t n = b.of(1'000'000);
  finish_line armed;
  finish_line fired;
  const ref<counter> to = b.rt.spawn<counter>(n, &fired);
  const auto start = steady_clock::now();
  b.rt.spawn(armer, to, n, 5000U, &armed);
  return armed.seconds_since(start) * 1e9 / static_cast<double>(n);
}
double timer_fire(const bench& b) {
  const std::int64_t n = b.of(100'000);
  finish_line armed;
  finish_line fired;
  const ref<counter> to = b.rt.spawn<counter>(n, &fired);
  const double before = cpu_ms();
  b.rt.spawn(armer, to, n, 2000U, &armed);
  fired.wait();
  return cpu_ms() - before;
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

// ------------------------------------------- memory, idling and being watched

struct receiver {
  std::int64_t total = 0;
  void handle(item i) { total += i.n; }
};
enum class population { coroutines, objects };

// Lets its children start now and then: what is measured afterwards are processes that wait, and not the first letters
// of a million that have not started yet.
task<> populate(self& me, std::int64_t n, population of, finish_line* end) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (of == population::coroutines)
      me.spawn(idle);
    else
      me.spawn<receiver>();
    if (i % 64 == 63) co_await me.yield();
  }
  end->arrive();
}
void start_idle(const bench& b, std::int64_t n, population of) {
  finish_line started;
  b.rt.spawn(populate, n, of, &started);
  started.wait();
  settle(b.rt);
}
template <population of, std::int64_t full>
double bytes_each(const bench& b) {
  const std::int64_t n = b.of(full);
  const double before = resident_bytes();
  start_idle(b, n, of);
  return (resident_bytes() - before) / static_cast<double>(n);
}
double idle_runtime(const bench& b) {
  start_idle(b, b.of(1000), population::coroutines);
  const auto start = steady_clock::now();
  const double before = cpu_ms();
  std::this_thread::sleep_for(std::chrono::seconds{2});
  return (cpu_ms() - before) / seconds(steady_clock::now() - start);
}
double snapshot(const bench& b) {
  const std::int64_t n = b.of(1'000'000);
  start_idle(b, n, population::coroutines);
  const auto start = steady_clock::now();
  const auto all = b.rt.snapshot();
  const auto end = steady_clock::now();
  expect(std::cmp_equal(all.size(), n), "the snapshot has another number of processes");
  return seconds(end - start) * 1e3;
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

// From the order to fail until the next child has answered.
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

// ---------------------------------------------------------------------- table

struct workload {
  std::string_view name;
  std::string_view unit;  // as in bench/run.py
  double (*run)(const bench&);
};
constexpr std::array workloads = std::to_array<workload>({
    {"pingpong", "M round trips/s", pingpong},
    {"pingpong_coro", "M round trips/s", pingpong_coro},
    {"pairs", "M msg/s", pairs},
    {"pairs_coro", "M msg/s", pairs_coro},
    {"fanin8", "M msg/s", fanin<8>},
    {"fanin100", "M msg/s", fanin<100>},
    {"ring", "M hops/s", ring},
    {"spawn", "k/s", spawn<spawning::coroutines>},
    {"spawn_object", "k/s", spawn<spawning::objects>},
    {"spawn_polite", "k/s", spawn<spawning::politely>},
    {"skynet", "ms", skynet},
    {"call", "M calls/s", call},
    {"call100", "M calls/s", call100},
    {"callpairs", "M calls/s", callpairs},
    {"timers", "ns/timer", timers},
    {"timer_fire", "CPU ms", timer_fire},
    {"monitor", "M pairs/s", monitor},
    {"links", "ms", links},
    {"mem_process_100k", "bytes", bytes_each<population::coroutines, 100'000>},
    {"mem_process_1m", "bytes", bytes_each<population::coroutines, 1'000'000>},
    {"mem_receiver_100k", "bytes", bytes_each<population::objects, 100'000>},
    {"mem_receiver_1m", "bytes", bytes_each<population::objects, 1'000'000>},
    {"restart_throw", "us", restart<failing::by_throw>},
    {"restart_stop", "us", restart<failing::by_stop>},
    {"storm_throw", "k/s", storm<failing::by_throw>},
    {"storm_stop", "k/s", storm<failing::by_stop>},
    {"idle", "CPU ms per s", idle_runtime},
    {"snapshot", "ms", snapshot},
});

}  // namespace

// What coppice_bench.cpp declares, too.

std::vector<std::pair<std::string_view, std::string_view>> names_and_units() {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  all.reserve(workloads.size());
  for (const workload& w : workloads) all.emplace_back(w.name, w.unit);
  return all;
}

double run_workload(std::string_view name, unsigned threads, double scale) {
  const auto* w = std::ranges::find(workloads, name, &workload::name);
  if (w == workloads.end()) return std::numeric_limits<double>::quiet_NaN();
  coppice::runtime_options options;
  options.workers = threads;
  options.level = coppice::log_level::off;
  // Never destroyed: freeing a million processes is not part of any measurement.
  auto* rt = new runtime{options};
  return w->run({*rt, scale});
}
