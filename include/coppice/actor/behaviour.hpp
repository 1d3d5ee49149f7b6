#pragma once
/// Handlers that replace those of the actor's class for a while.
///
///     me.become(behaviour{[](open, context& me) { me.unbecome(); }, [](any_message, context&) { /* locked */ }});
///
/// Mail without a handler in the behaviour becomes a dead letter. Messages of the actor's life (life_messages.hpp)
/// without a handler go to the class.
#include <functional>
#include <vector>

#include <coppice/actor/detail/mail.hpp>
#include <coppice/actor/fwd.hpp>
#include <coppice/runtime/message.hpp>

namespace coppice::detail {

template <class F>
struct handler_of;
template <class C, class R, class M>
struct handler_of<R (C::*)(M, context&) const> {
  using gives = R;
  using message = std::decay_t<M>;
  static constexpr bool with_context = true;
};
template <class C, class R, class M>
struct handler_of<R (C::*)(M) const> {
  using gives = R;
  using message = std::decay_t<M>;
  static constexpr bool with_context = false;
};
template <class C, class R, class M>
struct handler_of<R (C::*)(M, context&)> : handler_of<R (C::*)(M, context&) const> {};
template <class C, class R, class M>
struct handler_of<R (C::*)(M)> : handler_of<R (C::*)(M) const> {};

}  // namespace coppice::detail

namespace coppice::actor {

/// Copies share their handlers and the captures of those.
class behaviour {
 public:
  /// From lambdas `void(M, context&)` or `void(M)`. A handler of `any_message` gets the messages without another
  /// handler.
  template <class... Fs>
    requires(sizeof...(Fs) > 0 && (requires { &Fs::operator(); } && ...))
  explicit behaviour(Fs... handlers) : handlers_{std::make_shared<std::vector<handler>>()} {
    (add(std::move(handlers)), ...);
  }
  behaviour(const behaviour&) = default;
  behaviour(behaviour&&) = default;
  behaviour& operator=(const behaviour&) = default;
  behaviour& operator=(behaviour&&) = default;
  ~behaviour() = default;

  /// For the library: returns whether there was a handler.
  bool handle(context& me, const detail::message_type& type, void* message) const;
  [[nodiscard]] bool handles_rest() const noexcept;

 private:
  struct handler {
    const detail::message_type* type;
    std::function<void(context&, void*)> run;
  };
  template <class F>
  void add(F f) {
    using traits = detail::handler_of<decltype(&F::operator())>;
    static_assert(std::is_void_v<typename traits::gives>, "a handler of a behaviour must return void: use me.reply");
    using M = typename traits::message;
    handlers_->push_back({&detail::plain<M>, [f = std::move(f)](context& me, void* m) mutable {
                            auto& message = *static_cast<M*>(m);
                            if constexpr (traits::with_context)
                              f(std::move(message), me);
                            else
                              f(std::move(message));
                          }});
  }
  std::shared_ptr<std::vector<handler>> handlers_;
};

}  // namespace coppice::actor
