// Messages, calls and timers.
#include <array>
#include <span>
#include <vector>

#include "workload.hpp"

namespace coppice_bench {

namespace {

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
  // The first message starts the run, each later one ends a round trip.
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
    expect(back.n == n, "a wrong number came back");
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

task<> armer(self& me, ref<counter> to, std::int64_t n, std::uint32_t limit, finish_line* armed) {
  random_ms delay{limit};
  for (std::int64_t i = 0; i < n; ++i) me.send_after(delay.next(), to.id(), item{i});
  armed->arrive();
  co_return;
}
// Ends when all timers are armed: the 5 s until the last one fires are not part of the measurement.
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

}  // namespace

std::span<const workload> message_workloads() {
  static constexpr std::array all = std::to_array<workload>({
      {"pingpong", "M round trips/s", pingpong},
      {"pingpong_coro", "M round trips/s", pingpong_coro},
      {"pairs", "M msg/s", pairs},
      {"pairs_coro", "M msg/s", pairs_coro},
      {"fanin8", "M msg/s", fanin<8>},
      {"fanin100", "M msg/s", fanin<100>},
      {"ring", "M hops/s", ring},
      {"call", "M calls/s", call},
      {"call100", "M calls/s", call100},
      {"callpairs", "M calls/s", callpairs},
      {"timers", "ns/timer", timers},
      {"timer_fire", "CPU ms", timer_fire},
  });
  return all;
}

}  // namespace coppice_bench
