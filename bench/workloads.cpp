// The workloads of coppice_bench. Workloads that bench/peers has too do the same work as there: the same numbers of
// processes and messages, and a payload of one 64-bit integer.
//
// Configuration, the best one that a user would choose:
//  * A process that only reacts is an object with handlers, the smallest and fastest kind; a process that waits in the
//    middle of its work (a client, a parent) is a coroutine. The workloads named *_coro have coroutines on both sides.
//  * Messages to objects go through a `ref`, so that they carry their handler; timers can only send by pid.
//  * Options are the defaults, except for the number of workers, and for the log: a report for each of 200,000 crashes
//    would measure the terminal.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "workload.hpp"

namespace coppice_bench {

namespace {

std::vector<workload> all_workloads() {
  std::vector<workload> all;
  for (const auto some : {message_workloads(), promise_workloads(), process_workloads(), idle_workloads(),
                          supervision_workloads(), actor_workloads()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace

std::int64_t bench::of(std::int64_t full) const { return std::max(1L, std::lround(static_cast<double>(full) * scale)); }

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "coppice_bench: %s\n", what);
  std::_Exit(1);
}

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

void settle(runtime& rt) {
  for (std::uint64_t before = 1, now = 0; before != now;) {
    before = rt.counters().turns;
    std::this_thread::sleep_for(milliseconds{50});
    now = rt.counters().turns;
  }
}

}  // namespace coppice_bench

// Declared in coppice_bench.cpp as well.

std::vector<std::pair<std::string_view, std::string_view>> names_and_units() {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (const auto& w : coppice_bench::all_workloads()) all.emplace_back(w.name, w.unit);
  return all;
}

double run_workload(std::string_view name, unsigned threads, double scale) {
  const auto all = coppice_bench::all_workloads();
  const auto w = std::ranges::find(all, name, &coppice_bench::workload::name);
  if (w == all.end()) return std::numeric_limits<double>::quiet_NaN();
  coppice::runtime_options options;
  options.workers = threads;
  options.level = coppice::log_level::off;
  // Never destroyed: freeing a million processes is not part of any measurement.
  auto* rt = new coppice::runtime{options};
  return w->run({*rt, scale});
}
