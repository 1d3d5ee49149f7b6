#pragma once
/// Waiting for messages, time or other threads, inside a process.
#include <exception>
#include <memory>
#include <tuple>
#include <variant>

#include <coppice/runtime/message.hpp>

namespace coppice {
namespace detail {

/// Takes the oldest message of one of the types.
template <class Out, class... Ms>
class receive_base : protected waiter {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }

 protected:
  explicit receive_base(const wait_type& how) noexcept : waiter{&how} {}
  bool wait(coroutine& me, std::coroutine_handle<> h, std::chrono::nanoseconds timeout) {
    if (me.take_saved(*this)) return me.out_of_turn(h);
    me.wait(h, *this, timeout);
    return true;
  }
  static bool take_one(waiter& w, coroutine& me, envelope& e) {
    if (e.what() != signal::message) return false;
    return (try_one<Ms>(static_cast<receive_base&>(w), me, e) || ...);
  }
  std::optional<Out> got_;

 private:
  template <class M>
  static bool try_one(receive_base& into, coroutine& me, envelope& e) {
    if (!received<M>::matches(e)) return false;
    if (turn* t = turn_here()) t->message = e.type;
    if constexpr (std::is_same_v<Out, M>)
      into.got_.emplace(received<M>::take(me, e));
    else
      into.got_.emplace(std::in_place_type<M>, received<M>::take(me, e));
    return true;
  }
};

template <class... Ms>
struct one_or_variant {
  using type = std::variant<Ms...>;
};
template <class M>
struct one_or_variant<M> {
  using type = M;
};

template <class... Ms>
class [[nodiscard]] receiving : public receive_base<typename one_or_variant<Ms...>::type, Ms...> {
 public:
  using result_type = typename one_or_variant<Ms...>::type;
  receiving() noexcept : receive_base<result_type, Ms...>{how} {}
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    return this->wait(process_of(h.promise()), h, no_timeout);
  }
  result_type await_resume() { return std::move(*this->got_); }

 private:
  static constexpr wait_type how{.take = &receiving::take_one};
};

template <class... Ms>
class [[nodiscard]] receiving_within : public receive_base<std::variant<Ms..., timed_out>, Ms...> {
 public:
  using result_type = std::variant<Ms..., timed_out>;
  explicit receiving_within(std::chrono::nanoseconds timeout) noexcept
      : receive_base<result_type, Ms...>{how}, timeout_{timeout} {}
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    return this->wait(process_of(h.promise()), h, timeout_);
  }
  result_type await_resume() {
    if (!this->got_) return result_type{std::in_place_type<timed_out>};
    return std::move(*this->got_);
  }

 private:
  static constexpr wait_type how{.take = &receiving_within::take_one, .expire = [](waiter&) {}};
  std::chrono::nanoseconds timeout_;
};

class [[nodiscard]] sleeping : public timed_waiter {
 public:
  explicit sleeping(std::chrono::nanoseconds duration) noexcept : timed_waiter{how, duration} {}
  void await_resume() const noexcept {}

 private:
  static constexpr wait_type how{.take = [](waiter&, coroutine&, envelope&) { return false; },
                                 .expire = [](waiter&) {}};
};

class [[nodiscard]] yielding {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    process_of(h.promise()).yield(h);
  }
  void await_resume() const noexcept {}
};

class [[nodiscard]] exiting {
 public:
  explicit exiting(exit_reason why) noexcept : why_{std::move(why)} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    coroutine& me = process_of(h.promise());
    if (me.serves()) return false;
    me.end(h, std::move(why_));
    return true;
  }
  /// In a server, which runs `terminate` first: leaves all frames of the handler by an exception.
  [[noreturn]] void await_resume() { throw exit_with{std::move(why_)}; }

 private:
  exit_reason why_;
};

/// Work on a thread for blocking calls. The job owns everything it needs. If the process ends first, the result is
/// dropped.
template <class F, class... Args>
class [[nodiscard]] blocking_call : waiter {
 public:
  using result_type = std::invoke_result_t<F, Args...>;
  static constexpr bool gives_value = !std::is_void_v<result_type>;
  using stored = std::conditional_t<gives_value, std::optional<std::conditional_t<gives_value, result_type, int>>, int>;

  explicit blocking_call(F f, Args... args)
      : waiter{&how}, job_{std::make_unique<job>(std::move(f), std::tuple<Args...>(std::move(args)...))} {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    coroutine& me = process_of(h.promise());
    number_ = me.new_number();
    me.host().submit_blocking(
        // A weak pointer: the environment waits for this work when main ends, so the work must not keep the runtime,
        // which owns the environment, alive.
        [j = std::move(job_), runs_in = me.host().weak_from_this(), who = me.id(), number = number_]() mutable {
          j->run();
          if (const auto k = runs_in.lock())
            k->send_late(who, signal::wake, make_letter<done>(plain<done>, number, std::move(j)));
        });
    me.wait(h, *this, no_timeout);  // last: if something above throws, no wait has begun
  }
  result_type await_resume() {
    if (job_->failure) std::rethrow_exception(std::move(job_->failure));
    if constexpr (gives_value) return std::move(*job_->value);
  }

 private:
  struct job {
    F f;
    std::tuple<Args...> args;
    stored value{};
    std::exception_ptr failure{};
    void run() noexcept {
      try {
        if constexpr (gives_value)
          value.emplace(std::apply(std::move(f), std::move(args)));
        else
          std::apply(std::move(f), std::move(args));
      } catch (...) {
        failure = std::current_exception();
      }
    }
  };
  struct done {
    std::uint32_t number;
    std::unique_ptr<job> finished;
  };
  static bool take_done(waiter& w, coroutine&, envelope& e) {
    auto& mine = static_cast<blocking_call&>(w);
    if (e.type != &plain<done> || static_cast<letter<done>&>(e).body.number != mine.number_) return false;
    mine.job_ = take_body<done>(e).finished;
    return true;
  }
  static constexpr wait_type how{.take = &take_done};
  std::unique_ptr<job> job_;
  std::uint32_t number_ = 0;
};

}  // namespace detail

namespace detail {
template <class... Ms>
inline constexpr bool all_different = true;
template <class M, class... Ms>
inline constexpr bool all_different<M, Ms...> = (!std::is_same_v<M, Ms> && ...) && all_different<Ms...>;
}  // namespace detail

template <class... Ms>
detail::receiving<Ms...> self::receive() {
  static_assert(sizeof...(Ms) > 0, "say which messages: receive<hello, stop>()");
  static_assert(detail::all_different<Ms...>, "each type of message once: receive<hello, stop>()");
  return {};
}
template <class... Ms>
detail::receiving_within<Ms...> self::receive(std::chrono::nanoseconds timeout) {
  static_assert(sizeof...(Ms) > 0, "say which messages: receive<hello, stop>(5s)");
  static_assert(detail::all_different<Ms...>, "each type of message once: receive<hello, stop>(5s)");
  return detail::receiving_within<Ms...>{timeout};
}
inline detail::sleeping self::sleep(std::chrono::nanoseconds duration) { return detail::sleeping{duration}; }
inline detail::yielding self::yield() { return {}; }
inline detail::exiting self::exit(exit_reason reason) { return detail::exiting{std::move(reason)}; }
template <class F, class... Args>
detail::blocking_call<F, std::decay_t<Args>...> self::blocking(F f, Args&&... args) {
  return detail::blocking_call<F, std::decay_t<Args>...>{std::move(f), std::forward<Args>(args)...};
}

}  // namespace coppice
