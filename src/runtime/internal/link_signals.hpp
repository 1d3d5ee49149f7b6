#pragma once
/// The payloads of the signals that keep links and monitors.
#include <coppice/runtime/detail/envelope.hpp>

namespace coppice::detail {

struct link_signal {
  pid from;
};
struct unlink_signal {  // and its confirmation
  pid from;
  std::uint64_t number;
};
struct monitor_signal {  // and the demonitor
  pid from;
  monitor_ref ref;
};

}  // namespace coppice::detail
