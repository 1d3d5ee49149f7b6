#pragma once
/// Functions around the messages that an actor receives or sends; see `actor_options`.
#include <functional>
#include <vector>

#include <coppice/actor/fwd.hpp>
#include <coppice/runtime/message.hpp>
#include <coppice/runtime/pid.hpp>

namespace coppice::actor {

/// A message as middleware sees it.
class message_view {
 public:
  message_view(const detail::message_type& type, const void* content) noexcept : type_{&type}, content_{content} {}
  /// The C++ type, for reports.
  [[nodiscard]] std::string_view type() const noexcept { return type_->name; }
  /// The message if it is an `M`, else null.
  template <class M>
  [[nodiscard]] const M* get_if() const noexcept {
    return type_ == &detail::plain<M> ? static_cast<const M*>(content_) : nullptr;
  }

 private:
  const detail::message_type* type_;
  const void* content_;
};

/// Runs around each message that an actor handles, including `started` and the other messages of its life. Call `next`
/// to continue. The first in the list is the outermost. An exception is a failure of the actor. Continuations of
/// `context::reenter_after` do not pass through it.
using receive_middleware = std::function<void(context&, const message_view&, const std::function<void()>& next)>;
/// Runs around each `send`, `cast`, `send_from`, `call`, `reply` and `forward` of an actor.
using send_middleware = std::function<void(context&, pid to, const message_view&, const std::function<void()>& next)>;

}  // namespace coppice::actor

namespace coppice::detail {
/// Calls the middleware from the first to the last, each with `args` and a `next`, and then `inner`.
template <class Middleware, class... Args>
void run_through(const std::vector<Middleware>& chain, const std::function<void()>& inner, Args&&... args) {
  const std::function<void(std::size_t)> from = [&](std::size_t i) {
    if (i == chain.size()) return inner();
    chain[i](args..., [&, i] { from(i + 1); });
  };
  from(0);
}
}  // namespace coppice::detail
