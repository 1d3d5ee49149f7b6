#pragma once
/// The order in which applications are started.
#include <coppice/application/application.hpp>

namespace coppice::detail {

struct planned {
  application_options app;
  std::vector<std::size_t> needs;  // the applications that it depends on, as places in the order of start
};

/// The applications in the order of their start, or an error with all their faults.
[[nodiscard]] result<std::vector<planned>> plan(const std::vector<application>& all);

/// For example `"storage"`, with the quotes.
[[nodiscard]] std::string in_quotes(std::string_view name);

}  // namespace coppice::detail
