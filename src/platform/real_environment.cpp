// The environment of this machine: Linux clocks, threads with futexes.
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <mutex>
#include <optional>
#include <random>
#include <system_error>
#include <thread>

#include <coppice/env/environment.hpp>

#include "internal/no_thread.hpp"
#include "internal/os_signals.hpp"
#include "internal/real_blocking_pool.hpp"
#include "internal/real_disk.hpp"
#include "internal/real_lanes.hpp"
#include "internal/real_os_processes.hpp"
#include "internal/symbols.hpp"
#include "internal/thread_backtrace.hpp"

namespace coppice {
namespace {

constexpr std::chrono::nanoseconds to_duration(const timespec& t) {
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}
std::chrono::nanoseconds read_clock(clockid_t which) noexcept {
  timespec t{};
  ::clock_gettime(which, &t);
  return to_duration(t);
}

class real_clock final : public clock {
 public:
  time_point now() noexcept override { return time_point{read_clock(CLOCK_MONOTONIC)}; }
  time_point coarse_now() noexcept override { return time_point{read_clock(CLOCK_MONOTONIC_COARSE)}; }
  boot_time boot() noexcept override { return boot_time{read_clock(CLOCK_BOOTTIME)}; }
  wall_time wall() noexcept override { return wall_time{read_clock(CLOCK_REALTIME)}; }
};

class real_random final : public random_source {
 public:
  std::uint64_t next() override {
    const std::scoped_lock lock{mutex_};
    return engine_();
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 engine_{(std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}()};
};

class real_thread final : public thread_handle {
 public:
  explicit real_thread(std::thread t) : thread_{std::move(t)} {}
  void join() override { thread_.join(); }
  void detach() override { thread_.detach(); }
  std::vector<const void*> backtrace() override {
    return thread_.joinable() ? backtrace_of(thread_.native_handle()) : std::vector<const void*>{};
  }

 private:
  std::thread thread_;
};

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* until) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

/// A memory barrier in all threads of the program, for systems that forbid the system call for it: removing the write
/// permission of a page interrupts every core that runs one of these threads.
class page_barrier {
 public:
  page_barrier() {
    page_ = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page_ == MAP_FAILED) throw std::bad_alloc{};
    ::mlock(page_, page_size);
  }
  void pass() noexcept {
    const std::scoped_lock lock{mutex_};
    ::mprotect(page_, page_size, PROT_READ | PROT_WRITE);
    *static_cast<volatile char*>(page_) = 1;  // the page must be mapped before its permission can be removed
    ::mprotect(page_, page_size, PROT_READ);
  }

 private:
  static constexpr std::size_t page_size = 4096;
  std::mutex mutex_;
  void* page_ = nullptr;
};

class real_threads final : public threads {
 public:
  real_threads() {
    if (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) fallback_.emplace();
  }

  std::unique_ptr<thread_handle> start(std::string name, std::optional<unsigned> core,
                                       std::move_only_function<void()> body) override try {
    std::thread t{[body = std::move(body), name = std::move(name)]() mutable {
      ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());  // the kernel's limit
      body();
    }};
    if (core) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(*core % cores(), &set);
      ::pthread_setaffinity_np(t.native_handle(), sizeof set, &set);  // a hint: a forbidden core is not an error
    }
    return std::make_unique<real_thread>(std::move(t));
  } catch (const std::system_error& x) {
    rethrow_no_thread(x);
  }
  unsigned cores() const noexcept override { return std::max(1U, std::thread::hardware_concurrency()); }
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::optional<time_point> until) override {
    timespec deadline{};
    if (until) {
      const auto since = std::max(until->time_since_epoch(), std::chrono::nanoseconds{0});
      deadline.tv_sec = since / std::chrono::seconds{1};
      deadline.tv_nsec = (since % std::chrono::seconds{1}).count();
    }
    futex(word, FUTEX_WAIT_BITSET, expected, until ? &deadline : nullptr);  // absolute, on the monotonic clock
  }
  void wake_one(std::atomic<std::uint32_t>& word) noexcept override { futex(word, FUTEX_WAKE, 1, nullptr); }
  void wake_all(std::atomic<std::uint32_t>& word) noexcept override { futex(word, FUTEX_WAKE, INT32_MAX, nullptr); }
  void barrier_everywhere() noexcept override {
    if (fallback_)
      fallback_->pass();
    else
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }

 private:
  std::optional<page_barrier> fallback_;
};

class machine final : public environment {
 public:
  coppice::clock& clock() noexcept override { return clock_; }
  random_source& random() noexcept override { return random_; }
  coppice::threads* threads() noexcept override { return &threads_; }
  std::unique_ptr<blocking_pool> make_blocking_pool(unsigned most_threads) override {
    return make_real_blocking_pool(most_threads);
  }
  coppice::disk& disk() noexcept override { return disk_; }
  coppice::lanes& lanes() noexcept override { return lanes_; }
  fault_plan* faults() noexcept override { return nullptr; }
  coppice::os_signals& os_signals() noexcept override { return program_signals(); }
  coppice::os_processes& os_processes() noexcept override { return children_of_this_program(); }
  std::string function_at(const void* code) override { return function_name_at(code); }
  std::uint64_t new_node_number() noexcept override { return ++nodes_; }

 private:
  real_clock clock_;
  real_random random_;
  real_threads threads_;
  real_disk disk_;
  real_lanes lanes_;
  std::atomic<std::uint64_t> nodes_{0};
};

}  // namespace

std::shared_ptr<environment> real_environment() {
  static const auto only = std::make_shared<machine>();
  return only;
}

}  // namespace coppice
