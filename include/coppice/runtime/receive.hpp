#pragma once
/// Waiting for messages and time, inside a process.
#include <optional>
#include <variant>

#include <coppice/runtime/message.hpp>

namespace coppice {
namespace detail {

/// Takes the oldest message of one of the types.
template <class Out, class... Ms>
class receive_base : protected waiter {
 public:
  using result_type = Out;
  using is_awaitable = void;
  [[nodiscard]] bool await_ready() const noexcept { return false; }

 protected:
  explicit receive_base(const wait_type& how) noexcept : waiter{&how} {}
  bool wait(coroutine& me, std::coroutine_handle<> h, std::chrono::nanoseconds timeout) {
    if (me.take_saved(*this)) return me.out_of_turn(h);
    me.wait(h, *this, timeout);
    return true;
  }
  static void describe_types(const waiter&, wait_info& into) {
    into.kind = (std::is_same_v<Ms, any_message> || ...) ? wait_kind::mail : wait_kind::message;
    into.types = {type_name<Ms>()...};
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
  static constexpr detail::wait_type how{.take = &pending_receive::take_one,
                                         .describe = &pending_receive::describe_types};
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
  static constexpr detail::wait_type how{.take = &pending_receive_within::take_one,
                                         .expire = [](detail::waiter&) {},
                                         .describe = &pending_receive_within::describe_types};
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
      .expire = [](detail::waiter&) {},
      .describe = [](const detail::waiter&, wait_info& into) { into.kind = wait_kind::time; }};
};

class [[nodiscard]] pending_yield {
 public:
  using is_awaitable = void;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> h) {
    detail::process_of(h.promise()).yield(h);
  }
  void await_resume() const noexcept {}
};

class [[nodiscard]] pending_exit {
 public:
  using is_awaitable = void;
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

}  // namespace coppice
