#pragma once
/// Faults of specs, found before anything is started.
#include <string>
#include <vector>

#include <coppice/base/error.hpp>

namespace coppice {

/// One fault in the specs of a tree, and its place.
struct spec_fault {
  std::vector<std::string> path;  ///< the ids from the top of the tree to the place of the fault; empty: the top
  errc code = errc::invalid;
  std::string text;  ///< without the path

  /// For example `child 'storage/cache': shutdown is negative: -1s`.
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const spec_fault&, const spec_fault&) = default;
};

/// All faults in one error, which has the code of the first; success if there are none.
[[nodiscard]] result<void> to_result(const std::vector<spec_fault>& faults);

}  // namespace coppice
