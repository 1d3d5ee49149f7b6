// Code shared by the workloads of coppice_bench.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <semaphore>
#include <span>
#include <string_view>

#include <coppice/coppice.hpp>

namespace coppice_bench {

using coppice::exit_reason;
using coppice::pid;
using coppice::ref;
using coppice::runtime;
using coppice::self;
using coppice::task;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// --------------------------------------------------------- what a workload is

struct bench {
  runtime& rt;
  double scale;
  [[nodiscard]] std::int64_t of(std::int64_t full) const;  // scaled by --scale, at least 1
};

struct workload {
  std::string_view name;
  std::string_view unit;  // as in bench/run.py
  double (*run)(const bench&);
};

std::span<const workload> message_workloads();
std::span<const workload> promise_workloads();
std::span<const workload> process_workloads();
std::span<const workload> idle_workloads();
std::span<const workload> supervision_workloads();
std::span<const workload> actor_workloads();

// ------------------------------------------------------------------ utilities

// Ends the program if the condition does not hold.
void expect(bool holds, const char* what);

inline double seconds(steady_clock::duration d) { return std::chrono::duration<double>(d).count(); }

// The end of a workload: reached when a given number of parties have arrived. The time is taken there, so that waking
// the main thread is not measured.
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

double cpu_ms();
double resident_bytes();

// Waits until no worker has run anything for a while.
void settle(runtime& rt);

// ---------------------------------------------------- processes and messages

struct go {};
struct item {
  std::int64_t n;
};
struct meet {
  pid other;
};

// Counts down to the end of the workload.
struct counter {
  using protocol = coppice::protocol<item>;
  std::int64_t left;
  finish_line* end;
  void handle(item) {
    if (--left == 0) end->arrive();
  }
};

inline task<> idle(self& me) { co_await me.receive<go>(); }

}  // namespace coppice_bench
