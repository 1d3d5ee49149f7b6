#pragma once
// What the tests of behaviours need: a process in a simulated world, and what is left of its work.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <coppice/sim/world.hpp>

namespace coppice::test {

using namespace std::chrono_literals;

/// Runs `body` as a process of a world of its own, for several seeds; the reason of the first that did not end
/// normally.
template <class F, class... Args>
exit_reason in_the_world(F body, Args... args) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sim::world w{seed};
    const exit_reason how = w.add_node().rt().run(body, args...);
    if (how != exit_reason::normal()) return how;
  }
  return exit_reason::normal();
}

/// Runs `body` on threads.
template <class F, class... Args>
exit_reason on_threads(F body, Args... args) {
  runtime rt{runtime_options{.workers = 2, .level = log_level::off}};
  return rt.run(std::move(body), std::move(args)...);
}

/// How many messages wait in the mailbox; takes them.
inline task<int> mail_left(self& me) {
  for (int n = 0;; ++n) {
    const auto m = co_await me.receive<any_message>(0ns);
    if (std::holds_alternative<timed_out>(m)) co_return n;
  }
}

/// Waits until `who` has ended, and gives the reason: `noproc` when it had ended before.
inline task<exit_reason> end_of(self& me, pid who) {
  const monitor_ref ref = me.monitor(who);
  for (;;) {
    const down d = co_await me.receive<down>();
    if (d.ref == ref) co_return d.reason;
  }
}

}  // namespace coppice::test
