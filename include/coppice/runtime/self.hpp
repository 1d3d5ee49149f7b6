#pragma once
/// A process as it sees itself: the first parameter of every body, and the last one of handlers that ask for it.
#include <string>
#include <string_view>
#include <utility>

#include <coppice/runtime/detail/event_stream.hpp>
#include <coppice/runtime/detail/handlers.hpp>
#include <coppice/runtime/detail/kernel.hpp>
#include <coppice/runtime/detail/spawnable.hpp>
#include <coppice/runtime/no_such_process.hpp>
#include <coppice/runtime/signals.hpp>
#include <coppice/runtime/spawn_options.hpp>
#include <coppice/runtime/task.hpp>

namespace coppice {

// The awaitables that functions of `self` return; see receive.hpp.
template <class... Ms>
class pending_receive;
template <class... Ms>
class pending_receive_within;
class pending_yield;
class pending_sleep;
class pending_exit;
template <class F, class... Args>
class pending_blocking;
template <class R, class Start, class Cancel>
class pending_operation;
struct no_cancel;

enum class trap : bool { off, on };

/// A process and the monitor on it, made in one step.
struct monitored {
  pid who;
  monitor_ref ref;
};

/// Thread safety: for the process itself only, on the thread that runs it.
class self {
 public:
  /// Whether a `demonitor` also removes a `down` that has arrived already.
  enum class flush : bool { no, yes };

  self(const self&) = delete;
  self& operator=(const self&) = delete;

  [[nodiscard]] pid id() const noexcept {
    return pid::from_parts(kernel_->node(), static_cast<std::uint32_t>(slot_ - &kernel_->slot_at(0)), serial_);
  }
  /// The process that spawned this one; nobody if it was spawned from outside of all processes.
  [[nodiscard]] pid parent() const noexcept;

  // -- messages

  /// Never waits, and never fails because of its receiver. A message to nobody, or to a process that has ended, is a
  /// dead letter.
  template <class M>
  void send(pid to, M&& message) {
    using body = std::decay_t<M>;
    kernel_->send(to, detail::signal::message, detail::make_mail<body>(detail::plain<body>, std::forward<M>(message)));
  }
  /// To the process that has that name now; a dead letter if there is none.
  template <class M>
  void send(std::string_view name, M&& message) {
    send(where(name), std::forward<M>(message));
  }
  /// `auto m = co_await me.receive<hello>();` gives a `hello`, `receive<hello, stop>()` a variant of the two. Messages
  /// of other types stay where they are, for a later receive. See receive.hpp.
  template <class... Ms>
  [[nodiscard]] pending_receive<Ms...> receive();
  /// As above, but at most for `timeout`: a variant with `timed_out` as its last alternative. Zero takes a
  /// message that has arrived already, or times out.
  template <class... Ms>
  [[nodiscard]] pending_receive_within<Ms...> receive(std::chrono::nanoseconds timeout);

  // -- processes. `body` is `task<> body(self&, args...)`; arguments are copied into its frame. `spawn<T>(args...)`
  //    spawns an object with handlers instead, see object.hpp. Without options these functions throw `spawn_failed`;
  //    with options they return the error. All of them may throw `std::bad_alloc`.

  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  pid spawn(F body, Args&&... args);
  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  pid spawn_link(F body, Args&&... args);
  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  monitored spawn_monitor(F body, Args&&... args);
  template <class T, class... Args>
    requires detail::meant_as_object<T, Args...>
  ref<T> spawn(Args&&... args);
  template <class T, class... Args>
  ref<T> spawn_link(Args&&... args);
  template <class T, class... Args>
  monitored spawn_monitor(Args&&... args);
  /// With a name, a label, a link or a mailbox. Errors, after which nothing was spawned: `name_taken`, `capacity` if
  /// the process table is full, `stopped` if the runtime is stopping. Throws `std::invalid_argument` for a mailbox that
  /// makes no sense.
  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  result<pid> spawn(const spawn_options& options, F body, Args&&... args);
  template <class T, class... Args>
  result<ref<T>> spawn(const spawn_options& options, Args&&... args);

  // -- links, monitors, exits

  /// Each of the two processes is notified when the other one ends. A second link between the same processes, and a
  /// link to oneself, do nothing.
  /// Throws `no_such_process` when `other` is known to have ended and this process does not trap exits; a process that
  /// traps gets `exited{other, noproc}` instead.
  void link(pid other) {
    if (const auto mine = section()) kernel_->link(*slot_, other);
  }
  /// Removes the link. From here on its exit signal is dropped, even if that is in the queue already. An `exited` that
  /// a receive of other types has put aside is still received.
  void unlink(pid other) {
    if (const auto mine = section()) kernel_->unlink(*slot_, other);
  }
  /// Requests one `down` for the end of `other`; it comes at once, with `noproc`, if `other` has ended already. Each
  /// call makes a monitor of its own.
  monitor_ref monitor(pid other) {
    const auto mine = section();
    return mine ? kernel_->monitor(*slot_, other) : monitor_ref{};
  }
  /// True: the monitor existed, and its `down` will not be received any more. `flush::yes` also removes a `down` that
  /// arrived earlier and was put aside by a receive of other types.
  bool demonitor(monitor_ref ref, flush also = flush::no);
  /// With `trap::on`, exit signals become messages (`exited`), except a kill. Off by default.
  void trap_exits(trap how = trap::on) {
    if (const auto mine = section()) slot_->set(detail::slot::traps_exits, how == trap::on);
  }
  /// Sends an exit signal, which asks `other` to end with `reason`. docs/guide/signals.md says what `other` does with
  /// it. No process survives `exit_reason::kill()`.
  void exit(pid other, exit_reason reason) { kernel_->send_exit(other, {id(), std::move(reason), false}); }
  void kill(pid other) { exit(other, exit_reason::kill()); }
  /// `co_await me.exit(reason);` ends this process here and now.
  [[nodiscard]] pending_exit exit(exit_reason reason);
  /// Ends this process with `reason`: a server when its handler has returned, any other process as soon as its code
  /// returns or waits. For handlers that can't await.
  void stop(exit_reason reason = {});

  // -- time

  [[nodiscard]] time_point now() const { return kernel_->now(); }
  /// Sends `message` to `to` after `delay`, unless the timer is cancelled before.
  template <class M>
  timer_ref send_after(std::chrono::nanoseconds delay, pid to, M&& message) {
    using body = std::decay_t<M>;
    return kernel_->arm(kernel_->time_after(delay), to, detail::signal::message,
                        detail::make_mail<body>(detail::plain<body>, std::forward<M>(message)));
  }
  /// This process receives a `timer_fired` with the same ref after `delay`, unless the timer is cancelled before.
  timer_ref start_timer(std::chrono::nanoseconds delay) {
    const auto mine = section();
    return mine ? kernel_->start_timer(*slot_, delay) : timer_ref{};
  }
  /// True: the message will not be received. False: it was sent or cancelled before. The `timer_fired` of a timer of
  /// `start_timer` is never received after a cancel, whatever the result.
  bool cancel(timer_ref ref);
  /// The time until the timer fires; nothing if it has fired or was cancelled.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> remaining(timer_ref ref) { return kernel_->remaining(ref); }
  /// `co_await me.sleep(5s);` Mail stays queued meanwhile.
  [[nodiscard]] pending_sleep sleep(std::chrono::nanoseconds duration);
  /// `co_await me.yield();` lets other processes run.
  [[nodiscard]] pending_yield yield();
  /// `auto text = co_await me.blocking(read_file, path);` runs `f(args...)`, with copies of the arguments, on a thread
  /// for blocking work. An exception of `f` is thrown here. See blocking.hpp.
  template <class F, class... Args>
  [[nodiscard]] pending_blocking<F, std::decay_t<Args>...> blocking(F f, Args&&... args);
  /// Waits for an operation of another library that uses memory of the waiting frame. `start(promise<R>)` begins it,
  /// and must not throw once it has begun; what it throws before is thrown where it is awaited. `cancel()` asks it to
  /// end soon, and must not throw. See operation.hpp.
  template <class R, class Start>
  [[nodiscard]] pending_operation<R, Start, no_cancel> perform(Start start);
  template <class R, class Start, class Cancel>
  [[nodiscard]] pending_operation<R, Start, Cancel> perform(Start start, Cancel cancel);

  // -- names, events, logs

  /// Gives this process a name. A process has one name at most; the name is free when the process has ended.
  [[nodiscard]] result<void> register_as(std::string_view name) { return kernel_->register_name(name, id()); }
  bool unregister(std::string_view name) { return kernel_->unregister_name(name); }
  /// The process that has that name, or nobody.
  [[nodiscard]] pid where(std::string_view name) const { return kernel_->where(name); }
  void label(std::string text) {
    if (const auto mine = section()) kernel_->set_label(*slot_, std::move(text));
  }
  /// From now on this process receives a copy of each event of type `E` as a message; see observe.hpp.
  template <class E>
  void subscribe() {
    kernel_->events().subscribe(detail::plain<E>, id());
  }
  template <class E>
  bool unsubscribe() {
    return kernel_->events().unsubscribe(detail::plain<E>, id());
  }
  template <class E>
  void publish(const E& event) {
    kernel_->events().publish(event);
  }
  void log(log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) {
    kernel_->log(log_parts::program, level, text, fields);
  }
  void log(log_part part, log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) {
    kernel_->log(part, level, text, fields);
  }
  /// The trace that the message being handled belongs to, as this process continues it. Empty: none, or the runtime has
  /// no trace ids. What this process sends, spawns and logs belongs to that trace; see trace_context.hpp.
  [[nodiscard]] trace_context trace() const noexcept {
    const auto mine = section();
    return mine ? detail::current_turn->trace : trace_context{};
  }
  /// From now on, until it receives the next message, this process belongs to a new trace, or continues `from`. Returns
  /// it. Does nothing if the runtime has no trace ids.
  trace_context begin_trace(const trace_context& from = {}) {
    const auto mine = section();
    return mine ? kernel_->begin_trace(*slot_, from) : trace_context{};
  }
  [[nodiscard]] bool alive(pid who) const noexcept { return kernel_->alive(who); }
  /// For other threads, which may use it also after the end of the runtime; see handle.hpp.
  [[nodiscard]] runtime_handle handle() const;
  [[nodiscard]] std::uint64_t random() { return kernel_->env().random().next(); }
  /// The disk, lanes, clock and programs of this machine; in a simulation those of the node. Lives as long as the
  /// runtime.
  [[nodiscard]] environment& env() const noexcept { return kernel_->env(); }

  /// For the library.
  [[nodiscard]] detail::kernel& host() const noexcept { return *kernel_; }
  [[nodiscard]] detail::slot& process() const noexcept { return *slot_; }

 protected:
  explicit self(detail::kernel& k) noexcept : kernel_{&k} {}
  ~self() = default;
  void become(detail::slot& p) noexcept {
    slot_ = &p;
    serial_ = p.serial();
  }
  /// Must be held while the slot is used. False: the process was abandoned, or this is not its code. The slot must then
  /// not be touched.
  [[nodiscard]] detail::kernel_section section() const noexcept { return detail::kernel_section{*slot_, serial_}; }
  [[nodiscard]] monitor_ref unborn_monitor() {
    const auto mine = section();
    return mine ? kernel_->monitor_unborn(*slot_) : monitor_ref{};
  }
  /// Records the link and the monitor that a spawn has made, on the side of the spawner.
  void adopt(pid child, bool linked, monitor_ref watched_as) {
    kernel_->adopt(*slot_, id(), child, linked, watched_as);
  }

  detail::kernel* kernel_;
  detail::slot* slot_ = nullptr;
  std::uint32_t serial_ = 0;
};

}  // namespace coppice
