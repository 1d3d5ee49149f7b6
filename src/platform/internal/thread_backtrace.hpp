#pragma once
#include <pthread.h>

#include <vector>

namespace coppice {

/// Where another thread is, the innermost address first. Interrupts it with SIGURG, which programs ignore by default.
/// Empty: the program has a handler of its own for SIGURG, or the thread did not answer within a second, because it
/// blocks that signal or waits in the system where no signal can reach it.
/// Thread safety: any thread.
[[nodiscard]] std::vector<const void*> backtrace_of(pthread_t thread);

}  // namespace coppice
