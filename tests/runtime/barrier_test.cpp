// A container may forbid the system call for barriers in other threads; what stands on it must hold without.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "support.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;

/// From here on, in this program, membarrier fails as if the kernel did not have it.
bool forbid_membarrier() {
  std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

struct go {};
struct echo {
  using reply = int;
  int n = 0;
};
struct parrot {
  static int handle(echo m) { return m.n; }
};
task<> gets_stuck(self& me, trap_door* where) {
  co_await me.receive<go>();
  where->fall_in();
}

/// A stall, its takeover and an abandon: each needs the barrier.
[[noreturn]] void works_without_membarrier() {
  if (!forbid_membarrier()) std::_Exit(3);
  trap_door door;
  {
    runtime rt{{.workers = 1, .stall_after = 20ms, .level = log_level::off}};
    const ref<parrot> p = rt.spawn<parrot>();
    const pid stuck = rt.spawn(gets_stuck, &door);
    rt.send(stuck, go{});
    door.wait_until_inside();
    for (int i = 0; i < 100; ++i)
      if (rt.call(p.call<echo>(i).within(forever)) != i) std::_Exit(4);
    if (rt.counters().stalls == 0) std::_Exit(5);
    if (!rt.abandon(stuck) || rt.alive(stuck)) std::_Exit(6);
    door.open();
  }
  std::_Exit(0);
}

TEST(barrier_death_test, stalls_and_abandoning_work_where_membarrier_is_forbidden) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(works_without_membarrier(), testing::ExitedWithCode(0), "");
}

}  // namespace
