// Probes that are wrong on purpose: they prove that the test would notice.
#include <memory>
#include <vector>

#include "probe.hpp"

namespace {

bool leaks() {
  std::vector<std::string*> all(16);
  for (auto& each : all) each = new std::string(text);
  return all.size() == 16;
}
const probe p1{"control_leak", leaks};

bool frees_twice() {
  auto owner = std::make_unique<std::string>(text);
  const std::unique_ptr<std::string> second_owner(owner.get());
  return *owner == text;
}
const probe p2{"control_double_free", frees_twice};

const probe p3{"control_wrong", [] { return false; }};

}  // namespace
