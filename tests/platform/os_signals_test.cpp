// Real signals of the operating system, raised in this program.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include <coppice/env/environment.hpp>

namespace {

using namespace coppice;

/// The received signals, in order; `next` waits for one.
class ears {
 public:
  [[nodiscard]] std::unique_ptr<os_signal_subscription> listen(std::vector<os_signal> which) {
    return real_environment()->os_signals().subscribe(std::move(which), [this](os_signal s) {
      const std::scoped_lock lock{mutex_};
      heard_.push_back({s, std::this_thread::get_id()});
      count_.release();
    });
  }
  struct one {
    os_signal what;
    std::thread::id on;
  };
  one next() {
    count_.acquire();
    const std::scoped_lock lock{mutex_};
    const one first = heard_.front();
    heard_.erase(heard_.begin());
    return first;
  }
  bool nothing_more() {
    const std::scoped_lock lock{mutex_};
    return heard_.empty();
  }

 private:
  std::mutex mutex_;
  std::vector<one> heard_;
  std::counting_semaphore<> count_{0};
};

using handler = void (*)(int);
handler handler_of(int number) {
  struct sigaction now{};
  ::sigaction(number, nullptr, &now);
  return now.sa_handler;
}

volatile std::sig_atomic_t own_handler_ran = 0;
void own_handler(int) { own_handler_ran = 1; }

/// Resets signal handling to that of a program in the foreground, however the tests were started.
class os_signals_of_this_machine : public testing::Test {
 protected:
  void SetUp() override {
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) (void)std::signal(number, SIG_DFL);
    own_handler_ran = 0;
  }
};

TEST_F(os_signals_of_this_machine, are_received_on_a_thread_of_their_own) {
  ears mine;
  const auto listening = mine.listen({os_signal::terminate});
  (void)std::raise(SIGTERM);
  const auto heard = mine.next();
  EXPECT_EQ(heard.what, os_signal::terminate);
  EXPECT_NE(heard.on, std::this_thread::get_id());
}

TEST_F(os_signals_of_this_machine, are_received_once_for_each_time) {
  ears mine;
  const auto listening = mine.listen({os_signal::terminate, os_signal::interrupt});
  for (int i = 0; i < 3; ++i) (void)std::raise(SIGTERM);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(mine.next().what, os_signal::terminate);
  (void)std::raise(SIGINT);
  EXPECT_EQ(mine.next().what, os_signal::interrupt);
  EXPECT_TRUE(mine.nothing_more());
}

TEST_F(os_signals_of_this_machine, include_those_whose_meaning_is_the_programs_own) {
  ears mine;
  const auto listening = mine.listen({os_signal::user1, os_signal::user2});
  (void)std::raise(SIGUSR2);
  EXPECT_EQ(mine.next().what, os_signal::user2);
  (void)std::raise(SIGUSR1);
  EXPECT_EQ(mine.next().what, os_signal::user1);
}

TEST_F(os_signals_of_this_machine, reach_all_who_asked_for_them_and_nobody_else) {
  ears first;
  ears second;
  const auto a = first.listen({os_signal::terminate, os_signal::hangup});
  const auto b = second.listen({os_signal::terminate, os_signal::interrupt});
  (void)std::raise(SIGTERM);
  EXPECT_EQ(first.next().what, os_signal::terminate);
  EXPECT_EQ(second.next().what, os_signal::terminate);
  (void)std::raise(SIGINT);
  EXPECT_EQ(second.next().what, os_signal::interrupt);
  (void)std::raise(SIGHUP);
  EXPECT_EQ(first.next().what, os_signal::hangup);
  EXPECT_TRUE(first.nothing_more());
  EXPECT_TRUE(second.nothing_more());
}

TEST_F(os_signals_of_this_machine, do_what_they_did_before_once_the_last_subscription_is_gone) {
  (void)std::signal(SIGTERM, own_handler);
  ears mine;
  {
    const auto outer = mine.listen({os_signal::terminate});
    {
      const auto inner = mine.listen({os_signal::terminate, os_signal::interrupt});
      EXPECT_NE(handler_of(SIGINT), SIG_DFL);
    }
    EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
    (void)std::raise(SIGTERM);
    EXPECT_EQ(mine.next().what, os_signal::terminate);
    EXPECT_EQ(own_handler_ran, 0);
  }
  EXPECT_EQ(handler_of(SIGTERM), &own_handler);
  (void)std::raise(SIGTERM);
  EXPECT_EQ(own_handler_ran, 1);
  EXPECT_TRUE(mine.nothing_more());
}

TEST_F(os_signals_of_this_machine, may_be_subscribed_to_again_and_again) {
  for (int i = 0; i < 20; ++i) {
    ears mine;
    const auto listening = mine.listen({os_signal::interrupt});
    (void)std::raise(SIGINT);
    EXPECT_EQ(mine.next().what, os_signal::interrupt);
  }
  EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
}

TEST_F(os_signals_of_this_machine, call_nobody_who_is_gone) {
  ears whole_time;
  const auto listening = whole_time.listen({os_signal::terminate});
  for (int i = 0; i < 200; ++i) {
    auto short_lived = std::make_unique<int>(0);
    auto there = real_environment()->os_signals().subscribe({os_signal::terminate}, [&](os_signal) { ++*short_lived; });
    (void)std::raise(SIGTERM);
    there.reset();
    short_lived.reset();
    EXPECT_EQ(whole_time.next().what, os_signal::terminate);
  }
}

TEST_F(os_signals_of_this_machine, stay_ignored_where_they_were_ignored) {
  (void)std::signal(SIGHUP, SIG_IGN);
  ears mine;
  {
    const auto listening = mine.listen({os_signal::hangup, os_signal::terminate});
    EXPECT_EQ(handler_of(SIGHUP), SIG_IGN);
    (void)std::raise(SIGHUP);
    (void)std::raise(SIGTERM);
    EXPECT_EQ(mine.next().what, os_signal::terminate);
    EXPECT_TRUE(mine.nothing_more());
  }
  EXPECT_EQ(handler_of(SIGHUP), SIG_IGN);
}

TEST_F(os_signals_of_this_machine, leave_a_handler_alone_that_somebody_installed_meanwhile) {
  ears mine;
  {
    const auto listening = mine.listen({os_signal::hangup});
    (void)std::signal(SIGHUP, own_handler);
  }
  EXPECT_EQ(handler_of(SIGHUP), &own_handler);
}

TEST_F(os_signals_of_this_machine, are_received_even_where_every_other_thread_has_them_blocked) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  {
    ears mine;
    const auto listening = mine.listen({os_signal::terminate});
    (void)::kill(::getpid(), SIGTERM);  // to the program; any thread may receive it
    EXPECT_EQ(mine.next().what, os_signal::terminate);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(os_signals_of_this_machine, end_a_forked_child_and_do_not_reach_its_parent) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "in a forked child the thread sanitizer of g++ keeps signals to itself";
#endif
  ears mine;
  const auto listening = mine.listen({os_signal::terminate, os_signal::interrupt});
  const pid_t child = ::fork();
  if (child == 0) {
    (void)std::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  (void)std::raise(SIGINT);
  EXPECT_EQ(mine.next().what, os_signal::interrupt);
  EXPECT_TRUE(mine.nothing_more());
}

}  // namespace
