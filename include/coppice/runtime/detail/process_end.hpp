#pragma once
/// Waiting until a process has ended.
///
///     const std::optional<process_end> end = co_await until_ended(child, watched, 5s);   // nothing: timed out
///
/// The end of a process becomes known in three ways, and each of them ends the wait: `exited` from a linked process, if
/// this process traps exits; `child_ended` from a child, after one of the two has unlinked the other; and `down` from a
/// monitor. Other mail stays in the mailbox.
#include <optional>

#include <coppice/runtime/detail/coroutine.hpp>

namespace coppice::detail {

/// Called for each exit of another process that arrives while a supervisor waits for a start or an end. The `exited`
/// itself stays in the mailbox.
class death_watcher {
 public:
  virtual ~death_watcher() = default;
  virtual void saw(const exited& x) = 0;
};

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

/// One process, or several of which each is monitored.
struct awaited_end {
  pid who;
  monitor_ref watched;  // a monitor on `who`, or none
  const awaited_processes* several = nullptr;

  [[nodiscard]] bool is(pid other) const { return several != nullptr ? several->awaits(other) : other == who; }
  [[nodiscard]] bool is(const down& d) const { return several != nullptr ? is(d.who) : d.ref == watched; }
};

/// Takes the message if it reports an awaited end. Nothing: it does not, and stays in its envelope; if it is the exit
/// of another process, `others` was called, unless that is null.
[[nodiscard]] std::optional<process_end> take_end(envelope& e, const awaited_end& which, death_watcher* others);

/// The awaitable of the functions below.
class [[nodiscard]] waiting_for_end : public waiter {
 public:
  waiting_for_end(awaited_end which, std::chrono::nanoseconds timeout, death_watcher* others) noexcept
      : waiter{&how}, which_{which}, timeout_{timeout}, others_{others} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    coroutine& me = process_of(h.promise());
    // One of several processes may have ended while this process waited for something else.
    if (which_.several != nullptr && me.take_saved(*this)) return me.out_of_turn(h);
    me.wait(h, *this, timeout_);
    return true;
  }
  /// Nothing: timed out.
  std::optional<process_end> await_resume() { return std::move(end_); }

 private:
  static bool take(waiter& w, coroutine& me, envelope& e);
  static void describe(const waiter& w, wait_info& into);
  static const wait_type how;

  awaited_end which_;
  std::chrono::nanoseconds timeout_;
  death_watcher* others_;
  std::optional<process_end> end_;
};

/// Waits for the end of `who`. `watched` is a monitor of this process on it; without one, `who` must be a child or
/// linked while this process traps exits. `others` is called for the exits of other processes that arrive meanwhile.
[[nodiscard]] inline waiting_for_end until_ended(pid who, monitor_ref watched, std::chrono::nanoseconds timeout,
                                                 death_watcher* others = nullptr) noexcept {
  return {{.who = who, .watched = watched}, timeout, others};
}
/// Waits for the `down` of a monitor. The `exited` of the same process, if it is linked, stays in the mailbox.
[[nodiscard]] inline waiting_for_end until_ended(monitor_ref watched, std::chrono::nanoseconds timeout) noexcept {
  return {{.who = {}, .watched = watched}, timeout, nullptr};
}
/// Waits for the end of the first of several processes, each of which is monitored. Ends that arrived earlier and are
/// still in the mailbox count.
[[nodiscard]] inline waiting_for_end until_one_ended(const awaited_processes& several,
                                                     std::chrono::nanoseconds timeout) noexcept {
  return {{.who = {}, .watched = {}, .several = &several}, timeout, nullptr};
}

}  // namespace coppice::detail
