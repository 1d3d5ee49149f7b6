#include <coppice/behaviour/server.hpp>
#include <coppice/runtime/detail/process_end.hpp>

namespace coppice {

namespace {

task<result<void>> stop_from_outside(self& me, pid who, exit_reason reason, std::chrono::nanoseconds timeout) {
  return stop(me, who, std::move(reason), timeout);
}

}  // namespace

task<result<void>> stop(self& me, pid who, exit_reason reason, std::chrono::nanoseconds timeout) {
  if (who == me.id()) co_return fail(errc::calling_self, to_string(who) + " would wait for itself; use me.stop()");
  const monitor_ref watched = me.monitor(who);
  me.send(who, detail::stop_order{reason});
  const std::optional<detail::process_end> end = co_await detail::until_ended(watched, timeout);
  if (!end) {
    me.demonitor(watched, self::flush::yes);
    co_return fail(errc::timeout, to_string(who) + " has not stopped yet");
  }
  if (end->reason == reason) co_return result<void>{};
  if (end->reason.what() == exit_reason::kind::noproc) co_return fail(errc::noproc, to_string(who) + " is not alive");
  co_return fail(errc::exited, end->reason.to_string());
}

result<void> stop(runtime& rt, pid who, exit_reason reason, std::chrono::nanoseconds timeout) {
  return rt.await(stop_from_outside, who, std::move(reason), timeout);
}

}  // namespace coppice
