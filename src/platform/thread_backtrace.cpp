#include "internal/thread_backtrace.hpp"

#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is not in <csignal>

#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>

namespace coppice {

namespace {

/// One request at a time. A thread that is not asked, or no longer, writes nothing.
/// Lives as long as the program, because a handler that hangs may write into it at any time.
struct request {
  std::array<void*, 64> frames{};
  std::atomic<int> count{0};
  std::atomic<pthread_t> asked{nobody};
  ::sem_t answered{};
  static constexpr pthread_t nobody = 0;
};
request& current() {
  static request only;
  return only;
}

void answer(int) {
  const int before = errno;
  request& r = current();
  if (pthread_t me = ::pthread_self(); r.asked.compare_exchange_strong(me, request::nobody)) {
    r.count = ::backtrace(r.frames.data(), static_cast<int>(r.frames.size()));
    ::sem_post(&r.answered);
  }
  errno = before;
}

bool prepare() {
  std::array<void*, 1> unused{};
  (void)::backtrace(unused.data(), 1);  // loads its library now: the handler must not
  return ::sem_init(&current().answered, 0, 0) == 0;
}

/// Makes `answer` the handler of the signal. False: the program has a handler of its own, perhaps only since the last
/// request.
bool install() {
  struct sigaction present{};
  if (::sigaction(SIGURG, nullptr, &present) != 0 || (present.sa_flags & SA_SIGINFO) != 0) return false;
  if (present.sa_handler == &answer) return true;
  if (present.sa_handler != SIG_DFL && present.sa_handler != SIG_IGN) return false;
  struct sigaction ours{};
  ours.sa_handler = &answer;
  ours.sa_flags = SA_RESTART;
  return ::sigaction(SIGURG, &ours, nullptr) == 0;
}

/// False: there was no answer within a second. A thread that is not stuck may have to wait for a core.
bool wait_for_answer(request& r) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  ++until.tv_sec;
  int failed = 0;
  do failed = ::sem_clockwait(&r.answered, CLOCK_MONOTONIC, &until);
  while (failed != 0 && errno == EINTR);
  return failed == 0;
}

}  // namespace

std::vector<const void*> backtrace_of(pthread_t thread) {
  static std::mutex mutex;
  const std::scoped_lock lock{mutex};
  static const bool prepared = prepare();
  static bool handler_hangs = false;
  if (!prepared || handler_hangs || !install()) return {};
  request& r = current();
  r.asked = thread;
  if (::pthread_kill(thread, SIGURG) != 0) {
    r.asked = request::nobody;
    return {};
  }
  if (!wait_for_answer(r)) {
    if (r.asked.exchange(request::nobody) != request::nobody) return {};  // from here on it does not answer
    // It is in the handler, which waits only if the unwinder needs a lock that the interrupted code has.
    handler_hangs = !wait_for_answer(r);
    if (handler_hangs) return {};
  }
  const auto count = static_cast<std::size_t>(r.count.load());
  constexpr std::size_t handler_frames = 2;  // of the handler and of what calls it
  std::vector<const void*> frames;
  for (std::size_t i = handler_frames; i < count; ++i) frames.push_back(r.frames[i]);
  return frames;
}

}  // namespace coppice
