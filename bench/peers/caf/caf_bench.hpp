// What the files of caf_bench share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <vector>

#include "caf/all.hpp"

namespace caf_bench {

using caf::actor;
using caf::actor_system;
using caf::behavior;
using caf::event_based_actor;
using caf::stateful_actor;
using actors = std::vector<actor>;
using clk = std::chrono::steady_clock;

// ------------------------------------------------------- what a workload is

struct workload {
  const char* name;
  const char* policy;
  double (*run)(actor_system&);
};

const std::vector<workload>& supervision_workloads();

// ---------------------------------------------------------------- utilities

// Lets the main thread sleep until the workload says that it is over. The time
// is taken where the event happens, so waking the main thread is not measured.
class finish_line {
 public:
  void cross() { end_.set_value(clk::now()); }
  clk::time_point wait() { return end_.get_future().get(); }

 private:
  std::promise<clk::time_point> end_;
};

inline double seconds(clk::duration d) { return std::chrono::duration<double>(d).count(); }

// Calls cross() when the last of `n` parties has arrived.
class countdown {
 public:
  explicit countdown(int64_t n) : left_(n) {}
  void arrive() {
    if (left_.fetch_sub(1) == 1) line_.cross();
  }
  clk::time_point wait() { return line_.wait(); }

 private:
  std::atomic<int64_t> left_;
  finish_line line_;
};

inline void go(const actor& x) { caf::anon_send(x, int64_t{1}); }

}  // namespace caf_bench
