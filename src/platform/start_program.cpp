// Starting a program in a child of this process. The child shares our memory until it runs the program, as after vfork,
// because copying the memory of a large program takes long; docs/decisions/0023 explains what follows from that.
#include "internal/start_program.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

/// What `clone` is in the C library. The thread sanitizer replaces `clone` by a function that prepares the child as if
/// it had its own memory, and so stops watching the parent.
// NOLINTNEXTLINE: the reserved name and the variadic parameters are those of the C library
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept;

namespace coppice {
namespace {

enum class start_step : std::uint8_t { none, group, parent, directory, descriptors, program };

struct moved_descriptor {
  int from;
  int to;
  int meanwhile;  // a free number, so that no descriptor overwrites another one that is still needed
};

/// What the child is to do, prepared by the parent, because the child must not allocate; and where it failed.
struct start_plan {
  const os_command* command;
  std::vector<char*> arguments;
  std::vector<char*> variables;
  std::vector<std::string> paths;
  std::vector<moved_descriptor> descriptors;
  int first_free = 3;
  pid_t parent = 0;
  start_step failed = start_step::none;
  int error = 0;
};

// ---- in the child

/// Handlers of this program must not run in the child, and ignored signals would stay ignored in the started program.
/// By system calls, because a sanitizer's version of `sigaction` notes the change, in memory that we share.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] void reset_signal_actions() noexcept {
  constexpr std::array<unsigned long, 16> default_action{};  // larger than the kernel's `struct sigaction`, all zero
  constexpr int signals = 64;
  for (int number = 1; number <= signals; ++number)
    ::syscall(SYS_rt_sigaction, number, default_action.data(), nullptr, signals / 8);
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] bool move_descriptors(start_plan& plan) noexcept {
  for (auto& d : plan.descriptors) {
    d.meanwhile = static_cast<int>(::syscall(SYS_fcntl, d.from, F_DUPFD_CLOEXEC, plan.first_free));
    if (d.meanwhile < 0) return false;
  }
  // What other code has opened without close-on-exec is closed, too. Kernels before 5.11 cannot do it.
  if (::syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) != 0 && errno != ENOSYS && errno != EINVAL) return false;
  for (const auto& d : plan.descriptors)
    if (::syscall(SYS_dup3, d.meanwhile, d.to, 0) < 0) return false;
  return true;
}

/// Tries the paths in their order. A file that may not be run does not hide one further on, but is reported.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] void run_program(start_plan& plan) noexcept {
  int found = 0;
  for (const std::string& path : plan.paths) {
    ::syscall(SYS_execve, path.c_str(), plan.arguments.data(), plan.variables.data());
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return;
    if (errno == EACCES) found = EACCES;
  }
  if (found != 0) errno = found;
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] start_step prepare(start_plan& plan) noexcept {
  reset_signal_actions();
  const os_command& c = *plan.command;
  if (c.group == os_group::session && ::syscall(SYS_setsid) < 0) return start_step::group;
  if (c.group == os_group::own && ::syscall(SYS_setpgid, 0, 0) < 0) return start_step::group;
  if (c.killed_with_us) {
    if (::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return start_step::parent;
    // The parent may have ended before that.
    if (::syscall(SYS_getppid) != plan.parent) ::syscall(SYS_exit_group, 127);
  }
  if (!c.directory.empty() && ::syscall(SYS_chdir, c.directory.c_str()) != 0) return start_step::directory;
  if (!move_descriptors(plan)) return start_step::descriptors;
  const std::uint64_t nothing_blocked = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &nothing_blocked, nullptr, sizeof nothing_blocked);
  run_program(plan);
  return start_step::program;
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] int child_main(void* argument) noexcept {
  auto& plan = *static_cast<start_plan*>(argument);
  plan.failed = prepare(plan);
  plan.error = errno;
  ::syscall(SYS_exit_group, 127);
  return 127;
}

// ---- in the parent

std::string quoted(std::string_view text) { return "'" + std::string{text} + "'"; }

std::unexpected<error> failed_to(const os_command& c, const std::string& what, int code) {
  const auto kind = [&] {
    switch (code) {
      case ENOENT:
      case ENOTDIR: return errc::not_found;
      case EMFILE:
      case ENFILE:
      case EAGAIN:
      case ENOMEM: return errc::capacity;
      default: return errc::start_failed;
    }
  }();
  const std::string said = std::generic_category().message(code);
  return fail(kind, "cannot start " + quoted(c.program) + ": " + what + ": " + said);
}

std::unexpected<error> explain(const start_plan& plan) {
  const os_command& c = *plan.command;
  const auto what = [&]() -> std::string {
    switch (plan.failed) {
      case start_step::group: return "making a process group of its own";
      case start_step::parent: return "arranging that it ends with this program";
      case start_step::directory: return "changing to the directory " + quoted(c.directory);
      case start_step::descriptors: return "passing it " + std::to_string(plan.descriptors.size()) + " descriptors";
      default: break;
    }
    std::string tried = "tried ";
    for (const std::string& path : plan.paths) tried += (&path == plan.paths.data() ? "" : ", ") + path;
    return tried;
  }();
  return failed_to(c, what, plan.error);
}

std::vector<std::string> paths_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* directories = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody here changes variables
  std::string_view rest = directories != nullptr ? directories : "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> all;
  for (bool more = true; more;) {
    const auto end = rest.find(':');
    more = end != std::string_view::npos;
    const std::string_view one = rest.substr(0, end);
    all.push_back((one.empty() ? std::string{"."} : std::string{one}) + "/" + program);
    if (more) rest.remove_prefix(end + 1);
  }
  return all;
}

std::vector<std::string> variables_of(const os_command& c) {
  std::vector<std::string> all;
  for (const auto& [name, value] : c.variables) all.emplace_back(name).append("=").append(value);
  for (char** each = environ; c.inherits_variables && each != nullptr && *each != nullptr; ++each) {
    const std::string_view ours{*each};
    if (!c.variables.contains(std::string{ours.substr(0, ours.find('='))})) all.emplace_back(ours);
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// One standard stream of the child: `theirs` is kept open for it until it runs, `ours` is empty unless it is a pipe.
struct stream_ends {
  file_descriptor ours;
  file_descriptor theirs;
  int source = -1;  // what the child gets
};

/// False: `errno` says why.
bool open_stream(os_stdio kind, int number, stream_ends& into) {
  if (kind == os_stdio::inherit) {
    into.source = number;
    return true;
  }
  if (kind == os_stdio::null) {
    into.theirs = file_descriptor{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  } else {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    const bool is_input = number == STDIN_FILENO;
    into.ours = file_descriptor{is_input ? ends[1] : ends[0]};
    into.theirs = file_descriptor{is_input ? ends[0] : ends[1]};
    if (::fcntl(into.ours.get(), F_SETFL, O_NONBLOCK) != 0) return false;
  }
  into.source = into.theirs.get();
  return into.source >= 0;
}

/// Returns the number of the child, or -1; `process` becomes its pidfd.
pid_t run_child(start_plan& plan, int& process) {
  struct alignas(16) stack {
    std::array<std::byte, std::size_t{64} << 10U> bytes;
  };
  const auto memory = std::make_unique_for_overwrite<stack>();
  // No handler of ours may run in the child, where it would work on our memory as a different process.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t id = ::__clone(child_main, memory->bytes.data() + memory->bytes.size(),
                             CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &plan, &process);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return id;
}

}  // namespace

result<started_program> start_program(const os_command& command) {
  if (auto checked = check(command); !checked) return std::unexpected{checked.error()};

  std::vector<std::string> arguments{command.program};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> variables = variables_of(command);
  start_plan plan{.command = &command,
                  .arguments = pointers_to(arguments),
                  .variables = pointers_to(variables),
                  .paths = paths_of(command.program),
                  .descriptors = {},
                  .parent = ::getpid()};

  std::array<stream_ends, 3> streams;
  constexpr std::array names{"input", "output", "error"};
  const std::array kinds{command.input, command.output, command.error};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const int number = static_cast<int>(i);
    if (!open_stream(kinds[i], number, streams[i]))
      return failed_to(command, std::string{"opening its standard "} + names[i], errno);
    plan.descriptors.push_back({.from = streams[i].source, .to = number, .meanwhile = -1});
  }
  for (const os_descriptor& d : command.descriptors) {
    plan.descriptors.push_back({.from = d.ours, .to = d.theirs, .meanwhile = -1});
    plan.first_free = std::max(plan.first_free, d.theirs + 1);
  }

  int process = -1;
  const pid_t id = run_child(plan, process);
  if (id < 0) return failed_to(command, "creating a process", errno);
  file_descriptor handle{process};
  if (plan.failed != start_step::none) {
    siginfo_t ended{};
    ::waitid(P_PIDFD, static_cast<id_t>(process), &ended, WEXITED);
    return explain(plan);
  }
  return started_program{.id = id,
                         .process = std::move(handle),
                         .input = std::move(streams[0].ours),
                         .output = std::move(streams[1].ours),
                         .error = std::move(streams[2].ours)};
}

}  // namespace coppice
