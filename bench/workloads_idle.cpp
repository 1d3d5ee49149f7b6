// The cost of idle processes: memory, CPU time, and time for a snapshot.
#include <array>
#include <span>
#include <thread>
#include <utility>

#include "workload.hpp"

namespace coppice_bench {

namespace {

// ------------------------------------------------ memory, CPU time, a snapshot

struct receiver {
  std::int64_t total = 0;
  void handle(item i) { total += i.n; }
};
enum class population { coroutines, objects };

// Yields now and then so that its children can start: the measurement is about waiting processes, not about the start
// letters of a million processes that have not started yet.
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
  expect(std::cmp_equal(all.size(), n), "the snapshot has a wrong number of processes");
  return seconds(end - start) * 1e3;
}

}  // namespace

std::span<const workload> idle_workloads() {
  static constexpr std::array all = std::to_array<workload>({
      {"mem_process_100k", "bytes", bytes_each<population::coroutines, 100'000>},
      {"mem_process_1m", "bytes", bytes_each<population::coroutines, 1'000'000>},
      {"mem_receiver_100k", "bytes", bytes_each<population::objects, 100'000>},
      {"mem_receiver_1m", "bytes", bytes_each<population::objects, 1'000'000>},
      {"idle", "CPU ms per s", idle_runtime},
      {"snapshot", "ms", snapshot},
  });
  return all;
}

}  // namespace coppice_bench
