// The children of this program. One thread starts them, waits for them and for their pipes, and calls the functions of
// who started them; docs/decisions/0023 explains why.
#include "internal/real_os_processes.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <semaphore>
#include <system_error>
#include <thread>

#include "internal/start_program.hpp"

namespace coppice {
namespace {

std::chrono::microseconds to_duration(const timeval& t) {
  return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
}

/// The part of a child that an event of epoll is about. Together with the number of the child it fits into the word
/// that epoll keeps; a number is never used again, so an event for a child that has gone meanwhile finds nothing.
enum class part : std::uint64_t { process, input, output, error };
constexpr std::uint64_t parts = 4;

/// One child. The thread of `real_os_processes` owns what is not said to be for all threads.
struct child {
  std::uint64_t number = 0;
  started_program program;  // all threads read `id` and `process`
  os_process_events events;
  std::string input;  // not written yet, from `input_from` on
  std::size_t input_from = 0;
  bool input_watched = false;
  bool input_ends = false;  // close the pipe when all is written
  bool held = false;        // output is not read
  bool has_pipes = false;   // for output: `output_closed` is still to come
  bool done = false;        // it has ended; its number is ours until it is reaped
  bool unwanted = false;    // nobody has a handle any more

  // for all threads
  const os_group group;
  std::atomic<bool> ended{false};
  std::atomic<bool> reaped{false};  // by other code: its number may be that of another process
  std::atomic<bool> input_broken{false};
  std::atomic<std::size_t> input_waiting{0};

  child(std::uint64_t n, started_program p, os_process_events e, os_group g)
      : number{n}, program{std::move(p)}, events{std::move(e)}, group{g} {
    has_pipes = static_cast<bool>(program.output) || static_cast<bool>(program.error);
  }
  [[nodiscard]] file_descriptor& pipe(os_stream s) { return s == os_stream::output ? program.output : program.error; }
};

class real_os_processes final : public os_processes {
 public:
  result<std::unique_ptr<os_process>> spawn(const os_command& command, os_process_events events) override;

  void forget_handle(const std::shared_ptr<child>& c) {
    run_there([&] { forget(*c); });
  }
  void write(const std::shared_ptr<child>& c, std::string bytes) {
    post([this, c, bytes = std::move(bytes)] {
      if (!c->program.input || c->input_ends) return;
      if (c->input_from > c->input.size() / 2) c->input.erase(0, std::exchange(c->input_from, 0));
      c->input += bytes;
      flush_input(*c);
    });
  }
  void close_input(const std::shared_ptr<child>& c) {
    post([this, c] {
      c->input_ends = true;
      flush_input(*c);
    });
  }
  void hold(const std::shared_ptr<child>& c, bool held) {
    post([this, c, held] {
      if (c->held == held || c->unwanted) return;
      c->held = held;
      for (const os_stream s : {os_stream::output, os_stream::error})
        if (c->pipe(s) && held)
          ignore(c->pipe(s));
        else if (c->pipe(s))
          (void)watch(*c, part_of(s), c->pipe(s), EPOLLIN);
    });
  }

 private:
  // -- the thread
  result<void> start_thread();
  void serve();
  void post(std::move_only_function<void()> command);
  template <class F>
  void run_there(F&& command);
  void do_commands();
  void handle(std::uint64_t key);
  void handle(child& c, std::uint64_t key);

  // -- the children, on the thread
  static constexpr part part_of(os_stream s) { return s == os_stream::output ? part::output : part::error; }
  /// False: the system has no room for it.
  bool watch(const child& c, part p, const file_descriptor& on, std::uint32_t events);
  [[nodiscard]] bool watch_all(child& c);
  void ignore(const file_descriptor& on) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, on.get(), nullptr); }
  /// Reads once, and closes the pipe at its end. 0: there is nothing to read now.
  std::size_t read_output(child& c, os_stream s);
  void read_rest(child& c, os_stream s);
  void close_output(child& c, os_stream s);
  void flush_input(child& c);
  void break_input(child& c);
  void note_end(child& c);
  void forget(child& c);
  static void drop_events(child& c);
  void reap(child& c);

  std::mutex starting_;
  bool started_ = false;
  std::thread::id thread_;
  file_descriptor epoll_;
  file_descriptor wake_;

  std::mutex mutex_;  // for `commands_`
  std::vector<std::move_only_function<void()>> commands_;

  std::map<std::uint64_t, std::shared_ptr<child>> children_;
  std::uint64_t last_number_ = 0;
  std::uint64_t calling_ = 0;  // the child whose functions may be running now
  std::array<char, std::size_t{64} << 10U> buffer_{};
};

class real_os_process final : public os_process {
 public:
  real_os_process(real_os_processes& of, std::shared_ptr<child> c) : of_{of}, child_{std::move(c)} {}
  real_os_process(const real_os_process&) = delete;
  real_os_process& operator=(const real_os_process&) = delete;
  ~real_os_process() override { of_.forget_handle(child_); }

  std::int64_t id() const noexcept override { return child_->program.id; }
  result<void> signal(int number) override {
    if (child_->ended) return has_ended();
    // By the pidfd, which never means another process.
    return sent(::syscall(SYS_pidfd_send_signal, child_->program.process.get(), number, nullptr, 0), number);
  }
  result<void> signal_group(int number) override {
    if (child_->group == os_group::inherit)
      return fail(errc::invalid, "process " + std::to_string(id()) + " is in the group of this program itself");
    if (child_->reaped) return has_ended();
    return sent(::kill(-child_->program.id, number), number);
  }
  result<void> write_input(std::string bytes) override {
    if (!has_input_ || input_closed_)
      return fail(errc::invalid, "the input of process " + std::to_string(id()) + " is not a pipe, or has been closed");
    if (child_->ended) return has_ended();
    if (child_->input_broken)
      return fail(errc::exited, "process " + std::to_string(id()) + " does not read its input any more");
    if (child_->input_waiting >= input_limit)
      return fail(errc::capacity, "process " + std::to_string(id()) + " has not read its input; " +
                                      std::to_string(child_->input_waiting) + " bytes are waiting");
    child_->input_waiting += bytes.size();
    of_.write(child_, std::move(bytes));
    return {};
  }
  void close_input() override {
    if (!input_closed_.exchange(true)) of_.close_input(child_);
  }
  void hold_output() override { of_.hold(child_, true); }
  void release_output() override { of_.hold(child_, false); }

 private:
  [[nodiscard]] std::unexpected<error> has_ended() const {
    return fail(errc::exited, "process " + std::to_string(id()) + " has ended");
  }
  [[nodiscard]] result<void> sent(long outcome, int number) const {
    if (outcome == 0) return {};
    if (errno == ESRCH) return has_ended();
    return fail(errc::invalid, "signal " + std::to_string(number) + " to process " + std::to_string(id()) + ": " +
                                   std::generic_category().message(errno));
  }

  real_os_processes& of_;
  const std::shared_ptr<child> child_;
  const bool has_input_ = static_cast<bool>(child_->program.input);
  std::atomic<bool> input_closed_{false};
};

// ---- the thread

result<void> real_os_processes::start_thread() {
  const std::scoped_lock lock{starting_};
  if (started_) return {};
  const auto failed = [](std::string_view what, int code) {
    return fail(errc::capacity, std::string{what} + ": " + std::generic_category().message(code));
  };
  epoll_ = file_descriptor{::epoll_create1(EPOLL_CLOEXEC)};
  wake_ = file_descriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  if (!epoll_ || !wake_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    return failed("no descriptors to watch children with", errno);
  // Signals are for the other threads: also SIGPIPE, for a pipe that its program has closed.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::binary_semaphore ready{0};
    std::thread{[&] {
      thread_ = std::this_thread::get_id();
      ready.release();
      serve();
    }}.detach();
    ready.acquire();
    started_ = true;
  } catch (const std::system_error& x) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return failed("no thread to watch children with", x.code().value());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

void real_os_processes::serve() {
  ::pthread_setname_np(::pthread_self(), "coppice-os-proc");
  std::array<epoll_event, 64> events{};
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) handle(events[static_cast<std::size_t>(i)].data.u64);
  }
}

void real_os_processes::post(std::move_only_function<void()> command) {
  if (std::this_thread::get_id() == thread_) return command();
  {
    const std::scoped_lock lock{mutex_};
    commands_.push_back(std::move(command));
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

template <class F>
void real_os_processes::run_there(F&& command) {
  if (std::this_thread::get_id() == thread_) return command();
  std::binary_semaphore finished{0};
  post([&] {
    command();
    finished.release();
  });
  finished.acquire();
}

void real_os_processes::do_commands() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::vector<std::move_only_function<void()>> all;
  {
    const std::scoped_lock lock{mutex_};
    all.swap(commands_);
  }
  for (auto& command : all) command();
}

void real_os_processes::handle(std::uint64_t key) {
  if (key == 0) return do_commands();
  const auto found = children_.find(key / parts);
  if (found == children_.end()) return;
  const std::shared_ptr<child> c = found->second;  // a function that is called may destroy the handle
  calling_ = c->number;
  handle(*c, key);
  calling_ = 0;
  if (c->unwanted || (c->ended && !c->has_pipes)) drop_events(*c);
}

void real_os_processes::handle(child& c, std::uint64_t key) {
  switch (static_cast<part>(key % parts)) {
    case part::process: return note_end(c);
    case part::input: return flush_input(c);
    case part::output: (void)read_output(c, os_stream::output); return;
    case part::error: (void)read_output(c, os_stream::error); return;
  }
}

// ---- starting and forgetting

result<std::unique_ptr<os_process>> real_os_processes::spawn(const os_command& command, os_process_events events) {
  if (auto there = start_thread(); !there)
    return std::unexpected{error{errc::capacity, "cannot start '" + command.program + "'", there.error()}};
  // The thread starts the program itself: `killed_with_us` means the end of the thread that has started it.
  result<std::unique_ptr<os_process>> answer;
  run_there([&] {
    auto started = start_program(command);
    if (!started) {
      answer = std::unexpected{started.error()};
      return;
    }
    const auto c = std::make_shared<child>(++last_number_, *std::move(started), std::move(events), command.group);
    if (!watch_all(*c)) {
      (void)::kill(c->program.id, SIGKILL);
      siginfo_t info{};
      ::waitid(P_PIDFD, static_cast<id_t>(c->program.process.get()), &info, WEXITED);
      answer = fail(errc::capacity, "cannot start '" + command.program + "': the system cannot watch more descriptors");
      return;
    }
    children_.emplace(c->number, c);
    answer = std::make_unique<real_os_process>(*this, c);
  });
  return answer;
}

bool real_os_processes::watch(const child& c, part p, const file_descriptor& on, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = c.number * parts + std::to_underlying(p)}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, on.get(), &event) == 0;
}

bool real_os_processes::watch_all(child& c) {
  return watch(c, part::process, c.program.process, EPOLLIN) &&
         (!c.program.output || watch(c, part::output, c.program.output, EPOLLIN)) &&
         (!c.program.error || watch(c, part::error, c.program.error, EPOLLIN));
}

void real_os_processes::forget(child& c) {
  c.unwanted = true;
  break_input(c);
  c.program.output.close();
  c.program.error.close();
  if (calling_ != c.number) drop_events(c);  // otherwise one of these functions is the caller
  if (c.done) reap(c);
}

/// None of them is called any more. They may own the handle, which then is destroyed here.
void real_os_processes::drop_events(child& c) { const os_process_events gone = std::exchange(c.events, {}); }

/// Only now may the system use the number again, for another process.
void real_os_processes::reap(child& c) {
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(c.program.process.get()), &info, WEXITED | WNOHANG);
  children_.erase(c.number);
}

// ---- what children do

std::size_t real_os_processes::read_output(child& c, os_stream s) {
  if (!c.pipe(s) || c.held) return 0;
  const auto count = ::read(c.pipe(s).get(), buffer_.data(), buffer_.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (count <= 0) {
    close_output(c, s);
    return 0;
  }
  const auto size = static_cast<std::size_t>(count);
  if (c.events.output) c.events.output(s, std::string_view{buffer_.data(), size});
  return size;
}

/// After the end of a child: what it has written itself is in the pipe. Descendants may go on writing, so no more is
/// read here than fits into a pipe.
void real_os_processes::read_rest(child& c, os_stream s) {
  const int capacity = c.pipe(s) ? ::fcntl(c.pipe(s).get(), F_GETPIPE_SZ) : 0;
  for (std::size_t read = 0; read < static_cast<std::size_t>(std::max(capacity, 0));) {
    const std::size_t more = read_output(c, s);
    if (more == 0) return;
    read += more;
  }
}

void real_os_processes::close_output(child& c, os_stream s) {
  c.pipe(s).close();  // which also ends the watch
  if (c.program.output || c.program.error || c.unwanted || !std::exchange(c.has_pipes, false)) return;
  if (c.events.output_closed) c.events.output_closed();
}

void real_os_processes::flush_input(child& c) {
  while (c.program.input && c.input_from < c.input.size()) {
    const auto count = ::write(c.program.input.get(), c.input.data() + c.input_from, c.input.size() - c.input_from);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return break_input(c);
    c.input_from += static_cast<std::size_t>(count);
    c.input_waiting -= static_cast<std::size_t>(count);
  }
  if (!c.program.input) return;
  const bool all_written = c.input_from == c.input.size();
  if (all_written) {
    c.input.clear();
    c.input_from = 0;
    if (c.input_ends) return c.program.input.close();
  }
  if (all_written == c.input_watched) {
    c.input_watched = !all_written;
    if (all_written)
      ignore(c.program.input);
    else
      (void)watch(c, part::input, c.program.input, EPOLLOUT);
  }
}

void real_os_processes::break_input(child& c) {
  c.input_broken = true;
  c.program.input.close();
  c.input = {};
}

void real_os_processes::note_end(child& c) {
  os_exit how{};
  siginfo_t info{};
  rusage used{};
  // The system's own call, because that of the library does not return the usage. The child stays to be reaped, so that
  // its number, which is also that of its group, is not used again.
  const long outcome =
      ::syscall(SYS_waitid, P_PIDFD, c.program.process.get(), &info, WEXITED | WNOWAIT | WNOHANG, &used);
  if (outcome == 0 && info.si_pid == 0) return;
  ignore(c.program.process);
  if (outcome != 0) {
    how.code = -1;
    c.reaped = true;
  } else {
    (info.si_code == CLD_EXITED ? how.code : how.signal) = info.si_status;
    how.core = info.si_code == CLD_DUMPED;
    how.user_time = to_duration(used.ru_utime);
    how.system_time = to_duration(used.ru_stime);
    how.memory_peak_kib = used.ru_maxrss;
  }
  c.done = true;
  if (c.unwanted) return reap(c);
  break_input(c);
  for (const os_stream s : {os_stream::output, os_stream::error}) read_rest(c, s);
  c.ended = true;
  if (!c.unwanted && c.events.ended) c.events.ended(how);
}

}  // namespace

os_processes& children_of_this_program() {
  // Never destroyed: its thread runs until the program ends.
  static auto* const only = new real_os_processes;
  return *only;
}

}  // namespace coppice
