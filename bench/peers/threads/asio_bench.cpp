// Asio: asio_bench WORKLOAD runs a workload of bench/workloads_promises.cpp with two threads, each of which runs an
// io_context of its own, and prints "WORKLOAD VALUE".
//
// A round trip is a `post` to the other context, whose handler makes the answer and posts it back. Each context knows
// that it has one thread (the concurrency hint 1), its fastest setting.
#include <asio.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace {

class client {
 public:
  client(std::int64_t trips, std::int64_t outstanding) : trips_{trips}, outstanding_{outstanding} {}

  double thousands_per_s() {
    std::thread other{[this] { there_.run(); }};
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t n = 0; n < outstanding_; ++n) ask();
    here_.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    there_work_.reset();
    other.join();
    return static_cast<double>(trips_) / took.count() / 1e3;
  }

 private:
  void ask() {
    const std::int64_t n = asked_++;
    asio::post(there_, [this, n] { asio::post(here_, [this, n, got = n + 1] { answered(n, got); }); });
  }
  void answered(std::int64_t n, std::int64_t got) {
    if (n != answered_++ || got != n + 1) std::_Exit(1);
    if (asked_ < trips_) return ask();
    if (answered_ == trips_) here_work_.reset();
  }

  std::int64_t trips_;
  std::int64_t outstanding_;
  std::int64_t asked_ = 0;
  std::int64_t answered_ = 0;
  asio::io_context here_{1};
  asio::io_context there_{1};
  asio::executor_work_guard<asio::io_context::executor_type> here_work_{here_.get_executor()};
  asio::executor_work_guard<asio::io_context::executor_type> there_work_{there_.get_executor()};
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view workload = argc > 1 ? argv[1] : "";
  if (workload == "promise") std::printf("promise %.6g\n", client{100'000, 1}.thousands_per_s());
  if (workload == "promise64") std::printf("promise64 %.6g\n", client{1'000'000, 64}.thousands_per_s());
}
