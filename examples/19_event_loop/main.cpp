// Another event loop beside the runtime: a thread waits in epoll, and a process per connection reads and writes.
//
// The loop only says which process may read now, through a handle that may outlive the runtime. The process owns its
// file descriptor and makes all system calls for it.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>

#include <coppice/coppice.hpp>

namespace {

using namespace coppice;

struct readable {};

/// Waits in epoll on a thread of its own. The index and the serial of a pid fit into the 64 bits that epoll returns, so
/// no table is needed, and an event that is too late for its process is a dead letter.
class event_loop {
 public:
  event_loop(runtime_handle to, node_id node) : to_{std::move(to)}, node_{node}, thread_{[this] { run(); }} {}
  event_loop(const event_loop&) = delete;
  event_loop& operator=(const event_loop&) = delete;
  ~event_loop() {
    thread_.request_stop();
    ::close(wake_[1]);  // the other end becomes readable
    thread_.join();
    ::close(wake_[0]);
    ::close(epoll_);
  }
  /// `who` is sent one `readable` the next time that it can read from `fd`.
  void watch(int fd, pid who) {
    epoll_event wanted{.events = EPOLLIN | EPOLLONESHOT,
                       .data = {.u64 = std::uint64_t{who.index()} << 32U | who.serial()}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &wanted) != 0) ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &wanted);
  }

 private:
  void run() {
    epoll_event stop{.events = EPOLLIN, .data = {.u64 = 0}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_[0], &stop);
    std::array<epoll_event, 64> ready{};
    while (!thread_.get_stop_token().stop_requested()) {
      const int n = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), -1);
      for (int i = 0; i < n; ++i) {
        const std::uint64_t who = ready[static_cast<std::size_t>(i)].data.u64;
        if (who == 0) continue;
        to_.send(pid::from_parts(node_, static_cast<std::uint32_t>(who >> 32U), static_cast<std::uint32_t>(who)),
                 readable{});
      }
    }
  }
  static std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::system_error{errno, std::generic_category(), "pipe"};
    return ends;
  }

  runtime_handle to_;
  node_id node_;
  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  std::array<int, 2> wake_ = make_pipe();
  std::jthread thread_;
};

/// Answers each line with its length. Ends when the other side has closed the connection.
// coppice-lint: allow pointer-parameter: main waits for its end
task<> connection(self& me, int fd, event_loop* loop) {
  std::string line;
  for (;;) {
    loop->watch(fd, me.id());
    co_await me.receive<readable>();
    std::array<char, 256> bytes{};
    const ssize_t n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) break;
    for (ssize_t i = 0; i < n; ++i) {
      const char c = bytes[static_cast<std::size_t>(i)];
      if (c != '\n') {
        line += c;
        continue;
      }
      const std::string answer = std::to_string(line.size()) + "\n";
      (void)!::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
      line.clear();
    }
  }
  ::close(fd);
}

std::string ask(int fd, const std::string& line) {
  (void)!::send(fd, line.data(), line.size(), MSG_NOSIGNAL);
  std::array<char, 64> answer{};
  const ssize_t n = ::recv(fd, answer.data(), answer.size(), 0);
  return std::string{answer.data(), static_cast<std::size_t>(n > 0 ? n : 0)};
}

}  // namespace

int main() {
  runtime rt;
  event_loop loop{rt.handle(), rt.node()};
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return 1;
  const pid served = rt.spawn(connection, ends[0], &loop);
  std::printf("hello: %s", ask(ends[1], "hello\n").c_str());
  std::printf("event loops: %s", ask(ends[1], "event loops\n").c_str());
  ::close(ends[1]);
  rt.wait(served);
  std::puts("the connection has ended");
  return 0;
}
