#pragma once
/// Waiting until a process has ended.
///
///     const std::optional<process_end> end = co_await until_ended(child, watched, 5s);   // nothing: timed out
///
/// The end of a process becomes known in three ways, and each of them ends the wait: `exited` from a linked process, if
/// this process traps exits; `child_ended` from a child that has unlinked itself from this process; and `down` from a
/// monitor. Other mail stays in the mailbox.
#include <optional>

#include <coppice/runtime/detail/coroutine.hpp>

namespace coppice::detail {

class death_watcher;

struct process_end {
  pid who;
  exit_reason reason;
};

/// Several processes of which the first end is awaited.
class awaited_processes {
 public:
  virtual ~awaited_processes() = default;
  [[nodiscard]] virtual bool awaits(pid who) const = 0;
};

/// The awaitable of the functions below.
class [[nodiscard]] waiting_for_end : public waiter {
 public:
  waiting_for_end(pid who, monitor_ref watched, const awaited_processes* several, std::chrono::nanoseconds timeout,
                  death_watcher* others) noexcept
      : waiter{&how}, who_{who}, watched_{watched}, several_{several}, timeout_{timeout}, others_{others} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    coroutine& me = process_of(h.promise());
    // Of several processes, one may have ended while this process waited for something else.
    if (several_ != nullptr && me.take_saved(*this)) return me.out_of_turn(h);
    me.wait(h, *this, timeout_);
    return true;
  }
  /// Nothing: timed out.
  std::optional<process_end> await_resume() { return std::move(end_); }

 private:
  static bool take(waiter& w, coroutine& me, envelope& e);
  static const wait_type how;
  [[nodiscard]] bool awaits(pid who) const { return several_ != nullptr ? several_->awaits(who) : who == who_; }
  [[nodiscard]] bool awaits(const down& d) const { return several_ != nullptr ? awaits(d.who) : d.ref == watched_; }

  pid who_;
  monitor_ref watched_;
  const awaited_processes* several_;
  std::chrono::nanoseconds timeout_;
  death_watcher* others_;
  std::optional<process_end> end_;
};

/// Waits for the end of `who`. `watched` is a monitor of this process on it; without one, `who` must be a child or
/// linked while this process traps exits. `others` is shown the exits of other processes that arrive meanwhile.
[[nodiscard]] inline waiting_for_end until_ended(pid who, monitor_ref watched, std::chrono::nanoseconds timeout,
                                                 death_watcher* others = nullptr) noexcept {
  return {who, watched, nullptr, timeout, others};
}
/// Waits for the `down` of a monitor. Other news of the same end, for example the `exited` of a linked process, stays
/// in the mailbox.
[[nodiscard]] inline waiting_for_end until_ended(monitor_ref watched, std::chrono::nanoseconds timeout) noexcept {
  return {pid{}, watched, nullptr, timeout, nullptr};
}
/// Waits for the end of the first of several processes, each of which is monitored. Ends that arrived earlier and are
/// still in the mailbox count.
[[nodiscard]] inline waiting_for_end until_one_ended(const awaited_processes& several,
                                                     std::chrono::nanoseconds timeout) noexcept {
  return {pid{}, monitor_ref{}, &several, timeout, nullptr};
}

}  // namespace coppice::detail
