#pragma once
/// How long the handlers of a measured process take, by the type of the message.
#include <vector>

#include <coppice/runtime/observe.hpp>

namespace coppice::detail {

/// Thread safety: the owner of the process only.
class handler_times {
 public:
  void add(std::string_view type, std::uint32_t messages, std::chrono::nanoseconds taken);
  /// The longest total first.
  [[nodiscard]] std::vector<handler_time> by_total() const;

 private:
  std::vector<handler_time> all_;
};

}  // namespace coppice::detail
