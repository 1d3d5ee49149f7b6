#pragma once
/// How an actor hears of its own life.
#include <coppice/actor/context.hpp>

namespace coppice::detail {

template <class F>
void actor_core::through_middleware(context& me, const message_type& what, void* message, const F& inner) {
  if (settings_->on_receive.empty()) return inner();
  run_middleware(me, what, message, inner);
}

template <class E>
void actor_core::hear(turn& t, E event) {
  mail_origin nobody;
  context me{*this, t, nobody, plain<E>};
  through_middleware(me, plain<E>, &event, [&] { (void)dispatch(me, plain<E>, &event, true); });
}

template <class E>
void actor_core::hear_quietly(turn& t, E event) {
  const message_type* before = std::exchange(t.message, &plain<E>);
  try {
    hear(t, std::move(event));
  } catch (...) {
    log_failure(t, plain<E>.name);
  }
  t.message = before;
}

}  // namespace coppice::detail
