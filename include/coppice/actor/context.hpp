#pragma once
/// An actor as it sees itself, in its handlers: `void handle(hello m, context& me)`.
#include <coppice/actor/detail/actor_core.hpp>
#include <coppice/actor/future.hpp>

namespace coppice {

template <class A>
class actor_ref;
template <class A>
class props;

/// Why an actor was not spawned. When its name was taken, `running` is who has it.
class spawn_error : public error {
 public:
  explicit spawn_error(error why, pid taken_by = {}) : error{std::move(why)}, running{taken_by} {}
  pid running;
};

/// A timer of `context::after` or `context::every`.
using actor_timer = id<struct actor_timer_tag>;

namespace detail {
[[nodiscard]] error no_answer(const actor_core& who);
}

/// Thread safety: for the actor itself only, in the handler it was given to.
class context {
 public:
  /// For the library.
  context(detail::actor_core& core, detail::turn& t, detail::mail_origin& origin, const detail::message_type& message)
      : core_{core}, turn_{t}, origin_{origin}, message_{message} {}
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  // -- who and what

  /// The same for all instances.
  [[nodiscard]] pid id() const noexcept { return core_.id(); }
  /// Who spawned it: an actor, a supervisor, another process; nobody when it was spawned from outside.
  [[nodiscard]] pid parent() const noexcept { return me().parent(); }
  /// In the order of their spawns.
  [[nodiscard]] std::vector<pid> children() const;
  /// The child of that name, or nobody.
  [[nodiscard]] pid child(std::string_view name) const;
  /// The name it is registered under, or its pid as text: what the names of its children begin with.
  [[nodiscard]] std::string path() const;
  /// Who sent the message, if it came by `request`, as a call, or was forwarded; otherwise nobody.
  [[nodiscard]] pid sender() const noexcept { return origin_.sender; }
  /// The type of the message, for reports.
  [[nodiscard]] std::string_view message() const noexcept { return message_.name; }

  // -- children. Each begins in its own time; when its constructor fails, that is a failure of the child. All throw
  //    `spawn_failed` when this actor is stopping, or the process table is full, and `std::invalid_argument` for props
  //    with a guardian and for names that are none.

  template <class A>
  actor_ref<A> spawn(const props<A>& how);
  /// Registered as `<path of the parent>/<name>`. A name must not be empty, contain a '/', or begin with a '$'.
  template <class A>
  [[nodiscard]] std::expected<actor_ref<A>, spawn_error> spawn_named(std::string_view name, const props<A>& how);
  /// Named with the prefix and a number that makes it unique among the children of this actor.
  template <class A>
  actor_ref<A> spawn_prefix(std::string_view prefix, const props<A>& how);
  /// A process that is no actor, a supervisor say: `me.spawn(child<supervisor>(spec))`. It is linked, and stopped with
  /// this actor as its spec says. When it ends abnormally, this actor's strategy decides: `resume` and `restart` start
  /// another one (with a new pid), `stop` forgets it; also when a permanent supervisor gives up. What the spec says of
  /// restarts is otherwise for supervisors.
  /// `invalid` for specs with a start function.
  [[nodiscard]] result<pid> spawn(const child_spec& spec);

  // -- messages. `to` is a pid, or an `actor_ref<A>`, which refuses what `A` does not handle.

  template <class To, class M>
  void send(const To& to, M&& message);
  /// The same, and the receiver knows who sent it.
  template <class To, class M>
  void request(const To& to, M&& message);
  template <class To, class M>
  void request_as(pid sender, const To& to, M&& message);
  /// The answer as a future. `forever`: however long it takes. Throws `std::invalid_argument` for a negative time.
  template <class To, callable_message M>
  [[nodiscard]] future<reply_of<M>> request_future(const To& to, M message,
                                                   std::chrono::nanoseconds timeout = default_call_timeout);
  /// To the sender of the message. When that made a call, this is the answer, and must have the type of its reply. A
  /// dead letter when nobody asked.
  template <class V>
  void respond(V&& value);
  /// The answer to the call that is handled, to be given later, by anybody, `R` being the type of its reply. Until the
  /// actor ends: then the caller hears `exited`. Throws `std::logic_error` when nobody waits for such an answer.
  template <class R>
  [[nodiscard]] reply_to<R> defer();
  /// `message`, which is the one being handled, goes on to `to` as it came: with its sender, and with the call that
  /// waits for an answer.
  template <class To, class M>
  void forward(const To& to, M&& message);

  /// The same for a copy; false: it can't be copied.
  bool forward_copy(pid to, const any_message& message);

  // -- the end. `who` is a pid or an `actor_ref`.

  /// Stops an actor, behind the message it is handling and ahead of its mail; what is left are dead letters.
  template <class To>
  void stop(const To& who) {
    core_.stop(turn_, pid_of(who), exit_reason::normal());
  }
  void stop() { stop(id()); }
  /// Stops an actor when it has handled the mail it has now; its children the same way.
  template <class To>
  void poison(const To& who) {
    post(pid_of(who), detail::plain<detail::poison_pill>, detail::poison_pill{});
  }
  /// The same, with the `terminated` as a future. Throw `std::invalid_argument` for a negative time.
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
  /// An exit signal, as any process may send it: for processes that are no actors.
  void exit(pid who, exit_reason reason) { me().exit(who, std::move(reason)); }
  /// Fails as if by an exception, without the price of one, when the handler returns.
  void fail(exit_reason why) { core_.fail(turn_, std::move(why), nullptr); }

  // -- others' ends

  /// One `terminated` when `who` ends, at once when it has. Watching twice is watching once; oneself, it is nothing.
  void watch(pid who);
  template <class A>
  void watch(actor_ref<A> who) {
    watch(who.id());
  }
  /// No `terminated` of it is received from here on.
  void unwatch(pid who);
  template <class A>
  void unwatch(actor_ref<A> who) {
    unwatch(who.id());
  }

  // -- mail for later

  /// Puts `message`, which is the one being handled, aside, with its sender. What is left at a restart goes back to the
  /// mailbox; at the end, to dead letters.
  template <class M>
  void stash(M&& message);
  /// The oldest, or all of them, oldest first, are the next that is received.
  void unstash() { core_.unstash(turn_, 1); }
  void unstash_all() { core_.unstash(turn_, static_cast<std::size_t>(-1)); }
  [[nodiscard]] std::size_t stashed() const noexcept;

  // -- behaviours: what takes the place of the handlers of the class. Each belongs to the instance.

  /// In the place of all there were.
  void become(behaviour next);
  /// Until `unbecome`.
  void become_stacked(behaviour next);
  /// Back to the one before; with the last one, to the class.
  void unbecome();

  // -- time. Timers belong to the instance: they end with it.

  /// Sends `message` to itself. A message that is on its way when the timer is cancelled is not received. Both throw
  /// `std::invalid_argument` for a negative delay, or a period that is not positive.
  template <class M>
  actor_timer after(std::chrono::nanoseconds delay, M message);
  /// A copy of it at each multiple of `period` from now, however long the handlers take; but the next is sent when the
  /// one before is received, so that those of which it was too late are left out. When `message` can't be copied, that
  /// is a failure, and the last of them.
  template <class M>
  actor_timer every(std::chrono::nanoseconds period, M message);
  bool cancel(actor_timer timer) { return core_.cancel_timer(*turn_.k, timer.value()); }
  /// `receive_timeout` comes whenever nothing else has for so long. `forever`: no longer. Throws
  /// `std::invalid_argument` unless it is positive.
  void set_receive_timeout(std::chrono::nanoseconds after) { core_.set_receive_timeout(turn_, after); }
  void cancel_receive_timeout() { set_receive_timeout(forever); }
  /// When `f` is done, `then(const result<R>&, context&)` runs in this actor, between two messages, with the sender of
  /// the message that is handled now: a call may be answered there. It does not run when the actor has restarted or
  /// stopped meanwhile, nor while it is suspended.
  template <class R, class F>
  void reenter_after(const future<R>& f, F then);
  /// Runs `f()` on a thread for blocking work. The future has what it gives; what it throws is the error (`no_reply`).
  /// `f` must own what it uses: it goes on when this actor has ended.
  template <class F>
  [[nodiscard]] future<std::invoke_result_t<F&>> blocking(F f, std::chrono::nanoseconds timeout = forever);
  [[nodiscard]] time_point now() const { return me().now(); }
  [[nodiscard]] std::uint64_t random() { return me().random(); }

  // -- what people see

  void log(log_level level, std::string_view text, std::initializer_list<log_field> fields = {});
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
  /// Who has that name, or nobody.
  [[nodiscard]] pid where(std::string_view name) const { return me().where(name); }
  /// How many messages its own mailbox has turned away.
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
  [[nodiscard]] bool has_failed() const noexcept { return core_.has_failed(); }
  /// Of an actor without a class: what it begins with, and comes back to.
  void become_first(behaviour first);

 private:
  /// Made when it is needed: most handlers do without.
  [[nodiscard]] detail::handler_self me() const noexcept { return {turn_, core_.id()}; }
  [[nodiscard]] static pid pid_of(pid who) noexcept { return who; }
  template <class A>
  [[nodiscard]] static pid pid_of(const actor_ref<A>& who) noexcept {
    return who.id();
  }
  /// `make()` gives the letter.
  template <class Make>
  void post_with(pid to, const detail::message_type& type, const void* content, Make&& make);
  template <class M>
  void post(pid to, const detail::message_type& type, M message) {
    turn_.k->send(to, detail::signal::message, detail::make_letter<M>(type, std::move(message)));
  }
  void through_middleware(pid to, const detail::message_type& type, const void* content,
                          const std::function<void()>& inner);
  template <class A>
  [[nodiscard]] result<pid> start(const props<A>& how, std::string name);
  /// With the call that waits for its answer, if there still is one. Throws `std::logic_error` for a message moved
  /// away.
  [[nodiscard]] detail::envelope& open_mail(any_message& message);
  [[nodiscard]] std::string child_name(std::string_view name) const;
  void add_timer(std::uint64_t id, std::chrono::nanoseconds delay, detail::timer_entry entry, detail::envelope* first);
  [[nodiscard]] std::shared_ptr<detail::future_state<terminated>> expect_end(pid who, std::chrono::nanoseconds timeout);

  detail::actor_core& core_;
  detail::turn& turn_;
  detail::mail_origin& origin_;
  const detail::message_type& message_;
};

}  // namespace coppice
