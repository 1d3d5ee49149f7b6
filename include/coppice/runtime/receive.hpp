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
  using result_type = Out;
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
inline constexpr bool all_different = true;
template <class M, class... Ms>
inline constexpr bool all_different<M, Ms...> = (!std::is_same_v<M, Ms> && ...) && all_different<Ms...>;

}  // namespace detail

template <class... Ms>
class [[nodiscard]] pending_receive : public detail::receive_base<typename detail::one_or_variant<Ms...>::type, Ms...> {
  using base = detail::receive_base<typename detail::one_or_variant<Ms...>::type, Ms...>;

 public:
  using result_type = typename base::result_type;
  pending_receive() noexcept : base{how} {}
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    return this->wait(detail::process_of(h.promise()), h, detail::no_timeout);
  }
  result_type await_resume() { return std::move(*this->got_); }

 private:
  static constexpr detail::wait_type how{.take = &pending_receive::take_one};
};

template <class... Ms>
class [[nodiscard]] pending_receive_within : public detail::receive_base<std::variant<Ms..., timed_out>, Ms...> {
  using base = detail::receive_base<std::variant<Ms..., timed_out>, Ms...>;

 public:
  using result_type = typename base::result_type;
  explicit pending_receive_within(std::chrono::nanoseconds timeout) noexcept : base{how}, timeout_{timeout} {}
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    return this->wait(detail::process_of(h.promise()), h, timeout_);
  }
  result_type await_resume() {
    if (!this->got_) return result_type{std::in_place_type<timed_out>};
    return std::move(*this->got_);
  }

 private:
  static constexpr detail::wait_type how{.take = &pending_receive_within::take_one, .expire = [](detail::waiter&) {}};
  std::chrono::nanoseconds timeout_;
};

class [[nodiscard]] pending_sleep : public detail::timed_waiter {
  using base = detail::timed_waiter;

 public:
  explicit pending_sleep(std::chrono::nanoseconds duration) noexcept : base{how, duration} {}
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type how{
      .take = [](detail::waiter&, detail::coroutine&, detail::envelope&) { return false; },
      .expire = [](detail::waiter&) {}};
};

class [[nodiscard]] pending_yield {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    detail::process_of(h.promise()).yield(h);
  }
  void await_resume() const noexcept {}
};

class [[nodiscard]] pending_exit {
 public:
  explicit pending_exit(exit_reason why) noexcept : why_{std::move(why)} {}
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  bool await_suspend(std::coroutine_handle<P> h) {
    detail::coroutine& me = detail::process_of(h.promise());
    if (me.serves()) return false;
    me.end(h, std::move(why_));
    return true;
  }
  /// Reached only in a server, which has to run `terminate`: the exception leaves all frames of the handler.
  [[noreturn]] void await_resume() { throw exit_with{std::move(why_)}; }

 private:
  exit_reason why_;
};

/// Work on a thread for blocking calls. The job owns everything it needs. If the process ends first, the result is
/// dropped.
template <class F, class... Args>
class [[nodiscard]] pending_blocking : detail::waiter {
  using base = detail::waiter;

 public:
  using result_type = std::invoke_result_t<F, Args...>;
  static constexpr bool gives_value = !std::is_void_v<result_type>;
  using stored = std::conditional_t<gives_value, std::optional<std::conditional_t<gives_value, result_type, int>>, int>;

  explicit pending_blocking(F f, Args... args)
      : base{&how}, job_{std::make_unique<job>(std::move(f), std::tuple<Args...>(std::move(args)...))} {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    detail::coroutine& me = detail::process_of(h.promise());
    number_ = me.new_number();
    me.host().submit_blocking(
        // A weak pointer: the environment waits for this work when main ends, so the work must not keep the runtime,
        // which owns the environment, alive.
        [j = std::move(job_), runs_in = me.host().weak_from_this(), who = me.id(), number = number_]() mutable {
          j->run();
          if (const auto k = runs_in.lock())
            k->send_late(who, detail::signal::wake,
                         detail::make_letter<done>(detail::plain<done>, number, std::move(j)));
        });
    me.wait(h, *this, detail::no_timeout);  // last: if something above throws, no wait has begun
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
  static bool take_done(detail::waiter& w, detail::coroutine&, detail::envelope& e) {
    auto& mine = static_cast<pending_blocking&>(w);
    if (e.type != &detail::plain<done> || static_cast<detail::letter<done>&>(e).body.number != mine.number_)
      return false;
    mine.job_ = detail::take_body<done>(e).finished;
    return true;
  }
  static constexpr detail::wait_type how{.take = &take_done};
  std::unique_ptr<job> job_;
  std::uint32_t number_ = 0;
};

template <class... Ms>
pending_receive<Ms...> self::receive() {
  static_assert(sizeof...(Ms) > 0, "say which messages: receive<hello, stop>()");
  static_assert(detail::all_different<Ms...>, "each type of message once: receive<hello, stop>()");
  return {};
}
template <class... Ms>
pending_receive_within<Ms...> self::receive(std::chrono::nanoseconds timeout) {
  static_assert(sizeof...(Ms) > 0, "say which messages: receive<hello, stop>(5s)");
  static_assert(detail::all_different<Ms...>, "each type of message once: receive<hello, stop>(5s)");
  return pending_receive_within<Ms...>{timeout};
}
inline pending_sleep self::sleep(std::chrono::nanoseconds duration) { return pending_sleep{duration}; }
inline pending_yield self::yield() { return {}; }
inline pending_exit self::exit(exit_reason reason) { return pending_exit{std::move(reason)}; }
template <class F, class... Args>
pending_blocking<F, std::decay_t<Args>...> self::blocking(F f, Args&&... args) {
  return pending_blocking<F, std::decay_t<Args>...>{std::move(f), std::forward<Args>(args)...};
}

}  // namespace coppice
