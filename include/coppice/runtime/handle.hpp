#pragma once
/// A runtime as other threads see it: event loops, C callbacks, a user interface.
///
///     const runtime_handle to = me.handle();                     // or rt.handle(), application::handle()
///     library.on_event([to, who](event e) { to.send(who, e); });  // false once the runtime has ended
///
/// A handle may outlive its runtime. A use during the end of the runtime takes effect before it, or not at all.
#include <mutex>

#include <coppice/runtime/detail/late_use.hpp>
#include <coppice/runtime/spawn.hpp>

namespace coppice {

namespace detail {

/// Calls a completion function exactly once: with the answer, or with an error when it is destroyed before.
template <class R>
class completion_of_call {
 public:
  explicit completion_of_call(std::move_only_function<void(result<R>)> then) : then_{std::move(then)} {}
  completion_of_call(const completion_of_call&) = delete;
  completion_of_call& operator=(const completion_of_call&) = delete;
  ~completion_of_call() { complete(coppice::fail(errc::stopped, "the runtime has ended, or was not started")); }
  void complete(result<R> answer) {
    if (auto then = std::exchange(then_, nullptr)) then(std::move(answer));
  }

 private:
  std::move_only_function<void(result<R>)> then_;
};

/// The runtime of an application, for handles made before it was started. Thread safety: any thread.
class runtime_place {
 public:
  /// Returns the one before.
  std::weak_ptr<kernel> set(std::weak_ptr<kernel> k) {
    const std::scoped_lock lock{mutex_};
    return std::exchange(kernel_, std::move(k));
  }
  [[nodiscard]] std::shared_ptr<kernel> get() const {
    const std::scoped_lock lock{mutex_};
    return kernel_.lock();
  }

 private:
  mutable std::mutex mutex_;
  std::weak_ptr<kernel> kernel_;
};

template <class M>
task<> call_and_complete(self&, pending_call<M> question, std::shared_ptr<completion_of_call<reply_of<M>>> then) {
  result<reply_of<M>> answer = co_await std::move(question);
  then->complete(std::move(answer));
}

}  // namespace detail

/// Copyable; may outlive its runtime. The default one belongs to no runtime: it answers as one whose runtime has ended.
/// Thread safety: any thread.
class runtime_handle {
 public:
  runtime_handle() = default;
  /// For the library.
  explicit runtime_handle(std::weak_ptr<detail::kernel> k) noexcept : kernel_{std::move(k)} {}
  /// For the library.
  explicit runtime_handle(std::shared_ptr<const detail::runtime_place> place) noexcept : place_{std::move(place)} {}

  /// As `runtime::send`. False: the runtime has ended, and nothing was sent.
  template <class M>
  bool send(pid to, M&& message) const {
    using body = std::decay_t<M>;
    return deliver(to, [&] { return detail::make_mail<body>(detail::plain<body>, std::forward<M>(message)); });
  }
  /// To the process that has this name now; a dead letter if there is none.
  template <class M>
  bool send(std::string_view name, M&& message) const {
    return send(where(name), std::forward<M>(message));
  }
  /// As `runtime::cast`. False: the runtime has ended, and nothing was sent.
  template <class M, class T, class... Args>
  bool cast(ref<T> to, Args&&... args) const {
    if constexpr (detail::must_handle_cast<T, M>())
      return deliver(to.id(),
                     [&] { return detail::make_mail<M>(detail::cast_type<T, M>(), std::forward<Args>(args)...); });
  }
  /// The same for other typed references, for example `actor::actor_ref`.
  template <class M, class R, class... Args>
    requires requires(const R& to) {
      to.id();
      R::template cast_type<M>();
    }
  bool cast(const R& to, Args&&... args) const {
    return deliver(to.id(),
                   [&] { return detail::make_mail<M>(R::template cast_type<M>(), std::forward<Args>(args)...); });
  }
  /// Sends a call, for example `counters.call<counter::bump>(3).within(100ms)`, and returns at once. `then` is called
  /// exactly once, with the answer or an error: on a thread of the runtime, where it must not block; on the calling
  /// thread if the call can't be made (`stopped`: the runtime has ended; `capacity`: its process table is full); or on
  /// the thread that destroys the runtime. `then` must not throw.
  template <class M>
  void call(pending_call<M> question, std::move_only_function<void(result<reply_of<M>>)> then) const {
    auto completion = std::make_shared<detail::completion_of_call<reply_of<M>>>(std::move(then));
    const auto k = locked();
    if (!k) return;
    result<pid> helper = fail(errc::stopped, "the runtime has ended");
    if (const detail::late_use use{*k})
      helper = detail::spawn_coroutine(*k, {.called = detail::birth::by({}, "helper of runtime_handle::call")},
                                       &detail::call_and_complete<M>, std::move(question), completion);
    if (!helper) completion->complete(std::unexpected{helper.error()});
  }
  /// As in `runtime`. False: the runtime has ended, and nothing was sent.
  bool exit(pid who, exit_reason reason) const;
  bool kill(pid who) const { return exit(who, exit_reason::kill()); }
  /// The process that has this name. Nobody: there is none, or the runtime has ended.
  [[nodiscard]] pid where(std::string_view name) const;
  /// False also after the end of the runtime.
  [[nodiscard]] bool alive(pid who) const;
  /// False: the runtime has ended.
  [[nodiscard]] bool running() const;

 private:
  template <class Make>
  bool deliver(pid to, const Make& make) const {
    const auto k = locked();
    return k && k->send_late(to, detail::signal::message, make());
  }
  [[nodiscard]] std::shared_ptr<detail::kernel> locked() const { return place_ ? place_->get() : kernel_.lock(); }
  std::weak_ptr<detail::kernel> kernel_;
  std::shared_ptr<const detail::runtime_place> place_;  // of a handle that was made before its runtime
};

}  // namespace coppice
