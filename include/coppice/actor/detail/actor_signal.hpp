#pragma once
/// Signals between actors, and from an actor to itself. They are handled before mail.
///
/// No header that users include contains this one: each of their sources would compile the variant again.
///
/// A handler does not stop or restart its own actor directly. A stop, a restart and the end of a wait are signals,
/// which are handled after the handler has returned. (`context::fail` is the exception: it changes the state at once.)
#include <variant>

#include <coppice/actor/detail/child_failed.hpp>
#include <coppice/runtime/object.hpp>

namespace coppice::detail {

namespace signals {

// -- from a child to its parent: `child_failed`, and these

/// The child is stopping and waits for its own children. Its `shutdown` time is extended by the time these may take.
struct child_waits_for_children {
  pid child{};
  std::chrono::nanoseconds at_most{0};
};
/// The children of the child have ended: its `shutdown` time starts again.
struct child_is_ending {
  pid child{};
};

// -- from a parent to its child

/// Take no mail, and suspend your children, until `resume`.
struct suspend {};
/// Ends one `suspend`.
struct resume {};
/// Resumes the child after its own failure.
struct resume_own_failure {
  std::uint64_t instance = 0;
};
struct restart {
  std::uint64_t instance = 0;  ///< the number of the new instance
  bool was_suspended = false;  ///< the child was suspended until this restart, which ends that suspension
  exit_reason cause{};
};

// -- from anybody

struct stop {
  exit_reason reason{};
};

// -- from an actor to itself

/// Stop a child that is not an actor. `place` is its `child_record::place`.
struct stop_child_process {
  std::uint64_t place = 0;
  exit_reason reason{};
};
/// The wait of a child before its restart is over.
struct child_restart_due {
  pid child{};
  std::uint64_t instance = 0;
  bool all = false;  ///< its siblings are restarted with it
  exit_reason cause{};
};
/// The guardian of a top-level actor decided to restart it, and the wait is over.
struct own_restart_due {
  std::uint64_t instance = 0;
  exit_reason cause{};
};
/// The child has not stopped in time.
struct child_stop_overdue {
  pid child{};
  std::uint64_t wait = 0;  ///< the number of the wait that has timed out
};
struct future_timed_out {
  std::uint64_t number = 0;
};
/// A future that waits for the end of another process has timed out.
struct end_wait_timed_out {
  std::uint64_t monitor = 0;
};

// -- from the mailbox policy of a receiver to a sender: `put` sends `receiver_full`, `take` and `close` send
//    `receiver_has_room`

/// The mailbox of `receiver` is full: this actor handles no mail until there is room.
struct receiver_full {
  pid receiver{};
};
struct receiver_has_room {
  pid receiver{};
};

// -- from an actor to itself, about a wait for room

/// The receiver did not have room in time: signals that it sent before this timeout are ignored from now on.
struct wait_for_room_timed_out {
  pid receiver{};
  std::uint64_t wait = 0;
};
/// All signals that the receiver sent before the timeout have been handled.
struct room_signals_caught_up {
  pid receiver{};
};

}  // namespace signals

struct actor_signal {
  std::variant<signals::child_failed, signals::child_waits_for_children, signals::child_is_ending, signals::suspend,
               signals::resume, signals::resume_own_failure, signals::restart, signals::stop,
               signals::stop_child_process, signals::child_restart_due, signals::own_restart_due,
               signals::child_stop_overdue, signals::future_timed_out, signals::end_wait_timed_out,
               signals::receiver_full, signals::receiver_has_room, signals::wait_for_room_timed_out,
               signals::room_signals_caught_up>
      what;
};

/// Sends a signal that is handled before the mail of `to`. `Signal` is `actor_signal` or one of its alternatives.
template <class Signal>
void send_signal(kernel& k, pid to, Signal&& s) {
  k.send_fast(to, make_letter<actor_signal>(plain<actor_signal>, std::forward<Signal>(s)));
}
/// Sends a signal to the calling actor itself when `after` has passed.
[[nodiscard]] timer_ref arm_signal(kernel& k, pid me, std::chrono::nanoseconds after, actor_signal s);

}  // namespace coppice::detail
