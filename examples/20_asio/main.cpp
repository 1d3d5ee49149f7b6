// Asio beside the runtime: handlers of Asio complete promises, and processes await them.
#include <asio.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>

#include <coppice/coppice.hpp>

namespace {

using namespace coppice;
using namespace std::chrono_literals;

/// An `io_context` with a thread of its own.
class asio_thread {
 public:
  asio::io_context& context() noexcept { return context_; }
  asio_thread() = default;
  asio_thread(const asio_thread&) = delete;
  asio_thread& operator=(const asio_thread&) = delete;
  ~asio_thread() { context_.stop(); }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> busy_{context_.get_executor()};
  std::jthread thread_{[this] { context_.run(); }};
};

using socket = asio::local::stream_protocol::socket;

error as_error(const std::error_code& why) { return error{errc::exited, why.message()}; }

/// A value that a handler computes on the thread of Asio.
task<int> computed_there(self& me, asio::io_context* io) {
  auto [answer, value] = make_promise<int>(me);
  asio::post(*io, [done = std::move(answer)]() mutable { done.complete(6 * 7); });
  const result<int> got = co_await value.within(5s);
  co_return got.value_or(0);
}

/// A read into a buffer of this frame: the frame stays until Asio is done with the buffer, also after a kill. The
/// socket is shared, because the cancel may run when the read, and with it the frame, is over.
task<std::size_t> read_some(self& me, std::shared_ptr<socket> from) {
  std::array<char, 64> buffer{};
  const result<std::size_t> n = co_await me.perform<std::size_t>(
      [&](promise<std::size_t> done) {
        from->async_read_some(asio::buffer(buffer), [done](std::error_code why, std::size_t size) mutable {
          if (why)
            done.fail(as_error(why));
          else
            done.complete(size);
        });
      },
      [&] { asio::post(from->get_executor(), [from] { from->cancel(); }); });
  co_return n.value_or(0);
}

task<> shows_both(self& me, asio::io_context* io) {
  const int answer = co_await computed_there(me, io);
  std::printf("computed by Asio: %d\n", answer);
  const auto reading = std::make_shared<socket>(*io);
  socket writing{*io};
  asio::local::connect_pair(*reading, writing);
  asio::write(writing, asio::buffer("twelve bytes", 12));
  const std::size_t size = co_await read_some(me, reading);
  std::printf("read by Asio: %zu bytes\n", size);
}

}  // namespace

int main() {
  asio_thread io;
  runtime rt;
  return rt.run(shows_both, &io.context()) == exit_reason::normal() ? 0 : 1;
}
