// The CAF 0.17 side of the benchmark: caf_bench WORKLOAD [stealing|sharing]
//
// Runs one workload with two scheduler threads and prints "WORKLOAD VALUE".
// bench/run.py compiles it (g++ -std=c++17 -O2 -DNDEBUG) against Debian's
// libcaf_core and says which unit each value has.
//
// Configuration, chosen to be CAF's best sensible one:
//  * Dynamically typed, event-based actors: the cheapest kind, and what CAF's
//    manual starts from. Blocking actors have a thread each and are slower.
//  * Payloads are a bare int64_t, so a message is one small allocation.
//  * The scheduler policy is per workload (see `workloads` at the end), the
//    faster of the two as measured on two cores. The second argument
//    overrides it, to check that choice. "stealing" is CAF's default; its queue
//    takes O(length) to steal from, so it collapses when many actors are
//    runnable at once; "sharing" is one central queue and does not.
//  * All other options are CAF's defaults (no limit on messages per turn).
//
// Actors are ended by CAF once nobody holds a handle to them, so whatever has
// to stay alive is held by `keep`, or by a cycle that is never broken.

#include "caf_bench.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace caf_bench {

namespace {

// ---------------------------------------------------------------- utilities

// Whole milliseconds from 0 to `limit`. The generator costs a few ns, so it does
// not show in the timer figures. The Erlang side has the same one.
class random_ms {
 public:
  explicit random_ms(uint32_t limit) : range_(limit + 1) {}
  std::chrono::milliseconds next() {
    state_ = state_ * 1664525u + 1013904223u;
    return std::chrono::milliseconds((uint64_t{state_ >> 8} * range_) >> 24);
  }

 private:
  uint32_t range_;
  uint32_t state_ = 1;
};

double cpu_ms() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  auto ms = [](const timeval& t) { return t.tv_sec * 1e3 + t.tv_usec / 1e3; };
  return ms(r.ru_utime) + ms(r.ru_stime);
}

int64_t resident_bytes() {
  long total = 0, resident = 0;
  auto* f = std::fopen("/proc/self/statm", "r");
  if (f == nullptr || std::fscanf(f, "%ld %ld", &total, &resident) != 2) std::abort();
  std::fclose(f);
  return int64_t{resident} * sysconf(_SC_PAGESIZE);
}

// ------------------------------------------------- pingpong, pairs, and ring

// Sends to the sender rather than returning the value as a reply: that takes
// a shorter way through CAF (some 10 % faster).
behavior pong(event_based_actor* self) {
  return {[=](int64_t x) { self->send(caf::actor_cast<actor>(self->current_sender()), x); }};
}

behavior ping(event_based_actor* self, actor peer, int64_t trips, countdown* end) {
  // The first message is the go, every later one ends a round trip.
  return {[=](int64_t x) mutable {
    if (trips-- > 0)
      self->send(peer, x);
    else
      end->arrive();
  }};
}

double round_trips_per_s(actor_system& sys, int64_t pairs, int64_t trips) {
  countdown end{pairs};
  std::vector<actor> keep;
  for (int64_t i = 0; i < pairs; ++i) keep.push_back(sys.spawn(ping, sys.spawn(pong), trips, &end));
  auto start = clk::now();
  for (auto& x : keep) go(x);
  return pairs * trips / seconds(end.wait() - start);
}

double pingpong(actor_system& sys) { return round_trips_per_s(sys, 1, 1000000) / 1e6; }

double pairs(actor_system& sys) { return 2 * round_trips_per_s(sys, 1000, 1000) / 1e6; }

struct ring_state {
  actor next;
};

behavior ring_node(stateful_actor<ring_state>* self, finish_line* end) {
  return {[=](const actor& next) { self->state.next = next; },
          [=](int64_t hops) {
            if (hops > 0)
              self->send(self->state.next, hops - 1);
            else
              end->cross();
          }};
}

double ring(actor_system& sys) {
  constexpr int64_t nodes = 503, hops = 1000000;
  finish_line end;
  std::vector<actor> keep;
  for (int64_t i = 0; i < nodes; ++i) keep.push_back(sys.spawn(ring_node, &end));
  for (int64_t i = 0; i < nodes; ++i) caf::anon_send(keep[i], keep[(i + 1) % nodes]);
  auto start = clk::now();
  caf::anon_send(keep[0], hops);
  return hops / seconds(end.wait() - start) / 1e6;
}

// -------------------------------------------------------------------- fan-in

behavior counter(event_based_actor*, int64_t n, finish_line* end) {
  return {[=](int64_t) mutable {
    if (--n == 0) end->cross();
  }};
}

behavior burst_sender(event_based_actor* self, actor to, int64_t n) {
  return {[=](int64_t) {
    for (int64_t i = 0; i < n; ++i) self->send(to, i);
  }};
}

double fanin(actor_system& sys, int64_t senders) {
  constexpr int64_t total = 5000000;
  finish_line end;
  auto to = sys.spawn(counter, total, &end);
  std::vector<actor> keep;
  for (int64_t i = 0; i < senders; ++i) keep.push_back(sys.spawn(burst_sender, to, total / senders));
  auto start = clk::now();
  for (auto& x : keep) go(x);
  return total / seconds(end.wait() - start) / 1e6;
}

double fanin8(actor_system& sys) { return fanin(sys, 8); }

double fanin100(actor_system& sys) { return fanin(sys, 100); }

// ----------------------------------------------------------- spawn and skynet

// Sends and returns no behavior, which ends the actor.
void one_shot(event_based_actor* self, const actor& to, int64_t value) { self->send(to, value); }

behavior spawn_parent(event_based_actor* self, actor to, int64_t n) {
  return {[=](int64_t) {
    for (int64_t i = 0; i < n; ++i) self->spawn<caf::hidden>(one_shot, to, i);
  }};
}

double spawn_n(actor_system& sys, int64_t n) {
  finish_line end;
  auto to = sys.spawn(counter, n, &end);
  auto parent = sys.spawn(spawn_parent, to, n);
  auto start = clk::now();
  go(parent);
  return n / seconds(end.wait() - start) / 1e3;
}

double spawn(actor_system& sys) { return spawn_n(sys, 1000000); }

struct skynet_state {
  int64_t sum = 0;
  int left = 10;
};

behavior skynet_node(stateful_actor<skynet_state>* self, actor parent, int64_t first, int64_t size) {
  auto part = size / 10;
  for (int64_t i = 0; i < 10; ++i) {
    if (part == 1)
      self->spawn<caf::hidden>(one_shot, actor{self}, first + i);
    else
      self->spawn<caf::hidden>(skynet_node, actor{self}, first + i * part, part);
  }
  return {[=](int64_t x) {
    self->state.sum += x;
    if (--self->state.left == 0) {
      self->send(parent, self->state.sum);
      self->quit();
    }
  }};
}

behavior skynet_root(event_based_actor*, finish_line* end) {
  return {[=](int64_t sum) {
    if (sum != 499999500000) std::abort();
    end->cross();
  }};
}

double skynet(actor_system& sys) {
  finish_line end;
  auto root = sys.spawn(skynet_root, &end);
  auto start = clk::now();
  sys.spawn<caf::hidden>(skynet_node, root, int64_t{0}, int64_t{1000000});
  return seconds(end.wait() - start) * 1e3;
}

// --------------------------------------------------------------------- calls

behavior server(event_based_actor*) {
  return {[](int64_t x) { return x; }};
}

struct client_state {
  actor server;
  int64_t left = 0;
};

// request().then() in an event-based client. await() is as fast; a blocking
// client (receive) gets 0.04 M calls/s, as every reply has to wake a thread.
void call_next(stateful_actor<client_state>* self, countdown* end) {
  if (self->state.left-- == 0) {
    end->arrive();
    return;
  }
  self->request(self->state.server, std::chrono::seconds(5), self->state.left).then([=](int64_t) {
    call_next(self, end);
  });
}

behavior client(stateful_actor<client_state>* self, actor server, int64_t calls, countdown* end) {
  self->state.server = server;
  self->state.left = calls;
  return {[=](int64_t) { call_next(self, end); }};
}

double m_calls_per_s(actor_system& sys, int64_t clients, int64_t servers, int64_t calls) {
  countdown end{clients};
  std::vector<actor> keep;
  for (int64_t i = 0; i < servers; ++i) keep.push_back(sys.spawn(server));
  for (int64_t i = 0; i < clients; ++i) keep.push_back(sys.spawn(client, keep[i % servers], calls, &end));
  auto start = clk::now();
  for (int64_t i = 0; i < clients; ++i) go(keep[servers + i]);
  return clients * calls / seconds(end.wait() - start) / 1e6;
}

double call(actor_system& sys) { return m_calls_per_s(sys, 1, 1, 500000); }

double call100(actor_system& sys) { return m_calls_per_s(sys, 100, 1, 10000); }

double callpairs(actor_system& sys) { return m_calls_per_s(sys, 1000, 1000, 1000); }

// -------------------------------------------------------------------- timers

behavior armer(event_based_actor* self, actor to, int64_t n, uint32_t limit, finish_line* armed) {
  return {[=](int64_t) {
    random_ms rnd{limit};
    for (int64_t i = 0; i < n; ++i) self->delayed_send(to, rnd.next(), i);
    armed->cross();
  }};
}

// Ends with the arming: waiting up to 5 s for the rest would measure nothing.
double timers(actor_system& sys) {
  constexpr int64_t n = 1000000;
  finish_line armed, fired;
  auto to = sys.spawn(counter, n, &fired);
  auto from = sys.spawn(armer, to, n, 5000, &armed);
  auto start = clk::now();
  go(from);
  return seconds(armed.wait() - start) * 1e9 / n;
}

double timer_fire(actor_system& sys) {
  constexpr int64_t n = 100000;
  finish_line armed, fired;
  auto to = sys.spawn(counter, n, &fired);
  auto from = sys.spawn(armer, to, n, 2000, &armed);
  auto before = cpu_ms();
  go(from);
  fired.wait();
  return cpu_ms() - before;
}

// --------------------------------------------------------- monitors and links

behavior idle(event_based_actor*) {
  return {[](int64_t) {}};
}

behavior monitor_loop(event_based_actor* self, actor target, int64_t n, finish_line* end) {
  return {[=](int64_t) {
    for (int64_t i = 0; i < n; ++i) {
      self->monitor(target);
      self->demonitor(target);
    }
    end->cross();
  }};
}

double monitor(actor_system& sys) {
  constexpr int64_t n = 1000000;
  finish_line end;
  auto target = sys.spawn(idle);
  auto loop = sys.spawn(monitor_loop, target, n, &end);
  auto start = clk::now();
  go(loop);
  return n / seconds(end.wait() - start) / 1e6;
}

// The hub calls link_to on its children and not the other way round, since
// link_to searches the links of its argument: O(1) this way, O(n) the other.
behavior hub(event_based_actor* self, const actors* children, finish_line* linked) {
  return {[=](int64_t) {
            for (auto& x : *children) self->link_to(x);
            linked->cross();
          },
          [=](caf::close_atom) { self->quit(caf::sec::runtime_error); }};
}

struct observer_state {
  size_t seen = 0;
};

behavior observer(stateful_actor<observer_state>* self, const actors* children, finish_line* watching,
                  finish_line* end) {
  self->set_down_handler([=](caf::down_msg&) {
    if (++self->state.seen == children->size()) end->cross();
  });
  return {[=](int64_t) {
    for (auto& x : *children) self->monitor(x);
    watching->cross();
  }};
}

double links(actor_system& sys) {
  constexpr int64_t n = 100000;
  finish_line linked, watching, end;
  actors children;
  for (int64_t i = 0; i < n; ++i) children.push_back(sys.spawn(idle));
  auto h = sys.spawn(hub, &children, &linked);
  auto o = sys.spawn(observer, &children, &watching, &end);
  go(h);
  linked.wait();
  go(o);
  watching.wait();
  auto start = clk::now();
  caf::anon_send(h, caf::close_atom::value);
  return seconds(end.wait() - start) * 1e3;
}

// -------------------------------------------------------------------- memory

behavior idle_counted(event_based_actor*, countdown* started) {
  started->arrive();
  return {[](int64_t) {}};
}

struct receiver_state {
  int64_t total = 0;
};

behavior receiver_counted(stateful_actor<receiver_state>* self, countdown* started) {
  started->arrive();
  return {[=](int64_t x) { return self->state.total += x; }};
}

// The handles are in memory touched before the first reading: they are the
// benchmark's, and Erlang needs none. Waits until every actor has run its
// first turn and waits for messages.
template <class Spawn>
double bytes_each(int64_t n, Spawn spawn_one) {
  countdown started{n};
  actors keep(n);
  auto before = resident_bytes();
  for (auto& x : keep) x = spawn_one(&started);
  started.wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return double(resident_bytes() - before) / n;
}

double mem_process(actor_system& sys, int64_t n) {
  return bytes_each(n, [&](countdown* c) { return sys.spawn<caf::hidden>(idle_counted, c); });
}

double mem_receiver(actor_system& sys, int64_t n) {
  return bytes_each(n, [&](countdown* c) { return sys.spawn<caf::hidden>(receiver_counted, c); });
}

double mem_process_100k(actor_system& sys) { return mem_process(sys, 100000); }
double mem_process_1m(actor_system& sys) { return mem_process(sys, 1000000); }
double mem_receiver_100k(actor_system& sys) { return mem_receiver(sys, 100000); }
double mem_receiver_1m(actor_system& sys) { return mem_receiver(sys, 1000000); }

// ---------------------------------------------------------------------- main

const workload workloads[] = {
    {"pingpong", "stealing", pingpong},
    {"pairs", "stealing", pairs},
    {"fanin8", "stealing", fanin8},
    {"fanin100", "stealing", fanin100},
    {"ring", "stealing", ring},
    {"spawn", "sharing", spawn},
    {"skynet", "stealing", skynet},
    {"call", "stealing", call},
    {"call100", "sharing", call100},
    {"callpairs", "stealing", callpairs},
    {"server_call", "stealing", call},  // who started the server makes no difference
    {"server_call100", "sharing", call100},
    {"timers", "stealing", timers},
    {"timer_fire", "sharing", timer_fire},
    {"monitor", "stealing", monitor},
    {"links", "sharing", links},
    {"mem_process_100k", "stealing", mem_process_100k},
    {"mem_process_1m", "stealing", mem_process_1m},
    {"mem_receiver_100k", "stealing", mem_receiver_100k},
    {"mem_receiver_1m", "stealing", mem_receiver_1m},
};

const workload* find(const std::string& name) {
  for (auto& w : workloads)
    if (name == w.name) return &w;
  for (auto& w : supervision_workloads())
    if (name == w.name) return &w;
  return nullptr;
}

}  // namespace

}  // namespace caf_bench

int main(int argc, char** argv) {
  auto* w = argc > 1 ? caf_bench::find(argv[1]) : nullptr;
  if (w == nullptr) {
    std::fprintf(stderr, "usage: caf_bench WORKLOAD [stealing|sharing]\n");
    return 2;
  }
  caf::actor_system_config cfg;
  cfg.set("scheduler.max-threads", size_t{2});
  cfg.set("scheduler.policy", caf::atom_from_string(argc > 2 ? argv[2] : w->policy));
  caf::actor_system sys{cfg};
  std::printf("%s %.6g\n", w->name, w->run(sys));
  std::fflush(stdout);
  // No orderly end: the actors of most workloads would wait for ever, and
  // freeing a million of them is not part of any measurement.
  std::_Exit(0);
}
