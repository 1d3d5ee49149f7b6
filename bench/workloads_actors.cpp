// Actors compared with plain servers, both in the same run; and failures of actors, compared with restarts in
// bench/peers.
//
// The failures have the layout of restart_latency: a hundred parents with one child each. In the workloads named *_fail
// a child fails without an exception; in the others it throws one, here and in bench/peers.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "workload.hpp"

namespace actor = coppice::actor;

namespace coppice_bench {

namespace {

using actor::actor_ref;
using actor::context;
using actor::directive;
using actor::props;
using actor::spawn_actor;

double percentile(std::vector<double> laps, std::size_t percent) {
  laps.erase(laps.begin(), laps.begin() + static_cast<std::ptrdiff_t>(laps.size() / 10));  // warm-up
  std::ranges::sort(laps);
  return laps[laps.size() * percent / 100];
}

struct ask {
  using reply = std::int64_t;
  std::int64_t n;
};

// ------------------------------------------------- a server and an actor alike

// The same class is used as a server and as an actor.
struct summing {
  using protocol = coppice::protocol<item, ask>;
  std::int64_t total = 0;
  void handle(item i) { total += i.n; }
  std::int64_t handle(ask a) { return total += a.n; }
};

void give(self&, const ref<summing>& to, std::int64_t n) { to.cast<item>(n); }
void give(self&, const actor_ref<summing>& to, std::int64_t n) { to.cast<item>(n); }

// Runs one lap for each `go`: `times` rounds of `messages` messages and a call. The receiver is a server or an actor.
template <class To>
task<> lap_client(self& me, To to, std::int64_t messages, std::int64_t times, std::vector<double>* laps,
                  std::binary_semaphore* done) {
  for (;;) {
    co_await me.receive<go>();
    const auto start = steady_clock::now();
    for (std::int64_t i = 0; i < times; ++i) {
      for (std::int64_t j = 0; j < messages; ++j) give(me, to, 1);
      const auto sum = co_await to.template call<ask>(0);
      expect(sum.has_value(), "a call was not answered");
    }
    laps->push_back(seconds(steady_clock::now() - start) * 1e9 / static_cast<double>(times * std::max(1L, messages)));
    done->release();
  }
}

// A ball between two of the same kind.
struct rally {
  std::int64_t full;
  std::vector<double>* laps;
  std::binary_semaphore* done;
  steady_clock::time_point start{};
  [[nodiscard]] bool is_over(item ball) {
    if (ball.n == full) start = steady_clock::now();
    if (ball.n > 0) return false;
    laps->push_back(seconds(steady_clock::now() - start) * 1e9 / static_cast<double>(full));
    done->release();
    return true;
  }
};
struct ball_server {
  using protocol = coppice::protocol<meet, item>;
  rally game;
  ref<ball_server> other{};
  void handle(meet m) { other = ref<ball_server>{m.other}; }
  void handle(item i, self&) {
    if (!game.is_over(i)) other.cast<item>(i.n - 1);
  }
};
struct ball_actor {
  using protocol = coppice::protocol<meet, item>;
  rally game;
  actor_ref<ball_actor> other{};
  void handle(meet m, context&) { other = actor_ref<ball_actor>{m.other}; }
  void handle(item i, context& me) {
    if (!game.is_over(i)) me.cast<item>(other, i.n - 1);
  }
};

struct both {
  double server;  // ns
  double actor;
};

// Server and actor take turns, in short laps. Other load of the machine can only make a lap longer, so the faster laps
// are compared.
template <class Server, class Actor>
both compare(Server run_server, Actor run_actor, const std::vector<double>& of_server,
             const std::vector<double>& of_actor) {
  for (int i = 0; i < 41; ++i) {
    run_server();
    run_actor();
  }
  return {percentile(of_server, 25), percentile(of_actor, 25)};
}

both by_client(const bench& b, std::int64_t messages, std::int64_t times) {
  std::binary_semaphore done{0};
  std::vector<double> of_server;
  std::vector<double> of_actor;
  const pid server = b.rt.spawn(lap_client<ref<summing>>, b.rt.spawn<summing>(), messages, times, &of_server, &done);
  const pid actor = b.rt.spawn(lap_client<actor_ref<summing>>, spawn_actor(b.rt, props<summing>()), messages, times,
                               &of_actor, &done);
  const auto run = [&](pid who) {
    return [&, who] {
      b.rt.send(who, go{});
      done.acquire();
    };
  };
  return compare(run(server), run(actor), of_server, of_actor);
}
both messages(const bench& b) { return by_client(b, 100, b.of(5000)); }
both calls(const bench& b) { return by_client(b, 0, b.of(100'000)); }

both pingpong(const bench& b) {
  std::binary_semaphore done{0};
  std::vector<double> of_server;
  std::vector<double> of_actor;
  const std::int64_t n = b.of(500'000);
  const ref<ball_server> one = b.rt.spawn<ball_server>(rally{n, &of_server, &done});
  const ref<ball_server> two = b.rt.spawn<ball_server>(rally{n, &of_server, &done});
  b.rt.cast<meet>(one, two.id());
  b.rt.cast<meet>(two, one.id());
  const auto three = spawn_actor(b.rt, props<ball_actor>(rally{n, &of_actor, &done}));
  const auto four = spawn_actor(b.rt, props<ball_actor>(rally{n, &of_actor, &done}));
  b.rt.cast<meet>(three, four.id());
  b.rt.cast<meet>(four, three.id());
  return compare(
      [&] {
        b.rt.cast<item>(one, n);
        done.acquire();
      },
      [&] {
        b.rt.cast<item>(three, n);
        done.acquire();
      },
      of_server, of_actor);
}

template <both (*measure)(const bench&)>
double ratio(const bench& b) {
  const both each = measure(b);
  return each.actor / each.server;
}
template <both (*measure)(const bench&)>
double actor_ns(const bench& b) {
  return measure(b).actor;
}

// ------------------------------------------------------------------- failures

struct crash {};
enum class failure { thrown, plain };

// Replies or fails, as the message says.
template <failure how>
struct failing {
  using protocol = coppice::protocol<crash, ask>;
  static void handle(crash, context& me) {
    if constexpr (how == failure::thrown) throw std::runtime_error{"crash"};
    me.fail(exit_reason::error("crash"));
  }
  static std::int64_t handle(ask a, context&) { return a.n; }
};

template <failure how>
struct family {
  actor_ref<failing<how>> child;
};

// Sends the address of its child to a client.
template <failure how>
struct parent {
  using protocol = coppice::protocol<>;
  explicit parent(pid c) : client{c} {}
  void handle(actor::started, context& me) const {
    const family<how> mine{me.spawn(props<failing<how>>())};
    me.send(client, mine);
  }
  pid client;
};

// Measures the time from the message that fails to the reply of the request after it, one after the other.
template <failure how>
task<> failure_client(self& me, std::size_t parents, std::size_t n, std::vector<double>* laps, finish_line* end) {
  std::vector<actor_ref<failing<how>>> children(parents);
  for (auto& one : children) {
    const family<how> next = co_await me.receive<family<how>>();
    one = next.child;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const actor_ref<failing<how>> one = children[i % parents];
    const auto start = steady_clock::now();
    one.template cast<crash>();
    const auto answer = co_await one.template call<ask>(1);
    laps->push_back(seconds(steady_clock::now() - start) * 1e6);
    expect(answer.has_value(), "an actor does not answer after its failure");
  }
  end->arrive();
}

// In us.
template <directive what, failure how>
double failure_latency(const bench& b) {
  constexpr std::size_t parents = 100;
  finish_line end;
  std::vector<double> laps;
  const auto n = static_cast<std::size_t>(b.of(20'000));
  laps.reserve(n);
  const pid client = b.rt.spawn(failure_client<how>, parents, n, &laps, &end);
  actor::strategy_options options{.limit = actor::unlimited};
  if (what == directive::resume) options.decide = actor::decide_by(directive::resume);
  const auto made = props<parent<how>>(client).with({.strategy = actor::one_for_one(options)});
  for (std::size_t i = 0; i < parents; ++i) spawn_actor(b.rt, made);
  end.wait();
  return percentile(laps, 50);
}

// --------------------------------------------------------------------- memory

struct idle_actor {
  using protocol = coppice::protocol<item>;
  std::int64_t total = 0;
  void handle(item i) { total += i.n; }
};
struct idle_parent {
  using protocol = coppice::protocol<item>;
  finish_line* end;
  props<idle_actor> how{};
  void handle(item i, context& me) {
    for (; i.n > 0; --i.n) {
      me.spawn(how);
      if (i.n % 64 == 0) return me.send(me.id(), item{i.n - 1});  // so that the children can start
    }
    end->arrive();
  }
};
task<> populate(self& me, std::int64_t n, finish_line* end) {
  const props<idle_actor> how;
  for (std::int64_t i = 0; i < n; ++i) {
    spawn_actor(me, how);
    if (i % 64 == 63) co_await me.yield();
  }
  end->arrive();
}
enum class kin { none, children };

template <kin whose>
double mem_actor(const bench& b) {
  const std::int64_t n = b.of(100'000);
  const double before = resident_bytes();
  finish_line started;
  if (whose == kin::none) {
    b.rt.spawn(populate, n, &started);
  } else {
    b.rt.cast<item>(spawn_actor(b.rt, props<idle_parent>::from([&] { return idle_parent{&started}; })), n);
  }
  started.wait();
  settle(b.rt);
  return (resident_bytes() - before) / static_cast<double>(n);
}

}  // namespace

std::span<const workload> actor_workloads() {
  static constexpr std::array all = std::to_array<workload>({
      {"actor_message", "actor/server", ratio<messages>},
      {"actor_call", "actor/server", ratio<calls>},
      {"actor_pingpong", "actor/server", ratio<pingpong>},
      {"actor_message_ns", "ns/message", actor_ns<messages>},
      {"actor_call_ns", "ns/call", actor_ns<calls>},
      {"actor_pingpong_ns", "ns/message", actor_ns<pingpong>},
      {"actor_resume", "us", failure_latency<directive::resume, failure::thrown>},
      {"actor_restart", "us", failure_latency<directive::restart, failure::thrown>},
      {"actor_resume_fail", "us", failure_latency<directive::resume, failure::plain>},
      {"actor_restart_fail", "us", failure_latency<directive::restart, failure::plain>},
      {"mem_actor", "bytes", mem_actor<kin::none>},
      {"mem_actor_child", "bytes", mem_actor<kin::children>},
  });
  return all;
}

}  // namespace coppice_bench
