#pragma once
/// Processes used by several tests of the simulation, and records of what they received. The records must outlive the
/// world.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <coppice/sim/world.hpp>

namespace coppice::sim::people {

using namespace std::chrono_literals;

struct number {
  int value;
};
struct end_now {};
struct ask {
  using reply = int;
};

struct sight {
  time_point at;
  exit_reason reason;
};
struct seen {
  std::vector<sight> exits;
  std::vector<sight> downs;
  std::vector<std::pair<time_point, int>> numbers;
};

/// Ends only on request, and replies to nothing.
inline task<> idler(self& me) {
  me.trap_exits();
  const end_now over = co_await me.receive<end_now>();
  (void)over;
  co_await me.exit(exit_reason::shutdown("told to"));
}

/// Replies to every request.
inline task<> clerk(self& me) {
  for (;;) {
    request<ask> r = co_await me.receive<request<ask>>();
    r.reply(42);
  }
}

/// Is linked to `other` and monitors it.
inline task<> watcher(self& me, pid other, seen* into) {
  me.trap_exits();
  me.link(other);
  me.monitor(other);
  for (;;) {
    const auto m = co_await me.receive<exited, down>();
    if (const auto* x = std::get_if<exited>(&m))
      into->exits.push_back({me.now(), x->reason});
    else
      into->downs.push_back({me.now(), std::get<down>(m).reason});
  }
}

/// Only monitors `other`.
inline task<> monitor_of(self& me, pid other, seen* into) {
  me.monitor(other);
  const down d = co_await me.receive<down>();
  into->downs.push_back({me.now(), d.reason});
}

struct call_outcome {
  std::optional<result<int>> got;
  time_point at;
};
inline task<> caller(self& me, pid other, std::chrono::nanoseconds limit, call_outcome* into) {
  into->got = co_await call<ask>(other).within(limit);
  into->at = me.now();
}

inline task<> listener(self& me, seen* into) {
  for (;;) {
    const number n = co_await me.receive<number>();
    into->numbers.emplace_back(me.now(), n.value);
  }
}

/// Sends the numbers from `from` to `to` - 1, one every `every`.
inline task<> counting(self& me, pid to_whom, int from, int to, std::chrono::nanoseconds every) {
  for (int i = from; i < to; ++i) {
    me.send(to_whom, number{i});
    co_await me.sleep(every);
  }
}

}  // namespace coppice::sim::people
