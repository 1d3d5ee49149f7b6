// Promises: a process asks a thread that is not part of the runtime, and continues with the answer. bench/peers/threads
// has the same workloads.
#include <array>
#include <deque>
#include <span>

#include "foreign_thread.hpp"
#include "workload.hpp"

namespace coppice_bench {

namespace {

struct completes {
  void operator()(coppice::promise<std::int64_t>& p, std::int64_t n) const { p.complete(n); }
};
using foreign = foreign_thread<coppice::promise<std::int64_t>, completes>;

coppice::future<std::int64_t> ask(self& me, foreign& other, std::int64_t n) {
  auto [answer, value] = coppice::make_promise<std::int64_t>(me);
  other.ask(n, std::move(answer));
  return value;
}

// Waits for the oldest of `outstanding` answers, then asks again.
task<> client(self& me, foreign* other, std::int64_t trips, std::int64_t outstanding, finish_line* end) {
  std::deque<coppice::future<std::int64_t>> pending;
  for (std::int64_t n = 0; n < outstanding; ++n) pending.push_back(ask(me, *other, n));
  for (std::int64_t n = 0; n < trips; ++n) {
    const auto oldest = pending.front();
    pending.pop_front();
    const coppice::result<std::int64_t> got = co_await oldest;
    expect(got == n + 1, "a wrong number came back");
    if (n + outstanding < trips) pending.push_back(ask(me, *other, n + outstanding));
  }
  end->arrive();
}

template <std::int64_t outstanding, std::int64_t trips>
double promises(const bench& b) {
  const std::int64_t n = std::max(b.of(trips), outstanding);
  finish_line end;
  foreign other{completes{}};
  const auto start = steady_clock::now();
  b.rt.spawn(client, &other, n, outstanding, &end);
  return static_cast<double>(n) / end.seconds_since(start) / 1e3;
}

}  // namespace

std::span<const workload> promise_workloads() {
  static constexpr std::array all = std::to_array<workload>({
      {"promise", "k/s", promises<1, 100'000>},
      {"promise64", "k/s", promises<64, 1'000'000>},
  });
  return all;
}

}  // namespace coppice_bench
