// Whole programs on this machine: real threads, real signals, real exit codes. Each runs in a process of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <semaphore>
#include <string>
#include <thread>

#include <coppice/application/application.hpp>

namespace coppice {

using namespace std::chrono_literals;

// ---- the programs

void block_signals(int how) {
  sigset_t some;
  sigemptyset(&some);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&some, number);
  ::pthread_sigmask(how, &some, nullptr);
}

void print(std::string_view line) { std::cout << line << std::endl; }  // NOLINT(performance-avoid-endl): somebody reads

struct greeter {  // a class that knows nothing of supervision
  struct greet {
    using reply = std::string;
  };
  static std::string handle(greet) { return "hello"; }
};

struct server {
  struct nothing {};
  static constexpr bool traps_exits = true;
  static void init() { print("up"); }
  static void terminate(const exit_reason& why) { print("down: " + why.to_string()); }
  static void handle(nothing) {}
};

struct never_stops {
  struct nothing {};
  static constexpr bool traps_exits = true;
  static constexpr child_defaults supervision{.shutdown = shutdown::infinity()};
  static void init() { print("up"); }
  static task<> terminate(const exit_reason&, self& me) {
    print("stopping");
    co_await me.sleep(1000h);
  }
  static void handle(nothing) {}
};

struct never_comes_back {
  struct nothing {};
  static void init(self& me) { continue_next(me); }
  static void handle_continue() {
    print("up");
    std::binary_semaphore never{0};
    never.acquire();
  }
  static void handle(nothing) {}
};

struct crashes {
  struct nothing {};
  static void init(self& me) { continue_next(me); }
  static void handle_continue() { throw std::runtime_error{"out of luck"}; }
  static void handle(nothing) {}
};

struct can_not_start {
  struct nothing {};
  static init_result init() { return init_result::fail(error{errc::invalid, "no disk"}); }
  static void handle(nothing) {}
};

struct has_done_its_work {
  struct nothing {};
  static constexpr child_defaults supervision{.restart = restart::transient, .significant = true};
  static void init(self& me) { continue_next(me); }
  static void handle_continue(self& me) { me.stop(); }
  static void handle(nothing) {}
};

namespace {

run_options quiet() { return {.runtime = {.workers = 2, .level = log_level::off}}; }

int one_line() {
  return application{{.name = "demo", .supervise = {child<greeter>()}, .start = [] { print("up"); }}}.run(quiet());
}
int service() { return application{{.name = "demo", .supervise = {child<server>()}}}.run(quiet()); }
int talks() { return application{{.name = "demo", .supervise = {child<server>()}}}.run(); }
int stubborn() { return application{{.name = "demo", .supervise = {child<never_stops>()}}}.run(quiet()); }
int stuck() {
  run_options how = quiet();
  how.runtime.stop_within = 10ms;
  how.stop_on.push_back(os_signal::hangup);
  const child_spec part = child<never_comes_back>().with({.shutdown = shutdown::infinity()});
  const int code = application{{.name = "demo", .supervise = {part}}}.run(how);
#ifdef __SANITIZE_ADDRESS__
  std::_Exit(code);  // what is left behind would be taken for a leak
#endif
  return code;
}
int late() {
  run_options how = quiet();
  how.stop_within = 20ms;
  return application{{.name = "demo", .supervise = {child<never_stops>()}}}.run(how);
}
task<> blocks_for_ever(self& me) {
  co_await me.blocking([] {
    print("up");
    std::binary_semaphore never{0};
    never.acquire();
  });
}
int hung() {
  run_options how = quiet();
  how.stop_within = 20ms;
  how.runtime.stop_within = 1h;
  const int code = application{{.name = "demo", .supervise = {child(blocks_for_ever).with({.id = "blocks"})}}}.run(how);
#ifdef __SANITIZE_ADDRESS__
  std::_Exit(code);  // as above
#endif
  return code;
}
int gives_up() { return application{{.name = "demo", .supervise = {child<crashes>()}}}.run(quiet()); }
int fails_to_start() {
  const application storage{{.name = "storage", .supervise = {child<server>(), child<can_not_start>()}}};
  const application web{{.name = "web", .supervise = {child<greeter>()}, .depends_on = {"storage"}}};
  return applications{web, storage}.run(quiet());
}
int makes_no_sense() { return application{{.supervise = {child<server>()}}}.run(quiet()); }
int has_bad_options() {
  run_options how = quiet();
  how.runtime.budget = 0;
  return application{{.name = "demo"}}.run(how);
}
int job() {
  return application{
      {.name = "demo", .supervise = {child<has_done_its_work>()}, .auto_shutdown = auto_shutdown::all_significant}}
      .run(quiet());
}
int leaves_signals_alone() {
  run_options how = quiet();
  how.stop_on.clear();
  block_signals(SIG_UNBLOCK);
  return application{{.name = "demo", .supervise = {child<server>()}}}.run(how);
}
/// As the guide has it: a thread waits for a command when the program ends.
int has_a_console() {
  const application app{{.name = "demo", .supervise = {child<greeter>().with({.name = "greeter"}), child<server>()}}};
  std::thread{[to = app.handle()] {
    std::binary_semaphore never{0};
    never.acquire();
    to.send("greeter", 1);
  }}.detach();
  return app.run(quiet());
}
int goes_on_after_the_run() {
  const int code = service();
  block_signals(SIG_UNBLOCK);
  print("returned " + std::to_string(code));
  std::binary_semaphore never{0};
  never.acquire();
  return 0;
}

// ---- running them

class running {
 public:
  explicit running(int (*program)()) {
    std::cout.flush();
    if (::pipe(out_.data()) != 0 || ::pipe(err_.data()) != 0) throw std::runtime_error{"no pipe"};
    child_ = ::fork();
    if (child_ == 0) be(program);
    ::close(out_[1]);
    ::close(err_[1]);
  }
  running(const running&) = delete;
  running& operator=(const running&) = delete;
  ~running() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(out_[0]);
    ::close(err_[0]);
  }

  /// The next line it prints; empty when it has ended.
  std::string line() {
    std::string text;
    for (char c = 0; ::read(out_[0], &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void signal(int number) const { ::kill(child_, number); }
  /// What it writes on standard error, until it ends.
  std::string errors() {
    std::string text;
    for (char c = 0; ::read(err_[0], &c, 1) == 1;) text += c;
    return text;
  }
  /// Its exit code; minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  [[noreturn]] void be(int (*program)()) {
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) (void)std::signal(number, SIG_DFL);  // as a shell starts it
#ifdef __SANITIZE_THREAD__
    // It keeps a signal to itself until the thread that got it makes a call that it knows, and parked workers make
    // none. So only the thread that waits for signals may get them.
    block_signals(SIG_BLOCK);
#endif
    ::dup2(out_[1], STDOUT_FILENO);
    ::dup2(err_[1], STDERR_FILENO);
    for (const int fd : {out_[0], out_[1], err_[0], err_[1]}) ::close(fd);
    std::exit(program());  // NOLINT(concurrency-mt-unsafe): there is one thread left
  }
  std::array<int, 2> out_{};
  std::array<int, 2> err_{};
  pid_t child_ = 0;
};

TEST(real_program, is_one_line_away_from_a_class_that_knows_nothing_of_it) {
  running p{one_line};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 0);
}

TEST(real_program, stops_in_order_and_ends_with_0_after_a_signal) {
  for (const int number : {SIGTERM, SIGINT}) {
    running p{service};
    EXPECT_EQ(p.line(), "up");
    p.signal(number);
    EXPECT_EQ(p.line(), "down: shutdown");
    EXPECT_EQ(p.errors(), "");
    EXPECT_EQ(p.wait(), 0);
  }
}

TEST(real_program, ends_although_a_detached_thread_with_a_handle_still_waits) {
  running p{has_a_console};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.line(), "down: shutdown");
  EXPECT_EQ(p.wait(), 0);
}

TEST(real_program, says_that_it_has_heard_a_signal) {
  running p{talks};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGINT);
  const std::string log = p.errors();
  EXPECT_NE(log.find("the program stops in order: SIGINT; a second signal stops it at once"), std::string::npos) << log;
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  EXPECT_EQ(p.wait(), 0);
}

TEST(real_program, ends_at_once_after_a_second_signal) {
  running p{stubborn};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.line(), "stopping");
  p.signal(SIGINT);
  EXPECT_EQ(p.errors(), "coppice: SIGINT was the second signal: stopped at once\n");
  EXPECT_EQ(p.wait(), 128 + SIGINT);
}

TEST(real_program, ends_after_a_second_signal_even_when_a_process_never_comes_back) {
  running p{stuck};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGHUP);
  p.signal(SIGTERM);  // another one: two of a kind in a row can become one on their way
  EXPECT_EQ(p.errors().substr(0, 9), "coppice: ");
  EXPECT_GT(p.wait(), 128);
}

TEST(real_program, ends_with_4_when_it_does_not_stop_in_time) {
  running p{late};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.errors(), "coppice: not stopped within 20ms and killed: \"demo\"\n");
  EXPECT_EQ(p.wait(), 4);
}

TEST(real_program, that_has_a_limit_for_its_stop_does_not_wait_longer_for_blocking_work_that_hangs) {
  running p{hung};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 0);
}

TEST(real_program, ends_with_1_when_its_supervisor_gives_up) {
  running p{gives_up};
  EXPECT_EQ(p.errors(),
            "coppice: application \"demo\" ended: the supervisor gives up: more than 1 restart within 5s; the last was "
            "for child 'crashes': error: std::runtime_error: out of luck\n");
  EXPECT_EQ(p.wait(), 1);
}

TEST(real_program, ends_with_3_and_names_application_child_and_reason_when_it_can_not_start) {
  running p{fails_to_start};
  EXPECT_EQ(p.line(), "up");
  EXPECT_EQ(p.line(), "down: shutdown") << "what was started is stopped";
  EXPECT_EQ(p.errors(),
            "coppice: application \"storage\" could not be started: child 'can_not_start' could not be started: no "
            "disk\n");
  EXPECT_EQ(p.wait(), 3);
}

TEST(real_program, ends_with_2_when_its_options_make_no_sense) {
  running nameless{makes_no_sense};
  EXPECT_EQ(nameless.errors(), "coppice: application number 1 has no name: give it one with .name\n");
  EXPECT_EQ(nameless.wait(), 2);
  running bad{has_bad_options};
  EXPECT_EQ(bad.errors().find("coppice: the options of the runtime are invalid: "), 0U);
  EXPECT_EQ(bad.wait(), 2);
}

TEST(real_program, ends_with_0_when_its_work_is_done) {
  running p{job};
  EXPECT_EQ(p.errors(), "");
  EXPECT_EQ(p.wait(), 0);
}

TEST(real_program, leaves_signals_alone_when_it_is_told_to) {
  running p{leaves_signals_alone};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), -SIGTERM);
}

TEST(real_program, gives_signals_back_when_the_run_is_over) {
  running p{goes_on_after_the_run};
  EXPECT_EQ(p.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.line(), "down: shutdown");
  EXPECT_EQ(p.line(), "returned 0");
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), -SIGTERM);
}

}  // namespace
}  // namespace coppice
