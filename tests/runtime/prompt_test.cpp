// What can run does run, while another process is in a long handler: its worker waits for nobody.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct go {};
struct wait_for {
  std::latch* what;
};
struct arrive {
  std::latch* at;
};
struct meet {
  std::latch* others;
};
struct guest {
  static void handle(wait_for m) { m.what->wait(); }
  static void handle(arrive m) { m.at->count_down(); }
  static void handle(meet m) { m.others->arrive_and_wait(); }
};

/// Nobody is replaced: who does not run by himself never does.
runtime_options patient(unsigned workers) { return {.workers = workers, .stall_after = 0ms, .level = log_level::off}; }

TEST(prompt, the_second_of_two_casts_to_an_idle_runtime_does_not_wait_for_the_handler_of_the_first) {
  runtime rt{patient(2)};
  const ref<guest> first = rt.spawn<guest>();
  const ref<guest> second = rt.spawn<guest>();
  for (int round = 0; round < 100; ++round) {
    const auto parked = rt.counters().parked;
    std::latch second_ran{1};
    std::latch first_done{1};
    rt.cast<wait_for>(first, &second_ran);
    rt.cast<arrive>(second, &second_ran);
    rt.cast<arrive>(first, &first_done);
    first_done.wait();
    while (rt.counters().parked == parked) std::this_thread::yield();  // somebody sleeps again
  }
}

struct host {
  explicit host(std::vector<ref<guest>> all) : guests{std::move(all)} {}
  void handle(meet m) const {
    for (const ref<guest>& g : guests) g.cast<meet>(m.others);
    m.others->arrive_and_wait();
  }
  static void handle(arrive m) { m.at->count_down(); }
  std::vector<ref<guest>> guests;
};
TEST(prompt, all_whom_a_long_handler_has_signalled_run_at_the_same_time_on_the_idle_workers) {
  runtime rt{patient(4)};
  std::vector<ref<guest>> guests;
  for (int i = 0; i < 3; ++i) guests.push_back(rt.spawn<guest>());
  const ref<host> party = rt.spawn<host>(guests);
  for (int round = 0; round < 20; ++round) {
    const auto all = std::make_shared<std::latch>(4);  // each returns when all are there
    rt.cast<meet>(party, all.get());
    all->wait();
    std::latch over{4};
    rt.cast<arrive>(party, &over);
    for (const ref<guest>& g : guests) rt.cast<arrive>(g, &over);
    over.wait();
  }
}

struct hub {
  struct message {};
  struct hold {
    std::latch* inside;
  };
  hub(std::atomic<bool>* g, std::atomic<int>* n) : gate{g}, count{n} {}
  void handle(hold m) const {
    m.inside->count_down();
    while (!*gate) std::this_thread::yield();
  }
  void handle(message) const { ++*count; }
  std::atomic<bool>* gate;
  std::atomic<int>* count;
};
struct sends_late {
  struct job {
    std::latch* begun;
    std::atomic<bool>* go_on;
    ref<hub> to;
    std::atomic<bool>* gate;
    std::atomic<int>* arrived;
  };
  static void handle(job m) {
    m.begun->count_down();
    while (!*m.go_on) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) m.to.cast<hub::message>();
    *m.gate = true;
    while (*m.arrived < 100) std::this_thread::yield();  // and only then it returns
  }
};
TEST(prompt, what_a_process_on_a_replaced_worker_sends_is_not_held_back_until_it_returns) {
  std::atomic<bool> gate{false};
  std::atomic<bool> go_on{false};
  std::atomic<int> arrived{0};
  std::latch begun{1};
  std::latch inside{1};
  runtime rt{{.workers = 2, .stall_after = 20ms, .level = log_level::off}};
  const ref<hub> to = rt.spawn<hub>(&gate, &arrived);
  const ref<sends_late> sender = rt.spawn<sends_late>();
  rt.cast<sends_late::job>(sender, &begun, &go_on, to, &gate, &arrived);
  begun.wait();
  while (rt.counters().stalls == 0) std::this_thread::yield();
  rt.cast<hub::hold>(to, &inside);
  inside.wait();
  go_on = true;
  while (arrived < 100) std::this_thread::yield();
}

}  // namespace
