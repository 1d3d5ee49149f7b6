#pragma once
#include <stdexcept>
#include <string>

#include <coppice/base/error.hpp>

namespace coppice {

struct spawn_options {
  /// Registered before the process runs its first line. Default: none.
  std::string name{};
  /// For people, in logs and views; need not be unique. Default: none.
  std::string label{};
  /// Linked to the process that spawns it; ignored when it is spawned from outside. Default: no.
  bool link = false;
};

/// No process could be started: the table is full, or the runtime is stopping.
class spawn_failed : public std::runtime_error {
 public:
  explicit spawn_failed(error why) : std::runtime_error{"spawn failed: " + why.to_string()}, why_{std::move(why)} {}
  [[nodiscard]] const error& why() const noexcept { return why_; }

 private:
  error why_;
};

}  // namespace coppice
