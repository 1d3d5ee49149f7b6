#pragma once
/// A runtime: the processes of one node and the threads that run them.
///
///     coppice::task<> greeter(coppice::self& me) {
///       const hello m = co_await me.receive<hello>();
///       ...
///     }
///     coppice::runtime rt;
///     const coppice::pid p = rt.spawn(greeter);
///     rt.send(p, hello{"world"});
///     rt.wait(p);                                    // spawn and wait in one step: rt.run(body, args...)
///
/// Nothing is global: any number of runtimes live side by side and know nothing of each other.
#include <coppice/runtime/freeze.hpp>
#include <coppice/runtime/handle.hpp>
#include <coppice/runtime/spawn.hpp>

namespace coppice {

/// Thread safety: any thread. The functions that wait (`call`, `wait`, `run`, `await`, `freeze`) are for plain threads;
/// inside a process they throw `std::logic_error`, since there a thread must never be blocked: use `co_await` there.
class runtime {
 public:
  /// Throws `std::invalid_argument` for options that make no sense.
  explicit runtime(const runtime_options& options = {});
  /// On another environment than this machine's; see `sim::world`.
  runtime(std::shared_ptr<environment> env, const runtime_options& options);
  /// Kills all processes that are left and waits for them: their destructors run, nothing else of theirs. Those stuck
  /// in code that does not come back are reported and left behind.
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  [[nodiscard]] node_id node() const noexcept { return kernel_->node(); }
  /// For threads that may outlive this object. While it is being destroyed, no other use of it is safe.
  [[nodiscard]] runtime_handle handle() const noexcept { return runtime_handle{kernel_->weak_from_this()}; }

  // -- processes, as in `self`. Without options they throw `spawn_failed`; with options they return the error. All of
  //    them may throw `std::bad_alloc`.
  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  pid spawn(F body, Args&&... args) {
    return detail::or_throw(detail::spawn_coroutine(*kernel_, {}, std::move(body), std::forward<Args>(args)...));
  }
  template <class T, class... Args>
    requires detail::meant_as_object<T, Args...>
  ref<T> spawn(Args&&... args) {
    return ref<T>{detail::or_throw(detail::spawn_object<T>(*kernel_, {}, std::forward<Args>(args)...))};
  }
  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  result<pid> spawn(const spawn_options& options, F body, Args&&... args) {
    return detail::spawn_coroutine(*kernel_, detail::birth_with(options, pid{}), std::move(body),
                                   std::forward<Args>(args)...);
  }
  template <class T, class... Args>
  result<ref<T>> spawn(const spawn_options& options, Args&&... args) {
    auto started = detail::spawn_object<T>(*kernel_, detail::birth_with(options, pid{}), std::forward<Args>(args)...);
    if (!started) return std::unexpected{std::move(started.error())};
    return ref<T>{*started};
  }

  // -- signals
  template <class M>
  void send(pid to, M&& message) {
    using body = std::decay_t<M>;
    kernel_->send(to, detail::signal::message, detail::make_mail<body>(detail::plain<body>, std::forward<M>(message)));
  }
  /// Sends to the process that has this name now. If there is none, the message becomes a dead letter.
  template <class M>
  void send(std::string_view name, M&& message) {
    send(where(name), std::forward<M>(message));
  }
  template <class M, class T, class... Args>
  void cast(ref<T> to, Args&&... args) {
    if constexpr (detail::must_handle_cast<T, M>())
      kernel_->send(to.id(), detail::signal::message,
                    detail::make_mail<M>(detail::cast_type<T, M>(), std::forward<Args>(args)...));
  }
  /// The same for other typed references, for example `actor::actor_ref`.
  template <class M, class R, class... Args>
    requires requires(const R& to) {
      to.id();
      R::template cast_type<M>();
    }
  void cast(const R& to, Args&&... args) {
    kernel_->send(to.id(), detail::signal::message,
                  detail::make_mail<M>(R::template cast_type<M>(), std::forward<Args>(args)...));
  }
  template <class M>
  timer_ref send_after(std::chrono::nanoseconds delay, pid to, M&& message) {
    using body = std::decay_t<M>;
    return kernel_->arm(kernel_->time_after(delay), to, detail::signal::message,
                        detail::make_mail<body>(detail::plain<body>, std::forward<M>(message)));
  }
  bool cancel(timer_ref ref) { return kernel_->disarm(ref); }
  void exit(pid who, exit_reason reason) { kernel_->send_exit(who, {pid{}, std::move(reason), false}); }
  void kill(pid who) { exit(who, exit_reason::kill()); }
  /// Gives up a process that is stuck in its code: it ends with `abandoned` for everybody else. Its code keeps its
  /// thread, and is cleaned up when it returns. False: the process has ended, or its code is not running now; then
  /// `kill` is enough. Also false when a process calls it for itself.
  bool abandon(pid who) { return kernel_->abandon(who); }

  // -- waiting, from plain threads
  /// Sends a call and waits for its reply. The call is the value that a process would await:
  /// `const result<int> n = rt.call(counters.call<counter::bump>(3).within(100ms));`, `rt.call(count_children(tree))`.
  template <class M>
  result<reply_of<M>> call(pending_call<M> question) {
    must_be_outside();
    auto into = std::make_shared<outcome<result<reply_of<M>>>>();
    helper("helper of runtime::call", make_call<M>, std::move(question), into);
    wait_for(into->done);
    return std::move(*into->value);
  }
  /// Waits until `who` has ended and returns its reason; `noproc` if it had ended before. To be sure of the reason, use
  /// `run`.
  exit_reason wait(pid who);
  /// Spawns a process, waits until it has ended and returns its reason. Typical in `main`.
  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  exit_reason run(F body, Args&&... args) {
    must_be_outside();
    auto into = std::make_shared<outcome<exit_reason>>();
    helper("helper of runtime::run", run_body<F, std::decay_t<Args>...>, into, std::move(body),
           std::forward<Args>(args)...);
    wait_for(into->done);
    return *into->value;
  }

  /// Runs `task<result<T>> f(self&, args...)` in a new process, waits, and returns its result. For operations that
  /// exist only as awaitables.
  template <class F, class... Args>
    requires detail::meant_as_body<F, Args...>
  auto await(F f, Args&&... args) {
    if constexpr (detail::can_be_a_body<F, Args...>()) {
      using given = detail::task_value<std::invoke_result_t<F, self&, std::decay_t<Args>...>>;
      must_be_outside();
      auto into = std::make_shared<outcome<given>>();
      helper("helper of runtime::await", await_body<given, F, std::decay_t<Args>...>, into, std::move(f),
             std::forward<Args>(args)...);
      wait_for(into->done);
      return std::move(*into->value);
    }
  }

  // -- freezing, as in freeze.hpp. `freeze` waits, and is for plain threads.
  result<frozen> freeze(pid who, std::chrono::nanoseconds within = default_freeze_timeout) {
    return await(freeze_body, detail::kernel::freeze_target{.root = who, .subtree = false}, within);
  }
  result<frozen> freeze(subtree who, std::chrono::nanoseconds within = default_freeze_timeout) {
    return await(freeze_body, detail::kernel::freeze_target{.root = who.root, .subtree = true}, within);
  }
  bool thaw(pid who) { return kernel_->thaw({.root = who, .subtree = false}); }
  bool thaw(subtree who) { return kernel_->thaw({.root = who.root, .subtree = true}); }

  // -- names
  [[nodiscard]] result<void> register_name(std::string_view name, pid who) { return kernel_->register_name(name, who); }
  bool unregister_name(std::string_view name) { return kernel_->unregister_name(name); }
  [[nodiscard]] pid where(std::string_view name) const { return kernel_->where(name); }

  // -- observation
  [[nodiscard]] bool alive(pid who) const noexcept { return kernel_->alive(who); }
  /// All live processes, without stopping any. A process that waits for a worker describes itself in its next turn; a
  /// plain thread waits up to 50 ms for that.
  [[nodiscard]] std::vector<process_info> snapshot() { return kernel_->snapshot(); }
  /// The same of one process. Nothing: it is not alive, or has not had its first turn.
  [[nodiscard]] std::optional<process_info> info(pid who) { return kernel_->info(who); }
  /// Why a process makes no progress, in a sentence for people. If it waits for the answer of another process, the
  /// sentence says why that one does not answer, and so on.
  [[nodiscard]] std::string why(pid who) { return kernel_->why(who); }
  /// Measures the handlers of a process from now on, or no longer, for `process_info::handlers`. False: it is not
  /// alive. With `runtime_options::measure_handlers`, all processes are measured, and this changes nothing.
  bool measure(pid who, bool on = true) { return kernel_->measure(who, on); }
  /// Processes that wait for each other's answers in a circle, so that none of them can continue. A call with a limit
  /// ends by itself.
  [[nodiscard]] std::vector<std::vector<pid>> call_cycles() { return kernel_->call_cycles(); }
  /// The parent of `who`, the parent of that, and so on, up to the first one that has ended: its parent is not known.
  [[nodiscard]] std::vector<pid> ancestors(pid who);
  [[nodiscard]] runtime_counters counters() { return kernel_->counters(); }
  template <class E>
  void subscribe(pid who) {
    kernel_->events().subscribe(detail::plain<E>, who);
  }
  template <class E>
  bool unsubscribe(pid who) {
    return kernel_->events().unsubscribe(detail::plain<E>, who);
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

  /// As `self::env`.
  [[nodiscard]] environment& env() noexcept { return kernel_->env(); }

  // -- other nodes
  void connect(std::shared_ptr<transport> t) { kernel_->set_transport(std::move(t)); }
  /// For transports.
  void deliver(connection_number over, parcel p) { kernel_->deliver(over, std::move(p)); }
  void node_lost(node_id node, connection_number lost) { kernel_->node_lost(node, lost); }

  /// For the library.
  [[nodiscard]] detail::kernel& host() noexcept { return *kernel_; }

 private:
  template <class R>
  struct outcome {
    std::atomic<std::uint32_t> done{0};
    std::optional<R> value;
  };
  /// Ends the wait of the plain thread, however its helper process ends.
  template <class R>
  class completion {
   public:
    completion(self& me, std::shared_ptr<outcome<R>> into, R otherwise)
        : host_{me.host()}, into_{std::move(into)}, otherwise_{std::move(otherwise)} {}
    completion(const completion&) = delete;
    completion& operator=(const completion&) = delete;
    ~completion() {
      if (!into_->value) into_->value = std::move(otherwise_);
      finish(host_, into_->done);
    }

   private:
    detail::kernel& host_;
    std::shared_ptr<outcome<R>> into_;
    R otherwise_;
  };
  template <class M>
  static task<> make_call(self& me, pending_call<M> call, std::shared_ptr<outcome<result<reply_of<M>>>> into) {
    const completion<result<reply_of<M>>> completing{
        me, into, std::unexpected{error{errc::exited, "the helper process of runtime::call was killed"}}};
    into->value = co_await std::move(call);
  }
  static task<result<frozen>> freeze_body(self& me, detail::kernel::freeze_target who, std::chrono::nanoseconds within);
  static task<> await_end(self& me, pid who, std::shared_ptr<outcome<exit_reason>> into);
  template <class F, class... Args>
  static task<> run_body(self& me, std::shared_ptr<outcome<exit_reason>> into, F body, Args... args) {
    const completion<exit_reason> completing{me, into, exit_reason::killed()};
    me.spawn_monitor(std::move(body), std::move(args)...);
    const down d = co_await me.receive<down>();
    into->value = d.reason;
  }
  template <class R, class F, class... Args>
  static task<> await_body(self& me, std::shared_ptr<outcome<R>> into, F f, Args... args) {
    const completion<R> completing{
        me, into, std::unexpected{error{errc::exited, "the process of runtime::await ended before its task returned"}}};
    auto waits_for = f(me, std::move(args)...);
    into->value = co_await std::move(waits_for);
  }
  /// Spawns a process that waits on behalf of a plain thread.
  template <class F, class... Args>
  void helper(const char* label, F body, Args&&... args) {
    detail::or_throw(detail::start_coroutine(*kernel_, {.called = detail::birth::by({}, label)}, std::move(body),
                                             std::forward<Args>(args)...));
  }
  static void must_be_outside();
  static void finish(detail::kernel& k, std::atomic<std::uint32_t>& done);
  void wait_for(std::atomic<std::uint32_t>& done);

  std::shared_ptr<detail::kernel> kernel_;
};

}  // namespace coppice
