// A machine that gives no more threads: who asked for one is told, and nothing is left half done.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <coppice/runtime/runtime.hpp>

#include "own_environment.hpp"
#include "recorder.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

struct echo {
  using reply = int;
  int n = 0;
};
struct parrot {
  static int handle(echo m) { return m.n; }
};

[[noreturn]] void refuse() { throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)}; }

/// Gives so many threads and no more, and knows how many of them run.
class few_threads final : public own_threads {
 public:
  explicit few_threads(int n) : left{n} {}
  std::unique_ptr<thread_handle> start(std::string name, std::optional<unsigned> core,
                                       std::move_only_function<void()> body) override {
    if (left.fetch_sub(1) <= 0) {
      ++refused;
      refuse();
    }
    ++running;
    const std::scoped_lock lock{mutex_};
    asked_for.push_back(core);
    return own_threads::start(std::move(name), core, [this, body = std::move(body)]() mutable {
      body();
      body = nullptr;
      --running;
    });
  }
  std::atomic<int> left;
  std::atomic<int> refused{0};
  std::atomic<int> running{0};
  std::vector<std::optional<unsigned>> asked_for;

 private:
  std::mutex mutex_;
};

TEST(thread_shortage, a_runtime_that_cannot_start_all_its_threads_throws_and_leaves_none_running) {
  for (const int given : {0, 1, 2, 3}) {  // three workers and who keeps the time
    few_threads threads{given};
    const auto env = std::make_shared<own_environment>(own_environment::parts{.workers = &threads});
    EXPECT_THROW((runtime{env, {.workers = 3, .level = log_level::off}}), std::system_error);
    EXPECT_EQ(threads.refused, 1);
    EXPECT_EQ(threads.running, 0);
  }
  few_threads threads{4};
  runtime rt{std::make_shared<own_environment>(own_environment::parts{.workers = &threads}), {.workers = 3}};
  EXPECT_EQ(rt.call(rt.spawn<parrot>().call<echo>(7)), 7);
}

task<> holds_its_worker(self&, std::latch* inside, std::atomic<bool>* enough) {
  inside->count_down();
  while (!*enough) std::this_thread::yield();
  co_return;
}
TEST(thread_shortage, a_stall_for_which_no_thread_can_be_started_is_logged_and_tried_again) {
  few_threads threads{2};
  std::latch inside{1};
  std::atomic<bool> enough{false};
  const auto log = std::make_shared<recorder>();
  runtime rt{std::make_shared<own_environment>(own_environment::parts{.workers = &threads}),
             {.workers = 1, .stall_after = 20ms, .log = log}};
  const ref<parrot> p = rt.spawn<parrot>();
  rt.spawn(holds_its_worker, &inside, &enough);
  inside.wait();
  while (threads.refused < 2) std::this_thread::yield();
  EXPECT_TRUE(log->has("no thread can take over"));
  EXPECT_EQ(rt.counters().stalls, 0U);
  threads.left = 1;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
  EXPECT_EQ(rt.counters().stalls, 1U);
  enough = true;
}

TEST(thread_shortage, a_stall_that_ends_without_a_thread_for_it_harms_nobody) {
  few_threads threads{2};
  std::latch inside{1};
  std::atomic<bool> enough{false};
  runtime rt{std::make_shared<own_environment>(own_environment::parts{.workers = &threads}),
             {.workers = 1, .stall_after = 20ms, .level = log_level::off}};
  const ref<parrot> p = rt.spawn<parrot>();
  rt.spawn(holds_its_worker, &inside, &enough);
  inside.wait();
  while (threads.refused == 0) std::this_thread::yield();
  enough = true;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
  EXPECT_EQ(rt.counters().stalls, 0U);
}

class no_pool final : public blocking_pool {
 public:
  void submit(std::move_only_function<void()>) override { refuse(); }
};
int work(int n) { return n; }
task<> does_without(self& me, std::atomic<int>* refused, int* received) {
  try {
    co_await me.blocking(work, 1);
  } catch (const std::system_error&) {
    ++*refused;
  }
  const int n = co_await me.receive<int>();
  *received = n;
  try {
    co_await me.blocking(work, 1);
  } catch (const std::system_error&) {
    ++*refused;
  }
}
task<> watches(self& me, std::atomic<int>* refused, int* received, exit_reason* why) {
  const monitored child = me.spawn_monitor(does_without, refused, received);
  me.send(child.who, 5);
  const down d = co_await me.receive<down>();
  *why = d.reason;
}
TEST(thread_shortage, blocking_work_that_finds_no_thread_throws_and_nothing_waits_for_it) {
  std::atomic<int> refused{0};
  int received = 0;
  exit_reason why = exit_reason::noproc();
  runtime rt{std::make_shared<own_environment>(own_environment::parts{.make_pool = std::make_unique<no_pool>}),
             {.workers = 1, .level = log_level::off}};
  rt.wait(rt.spawn(watches, &refused, &received, &why));
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(received, 5);
  EXPECT_EQ(why, exit_reason::normal());
}

TEST(pinned_workers, each_asks_for_its_own_core_and_the_runtime_answers_even_with_more_workers_than_cores) {
  few_threads threads{1000};
  runtime rt{std::make_shared<own_environment>(own_environment::parts{.workers = &threads}),
             {.workers = 5, .pin_workers = true, .level = log_level::off}};
  const std::vector<std::optional<unsigned>> wanted{0, 1, 2, 3, 4, std::nullopt};
  EXPECT_EQ(threads.asked_for, wanted);
  const ref<parrot> p = rt.spawn<parrot>();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rt.call(p.call<echo>(i).within(forever)), i);
}

}  // namespace
