// Operations outside of a process that use its frames: a kill must not free memory that they still use.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <coppice/runtime/runtime.hpp>

#include "runtime/internal/kernel_parts.hpp"
#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

/// A library with a thread of its own that fills buffers of its users.
class reader {
 public:
  void read(std::array<char, 64>& into, promise<std::size_t> done) {
    buffer_ = &into;
    done_.emplace(std::move(done));
  }
  void cancel() { ++cancelled; }
  void finish(char with) {
    buffer_->fill(with);
    auto done = std::exchange(done_, std::nullopt);
    done->complete(buffer_->size());
  }
  void drop() { done_.reset(); }
  std::atomic<int> cancelled{0};

 private:
  std::array<char, 64>* buffer_ = nullptr;
  std::optional<promise<std::size_t>> done_;
};

/// Notes when the frames are destroyed.
struct frame_mark {
  std::atomic<bool>* gone;
  explicit frame_mark(std::atomic<bool>* g) : gone{g} {}
  frame_mark(const frame_mark&) = delete;
  frame_mark& operator=(const frame_mark&) = delete;
  ~frame_mark() { *gone = true; }
};

task<> reads(self& me, reader* from, std::latch* begun, std::atomic<bool>* gone) {
  const frame_mark mark{gone};
  std::array<char, 64> buffer{};
  const result<std::size_t> n = co_await me.perform<std::size_t>(
      [&](promise<std::size_t> done) {
        from->read(buffer, std::move(done));
        begun->count_down();
      },
      [&] { from->cancel(); });
  EXPECT_EQ(n, 64U);
  EXPECT_EQ(buffer[63], 'x');
}

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(operation, gives_its_result_to_the_process) {
  runtime rt{quiet()};
  reader library;
  std::latch begun{1};
  std::atomic<bool> gone{false};
  const pid p = rt.spawn(reads, &library, &begun, &gone);
  begun.wait();
  library.finish('x');
  EXPECT_EQ(rt.wait(p), exit_reason::noproc());
  wait_until(gone);
  EXPECT_EQ(library.cancelled, 0);
}

TEST(operation, keeps_the_frames_of_a_killed_process_until_it_is_over) {
  runtime rt{quiet()};
  reader library;
  std::latch begun{1};
  std::atomic<bool> gone{false};
  const pid p = *rt.spawn({.name = "reader"}, reads, &library, &begun, &gone);
  begun.wait();
  rt.kill(p);
  rt.wait(p);  // for everybody else it has ended
  EXPECT_FALSE(rt.alive(p));
  EXPECT_FALSE(rt.where("reader"));
  EXPECT_EQ(library.cancelled, 1);
  EXPECT_FALSE(gone);
  library.finish('y');  // writes into the frame
  wait_until(gone);
}

TEST(operation, that_drops_its_promise_is_over) {
  runtime rt{quiet()};
  reader library;
  std::latch begun{1};
  std::atomic<bool> gone{false};
  const pid p = rt.spawn(reads, &library, &begun, &gone);
  begun.wait();
  rt.kill(p);
  rt.wait(p);
  EXPECT_FALSE(gone);
  library.drop();
  wait_until(gone);
}

task<> reads_within(self& me, reader* from, std::latch* cancelled, result<std::size_t>* into) {
  std::array<char, 64> buffer{};
  *into = co_await me
              .perform<std::size_t>([&](promise<std::size_t> done) { from->read(buffer, std::move(done)); },
                                    [&] {
                                      from->cancel();
                                      cancelled->count_down();
                                    })
              .within(1ms);
}
TEST(operation, is_cancelled_at_its_limit_and_still_awaited) {
  runtime rt{quiet()};
  reader library;
  result<std::size_t> got = 0;
  std::latch cancelled{1};
  const pid p = rt.spawn(reads_within, &library, &cancelled, &got);
  cancelled.wait();
  EXPECT_TRUE(rt.alive(p));  // its buffer is still in use
  library.drop();
  rt.wait(p);
  EXPECT_EQ(got.error().code(), errc::timeout);
}
TEST(operation, that_succeeds_after_its_limit_gives_its_value) {
  runtime rt{quiet()};
  reader library;
  result<std::size_t> got = 0;
  std::latch cancelled{1};
  const pid p = rt.spawn(reads_within, &library, &cancelled, &got);
  cancelled.wait();
  library.finish('z');
  rt.wait(p);
  EXPECT_EQ(got, 64U);
}

task<> completes_at_once(self& me) {
  for (int i = 0; i < 1000; ++i) {
    const result<int> n = co_await me.perform<int>([&](promise<int> done) { done.complete(i); });
    EXPECT_EQ(n, i);
  }
}
TEST(operation, may_be_over_before_its_process_waits) { EXPECT_EQ(run(completes_at_once), exit_reason::normal()); }

task<> is_refused(self& me, int* caught) {
  const auto refuses = [](promise<int>) { throw std::runtime_error{"refused"}; };
  for (int i = 0; i < 2; ++i) {
    try {
      auto operation = me.perform<int>(refuses).within(1h);
      const result<int> n = co_await std::move(operation);
      ADD_FAILURE() << "it began";
      (void)n;
    } catch (const std::runtime_error&) {
      ++*caught;
    }
    co_await me.sleep(1us);  // it can wait for other things
  }
}
TEST(operation, that_cannot_begin_throws_where_it_is_awaited) {
  int caught = 0;
  EXPECT_EQ(run(is_refused, &caught), exit_reason::normal());
  EXPECT_EQ(caught, 2);
}

struct hangs_in_destructor {
  trap_door* door;
  explicit hangs_in_destructor(trap_door* d) : door{d} {}
  hangs_in_destructor(const hangs_in_destructor&) = delete;
  hangs_in_destructor& operator=(const hangs_in_destructor&) = delete;
  ~hangs_in_destructor() { door->fall_in(); }
};
task<> reads_and_hangs(self& me, reader* from, std::latch* begun, trap_door* door, std::atomic<bool>* gone) {
  const frame_mark mark{gone};
  const hangs_in_destructor last{door};
  std::array<char, 64> buffer{};
  (void)co_await me.perform<std::size_t>([&](promise<std::size_t> done) {
    from->read(buffer, std::move(done));
    begun->count_down();
  });
}
TEST(operation, whose_frames_hang_when_they_are_destroyed_does_not_hold_up_the_end_of_the_runtime) {
  reader library;
  std::latch begun{1};
  std::atomic<bool> gone{false};
  trap_door door;
  std::jthread finisher;
  {
    runtime rt{{.workers = 1, .stop_within = 1ms, .level = log_level::off}};
    rt.spawn(reads_and_hangs, &library, &begun, &door, &gone);
    begun.wait();
    finisher = std::jthread{[&library, k = rt.host().shared_from_this()] {
      while (k->parts().orphans.waiting() == 0) std::this_thread::yield();  // the runtime kills its processes
      library.finish('x');
    }};
  }
  door.wait_until_inside();
  EXPECT_FALSE(gone);
  door.open();
  wait_until(gone);
}

TEST(operation, that_is_over_only_after_the_end_of_the_runtime_frees_the_frames_then) {
  reader library;
  std::latch begun{1};
  std::atomic<bool> gone{false};
  {
    runtime rt{{.workers = 1, .stop_within = 1ms, .level = log_level::off}};
    rt.spawn(reads, &library, &begun, &gone);
    begun.wait();
  }
  EXPECT_FALSE(gone);
  library.finish('x');
  EXPECT_TRUE(gone);
}

/// A server that is killed while one of its handlers waits for an operation.
struct reading_server {
  struct read {
    using reply = std::size_t;
  };
  using protocol = coppice::protocol<read>;
  reader* from;
  std::latch* begun;
  explicit reading_server(reader* f, std::latch* b) : from{f}, begun{b} {}
  task<std::size_t> handle(read, self& me) {
    std::array<char, 64> buffer{};
    const result<std::size_t> n = co_await me.perform<std::size_t>([&](promise<std::size_t> done) {
      from->read(buffer, std::move(done));
      begun->count_down();
    });
    co_return *n;
  }
};
TEST(operation, does_not_hold_up_the_callers_of_a_killed_server) {
  runtime rt{quiet()};
  reader library;
  std::latch begun{1};
  const auto s = rt.spawn<reading_server>(&library, &begun);
  std::latch answered{2};
  const auto expects_exited = [&](const result<std::size_t>& got) {
    EXPECT_EQ(got.error().code(), errc::exited);
    answered.count_down();
  };
  rt.handle().call(s.call<reading_server::read>().within(1h), expects_exited);
  begun.wait();
  rt.handle().call(s.call<reading_server::read>().within(1h), expects_exited);
  while (rt.info(s.id())->mailbox == 0) std::this_thread::yield();  // the second call waits in the mailbox now
  rt.kill(s.id());
  answered.wait();
  library.finish('x');
}

// ---- blocking work

task<> blocks_by_reference(self& me, trap_door* door, std::atomic<bool>* gone) {
  const frame_mark mark{gone};
  std::string local = "alive";
  const bool same = co_await me.blocking([&] {
    door->fall_in();
    return local == "alive";
  });
  EXPECT_TRUE(same);
}
TEST(blocking, may_use_the_frame_of_its_process_even_after_a_kill) {
  std::atomic<bool> gone{false};
  trap_door door;
  runtime rt{quiet()};
  const pid p = rt.spawn(blocks_by_reference, &door, &gone);
  door.wait_until_inside();
  rt.kill(p);
  rt.wait(p);
  EXPECT_FALSE(gone);
  door.open();
  wait_until(gone);
}

task<> blocks_within(self& me, trap_door* door, result<int>* into) {
  *into = co_await me.blocking([](trap_door* d) { return d->fall_in(), 1; }, door).within(1ms);
}
TEST(blocking, with_a_limit_lets_the_process_go_on) {
  trap_door door;
  result<int> got = 0;
  runtime rt{quiet()};
  const pid p = rt.spawn(blocks_within, &door, &got);
  rt.wait(p);
  EXPECT_EQ(got.error().code(), errc::timeout);
  door.open();  // the runtime waits for the work
}

task<> blocks_shortly(self& me) {
  const result<int> got = co_await me.blocking([](int n) { return n + 1; }, 1).within(1min);
  EXPECT_EQ(got, 2);
  const result<void> nothing = co_await me.blocking([] {}).within(1min);
  EXPECT_TRUE(nothing);
}
TEST(blocking, with_a_limit_gives_the_value_in_time) { EXPECT_EQ(run(blocks_shortly), exit_reason::normal()); }

task<> awaits_the_same_work_twice(self& me) {
  auto work = me.blocking([] { return 1; });
  const int n = co_await work;
  EXPECT_EQ(n, 1);
  co_await work;
}
TEST(blocking, can_be_awaited_once) {
  EXPECT_EQ(run(awaits_the_same_work_twice),
            exit_reason::error("std::logic_error", "this operation was awaited before: make a new one each time", ""));
}

task<> waits_for_a_thread(self& me, std::atomic<bool>* gone, std::shared_ptr<int> token) {
  const frame_mark mark{gone};
  co_await me.blocking([](const std::shared_ptr<int>& t) { ++*t; }, token);
}
TEST(blocking, that_has_not_begun_keeps_no_frames) {
  trap_door door;
  std::atomic<bool> first_gone{false};
  std::atomic<bool> second_gone{false};
  const auto token = std::make_shared<int>(0);
  runtime rt{{.workers = 2, .blocking_threads = 1, .level = log_level::off}};
  rt.spawn(blocks_by_reference, &door, &first_gone);
  door.wait_until_inside();
  const pid p = rt.spawn(waits_for_a_thread, &second_gone, token);
  while (rt.counters().blocking_waiting != 1) std::this_thread::yield();
  rt.kill(p);
  rt.wait(p);
  EXPECT_TRUE(second_gone);
  door.open();
  while (rt.counters().blocking_done != 2) std::this_thread::yield();
  EXPECT_EQ(*token, 0);  // the work was dropped
}

TEST(blocking, destroys_its_function_before_the_process_goes_on) {
  const auto owned = std::make_shared<int>(1);
  const auto looks = [](self& me, std::weak_ptr<int> watched, std::shared_ptr<int> given) -> task<> {
    auto work = me.blocking([](const std::shared_ptr<int>&) {}, std::move(given));
    co_await work;
    EXPECT_EQ(watched.use_count(), 1);  // that of the test
  };
  EXPECT_EQ(run(looks, std::weak_ptr<int>{owned}, owned), exit_reason::normal());
}

}  // namespace
