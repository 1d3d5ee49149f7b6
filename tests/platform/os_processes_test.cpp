// Programs of this machine: what the simulated ones promise too, and what only real ones can show. (std::thread: this
// file has real threads.)
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <os_process_cases.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <coppice/env/environment.hpp>

namespace {

using namespace coppice;
using namespace coppice::os_process_cases;

/// The descriptors of this program; without the one that reads them.
std::string open_descriptors() {
  std::string all;
  DIR* const folder = ::opendir("/proc/self/fd");
  for (const dirent* each = ::readdir(folder); each != nullptr; each = ::readdir(folder))
    if (each->d_name != std::to_string(::dirfd(folder))) all += std::string{each->d_name} + " ";
  ::closedir(folder);
  return all;
}

os_command shell(std::string script, const std::vector<std::string>& arguments = {}) {
  os_command c{.program = "sh", .arguments = {"-c", std::move(script), "sh"}};
  c.arguments.insert(c.arguments.end(), arguments.begin(), arguments.end());
  return c;
}

class real_stage final : public stage {
 public:
  os_processes& processes() override { return real_environment()->os_processes(); }
  os_command command(const std::string& name, std::vector<std::string> arguments) override {
    static const std::map<std::string, std::string> scripts{
        {"exits", "exit $1"},
        {"dies", "kill -$1 $$"},
        {"says", "echo \"$1\"; echo \"error $1\" >&2"},
        {"floods", "head -c $1 /dev/zero"},
        {"cat", "exec cat"},
        {"polite", "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"},
        {"stubborn", "trap '' TERM; echo ready; exec sleep 1000"},
        {"deaf", "exec <&-; echo ready; exec sleep 1000"},
        {"ticks", "echo ready; while :; do echo tick; done"},
        {"parent", "sleep 1000 & echo ready"},
    };
    return shell(scripts.at(name), arguments);
  }
  void wait(recorder& of, const std::function<bool(const report&)>& until) override { of.wait(until); }
  /// Waits for the children without a handle, whose end nobody reports.
  std::string leftovers() override {
    siginfo_t one{};
    while (::waitid(P_ALL, 0, &one, WEXITED | WNOWAIT) == 0) std::this_thread::yield();
    return open_descriptors();
  }
};

INSTANTIATE_TEST_SUITE_P(real, os_process_case,
                         testing::Values(stage_maker{"this_machine", [] { return std::make_unique<real_stage>(); }}));

/// What a shell prints.
std::string output_of(const os_command& c) { return real_stage{}.run(c).output; }

// ---- what a program gets

TEST(real_os_process, gets_its_arguments_as_they_are) {
  EXPECT_EQ(output_of(shell(R"(for a in "$@"; do echo "<$a>"; done)", {"a b", "", "*", "$x"})),
            "<a b>\n<>\n<*>\n<$x>\n");
}

TEST(real_os_process, gets_our_variables_and_its_own) {
  ::setenv("COPPICE_TEST_OURS", "ours", 1);
  ::setenv("COPPICE_TEST_BOTH", "ours", 1);
  os_command c = shell("echo $COPPICE_TEST_OURS $COPPICE_TEST_BOTH $COPPICE_TEST_THEIRS");
  c.variables = {{"COPPICE_TEST_BOTH", "theirs"}, {"COPPICE_TEST_THEIRS", "a=b"}};
  EXPECT_EQ(output_of(c), "ours theirs a=b\n");
  c.inherits_variables = false;
  EXPECT_EQ(output_of(c), "theirs a=b\n");
  ::unsetenv("COPPICE_TEST_OURS");
  ::unsetenv("COPPICE_TEST_BOTH");
}

TEST(real_os_process, runs_in_its_directory) {
  os_command c = shell("pwd");
  c.directory = "/usr";
  EXPECT_EQ(output_of(c), "/usr\n");
  EXPECT_EQ(output_of(shell("pwd")), std::filesystem::current_path().string() + "\n");
}

TEST(real_os_process, gets_descriptors_under_the_numbers_it_asks_for) {
  // The numbers are crossed, so that a careless order of copies would lose one of them.
  std::array<std::array<int, 2>, 2> pipes{};
  for (auto& p : pipes) ASSERT_EQ(::pipe2(p.data(), O_CLOEXEC), 0);
  const int a = pipes[0][1];
  const int b = pipes[1][1];
  os_command c = shell("eval \"echo first >&$1; echo second >&$2\"", {std::to_string(b), std::to_string(a)});
  c.descriptors = {{.ours = a, .theirs = b}, {.ours = b, .theirs = a}};
  EXPECT_TRUE(real_stage{}.run(c).how.ok());
  std::array<char, 16> got{};
  EXPECT_EQ(::read(pipes[0][0], got.data(), got.size()), 6);
  EXPECT_STREQ(got.data(), "first\n");
  EXPECT_EQ(::read(pipes[1][0], got.data(), got.size()), 7);
  EXPECT_STREQ(got.data(), "second\n");
  for (auto& p : pipes)
    for (const int end : p) ::close(end);
}

TEST(real_os_process, gets_no_other_descriptor_of_ours) {
  const int careless = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  ASSERT_GE(careless, 3);
  os_command c{.program = "ls", .arguments = {"/proc/self/fd"}};  // 3 is its own: the folder
  EXPECT_EQ(output_of(c), "0\n1\n2\n3\n");
  c.descriptors = {{.ours = careless, .theirs = 7}};
  EXPECT_EQ(output_of(c), "0\n1\n2\n3\n7\n");
  ::close(careless);
}

TEST(real_os_process, inherits_a_stream_of_ours_on_request) {
  const int before = ::dup(STDIN_FILENO);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "mine\n", 5), 5);
  ::close(ends[1]);
  ::dup2(ends[0], STDIN_FILENO);
  os_command c{.program = "cat"};
  c.input = os_stdio::inherit;
  EXPECT_EQ(output_of(c), "mine\n");
  ::dup2(before, STDIN_FILENO);
  ::close(before);
  ::close(ends[0]);
}

TEST(real_os_process, has_no_signal_blocked_or_ignored) {
  sigset_t some;
  sigset_t before;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &some, &before);
  const auto handler = std::signal(SIGUSR2, SIG_IGN);
  const std::string state = output_of({.program = "grep", .arguments = {"-E", "Sig(Blk|Ign)", "/proc/self/status"}});
  (void)std::signal(SIGUSR2, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(state, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(real_os_process, has_a_group_of_its_own_unless_told_otherwise) {
  const auto group_of = [](os_group g) {
    os_command c = shell("cut -d ' ' -f 1,5,6 /proc/$$/stat");  // process, group, session
    c.group = g;
    std::int64_t process = 0;
    std::int64_t group = 0;
    std::int64_t session = 0;
    std::istringstream{output_of(c)} >> process >> group >> session;
    return std::array{process == group, process == session, group == ::getpgrp(), session == ::getsid(0)};
  };
  EXPECT_EQ(group_of(os_group::own), (std::array{true, false, false, true}));
  EXPECT_EQ(group_of(os_group::session), (std::array{true, true, false, false}));
  EXPECT_EQ(group_of(os_group::inherit), (std::array{false, false, true, true}));
}

TEST(real_os_process, reports_what_it_used) {
  const report r = real_stage{}.run(shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"));
  EXPECT_GT(r.how.user_time + r.how.system_time, std::chrono::microseconds{0});
  EXPECT_GT(r.how.memory_peak_kib, 100);
}

// ---- errors

std::string error_of(const os_command& c) {
  const auto p = real_environment()->os_processes().spawn(c, {});
  return p ? "it has started" : p.error().to_string();
}

TEST(real_os_process, an_error_says_what_was_tried_and_what_the_system_said) {
  ::setenv("PATH", "/nowhere:/usr/bin:/bin", 1);
  EXPECT_EQ(error_of({.program = "no-such"}),
            "not_found: cannot start 'no-such': tried /nowhere/no-such, /usr/bin/no-such, /bin/no-such: "
            "No such file or directory");
  EXPECT_EQ(error_of({.program = "/etc/passwd"}),
            "start_failed: cannot start '/etc/passwd': tried /etc/passwd: Permission denied");
  EXPECT_EQ(error_of({.program = "true", .directory = "/nowhere"}),
            "not_found: cannot start 'true': changing to the directory '/nowhere': No such file or directory");
  EXPECT_EQ(error_of({.program = "true", .descriptors = {{.ours = 900, .theirs = 3}}}),
            "start_failed: cannot start 'true': passing it 4 descriptors: Bad file descriptor");
}

TEST(real_os_process, a_file_that_may_not_be_run_does_not_hide_one_further_on) {
  const auto folder = std::filesystem::temp_directory_path() / ("coppice-path-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream{folder / "true"} << "not a program";
  std::ofstream{folder / "coppice-text"} << "not a program";
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", (folder.string() + ":/usr/bin:/bin").c_str(), 1);
  EXPECT_TRUE(real_stage{}.run({.program = "true"}).how.ok());
  const std::string refused = error_of({.program = "coppice-text"});
  EXPECT_NE(refused.find("Permission denied"), std::string::npos) << refused;
  ::setenv("PATH", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(real_os_process, a_failed_start_leaves_nothing_behind) {
  real_stage on;
  (void)on.run(on.command("exits", {"0"}));
  const std::string before = on.leftovers();
  for (int i = 0; i < 50; ++i) {
    EXPECT_NE(error_of({.program = "/nowhere/x", .input = os_stdio::pipe}), "it has started");
    EXPECT_NE(error_of({.program = "true", .directory = "/nowhere"}), "it has started");
  }
  EXPECT_EQ(on.leftovers(), before);
}

TEST(real_os_process, a_shortage_of_descriptors_is_an_error) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer for undefined behaviour needs descriptors itself";
#endif
  real_stage on;
  (void)on.run(on.command("exits", {"0"}));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int highest = ::dup(STDIN_FILENO);
  ::close(highest);
  const rlimit few{.rlim_cur = static_cast<rlim_t>(highest) + 1, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const std::string refused = error_of({.program = "true"});
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(refused.substr(0, 9), "capacity:") << refused;
  EXPECT_NE(refused.find("Too many open files"), std::string::npos) << refused;
  EXPECT_TRUE(on.run({.program = "true"}).how.ok());
}

TEST(real_os_process, an_end_that_other_code_has_waited_for_is_reported_as_unknown) {
  real_stage on;
  const auto before = std::signal(SIGCHLD, SIG_IGN);  // the system waits for all children then
  recorder all;
  const auto p = on.start(on.command("exits", {"3"}), all);
  on.wait_for_end(all);
  (void)std::signal(SIGCHLD, before);
  EXPECT_EQ(all.now().how.code, -1);
  EXPECT_FALSE(all.now().how.ok());
  EXPECT_EQ(to_string(all.now().how), "unknown exit code");
  EXPECT_EQ(code_of(p->signal_group(sigkill)), errc::exited) << "its number may be that of another process now";
}

// ---- together with others

TEST(real_os_process, may_be_started_from_many_threads_at_once) {
  std::vector<std::thread> threads;
  std::atomic<int> ok{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      real_stage on;
      for (int i = 0; i < 25; ++i) {
        os_command c = on.command("cat", {});
        c.input = os_stdio::pipe;
        recorder all;
        const auto p = on.start(c, all);
        (void)p->write_input("hello");
        p->close_input();
        on.wait_for_end(all);
        if (all.now().output == "hello") ++ok;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ok, 100);
}

TEST(real_os_process, outlives_the_thread_that_started_it) {
  real_stage on;
  recorder all;
  os_command c = on.command("cat", {});
  c.input = os_stdio::pipe;
  std::unique_ptr<os_process> p;
  std::thread{[&] { p = on.start(c, all); }}.join();
  EXPECT_TRUE(p->write_input("still here"));
  p->close_input();
  on.wait_for_end(all);
  EXPECT_EQ(all.now().output, "still here");
  EXPECT_TRUE(all.now().how.ok());
}

constexpr const char* in_the_middle = "COPPICE_TEST_IN_THE_MIDDLE";

/// What the test below does when it is the program in the middle: starts another one, and waits for its end.
void start_one_and_wait() {
  recorder all;
  os_command c = shell("echo inner ready; exec sleep 1000");
  c.output = os_stdio::inherit;
  const auto p = real_stage{}.start(c, all);
  all.wait([](const report& r) { return r.ends > 0; });
}

TEST(real_os_process, is_killed_with_the_program_that_started_it) {
  if (std::getenv(in_the_middle) != nullptr) return start_one_and_wait();
  // This program once more, in the middle, starts another one and is killed. The pipe that both have open tells when
  // the last of them has ended.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t middle = ::fork();
  if (middle == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::setenv(in_the_middle, "1", 1);
    ::execl("/proc/self/exe", "platform_tests",
            "--gtest_filter=real_os_process.is_killed_with_the_program_that_started_it", nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 256> some{};
  for (long count = 1; count > 0 && text.find("inner ready") == std::string::npos;) {
    count = ::read(ends[0], some.data(), some.size());
    if (count > 0) text.append(some.data(), static_cast<std::size_t>(count));
  }
  EXPECT_NE(text.find("inner ready"), std::string::npos);
  ::kill(middle, SIGKILL);
  while (::read(ends[0], some.data(), some.size()) > 0) {}  // ends when nobody has the other end: both are dead
  ::waitpid(middle, nullptr, 0);
  ::close(ends[0]);
}

}  // namespace
