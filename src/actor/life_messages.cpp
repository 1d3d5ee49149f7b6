#include <coppice/actor/life_messages.hpp>

namespace coppice::actor {

std::string_view to_string(terminated::cause why) noexcept {
  switch (why) {
    case terminated::cause::stopped: return "stopped";
    case terminated::cause::not_found: return "not_found";
    case terminated::cause::node_gone: return "node_gone";
  }
  return "unknown";
}

}  // namespace coppice::actor
