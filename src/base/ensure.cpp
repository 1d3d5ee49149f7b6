#include <string>

#include <coppice/base/ensure.hpp>

namespace coppice::detail {

void invariant_broken(std::string_view why, std::source_location at) {
  std::string text = "broken invariant: ";
  text.append(why).append(" at ").append(at.file_name()).append(":").append(std::to_string(at.line()));
  throw broken_invariant{text};
}

}  // namespace coppice::detail
