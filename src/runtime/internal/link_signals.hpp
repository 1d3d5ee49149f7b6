#pragma once
/// The payloads of the signals that set and remove links and monitors.
#include <coppice/runtime/transport.hpp>

namespace coppice::detail {

struct link_signal {  // of `link` and `link_lost`
  pid from;
  connection_number over = 0;  // as numbered by the node that has the signal now; 0: no connection, or within the node
};
struct unlink_signal {  // of `unlink` and `unlink_ack`
  pid from;
  std::uint32_t number = 0;
};
struct monitor_signal {  // of `monitor` and `demonitor`
  pid from;
  monitor_ref ref;
};

}  // namespace coppice::detail
