#pragma once
/// Which application is started when, or why none is.
#include <coppice/application/application.hpp>

namespace coppice::detail {

struct planned {
  application_options app;
  std::vector<std::size_t> needs;  // places in the order of start
};

/// The applications in the order in which they are started; or all that is wrong with them.
[[nodiscard]] result<std::vector<planned>> plan(const std::vector<application>& all);

/// `"a", "b"`
[[nodiscard]] std::string in_quotes(std::string_view name);

}  // namespace coppice::detail
