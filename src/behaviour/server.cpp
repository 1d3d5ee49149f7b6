#include <coppice/behaviour/server.hpp>

namespace coppice {

namespace {

/// Waits for the `down` of one monitor.
class ending : detail::waiter {
 public:
  ending(monitor_ref ref, std::chrono::nanoseconds timeout) noexcept : waiter{&how}, ref_{ref}, timeout_{timeout} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    detail::process_of(h.promise()).wait(h, *this, timeout_);
  }
  std::optional<exit_reason> await_resume() { return std::move(why_); }

 private:
  static bool take(detail::waiter& w, detail::coroutine&, detail::envelope& e) {
    auto& mine = static_cast<ending&>(w);
    if (e.type != &detail::plain<down> || static_cast<detail::letter<down>&>(e).body.ref != mine.ref_) return false;
    mine.why_ = detail::take_body<down>(e).reason;
    return true;
  }
  static constexpr detail::wait_type how{.take = &take, .expire = [](detail::waiter&) {}};
  monitor_ref ref_;
  std::chrono::nanoseconds timeout_;
  std::optional<exit_reason> why_;
};

task<result<void>> stop_from_outside(self& me, pid who, exit_reason reason, std::chrono::nanoseconds timeout) {
  return stop(me, who, std::move(reason), timeout);
}

}  // namespace

task<result<void>> stop(self& me, pid who, exit_reason reason, std::chrono::nanoseconds timeout) {
  if (who == me.id()) co_return fail(errc::calling_self, to_string(who) + " would wait for itself; use me.stop()");
  const monitor_ref watched = me.monitor(who);
  me.send(who, detail::stop_order{reason});
  const std::optional<exit_reason> why = co_await ending(watched, timeout);
  if (!why) {
    me.demonitor(watched, flush::yes);
    co_return fail(errc::timeout, to_string(who) + " has not stopped yet");
  }
  if (*why == reason) co_return result<void>{};
  if (why->what() == exit_reason::kind::noproc) co_return fail(errc::noproc, to_string(who) + " is not alive");
  co_return fail(errc::exited, why->to_string());
}

result<void> stop(runtime& rt, pid who, exit_reason reason, std::chrono::nanoseconds timeout) {
  return rt.await(stop_from_outside, who, std::move(reason), timeout);
}

}  // namespace coppice
