#pragma once
/// The payloads of the signals that keep links and monitors.
#include <coppice/runtime/transport.hpp>

namespace coppice::detail {

struct link_signal {  // and the loss of the link
  pid from;
  connection_number over = 0;  // the number that the side has for it which has the signal; 0: within the node
};
struct unlink_signal {  // and its confirmation
  pid from;
  std::uint32_t number = 0;
};
struct monitor_signal {  // and the demonitor
  pid from;
  monitor_ref ref;
};

}  // namespace coppice::detail
