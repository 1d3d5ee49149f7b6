#include <algorithm>

#include <coppice/actor/behaviour.hpp>

namespace coppice::actor {

bool behaviour::handle(context& me, const detail::message_type& type, void* message) const {
  const auto handlers = handlers_;  // a copy: the handler may replace this behaviour
  for (const handler& h : *handlers)
    if (h.type == &type) return h.run(me, message), true;
  return false;
}

bool behaviour::handles_rest() const noexcept {
  return std::ranges::any_of(*handlers_, [](const handler& h) { return h.type == &detail::plain<any_message>; });
}

}  // namespace coppice::actor
