#pragma once
/// Processes that do not run for a while: nothing of a frozen process runs until it is thawed.
///
///     const subtree all{workers};
///     const result<frozen> held = co_await freeze(all, 2s);
///     if (!held) co_return;  // nothing was frozen, so there is nothing to thaw
///     if (held->still_inside.empty()) move_the_data();
///     thaw(all);
///
/// While a process is frozen, its mail, replies, due timers and results of blocking work wait. At the thaw they are
/// handled in their order; a timer that was due several times fires once. Links and monitors stay. Time limits of other
/// processes run on: a call to a frozen process may time out. A kill ends a frozen process at once. Every other exit
/// waits, so an orderly stop of a frozen child becomes a kill at its deadline.
#include <coppice/runtime/receive.hpp>

namespace coppice {

/// A process and all that it has spawned linked, directly or below: the children of supervisors and of actors. Children
/// that are started while the subtree is frozen are frozen before they begin. A process whose parent has ended before
/// the freeze belongs to no subtree but its own.
struct subtree {
  pid root;
};

/// The answer to a freeze.
struct frozen {
  /// Processes that were still inside their code when the time was over: stuck, or with blocking work in flight. Each
  /// stops when it leaves that code.
  std::vector<pid> still_inside;
};

/// A freeze to be awaited.
class [[nodiscard]] pending_freeze : public detail::waiter {
  using base = detail::waiter;

 public:
  pending_freeze(detail::kernel::freeze_target who, std::chrono::nanoseconds within) noexcept
      : base{&how}, who_{who}, within_{within} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    return begin(detail::process_of(h.promise()), h);
  }
  result<frozen> await_resume() { return std::move(answer_); }

 private:
  [[nodiscard]] bool begin(detail::coroutine& me, std::coroutine_handle<> h);
  static bool take(detail::waiter& w, detail::coroutine& me, detail::envelope& e);
  static void expire(detail::waiter& w);
  static void describe(const detail::waiter& w, wait_info& into);
  void look_who_is_inside();
  static const detail::wait_type how;

  detail::kernel::freeze_target who_;
  std::chrono::nanoseconds within_;
  detail::kernel* kernel_ = nullptr;
  std::uint64_t number_ = 0;
  result<frozen> answer_ = frozen{};
};

inline constexpr std::chrono::nanoseconds default_freeze_timeout = std::chrono::seconds{5};

/// Freezes a process or a subtree and waits, at most for `within`, until none of its code is running. After a timeout
/// it stays frozen. Freezes are counted: a process runs again after as many thaws. A freeze outlives the process that
/// made it: it ends with a thaw, by any process, or with the end of all frozen processes.
/// Errors: `noproc`; `invalid` for a process of another node, and for a process that would freeze itself; `not_found`
/// when another process has thawed it before all of it was frozen.
inline pending_freeze freeze(pid who, std::chrono::nanoseconds within = default_freeze_timeout) noexcept {
  return {{.root = who, .subtree = false}, within};
}
inline pending_freeze freeze(subtree who, std::chrono::nanoseconds within = default_freeze_timeout) noexcept {
  return {{.root = who.root, .subtree = true}, within};
}
/// Undoes the latest freeze of the same process or subtree that has returned its answer; if there is none, the latest
/// one that is still awaited. False: none is in force. Inside a process only; from outside use `runtime::thaw`.
bool thaw(pid who);
bool thaw(subtree who);

}  // namespace coppice
