#include "internal/handler_times.hpp"

#include <algorithm>

namespace coppice::detail {

void handler_times::add(std::string_view type, std::uint32_t messages, std::chrono::nanoseconds taken) {
  auto found = std::ranges::find(all_, type, &handler_time::type);
  if (found == all_.end()) found = all_.insert(all_.end(), handler_time{.type = type});
  found->count += messages;
  found->total += taken;
  found->longest = std::max(found->longest, taken);
}

std::vector<handler_time> handler_times::by_total() const {
  std::vector<handler_time> sorted = all_;
  std::ranges::sort(sorted, [](const handler_time& a, const handler_time& b) {
    return a.total != b.total ? a.total > b.total : a.type < b.type;
  });
  return sorted;
}

}  // namespace coppice::detail
