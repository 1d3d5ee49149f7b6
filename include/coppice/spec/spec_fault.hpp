#pragma once
/// Faults of specs, found before anything is started.
#include <string>
#include <vector>

#include <coppice/base/error.hpp>

namespace coppice {

/// One fault of a tree, and where it is.
struct spec_fault {
  std::vector<std::string> path;  ///< the ids from the top of the tree to the child; empty: the supervisor itself
  errc code = errc::invalid;
  std::string text;  ///< without the path

  /// `child 'storage/cache': shutdown is negative: -1s`
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const spec_fault&, const spec_fault&) = default;
};

/// All faults in one error, which has the code of the first; nothing wrong without faults.
[[nodiscard]] result<void> to_result(const std::vector<spec_fault>& faults);

}  // namespace coppice
