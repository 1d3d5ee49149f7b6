#pragma once
/// What the classes in this folder have in common: each carries out one duty of an actor, in one turn of its process,
/// and has no state of its own. They are made where they are needed: `life_cycle{me, t}.stop(reason)`.
#include <coppice/actor/context.hpp>
#include <coppice/actor/detail/actor_signal.hpp>
#include <coppice/runtime/detail/mailbox_policy.hpp>

namespace coppice::detail {

class duty {
 public:
  duty(actor_core& me, turn& t) noexcept : me_{me}, t_{t} {}

 protected:
  [[nodiscard]] kernel& host() const noexcept { return *t_.k; }
  template <class Signal>
  void signal_to(pid who, Signal&& s) const {
    send_signal(host(), who, std::forward<Signal>(s));
  }

  actor_core& me_;
  turn& t_;
};

}  // namespace coppice::detail
