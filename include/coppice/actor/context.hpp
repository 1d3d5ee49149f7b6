#pragma once
/// What an actor can do in its handlers: `void handle(hello m, context& me)`.
#include <coppice/actor/detail/actor_core.hpp>

namespace coppice::actor {

/// Why an actor was not spawned. If its name was taken, `running` is the process that has it.
class spawn_error : public error {
 public:
  explicit spawn_error(error why, pid taken_by = {}) : error{std::move(why)}, running{taken_by} {}
  pid running;
};

/// The name of a new actor. Exactly one of the two members must be set.
struct naming {
  /// A child is registered as `<path of the parent>/<name>`, a top-level actor as `<name>`. The name of a child must
  /// not be empty, contain a '/', or begin with a '$'.
  std::optional<std::string> name{};
  /// Only for children: the name is the prefix and a number that makes it unique among the children of its parent.
  std::optional<std::string> prefix{};
};

/// A timer of `context::after` or `context::every`.
using actor_timer = id<struct actor_timer_tag>;

}  // namespace coppice::actor

namespace coppice {
/// Makes a promise whose future belongs to this actor: `auto [answer, value] = make_promise<int>(me);` Continue with
/// `me.reenter_after(value, ...)`.
template <class R>
[[nodiscard]] promised<R> make_promise(actor::context& me);
}  // namespace coppice

namespace coppice::detail {
[[nodiscard]] error no_answer(const actor_core& who);
}  // namespace coppice::detail

namespace coppice::actor {

/// Thread safety: only the actor itself may use it, in the handler that received it.
class context {
 public:
  /// For the library.
  context(detail::actor_core& core, detail::turn& t, detail::mail_origin& origin, const detail::message_type& message)
      : core_{core}, turn_{t}, origin_{origin}, message_{message} {}
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  // -- identity

  /// The same before and after a restart.
  [[nodiscard]] pid id() const noexcept { return core_.id(); }
  /// The process whose child this actor is: an actor or a supervisor. Nobody for a top-level actor.
  [[nodiscard]] pid parent() const noexcept { return me().parent(); }
  /// In the order of their spawns.
  [[nodiscard]] std::vector<pid> children() const;
  /// The child of that name, or nobody.
  [[nodiscard]] pid child(std::string_view name) const;
  /// The name it is registered under, or its pid as text. The names of its children begin with it.
  [[nodiscard]] std::string path() const;
  /// The sender of the message, if it was sent with `send_from` or as a call; otherwise nobody. A forwarded message
  /// keeps its sender.
  [[nodiscard]] pid sender() const noexcept { return origin_.sender; }
  /// The type of the message, for reports.
  [[nodiscard]] std::string_view message() const noexcept { return message_.name; }

  // -- children. `spawn` does not wait for the child. If the child's constructor throws, the child has failed. All of
  //    these throw `spawn_failed` if this actor is stopping or restarting, and `std::invalid_argument` for props with a
  //    guardian and for an invalid `naming`. If the process table is full, those that return a result return the error,
  //    and the first one throws `spawn_failed`.

  template <class A>
  actor_ref<A> spawn(const props<A>& how);
  /// With a name: `me.spawn({.name = "clicks"}, props<counter>())`.
  template <class A>
  [[nodiscard]] std::expected<actor_ref<A>, spawn_error> spawn(const naming& as, const props<A>& how);
  /// Spawns a process that is not an actor, for example a supervisor: `me.spawn(child<supervisor>(spec))`. It is
  /// linked, and is stopped with this actor as its spec says. If it ends abnormally, or is a permanent supervisor that
  /// gives up, the strategy of this actor decides: `resume` and `restart` start another one, with a new pid; `stop`
  /// removes it. A start that fails then is another failure of that child. The restart type of the spec has no other
  /// effect, and its `start_within` has none: `spawn` does not wait for the start. The error is `invalid` for specs
  /// with a start function and for those of actors.
  [[nodiscard]] result<pid> spawn(const child_spec& spec);

  // -- messages. `To` is a pid or an `actor_ref<A>`. A message to an `actor_ref<A>` that `A` does not handle does not
  //    compile, except with `forward`.

  template <class M>
  void send(pid to, M&& message);
  /// Sends an `M` made from the arguments: `me.cast<bump>(counters, 3)`.
  template <class M, class A, class... Args>
  void cast(const actor_ref<A>& to, Args&&... args);
  /// Sends a message with a sender, to which the receiver can reply: `me.send_from(me.id(), to, hello{})`.
  template <class To, class M>
  void send_from(pid sender, const To& to, M&& message);
  /// Sends a call and returns its answer as a future: `me.call(counters.call<bump>(3).within(100ms))`; to a pid:
  /// `me.call(call<bump>(counter, 3))`. Throws `std::invalid_argument` for a negative time.
  template <callable_message M>
  [[nodiscard]] future<reply_of<M>> call(pending_call<M> question);
  /// Sends `value` to the sender of the message. If the message is a call, this is the answer, and `value` must have
  /// the type of its reply, otherwise the caller gets `no_reply`. Without a sender, and for a call that was answered
  /// before, `value` becomes a dead letter.
  template <class V>
  void reply(V&& value);
  /// Returns the right to answer the call that is being handled. Any process or thread may answer later; `R` is the
  /// type of the reply. If the actor ends first, the caller gets `exited`. Throws `std::logic_error` if no caller waits
  /// for an `R`.
  template <class R>
  [[nodiscard]] reply_to<R> defer();
  /// Passes on the message that is being handled, with its sender and with the call that waits for an answer.
  template <class To, class M>
  void forward(const To& to, M&& message);

  /// Forwards a copy. Returns false if the type of the message is neither trivially copyable nor has `static constexpr
  /// bool can_be_broadcast = true;`.
  bool forward_copy(pid to, const any_message& message);

  // -- stopping. `who` is a pid or an `actor_ref`.

  /// Stops an actor after the message it is handling. The rest of its mail becomes dead letters.
  ///
  /// A child has a limit, as it has when this actor stops: it is killed if it has not stopped within
  /// `actor_options::shutdown` of its props (at once if that is `brutal_kill`), and abandoned if it is stuck in its
  /// code for `abandon_after` of this actor after that. An actor that is not a child is only asked to stop, because its
  /// limits are known to its parent alone.
  ///
  /// A process that is not an actor can be stopped only if it is a child. On others, `stop` has no effect, and
  /// `stop_future` times out unless they end for another reason: use `exit`.
  template <class To>
  void stop(const To& who) {
    stop_process(pid_of(who));
  }
  void stop() { stop(id()); }
  /// Stops an actor after it has handled the mail it has now, and its children in the same way. A child has no time
  /// limit for that, because a kill would lose its mail; a later `stop` sets the usual limit. A child that is not an
  /// actor is stopped as by `stop`; another process that is not an actor gets a message that it does not handle.
  template <class To>
  void poison(const To& who) {
    poison_process(pid_of(who));
  }
  /// As `stop` and `poison`. The future is done when `who` has ended. Throws `std::invalid_argument` for a negative
  /// time.
  [[nodiscard]] future<terminated> stop_future(pid who, std::chrono::nanoseconds timeout = default_call_timeout);
  [[nodiscard]] future<terminated> poison_future(pid who, std::chrono::nanoseconds timeout = default_call_timeout);
  template <class A>
  [[nodiscard]] future<terminated> stop_future(const actor_ref<A>& who,
                                               std::chrono::nanoseconds timeout = default_call_timeout) {
    return stop_future(who.id(), timeout);
  }
  template <class A>
  [[nodiscard]] future<terminated> poison_future(const actor_ref<A>& who,
                                                 std::chrono::nanoseconds timeout = default_call_timeout) {
    return poison_future(who.id(), timeout);
  }
  /// Sends an exit signal, as any process may: for processes that are not actors.
  void exit(pid who, exit_reason reason) { me().exit(who, std::move(reason)); }
  /// The actor fails as if the handler had thrown, without the cost of an exception. The handler continues until it
  /// returns.
  void fail(exit_reason why);

  // -- ends of other processes

  /// Delivers one `terminated` when `who` ends, or at once if it has ended. A second watch of the same process and a
  /// watch of oneself have no effect.
  void watch(pid who);
  template <class A>
  void watch(actor_ref<A> who) {
    watch(who.id());
  }
  /// After this call no `terminated` of `who` is received.
  void unwatch(pid who);
  template <class A>
  void unwatch(actor_ref<A> who) {
    unwatch(who.id());
  }

  // -- stash

  /// Puts the message that is being handled aside, with its sender. At a restart the stash goes back to the front of
  /// the mailbox; at the end of the actor its messages become dead letters.
  template <class M>
  void stash(M&& message);
  /// The oldest message of the stash, or all of them in their order, are received next.
  void unstash() { unstash(1); }
  void unstash_all() { unstash(static_cast<std::size_t>(-1)); }
  [[nodiscard]] std::size_t stashed() const noexcept;

  // -- behaviours: handlers that replace those of the class. They belong to the instance and end with it.

  /// Replaces all behaviours.
  void become(behaviour next);
  /// Replaces the current behaviour until `unbecome`.
  void become_stacked(behaviour next);
  /// Returns to the behaviour before, or to the handlers of the class.
  void unbecome();

  // -- time. Timers belong to the instance and end with it.

  /// Sends `message` to this actor after `delay`. A message in flight when the timer is cancelled is not received.
  /// Throws `std::invalid_argument` for a negative delay.
  template <class M>
  actor_timer after(std::chrono::nanoseconds delay, M message);
  /// Sends a copy of `message` at each multiple of `period` from now. A message that is due before the previous one was
  /// received is skipped. If copying the message throws, the actor fails and the timer ends. Throws
  /// `std::invalid_argument` unless the period is positive.
  template <class M>
  actor_timer every(std::chrono::nanoseconds period, M message);
  /// Returns false if the timer has ended.
  bool cancel(actor_timer timer);
  /// Delivers `receive_timeout` whenever this actor has received no message for that time; `forever` turns it off.
  /// Throws `std::invalid_argument` unless the time is positive.
  void set_receive_timeout(std::chrono::nanoseconds after);
  void cancel_receive_timeout() { set_receive_timeout(forever); }
  /// When `f` is done, `then(const result<R>&, context&)` runs in this actor, between two messages. Its context has the
  /// sender of the message that is handled now, so it can answer a call. It does not run after a restart or a stop of
  /// the actor; while the actor is suspended, it waits.
  /// Throws `std::logic_error` if `f` belongs to another process.
  template <class R, class F>
  void reenter_after(const future<R>& f, F then);
  /// Runs `f()` on a thread for blocking work and returns its result as a future. If `f` throws, the error is `exited`
  /// with the text of the exception. `f` must own what it uses, because it may run longer than this actor.
  template <class F>
  [[nodiscard]] future<std::invoke_result_t<F&>> blocking(F f, std::chrono::nanoseconds timeout = forever);
  [[nodiscard]] time_point now() const { return me().now(); }
  [[nodiscard]] std::uint64_t random() { return me().random(); }
  [[nodiscard]] environment& env() const noexcept { return me().env(); }
  /// As `self::trace` and `self::begin_trace`.
  [[nodiscard]] trace_context trace() { return me().trace(); }
  trace_context begin_trace(const trace_context& from = {}) { return me().begin_trace(from); }

  // -- logs, events and names

  void log(log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) {
    log(log_parts::program, level, text, fields);
  }
  void log(log_part part, log_level level, std::string_view text, std::initializer_list<log_field> fields = {});
  template <class E>
  void publish(const E& event) {
    me().publish(event);
  }
  template <class E>
  void subscribe() {
    me().subscribe<E>();
  }
  template <class E>
  bool unsubscribe() {
    return me().unsubscribe<E>();
  }
  /// The process registered under that name, or nobody.
  [[nodiscard]] pid where(std::string_view name) const { return me().where(name); }
  /// How many messages were dropped because the mailbox of this actor was full.
  [[nodiscard]] std::uint64_t dropped() const;

  /// For the library.
  template <class R>
  void answer_if_asked(result<R> value) {
    if (const std::uint64_t call = std::exchange(origin_.call, 0)) {
      detail::answer<R>(*turn_.k, origin_.sender, call, std::move(value));
    } else if constexpr (!std::is_void_v<R>) {
      if (value && sender() && !origin_.called)
        turn_.k->send(sender(), detail::signal::message, detail::make_mail<R>(detail::plain<R>, std::move(*value)));
    }
  }
  [[nodiscard]] detail::kernel& host() const noexcept { return *turn_.k; }
  [[nodiscard]] bool has_failed() const noexcept { return core_.failure_is_open(); }
  /// The first behaviour of an actor without a class, to which `unbecome` returns.
  void become_first(behaviour first);

 private:
  template <class R>
  friend promised<R> coppice::make_promise(context& me);
  /// Made on demand, because most handlers do not need it.
  [[nodiscard]] detail::handler_self me() const noexcept { return {turn_, core_.id()}; }
  [[nodiscard]] static pid pid_of(pid who) noexcept { return who; }
  template <class A>
  [[nodiscard]] static pid pid_of(const actor_ref<A>& who) noexcept {
    return who.id();
  }
  template <class M, class... Args>
  void post_mail(pid to, const detail::message_type& type, Args&&... args);
  /// `make()` returns the envelope; null: nothing is sent.
  template <class Make>
  void post_with(pid to, const detail::message_type& type, const void* content, Make&& make);
  void through_middleware(pid to, const detail::message_type& type, const void* content,
                          const std::function<void()>& inner);
  template <class A>
  [[nodiscard]] result<pid> start(const props<A>& how, std::string name);
  template <class A>
  [[nodiscard]] std::expected<actor_ref<A>, spawn_error> start_named(const props<A>& how, std::string_view name);
  /// Returns the envelope of the message. A call that was not answered yet belongs to the envelope again. Throws
  /// `std::logic_error` for a message that was moved away.
  [[nodiscard]] detail::envelope& close_mail(any_message& message);
  [[nodiscard]] std::string child_name(std::string_view name) const;
  /// Throws `spawn_failed` while the actor is stopping or restarting.
  void ensure_may_spawn() const;
  void add_child(pid who, std::string name, coppice::shutdown how);
  void stop_process(pid who);
  void poison_process(pid who);
  void unstash(std::size_t how_many);
  void put_into_stash(detail::envelope* e);
  void add_timer(std::uint64_t id, std::chrono::nanoseconds delay, detail::timer_entry entry, detail::envelope* first);
  void expect_answer(const std::shared_ptr<detail::future_base>& f, std::chrono::nanoseconds timeout);
  [[nodiscard]] std::shared_ptr<detail::future_state<terminated>> expect_end(pid who, std::chrono::nanoseconds timeout);

  detail::actor_core& core_;
  detail::turn& turn_;
  detail::mail_origin& origin_;
  const detail::message_type& message_;
};

}  // namespace coppice::actor
