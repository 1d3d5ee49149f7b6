// What every lane promises: the same cases on real threads and in a simulation.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <coppice/env/environment.hpp>
#include <coppice/env/lanes.hpp>
#include <coppice/sim/world.hpp>

namespace {

using namespace coppice;

using lines = std::vector<std::string>;

/// Lines that jobs write, in order.
class record {
 public:
  void add(std::string line) {
    const std::scoped_lock lock{mutex_};
    lines_.push_back(std::move(line));
    added_.notify_all();
  }
  [[nodiscard]] lines all() {
    const std::scoped_lock lock{mutex_};
    return lines_;
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock{mutex_};
    added_.wait(lock, [&] { return lines_.size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  lines lines_;
};

/// A machine with lanes, and jobs that last until `finish`.
class machine {
 public:
  virtual ~machine() = default;
  virtual environment& env() = 0;
  /// Waits until the record has that many lines.
  virtual void wait_for(record& r, std::size_t count) = 0;
  /// Called by the work of a job that is to last.
  virtual void last() = 0;
  virtual void finish() = 0;
};

class real_machine final : public machine {
 public:
  environment& env() override { return *environment_; }
  void wait_for(record& r, std::size_t count) override { r.wait_for(count); }
  void last() override { over_.acquire(); }
  void finish() override { over_.release(); }

 private:
  std::shared_ptr<environment> environment_ = real_environment();
  std::binary_semaphore over_{0};
};

/// All jobs last until the clock moves, which it does when there is nothing else to do.
class simulated_machine final : public machine {
 public:
  environment& env() override { return node_.rt().host().env(); }
  void wait_for(record& r, std::size_t count) override {
    ASSERT_TRUE(world_.run_until([&] { return r.all().size() >= count; }));
  }
  void last() override {}
  void finish() override {}

 private:
  sim::world world_{1};
  sim::node& node_ = world_.add_node();
};

class lane_cases : public testing::TestWithParam<const char*> {
 protected:
  lane_cases() {
    if (GetParam() == std::string_view{"real"})
      machine_ = std::make_unique<real_machine>();
    else
      machine_ = std::make_unique<simulated_machine>();
  }
  ~lane_cases() override {
    for (const auto& each : opened_) each->close();
    for (const auto& each : opened_) EXPECT_TRUE(each->wait_closed(time_point::max()));
  }
  machine& on() { return *machine_; }
  std::shared_ptr<lane> open(const std::string& name) { return opened_.emplace_back(on().env().lanes().open(name)); }
  void forget(const std::shared_ptr<lane>& gone) { std::erase(opened_, gone); }
  std::move_only_function<void()> says(std::string line) {
    return [this, line = std::move(line)] { said.add(line); };
  }
  /// A job that lasts until `finish`.
  void begin_long_job(lane& in) {
    const std::size_t before = said.all().size();
    EXPECT_TRUE(in.submit(
        [this] {
          said.add("begun");
          on().last();
        },
        says("over")));
    on().wait_for(said, before + 1);
  }
  /// Work that never runs; it reports its destruction.
  std::move_only_function<void()> unwanted(const std::string& line) {
    std::shared_ptr<void> token{nullptr, [this, line](void*) { said.add("dropped " + line); }};
    return [this, token = std::move(token)] { said.add("was run"); };
  }

  record said;

 private:
  std::unique_ptr<machine> machine_;
  std::vector<std::shared_ptr<lane>> opened_;
};
INSTANTIATE_TEST_SUITE_P(of, lane_cases, testing::Values("real", "simulated"),
                         [](const auto& which) { return std::string{which.param}; });

TEST_P(lane_cases, jobs_run_one_after_another_in_their_order) {
  const auto l = open("writer");
  lines expected;
  for (int i = 0; i < 50; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_TRUE(l->submit(says("work " + n), says("done " + n)));
    expected.push_back("work " + n);
    expected.push_back("done " + n);
  }
  on().wait_for(said, 100);
  EXPECT_EQ(said.all(), expected);
}

TEST_P(lane_cases, a_job_may_submit_another_one) {
  const auto l = open("writer");
  EXPECT_TRUE(l->submit([&] { EXPECT_TRUE(l->submit(says("second"))); }, says("first is over")));
  on().wait_for(said, 2);
  EXPECT_EQ(said.all(), (lines{"first is over", "second"}));
}

TEST_P(lane_cases, lanes_do_not_wait_for_each_other) {
  const auto slow = open("slow");
  begin_long_job(*slow);
  const auto quick = open("quick");
  EXPECT_TRUE(quick->submit(says("quick")));
  on().wait_for(said, 2);
  EXPECT_EQ(said.all().at(1), "quick");
  on().finish();
}

TEST_P(lane_cases, a_closed_lane_refuses_and_destroys_jobs) {
  const auto l = open("writer");
  l->close();
  EXPECT_FALSE(l->submit(unwanted("late")));
  EXPECT_EQ(said.all(), lines{"dropped late"});
  EXPECT_TRUE(l->wait_closed(time_point::max()));
  l->close();
}

TEST_P(lane_cases, close_drops_queued_jobs_in_their_order_and_lets_the_running_one_finish) {
  const auto l = open("writer");
  begin_long_job(*l);
  EXPECT_TRUE(l->submit(unwanted("1")));
  EXPECT_TRUE(l->submit(unwanted("2")));
  l->close();
  EXPECT_EQ(said.all(), (lines{"begun", "dropped 1", "dropped 2"}));
  on().finish();
  EXPECT_TRUE(l->wait_closed(time_point::max()));
  EXPECT_EQ(said.all(), (lines{"begun", "dropped 1", "dropped 2", "over"}));
}

TEST_P(lane_cases, a_dropped_job_may_use_the_lane_while_it_is_destroyed) {
  const auto l = open("writer");
  begin_long_job(*l);
  std::shared_ptr<void> token{nullptr, [&](void*) {
                                if (!l->submit([] {})) said.add("refused");
                              }};
  EXPECT_TRUE(l->submit([token = std::move(token)] {}));
  l->close();
  EXPECT_EQ(said.all(), (lines{"begun", "refused"}));
  on().finish();
}

TEST_P(lane_cases, a_lane_whose_handle_is_destroyed_is_closed) {
  auto l = open("writer");
  begin_long_job(*l);
  EXPECT_TRUE(l->submit(unwanted("1")));
  forget(l);
  l.reset();
  EXPECT_EQ(said.all(), (lines{"begun", "dropped 1"}));
  on().finish();
  on().wait_for(said, 3);
  EXPECT_EQ(said.all().at(2), "over");
}

TEST_P(lane_cases, a_job_may_destroy_the_handle_of_its_own_lane) {
  auto l = open("writer");
  forget(l);
  auto* const in = l.get();
  EXPECT_TRUE(in->submit([mine = std::move(l)]() mutable { mine.reset(); }, says("over")));
  on().wait_for(said, 1);
}

TEST_P(lane_cases, the_status_counts_jobs) {
  const auto l = open("writer");
  EXPECT_EQ(l->status().name, "writer");
  EXPECT_TRUE(l->submit(says("one")));
  on().wait_for(said, 1);
  begin_long_job(*l);
  EXPECT_TRUE(l->submit([] {}));
  const lane_status busy = l->status();
  EXPECT_EQ(busy.done, 1U);
  EXPECT_EQ(busy.queued, 1U);
  ASSERT_TRUE(busy.running_since);
  EXPECT_LE(*busy.running_since, on().env().clock().now());
  EXPECT_FALSE(busy.closed);
  l->close();
  on().finish();
  EXPECT_TRUE(l->wait_closed(time_point::max()));
  const lane_status ended = l->status();
  EXPECT_EQ(ended.done, 2U);
  EXPECT_EQ(ended.queued, 0U);
  EXPECT_EQ(ended.dropped, 1U);
  EXPECT_FALSE(ended.running_since);
  EXPECT_TRUE(ended.closed);
}

TEST_P(lane_cases, a_job_finds_itself_in_the_status) {
  const auto l = open("writer");
  const auto look = [&] { said.add(l->status().running_since ? "running" : "not running"); };
  EXPECT_TRUE(l->submit(look, look));
  on().wait_for(said, 2);
  EXPECT_EQ(said.all(), (lines{"running", "running"}));
}

/// The status of the lane in the list of all lanes.
std::vector<lane_status> listed(environment& env, std::string_view name) {
  std::vector<lane_status> all = env.lanes().status();
  std::erase_if(all, [&](const lane_status& each) { return each.name != name; });
  return all;
}

TEST_P(lane_cases, a_lane_that_hangs_is_left_behind_and_named) {
  auto l = open("hangs");
  EXPECT_EQ(listed(on().env(), "hangs").size(), 1U);
  begin_long_job(*l);
  l->close();
  EXPECT_FALSE(l->wait_closed(on().env().clock().now())) << "the time is over";
  const std::weak_ptr<lane> gone = l;
  forget(l);
  l.reset();
  EXPECT_TRUE(gone.expired());
  const auto left = listed(on().env(), "hangs");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_TRUE(left[0].closed);
  EXPECT_TRUE(left[0].running_since);
  on().finish();
  on().wait_for(said, 2);
}

TEST_P(lane_cases, a_closed_lane_without_a_job_is_not_listed) {
  const auto l = open("ended");
  l->close();
  EXPECT_TRUE(listed(on().env(), "ended").empty());
}

// ---- real threads only

TEST(real_lanes, all_jobs_run_on_one_thread_of_the_lane) {
  const auto env = real_environment();
  const auto one = env->lanes().open("one");
  const auto two = env->lanes().open("two");
  std::vector<std::thread::id> on_one;
  std::vector<std::thread::id> on_two;
  std::counting_semaphore<> over{0};
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(one->submit([&] { on_one.push_back(std::this_thread::get_id()); }, [&] { over.release(); }));
    EXPECT_TRUE(two->submit([&] { on_two.push_back(std::this_thread::get_id()); }, [&] { over.release(); }));
  }
  for (int i = 0; i < 20; ++i) over.acquire();
  EXPECT_EQ(on_one, std::vector(10, on_one[0]));
  EXPECT_EQ(on_two, std::vector(10, on_two[0]));
  EXPECT_NE(on_one[0], on_two[0]);
  EXPECT_NE(on_one[0], std::this_thread::get_id());
}

TEST(real_lanes, many_threads_may_submit_while_another_one_closes_the_lane) {
  const auto env = real_environment();
  for (int round = 0; round < 50; ++round) {
    const auto l = env->lanes().open("storm");
    std::atomic<int> accepted{0};
    const auto destroyed = std::make_shared<std::atomic<int>>(0);
    {
      std::vector<std::jthread> senders;
      for (int i = 0; i < 3; ++i)
        senders.emplace_back([&] {
          for (int n = 0; n < 50; ++n) {
            std::shared_ptr<void> token{nullptr, [destroyed](void*) { ++*destroyed; }};
            if (l->submit([token = std::move(token)] {})) ++accepted;
          }
        });
      senders.emplace_back([&] { l->close(); });
    }
    EXPECT_TRUE(l->wait_closed(time_point::max()));
    const lane_status end = l->status();
    EXPECT_EQ(end.done + end.dropped, static_cast<std::uint64_t>(accepted.load()));
    EXPECT_EQ(destroyed->load(), 150);
  }
}

}  // namespace
