#pragma once
#include <chrono>
#include <stdexcept>

#include <coppice/base/error.hpp>
#include <coppice/base/option_text.hpp>
#include <coppice/runtime/mailbox.hpp>

namespace coppice {

/// For `within`: no limit.
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/// How a process is spawned or started: `me.spawn({.name = "db"}, body)`. In an awaiting expression name the options
/// first: `const spawn_options linked{.link = true}; auto made = co_await start<T>(me, linked);`.
struct spawn_options {
  /// Registered before the process runs its first line. Default: none.
  option_text name{};
  /// For people, in logs and views; need not be unique. Default: none.
  option_text label{};
  /// Linked to the process that spawns it; ignored when it is spawned from outside. Default: no.
  bool link = false;
  /// For `start`: a process that is not initialised in time is killed. Ignored by `spawn`, which never waits. Default:
  /// no limit.
  std::chrono::nanoseconds within = forever;
  /// How many messages may wait for the process. Values that make no sense throw `std::invalid_argument`. Default: no
  /// limit.
  coppice::mailbox mailbox{};
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
