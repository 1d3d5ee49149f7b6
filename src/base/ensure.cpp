#include <atomic>
#include <string>

#include <coppice/base/ensure.hpp>

namespace coppice::detail {

namespace {
constinit std::atomic<invariant_observer> observer_of_all{nullptr};
}

void observe_broken_invariants(invariant_observer observer) noexcept { observer_of_all = observer; }

void invariant_broken(std::string_view found, std::source_location at) {
  std::string text = "broken invariant: ";
  text.append(found).append(" at ").append(at.file_name()).append(":").append(std::to_string(at.line()));
  const broken_invariant broken{text};
  if (const invariant_observer observer = observer_of_all) observer(broken);
  throw broken;  // NOLINT(cert-err60-cpp,misc-throw-by-value-catch-by-reference): it was shown to the observer
}

}  // namespace coppice::detail
