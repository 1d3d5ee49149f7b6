// Handles of applications, by which other threads use a program that they did not start: before it runs, while it runs
// and afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include <coppice/application/application.hpp>
#include <coppice/env/environment_wrapper.hpp>

namespace {

using namespace coppice;

struct counter {
  struct bump {
    using reply = int;
  };
  struct stop {};
  using protocol = coppice::protocol<bump, stop>;
  int handle(bump) { return ++value; }
  void handle(stop, self& me) { stop_program(me); }
  int value = 0;
};

application demo() { return {{.name = "demo", .supervise = {child<counter>().with({.name = "counter"})}}}; }

run_options without_signals() { return {.runtime = {.workers = 2, .level = log_level::off}, .stop_on = {}}; }

void expect_no(const runtime_handle& to) {
  EXPECT_FALSE(to.running());
  EXPECT_FALSE(to.where("counter"));
  EXPECT_FALSE(to.send("counter", counter::stop{}));
  EXPECT_FALSE(to.cast<counter::stop>(ref<counter>{}));
  EXPECT_FALSE(to.kill(pid{}));
  std::optional<result<int>> got;
  to.call(call<counter::bump>(pid{}), [&](result<int> n) { got = std::move(n); });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->error().code(), errc::stopped);
}

/// Uses the program as soon as it is up, then stops it.
int bump_and_stop(const runtime_handle& to) {
  while (!to.where("counter")) std::this_thread::yield();
  std::atomic<int> value{0};
  to.call(call<counter::bump>(to.where("counter")), [&](result<int> n) {
    value = n.value_or(-1);
    value.notify_one();
  });
  value.wait(0);
  EXPECT_TRUE(to.send("counter", counter::stop{}));
  return value;
}

TEST(application_handle, says_no_before_the_program_runs_and_after_its_end) {
  const application app = demo();
  const runtime_handle to = app.handle();
  expect_no(to);
  std::jthread other{[&] { EXPECT_EQ(bump_and_stop(to), 1); }};
  EXPECT_EQ(app.run(without_signals()), 0);
  other.join();
  expect_no(to);
}

TEST(application_handle, may_outlive_its_application) {
  runtime_handle to;
  {
    const application app = demo();
    to = app.handle();
  }
  expect_no(to);
}

TEST(application_handle, leads_to_the_runtime_of_the_last_start) {
  const application app = demo();
  const runtime_handle to = app.handle();
  for (int i = 0; i < 3; ++i) {
    std::jthread other{[&] { EXPECT_EQ(bump_and_stop(to), 1) << "not a new counter"; }};
    EXPECT_EQ(app.run(without_signals()), 0);
  }
}

TEST(application_handle, still_leads_to_the_program_that_runs_when_another_start_fails) {
  const application app = demo();
  runtime first{{.workers = 2, .level = log_level::off}};
  runtime second{{.workers = 2, .level = log_level::off}};
  const application other{{.name = "other", .supervise = {child<counter>()}}};
  running_program in_the_way = other.start(second, without_signals());
  running_program runs = app.start(first, without_signals());
  running_program refused = app.start(second, without_signals());
  ASSERT_EQ(refused.wait().what, program_end::start_failed);
  EXPECT_EQ(bump_and_stop(app.handle()), 1);
  (void)runs.wait();
  in_the_way.stop();
  (void)in_the_way.wait();
}

/// Whose signals cannot be subscribed to. Asks `seen` at the attempt.
class without_os_signals final : public environment_wrapper, private os_signals {
 public:
  explicit without_os_signals(std::function<void()> ask)
      : environment_wrapper{real_environment()}, seen{std::move(ask)} {}
  [[nodiscard]] coppice::os_signals& os_signals() noexcept override { return *this; }

 private:
  std::unique_ptr<os_signal_subscription> subscribe(std::vector<os_signal>,
                                                    std::move_only_function<void(os_signal)>) override {
    seen();
    throw std::runtime_error{"no signals here"};
  }
  std::function<void()> seen;
};

TEST(application_handle, still_leads_to_the_program_that_runs_while_another_start_fails) {
  const application app = demo();
  std::optional<bool> led_to_first;
  const auto look = [&] { led_to_first = static_cast<bool>(app.handle().where("counter")); };
  runtime first{{.workers = 2, .level = log_level::off}};
  runtime second{std::make_shared<without_os_signals>(look), {.workers = 1, .level = log_level::off}};
  EXPECT_THROW((void)app.start(second), std::runtime_error);
  EXPECT_EQ(led_to_first, false);
  expect_no(app.handle());
  running_program runs = app.start(first, without_signals());
  while (!app.handle().where("counter")) std::this_thread::yield();
  EXPECT_THROW((void)app.start(second), std::runtime_error);
  ASSERT_EQ(led_to_first, true);
  EXPECT_EQ(bump_and_stop(app.handle()), 1);
  (void)runs.wait();
}

TEST(application_handle, can_be_used_when_the_start_hook_runs) {
  runtime_handle to;
  runtime_handle of_process;
  bool usable = false;
  application_options options = demo().options();
  options.start = [&](self& me) {
    usable = to.running();
    of_process = me.handle();
  };
  const application app{std::move(options)};
  to = app.handle();
  std::jthread other{[to] { bump_and_stop(to); }};
  EXPECT_EQ(app.run(without_signals()), 0);
  EXPECT_TRUE(usable);
  other.join();
  expect_no(of_process);
}

TEST(application_handle, is_the_same_for_all_applications_of_a_program) {
  const application one = demo();
  const application two{{.name = "two", .depends_on = {"demo"}}};
  const applications both{two, one};
  expect_no(both.handle());
  runtime rt{{.workers = 1, .level = log_level::off}};
  running_program running = both.start(rt, without_signals());
  for (const runtime_handle& to : {one.handle(), two.handle(), both.handle(), running.handle()})
    EXPECT_TRUE(to.running());
  bump_and_stop(two.handle());
  EXPECT_EQ(running.wait().exit_code(), 0);
  EXPECT_TRUE(one.handle().running()) << "the program has ended, not its runtime";
}

TEST(application_handle, of_a_program_that_is_refused_says_no) {
  const application nameless{{.name = ""}};
  EXPECT_EQ(nameless.run(without_signals()), 2);
  expect_no(nameless.handle());
  expect_no(applications{}.handle());
}

TEST(application_handle, may_be_used_by_threads_while_the_program_starts_and_stops) {
  const application app = demo();
  std::atomic<bool> over{false};
  std::atomic<int> asked{0};
  std::atomic<int> answered{0};
  std::vector<std::jthread> others;
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&, to = app.handle()] {
      while (!over) {
        ++asked;
        to.call(call<counter::bump>(to.where("counter")), [&](const result<int>&) { ++answered; });
        to.send("counter", counter::stop{});
        if (to.running()) to.cast<counter::stop>(ref<counter>{to.where("counter")});
        std::this_thread::yield();
      }
    });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(app.run(without_signals()), 0);
  over = true;
  others.clear();
  EXPECT_EQ(asked, answered);
}

}  // namespace
