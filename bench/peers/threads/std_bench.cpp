// Threads without a runtime: std_bench WORKLOAD runs a workload of bench/workloads_promises.cpp with std::promise and
// std::future, a fresh pair for each round trip, and prints "WORKLOAD VALUE".
//
// The client is a thread that blocks in `future::get`, the fastest way to wait for one. The other thread is the same as
// that of our workload.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <string_view>

#include "../../foreign_thread.hpp"

namespace {

using coppice_bench::foreign_thread;

struct completes {
  void operator()(std::promise<std::int64_t>& p, std::int64_t n) const { p.set_value(n); }
};
using foreign = foreign_thread<std::promise<std::int64_t>, completes>;

std::future<std::int64_t> ask(foreign& other, std::int64_t n) {
  std::promise<std::int64_t> answer;
  std::future<std::int64_t> value = answer.get_future();
  other.ask(n, std::move(answer));
  return value;
}

double thousands_per_s(std::int64_t trips, std::int64_t outstanding) {
  foreign other{completes{}};
  std::deque<std::future<std::int64_t>> pending;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t n = 0; n < outstanding; ++n) pending.push_back(ask(other, n));
  for (std::int64_t n = 0; n < trips; ++n) {
    std::future<std::int64_t> oldest = std::move(pending.front());
    pending.pop_front();
    if (oldest.get() != n + 1) std::_Exit(1);
    if (n + outstanding < trips) pending.push_back(ask(other, n + outstanding));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(trips) / took.count() / 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view workload = argc > 1 ? argv[1] : "";
  if (workload == "promise") std::printf("promise %.6g\n", thousands_per_s(100'000, 1));
  if (workload == "promise64") std::printf("promise64 %.6g\n", thousands_per_s(1'000'000, 64));
}
